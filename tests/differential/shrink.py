"""The smallest program that still shows a fault: lines and blocks are taken out as long as it does.

    shrunk(text, still_wrong)        `still_wrong(text)` is whether a program that compiles shows the fault; False where it does not compile
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable


async def shrunk(text: str, still_wrong: Callable[[str], Awaitable[bool]]) -> str:
    """Large pieces first, then smaller ones, until nothing can go."""
    lines = text.rstrip("\n").split("\n")
    changed = True
    while changed:
        changed = False
        start = 0
        while start < len(lines):
            for candidate in _without(lines, start):
                if await still_wrong("\n".join(candidate) + "\n"):
                    lines, changed = candidate, True
                    break
            else:
                start += 1
    return "\n".join(lines) + "\n"


def _without(lines: list[str], start: int) -> list[list[str]]:
    """The program without the block that begins at a line, with its body in its place, or without the line."""
    indent = _indent(lines[start])
    end = start + 1
    while end < len(lines) and (_indent(lines[end]) > indent or not lines[end].strip()):
        end += 1
    less = [lines[:start] + lines[end:]]
    if end > start + 1:
        body = [line[4:] if line.strip() else line for line in lines[start + 1 : end]]
        less.append(lines[:start] + body + lines[end:])
    if lines[start].strip():
        less.append(lines[:start] + [" " * indent + "pass"] + lines[end:] if lines[start].strip() != "pass" else lines)
    # A header and what closes it (a fork and its join, a try and its except) go together.
    if end < len(lines) and _indent(lines[end]) == indent and lines[end].strip().startswith(("join", "except", "else", "elif")):
        after = end + 1
        while after < len(lines) and _indent(lines[after]) > indent:
            after += 1
        less.insert(0, lines[:start] + lines[after:])
    return [one for one in less if one != lines]


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
