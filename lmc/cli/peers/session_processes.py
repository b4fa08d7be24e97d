"""All processes of one session of the system: who was started by a peer, and by what it started.

    SessionProcesses(pid).stop()        SIGSTOP to each
    SessionProcesses(pid).peak_bytes()  their peaks of resident memory, added up

Where there is no /proc only the process group is known, and of memory nothing.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path

from lmc.cli.workloads.peak_memory import peak_of, reset_peak

_PROC = Path("/proc")


class SessionProcesses:
    """The session that `leader` began."""

    __slots__ = ("leader",)

    def __init__(self, leader: int):
        self.leader = leader

    def stop(self) -> None:
        self._signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self._signal(signal.SIGCONT)

    def kill(self) -> None:
        """Also those that are stopped."""
        self._signal(signal.SIGKILL)

    def reset_peak(self) -> None:
        for process in self._members():
            reset_peak(process)

    def peak_bytes(self) -> int:
        """Pages that several of them share are counted for each."""
        return sum(peak_of(process) or 0 for process in self._members())

    def _signal(self, number: int) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.leader, number)
        for process in self._members():
            with suppress(ProcessLookupError, PermissionError):
                os.kill(process, number)

    def _members(self) -> list[int]:
        return [int(entry.name) for entry in _PROC.glob("[0-9]*") if _session(entry) == self.leader]


def _session(process: Path) -> int | None:
    """The session's number: the fourth field behind the command, which may hold anything but ends with the last bracket."""
    with suppress(OSError):
        return int((process / "stat").read_text(errors="replace").rpartition(")")[2].split()[3])
    return None
