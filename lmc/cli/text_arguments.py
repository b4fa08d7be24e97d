"""Arguments as text: what `--essay …` on the command line means for a parameter's type.

    str              the text itself
    anything else    JSON: `3`, `true`, `["a", "b"]`, `{"wood": "oak"}`; a literal of strings is text
    @essay.txt       what the file holds, read in the same way; `@@x` is the text `@x`
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from lmc.backend.program import ParameterInfo
from lmc.diagnostics import Diagnostic, UsageError
from lmc.types import LiteralT, OptionalT, StrT, Type, spell_type


def read_argument(parameter: ParameterInfo, text: str) -> Any:
    """The argument as JSON data.  Raises `UsageError` for a file that cannot be read and for what is no JSON."""
    source = ""
    if text.startswith("@@"):
        text = text[1:]
    elif text.startswith("@"):
        source = f" in {text[1:]}"
        text = _read_file(parameter, Path(text[1:]))
    if _is_text(parameter.type):
        return text
    try:
        return json.loads(text)
    except ValueError as error:
        shown = text if len(text) <= 60 else text[:57] + "…"
        wanted = spell_type(parameter.type)
        message = f"the argument `{parameter.name}` must be JSON of type `{wanted}`, found{source}: {shown}"
        raise UsageError(Diagnostic("E0851", message, None, help=f"JSON: {error}")) from None


def _read_file(parameter: ParameterInfo, path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        message = f"the file `{path}` for `{parameter.name}` is no UTF-8 text: {error.reason} at byte {error.start}"
        raise UsageError(Diagnostic("E0853", message, None, help="convert it to UTF-8")) from None
    except OSError as error:
        message = f"the file `{path}` for `{parameter.name}` cannot be read: {error.strerror}"
        raise UsageError(Diagnostic("E0853", message, None, help="a text that begins with `@` is written `@@…`")) from None


def _is_text(type: Type) -> bool:
    match type:
        case StrT():
            return True
        case OptionalT(inner):
            return _is_text(inner)
        case LiteralT(values):
            return all(isinstance(v, str) for v in values)
    return False
