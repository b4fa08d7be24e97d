"""The most memory that this process has held, since the start or since it was last asked to begin anew.

    reset_peak(); work(); peak_bytes()

Linux can begin anew; where it does not allow it, and on other systems, the peak is that since the process started.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path

# What `man 5 proc` says resets the peak of the resident set.
_RESET = "5"


def reset_peak() -> None:
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text(_RESET)


def peak_bytes() -> int:
    """Resident memory at its peak."""
    with suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # Kilobytes everywhere but on macOS.
    return peak if sys.platform == "darwin" else peak * 1024
