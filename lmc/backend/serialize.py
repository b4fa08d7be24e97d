"""Compiled programs as files (`.lmpc`).

    b"LMPC\\r\\n" | version, 2 bytes little-endian | SHA-256 of the rest, 32 bytes | zlib of JSON text

Nothing that is read is executed: the JSON is data, checked field by field (`program_data.py`) and as a whole (`validate.py`),
and a file that is damaged, newer, too large or made by hand is refused with the reason.  The hash finds accidents; it is no
signature.
"""

from __future__ import annotations

import hashlib
import json
import zlib

from lmc.backend.data import BadData
from lmc.backend.program import Program
from lmc.backend.program_data import program_from_data, program_to_data
from lmc.backend.validate import validate
from lmc.diagnostics import CompileError, Diagnostic

#: The line end is damaged by transfers that take the file for text, which the first look then finds.
MAGIC = b"LMPC\r\n"
#: Raised when a program of the old version would be misread.
VERSION = 3
#: Bytes of JSON text; a small file can unpack to a thousand times its size.
MAX_TEXT = 256 * 2**20

_HEADER = len(MAGIC) + 2 + 32


def write_program(program: Program) -> bytes:
    """The file's content; equal programs give equal bytes."""
    text = json.dumps(program_to_data(program), ensure_ascii=True, separators=(",", ":"))
    payload = zlib.compress(text.encode("ascii"), 9)
    return MAGIC + VERSION.to_bytes(2, "little") + hashlib.sha256(payload).digest() + payload


def read_program(data: bytes, path: str) -> Program:
    """The program in a file's content; `path` is named in errors.  Raises `CompileError` (E0904)."""
    try:
        program = program_from_data(_json(_payload(data)))
        validate(program)
        return program
    except BadData as error:
        help = "compile it again from its `.lmp` file: `lmc compile program.lmp -o program.lmpc`"
        message = f"`{path}` cannot be read as a compiled program: {error}"
        raise CompileError(Diagnostic("E0904", message, None, help=help)) from None


def is_program(data: bytes) -> bool:
    """Whether the content begins as that of a compiled program."""
    return data.startswith(MAGIC)


def _payload(data: bytes) -> bytes:
    if not is_program(data):
        raise BadData("it does not begin with the mark of one")
    version = int.from_bytes(data[len(MAGIC):len(MAGIC) + 2], "little")
    if version != VERSION:
        age = "a newer" if version > VERSION else "an older"
        raise BadData(f"it has format {version}, of {age} version of lmc; this one reads format {VERSION}")
    payload = data[_HEADER:]
    if hashlib.sha256(payload).digest() != data[_HEADER - 32:_HEADER]:
        raise BadData("it is damaged: its content does not have the checksum that it carries")
    unpacker = zlib.decompressobj()
    try:
        text = unpacker.decompress(payload, MAX_TEXT)
    except zlib.error:
        raise BadData("its content cannot be unpacked") from None
    if not unpacker.eof:
        raise BadData(f"its content is cut off, or larger than {MAX_TEXT:,} bytes")
    return text


def _json(text: bytes) -> object:
    try:
        return json.loads(text)
    except RecursionError:
        raise BadData("its content is nested too deeply") from None
    except ValueError:
        # UnicodeDecodeError, JSONDecodeError, and numbers with thousands of digits.
        raise BadData("its content is not JSON") from None
