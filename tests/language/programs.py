"""What the tests of the language share: a program as text, run on the stand-in model or on what a test wants it to write.

    ran = run('''
    def main() -> str:
        user: "Hi"
        assistant: a = gen()
        return a
    ''', tmp_path, answer=lambda text: "Hello")
    ran.value, ran.prompts == "Hello", ["<|im_start|>user\\nHi<|im_end|>\\n<|im_start|>assistant\\n"]
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lmc.compiler import compile_file
from lmc.levels import DEFAULT_LEVEL
from lmc.parser.check import check
from lmc.types import NONE, Type
from lmc.values import to_data
from tests.runtime.programs import TOKENS, Ended, dry_session, scripted_session, writes
from tests.runtime.programs import run as run_machine


@dataclass
class Ran(Ended):
    """Also what was asked of the engine, and the prompts as text with control tokens as they are spelled."""

    requests: list[Any] = field(default_factory=list)
    prompts: list[str] = field(default_factory=list)
    peak: int = 0
    result: Type = NONE

    @property
    def data(self) -> Any:
        """The value as JSON data."""
        return to_data(self.value, self.result)

    @property
    def message(self) -> str:
        """Of the error."""
        return self.error.diagnostics[0].message


def run(text: str, folder: Path, *args: Any, name: str = "main", answer: Callable[[str], str] | None = None, script: Any = None,
        level: int = DEFAULT_LEVEL, **options: Any) -> Ran:
    """Compile the text and run a function of it.  `answer`: what the model writes after a text (`writes`); `script`: its logits."""
    program = compile_file(str(written(text, folder)), level=level).program
    script = writes(answer) if answer is not None else script
    session = scripted_session(script) if script is not None else dry_session()
    ended = run_machine(program, session, name, *args, **options)
    requests = session.requests
    return Ran(ended.value, ended.error, ended.report, ended.printed, ended.streamed, requests,
               [spelled(r.prompt) for r in requests], session.peak, program.functions[name].result)


def value(text: str, folder: Path, *args: Any, **options: Any) -> Any:
    """What the function returns; its errors are raised."""
    ran = run(text, folder, *args, **options)
    if ran.error is not None:
        raise ran.error
    return ran.value


def prompt(text: str, folder: Path, *args: Any, **options: Any) -> str:
    """The prompt of the last generation; the tokens that are reopened at its end are in it."""
    ran = run(text, folder, *args, **options)
    if ran.error is not None:
        raise ran.error
    return ran.prompts[-1] + ran.requests[-1].heal.decode()


def mistakes(text: str, folder: Path) -> list[tuple[str, int]]:
    """Code and line of everything that is wrong with a program, warnings left out."""
    return [(d.code, d.span.line) for d in check(str(written(text, folder))).errors]


def said(text: str, folder: Path) -> str:
    """Message and help of the one mistake of a program."""
    (found,) = check(str(written(text, folder))).errors
    return f"{found.message} {found.help or ''}"


def written(text: str, folder: Path) -> Path:
    path = folder / "program.lmp"
    path.write_text(textwrap.dedent(text).lstrip("\n"), encoding="utf-8")
    return path


def spelled(ids: Any) -> str:
    """Token ids as text, control tokens as they are spelled."""
    return b"".join(TOKENS.control_text(i).encode() or TOKENS.token_bytes[i] for i in ids).decode()

