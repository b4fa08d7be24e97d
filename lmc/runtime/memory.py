"""How many tokens the key-value pool holds when nobody says: a quarter of what this process may still use, at most 4 GiB.

    available 24 GiB, 92,160 bytes per token   ->   46,603 tokens

What "may use" means is the tightest limit of the control groups that the process is in, less what they use, or the machine's free
memory.
"""

from __future__ import annotations

from pathlib import Path

_SHARE, _MOST = 4, 4 << 30
# Where nothing can be found out (no /proc): what a small machine can spare.
_UNKNOWN = 2 << 30
#: No pool smaller than this is worth starting with.
_LEAST_TOKENS = 256


def default_slots(slot_bytes: int, max_positions: int, *, reserved: int = 0, root: Path = Path("/")) -> int:
    """Size of the pool in tokens.  A pool that holds 64 contexts of full length is large enough for anything.

    reserved: bytes that the weights will take
    """
    size = min(max(0, available_bytes(root) - reserved) // _SHARE, _MOST) // slot_bytes
    return max(_LEAST_TOKENS, min(size, 64 * max_positions))


def available_bytes(root: Path = Path("/")) -> int:
    """Bytes that this process may still allocate.  `root` is where `/proc` and `/sys` are."""
    found = [free for free in (_machine(root), *_groups(root)) if free is not None]
    return max(0, min(found)) if found else _UNKNOWN


def _machine(root: Path) -> int | None:
    for line in (_read(root / "proc/meminfo") or "").splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return None


def _groups(root: Path) -> list[int | None]:
    """Free bytes of the process's control group (version 2) and those around it, and of a version 1 memory group."""
    found = [_free(root / "sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes")]
    for line in (_read(root / "proc/self/cgroup") or "").splitlines():
        hierarchy, _, path = line.split(":", 2)
        if hierarchy == "0":
            top = root / "sys/fs/cgroup"
            folder = top / path.lstrip("/")
            found += [_free(f, "memory.max", "memory.current") for f in (folder, *folder.parents) if f == top or top in f.parents]
    return found


def _free(folder: Path, limit: str, usage: str) -> int | None:
    most, used = _read(folder / limit), _read(folder / usage)
    if most is None or used is None or not most.strip().isdigit():
        return None
    return int(most) - int(used)


def _read(path: Path) -> str | None:
    try:
        return path.read_text()
    except OSError:
        return None
