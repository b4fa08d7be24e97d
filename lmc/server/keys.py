"""API keys: read from a file, and compared so that the time tells nothing.

    # who    key
    alice    sk-…
    bob      sk-…

Only digests are kept.  A client without a name is called by its place in the file.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable
from pathlib import Path

from lmc.diagnostics import Diagnostic, UsageError
from lmc.server.settings import Key

#: Characters; a shorter one could be guessed.
SHORTEST_KEY = 16


def key_of(name: str, text: str, place: str) -> Key:
    """The key with its owner.  `place`: where it stands, for people.  Raises `UsageError`; the key is in no message."""
    fault = None
    if not text.isascii() or not text.isprintable() or " " in text:
        fault = "holds characters that no header can carry"
    elif len(text) < SHORTEST_KEY:
        fault = f"has {len(text)} characters, expected at least {SHORTEST_KEY}"
    if fault:
        help = "make one: python -c 'import secrets; print(secrets.token_urlsafe(24))'"
        raise UsageError(Diagnostic("E0851", f"the key {place} {fault}", None, help=help))
    return Key(name, hashlib.sha256(text.encode()).digest())


def read_keys(path: Path) -> tuple[Key, ...]:
    """The keys of a file, one a line: an optional name and the key.  Raises `UsageError`."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no UTF-8 text"
        raise UsageError(Diagnostic("E0853", f"the file of keys `{path}` cannot be read: {reason}", None)) from None
    keys: list[Key] = []
    for number, line in enumerate(lines, 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if len(words) > 2:
            message = f"line {number} of `{path}` has {len(words)} words, expected a name and a key"
            raise UsageError(Diagnostic("E0851", message, None, help="a name has no spaces; a comment begins with `#`"))
        name = words[0] if len(words) == 2 else f"line-{number}"
        keys.append(key_of(name, words[-1], f"in line {number} of `{path}`"))
    _check_distinct(keys, path)
    return tuple(keys)


def owner_of(keys: Iterable[Key], text: str) -> str | None:
    """Whose key this is; None for nobody's.  Every key is compared, whole, whatever the others gave."""
    digest, owner = hashlib.sha256(text.encode("utf-8", "replace")).digest(), None
    for key in keys:
        if hmac.compare_digest(key.digest, digest):
            owner = key.name
    return owner


def _check_distinct(keys: list[Key], path: Path) -> None:
    if not keys:
        raise UsageError(Diagnostic("E0851", f"`{path}` holds no key", None, help="one a line: a name and a key"))
    for what, values in (("name", [key.name for key in keys]), ("key", [key.digest for key in keys])):
        if len(set(values)) < len(values):
            twice = next(key.name for place, key in enumerate(keys) if values[place] in values[:place])
            raise UsageError(Diagnostic("E0851", f"`{path}` has the same {what} twice, the second time for `{twice}`", None))
