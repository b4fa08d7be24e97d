"""The most memory that a process has held, since the start or since it was last asked to begin anew.

    reset_peak(); work(); peak_bytes()

Linux can begin anew; where it does not allow it, and on other systems, the peak is that since the process started.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path

# What `man 5 proc` says resets the peak of the resident set.
_RESET = "5"


def reset_peak(process: int | str = "self") -> None:
    with suppress(OSError):
        Path(f"/proc/{process}/clear_refs").write_text(_RESET)


def peak_bytes() -> int:
    """Resident memory of this process at its peak."""
    if (found := peak_of("self")) is not None:
        return found
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # Kilobytes everywhere but on macOS.
    return peak if sys.platform == "darwin" else peak * 1024


def peak_of(process: int | str) -> int | None:
    """Resident memory of any process at its peak, where the system tells it."""
    with suppress(OSError):
        for line in Path(f"/proc/{process}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return None
