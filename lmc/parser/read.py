"""From the bytes of a file to its text: encoding, byte-order mark and line ends.

    read_source("judge.lmp") -> text with `\\n` line ends and no byte-order mark

LF, CRLF and a byte-order mark give the same text, hence the same places.  This file does not know the language.
"""

from __future__ import annotations

from pathlib import Path

from lmc.diagnostics import CompileError, Diagnostic, Span


def read_source(path: str | Path) -> str:
    """The text of the file at `path`; raises `CompileError` where it cannot be read or is no UTF-8 text."""
    return decode_source(str(path), read_bytes(path))


def read_bytes(path: str | Path) -> bytes:
    """The bytes of the file at `path`; raises `CompileError` where it cannot be read."""
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise CompileError(Diagnostic("E0001", f"cannot read `{path}`: {error.strerror or error}", None,
                                      help="check the path and its permissions")) from error


def decode_source(path: str, data: bytes) -> str:
    """The text of `data`; raises `CompileError` with the place of the first bad byte."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise _not_text(path, "the file is UTF-16", 1, 1, "save the file as UTF-8")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8").removeprefix("\ufeff")
        line = before.count("\n") + 1
        column = len(before) - (before.rfind("\n") + 1) + 1
        wide = b"\0" in data[:64]
        help = "save the file as UTF-8" + ("; it looks like UTF-16" if wide else "")
        raise _not_text(path, f"byte {data[error.start]:#04x} is not UTF-8", line, column, help) from error
    return text.removeprefix("\ufeff").replace("\r\n", "\n")


def _not_text(path: str, message: str, line: int, column: int, help: str) -> CompileError:
    return CompileError(Diagnostic("E0001", message, Span(path, line, column, line, column + 1), "not UTF-8 text", help))
