"""Before, After and near misses of a pass's docstring, as modules."""

from __future__ import annotations

import textwrap


def sections(doc: str) -> dict[str, list[str]]:
    """The indented IR below each heading: `before`, `after`, `near miss`."""
    found: dict[str, list[str]] = {"before": [], "after": [], "near miss": []}
    kind, lines = None, []
    for line in [*doc.split("\n"), "end"]:
        if line.startswith("    ") or not line.strip():
            lines.append(line)
            continue
        code = textwrap.dedent("\n".join(lines)).strip("\n")
        if kind and code:
            found[kind].append(code)
            kind = None
        lines = []
        for name in found:
            if name in line.lower() and (name == "near miss" or line.strip().rstrip(":").lower() == name):
                kind = name
    return found


def module_text(body: str) -> str:
    return 'module "test" {\n' + textwrap.indent(body, "  ") + "\n}\n"
