"""One process that compiles constraints, as the server sees it: started, asked, and killed where nobody waits for the answer.

    process = await ConstraintProcess.start(CompileLimits())
    automaton = await process.ask("regex", "a|b")        # raises UsageError with a diagnostic of ours
    process.kill()

Whatever goes wrong on the other side, a limit or a crash, is that constraint's own error; the process is gone then (`ended`) and
a new one takes its place.  Who is told what is in `constraint_compiler.py`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from pathlib import Path
from typing import Any

import lmc
from lmc.backend.data import BadData
from lmc.backend.dfa_data import constraint_from_data
from lmc.diagnostics import Diagnostic, UsageError
from lmc.regex.dfa import ByteDfa
from lmc.regex.grammar import Grammar
from lmc.runtime.daemon_call import call_in_daemon
from lmc.server.settings import CompileLimits

# Where this package is comes last: what the interpreter finds anyway goes first.
_START = "import sys; sys.path.append(sys.argv.pop(1)); from lmc.server.constraint_worker import main; main()"
# A busy machine may take this much longer than the processor time that is allowed, and starting takes a moment.
_WALL, _STARTING, _ENDING = 6, 20.0, 5.0
# JSON of an automaton: base64 is a third longer than its bytes, and something stands around it.
_ANSWER_FACTOR, _ANSWER_MORE = 1.5, 16 << 20


class NotNow(UsageError):
    """This constraint is not compiled now, for no fault of its own: the client may come again."""


class ConstraintProcess:
    """Asked one thing at a time."""

    __slots__ = ("_process", "_limits", "_killed")

    def __init__(self, process: Process, limits: CompileLimits):
        self._process, self._limits = process, limits
        self._killed = False

    @classmethod
    async def start(cls, limits: CompileLimits) -> ConstraintProcess:
        """Start one; it makes itself ready while others are asked."""
        # In a session of its own: Ctrl-C in a terminal is for the server, which ends it by closing its input.
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-P", "-c", _START, str(Path(lmc.__file__).parent.parent), str(limits.seconds), str(limits.memory),
            str(limits.table), stdin=PIPE, stdout=PIPE, stderr=DEVNULL, start_new_session=True)
        return cls(process, limits)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def ended(self) -> bool:
        """Whether it answers nothing any more."""
        return self._killed or self._process.returncode is not None

    def kill(self) -> None:
        """End it now, whatever it does."""
        if not self.ended:
            self._killed = True
            with contextlib.suppress(ProcessLookupError):  # it has just ended by itself
                self._process.kill()

    async def wait(self) -> None:
        """Until it has ended, and its pipes are closed."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        await self._process.wait()

    async def ask(self, kind: str, source: str) -> ByteDfa | Grammar:
        """kind: `regex`, `schema` or `grammar`.  Cancelling it kills the process.  Raises `UsageError`, `NotNow` where the process
        was ended from outside."""
        try:
            async with asyncio.timeout(self._limits.seconds * _WALL + _STARTING):
                answer = await self._exchange(json.dumps({"kind": kind, "source": source}).encode())
        except (asyncio.IncompleteReadError, ConnectionError):
            raise await self._broken_off(kind) from None
        except TimeoutError:
            self.kill()
            raise self._over_time(kind) from None
        except BaseException:
            self.kill()
            raise
        # A large automaton takes a while to read.
        return await call_in_daemon(_read_answer, answer, kind)

    async def _exchange(self, job: bytes) -> bytes:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None and stdout is not None
        stdin.write(len(job).to_bytes(4, "little") + job)
        await stdin.drain()
        size = int.from_bytes(await stdout.readexactly(4), "little")
        if size > self._limits.table * _ANSWER_FACTOR + _ANSWER_MORE:
            raise ConnectionError("an answer longer than any that is allowed")
        return await stdout.readexactly(size)

    async def _broken_off(self, kind: str) -> UsageError:
        # Killing a process that ends just now would hide how it ended: asyncio and `subprocess` both wait for it.
        try:
            async with asyncio.timeout(_ENDING):
                await self.wait()
        except TimeoutError:
            self.kill()
        if self._process.returncode == -signal.SIGPROF:
            return self._over_time(kind)
        if self._process.returncode == -signal.SIGKILL:
            return NotNow(Diagnostic("E0610", f"the process that compiled this {kind} was killed", None, help="ask again in a few seconds"))
        message = f"compiling this {kind} needs more than the {self._limits.memory >> 20:,} MiB that a request may use"
        return UsageError(Diagnostic("E0610", message, None, help="lower the counts in it"))

    def _over_time(self, kind: str) -> UsageError:
        message = f"compiling this {kind} takes more than the {self._limits.seconds:g} s of processor time that a request may use"
        return UsageError(Diagnostic("E0610", message, None, help="lower the counts in it, or take fewer alternatives"))


def _read_answer(data: bytes, kind: str) -> ByteDfa | Grammar:
    try:
        answer: Any = json.loads(data)
        if "constraint" in answer:
            return constraint_from_data(answer["constraint"])
        raise UsageError(Diagnostic(answer["code"], answer["message"], None, help=answer["help"]))
    except (BadData, ValueError, KeyError, TypeError) as error:
        # Only a process that something took over answers like this.
        raise UsageError(Diagnostic("E0610", f"compiling this {kind} gave no automaton: {error}", None)) from None
