"""How large the key-value pool is to be, in tokens or in bytes; what a token takes depends on the model.

    pool_size(tokens=50_000)
    pool_size(size="2GiB").slots(46_080, default)      ->  46,603
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from lmc.diagnostics import Diagnostic, UsageError

#: Units as people write them; a bare number is bytes.
_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}
#: A prompt of one token, and one that is generated.
_LEAST = 2


@dataclass(frozen=True, slots=True)
class PoolSize:
    """At most one of both is given."""

    tokens: int | None = None
    bytes: int | None = None

    def slots(self, slot_bytes: int, default: Callable[[], int]) -> int:
        """Tokens that the pool holds where one takes `slot_bytes`.  Raises `UsageError` where they are too few."""
        if self.bytes is None:
            return self.tokens or default()
        found = self.bytes // slot_bytes
        if found < _LEAST:
            raise _too_small(f"a pool of {self.bytes:,} bytes holds {found} tokens of {slot_bytes:,} bytes each")
        return found


def pool_size(tokens: int | None = None, size: int | str | None = None) -> PoolSize:
    """The size that was asked for: so many tokens, or so many bytes, such as "2GiB".  Raises `UsageError` for what is no size."""
    if tokens is not None and size is not None:
        message = f"the pool is given {tokens:,} tokens and a size of {size}, expected one of both"
        raise UsageError(Diagnostic("E0851", message, None, help="leave `pool_tokens` or `pool_bytes` out"))
    if tokens is not None and tokens < _LEAST:
        raise _too_small(f"the pool has {tokens} tokens")
    return PoolSize(tokens, None if size is None else read_bytes(size, "pool_bytes", "left out, a quarter of the free memory is taken"))


def read_bytes(size: int | str, name: str, help: str | None = None) -> int:
    """A number of bytes, such as 512MiB.  name: of the option, for messages.  Raises `UsageError`."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMG]?I?B?)", str(size).strip().upper())
    unit = found[2] + ("" if found[2].endswith("B") or not found[2] else "B") if found else "?"
    if found is None or unit not in _UNITS:
        message = f"`{name}` is {size!r}, expected a size such as 512MiB or 2GiB"
        raise UsageError(Diagnostic("E0851", message, None, help=help))
    return int(float(found[1]) * _UNITS[unit])


def _too_small(message: str) -> UsageError:
    return UsageError(Diagnostic("E0851", f"{message}, expected at least {_LEAST}", None, help="left out, a quarter of the free memory is taken"))
