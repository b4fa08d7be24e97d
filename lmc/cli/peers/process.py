"""One peer: its process, requests to it and their answers.  The messages are those of `benchmarks/peers/peer_protocol.py`.

    peer = Peer("vllm", [".bench-peers/vllm/bin/python", "benchmarks/peers/vllm_peer.py"])
    ready = await peer.open(PeerSetting("/…/smollm2-135m-instruct"))
    answers = await asyncio.gather(*(peer.generate(PeerAsk(ids, 16)) for ids in prompts))
    peer.pause()        # another one's turn
    peer.resume()
    peer.close()

A peer that ends, says something else than the protocol, or says nothing for `patience` seconds while an answer is due is killed with
all that it has started, and everything that waits for it fails with the tail of its standard error.  Nothing here waits for ever, and
no peer outlives this process: its standard input ends, and on Linux it is killed.

Answers come to whichever event loop asks, so one peer serves several, one after the other.
"""

from __future__ import annotations

import asyncio
import json
import queue
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from lmc.cli.peers.exchange import (
    PeerAnswer,
    PeerAsk,
    PeerError,
    PeerProgramRun,
    PeerReady,
    PeerScore,
    PeerSetting,
    PeerStats,
    setting_message,
)
from lmc.cli.peers.session_processes import SessionProcesses

#: Seconds without a word while an answer is due.  The first start of a peer compiles for minutes.
PATIENCE, OPENING_PATIENCE = 600.0, 1200.0
# Seconds that it has to end by itself.
_GOODBYE = 20.0
# Lines of its standard error that an error shows.
_TAIL = 12


class Peer:
    """A peer's process.  All methods but `close` may be called from one event loop at a time.

    command: what is started; environment: its variables, this process's own if None; patience: see the file
    Raises `PeerError` where it cannot be started.
    """

    __slots__ = ("name", "ready", "patience", "_errors", "_process", "_processes", "_commands", "_lock", "_waiting", "_numbers", "_heard",
                 "_end", "_paused")

    def __init__(self, name: str, command: Sequence[str], *, environment: Mapping[str, str] | None = None, patience: float = PATIENCE):
        self.name = name
        self.ready: PeerReady | None = None
        self.patience = patience
        # Appending: that this process reads in it moves nothing for who writes.
        self._errors = tempfile.TemporaryFile("a+b")
        try:
            self._process = subprocess.Popen(list(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors,
                                             env=None if environment is None else dict(environment), start_new_session=True)
        except OSError as error:
            self._errors.close()
            raise PeerError(f"the peer `{name}` cannot be started: {command[0]}: {error.strerror}",
                            help=f"make bench-peers PEERS={name}") from None
        self._processes = SessionProcesses(self._process.pid)
        self._commands: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._lock = threading.Lock()  # between who asks and the reader: an answer is either waited for or its peer has ended
        self._waiting: dict[Any, tuple[asyncio.AbstractEventLoop, asyncio.Future]] = {}
        self._numbers = 0
        self._heard = time.monotonic()
        self._end: str | None = None
        self._paused = False
        for work in (self._write, self._read):
            threading.Thread(target=work, name=f"peer-{name}", daemon=True).start()

    @property
    def ended(self) -> bool:
        """Whether it answers nothing any more."""
        return self._end is not None

    async def open(self, setting: PeerSetting) -> PeerReady:
        """Load the model.  Raises `PeerError`, as all of these do."""
        said = await self._ask("ready", {"op": "open", **setting_message(setting)}, max(self.patience, OPENING_PATIENCE))
        self.ready = PeerReady(said["engine"], said["precision"], frozenset(said["can"]), tuple(said["notes"]))
        return self.ready

    async def generate(self, ask: PeerAsk) -> PeerAnswer:
        """A waiter that is cancelled gives its request up."""
        said = await self._numbered({"op": "generate", **ask.message()})
        return PeerAnswer(tuple(said["ids"]), said["text"], said["finish"], said["computed"], said["cached"])

    async def score(self, ids: Sequence[int], start: int) -> PeerScore:
        """Log-probabilities of `ids[start:]`, each given all before it."""
        said = await self._numbered({"op": "score", "ids": list(ids), "start": start})
        return PeerScore(tuple(said["logprobs"]), said["computed"], said["cached"])

    async def program(self, name: str, rows: Sequence[Mapping[str, Any]]) -> PeerProgramRun:
        """Its own program of that name, once for each row, side by side.  rows: arguments of the function in `examples/peers`"""
        said = await self._numbered({"op": "program", "name": name, "rows": [dict(row) for row in rows]})
        return PeerProgramRun(tuple(said["texts"]), tuple(said["lengths"]), said["prompt"], said["computed"], said["cached"])

    async def reset(self) -> None:
        """Empty its cache; nothing may be under way."""
        await self._ask("reset", {"op": "reset"}, self.patience)

    async def stats(self) -> PeerStats:
        said = await self._ask("stats", {"op": "stats"}, self.patience)
        return PeerStats(said["computed"], said["cached"], said["generated"], said["passes"])

    def pause(self) -> None:
        """Stop all its processes, so that they take no time from whoever has the turn."""
        self._paused = True
        self._processes.stop()

    def resume(self) -> None:
        self._processes.go_on()
        self._paused = False

    def reset_peak(self) -> None:
        """Forget the most memory that it has held so far."""
        self._processes.reset_peak()

    def peak_bytes(self) -> int:
        """The most resident memory of each of its processes since `reset_peak`, added up."""
        return self._processes.peak_bytes()

    def close(self) -> None:
        """End it, whatever it does; called again it does nothing."""
        if self._errors.closed:
            return
        if self._paused:
            self.resume()
        self._commands.put(json.dumps({"op": "close"}).encode() + b"\n")
        self._commands.put(None)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(0.0 if self._end is not None else _GOODBYE)
        self._fail("was closed")
        self._process.wait()
        # What it started may go on without it.
        self._processes.kill()
        self._errors.close()

    async def _numbered(self, message: dict[str, Any]) -> dict[str, Any]:
        self._numbers += 1
        number = self._numbers
        try:
            return await self._ask(number, {**message, "number": number}, self.patience)
        except asyncio.CancelledError:
            self._commands.put(json.dumps({"op": "cancel", "number": number}).encode() + b"\n")
            raise

    async def _ask(self, key: int | str, message: dict[str, Any], patience: float) -> dict[str, Any]:
        """key: what its answer is known by, a number or an event's name"""
        loop = asyncio.get_running_loop()
        future = loop.create_future()
        asked = time.monotonic()
        with self._lock:
            if self._end is not None:
                raise PeerError(self._end)
            assert key not in self._waiting, f"two wait for `{key}`"
            self._waiting[key] = (loop, future)
        self._commands.put(json.dumps(message).encode() + b"\n")
        try:
            while not future.done():
                left = max(asked, self._heard) + patience - time.monotonic()
                if left <= 0:
                    self._fail(f"said nothing for {patience:g} seconds")
                await asyncio.wait([future], timeout=max(left, 0.01))
            return future.result()
        finally:
            with self._lock:
                self._waiting.pop(key, None)

    def _write(self) -> None:
        """In a thread, because a pipe that nobody reads blocks."""
        with suppress(OSError, ValueError):
            while (line := self._commands.get()) is not None:
                self._process.stdin.write(line)
                self._process.stdin.flush()
        with suppress(OSError, ValueError):
            self._process.stdin.close()

    def _read(self) -> None:
        line = b""
        try:
            for line in self._process.stdout:
                self._heard = time.monotonic()
                self._take(json.loads(line))
        except (ValueError, KeyError, TypeError):
            self._fail(f"said what is not the protocol: {line[:200].decode(errors='replace').strip()}")
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_GOODBYE)
        code = self._process.poll()
        self._fail("closed its output" if code is None else f"ended with exit code {code}" if code >= 0 else f"was ended by signal {-code}")

    def _take(self, said: dict[str, Any]) -> None:
        event = said["event"]
        key = said["number"] if event in ("done", "failed") else event
        with self._lock:
            if event == "failed" and key is None:
                # Of the orders without a number only one is under way.
                key = next((key for key in self._waiting if isinstance(key, str)), None)
            waiter = self._waiting.pop(key, None)
        if waiter is None:
            return
        if event == "failed":
            self._set(waiter, PeerError(f"the peer `{self.name}` refused: {said['error']}"))
        else:
            self._set(waiter, said)

    def _fail(self, how: str) -> None:
        """It is over: kill it, and fail everything that waits.  The first reason counts."""
        with self._lock:
            if self._end is not None:
                return
            self._end = f"the peer `{self.name}` {how}{self._tail()}"
            waiting, self._waiting = list(self._waiting.values()), {}
        self._processes.kill()
        self._commands.put(None)
        for waiter in waiting:
            self._set(waiter, PeerError(self._end))

    def _set(self, waiter: tuple[asyncio.AbstractEventLoop, asyncio.Future], result: dict[str, Any] | PeerError) -> None:
        loop, future = waiter

        def settle() -> None:
            if future.done():
                return
            if isinstance(result, PeerError):
                future.set_exception(result)
            else:
                future.set_result(result)

        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(settle)

    def _tail(self) -> str:
        with suppress(OSError, ValueError):
            self._errors.seek(0, 2)
            self._errors.seek(max(0, self._errors.tell() - 20_000))
            lines = self._errors.read().decode(errors="replace").rstrip().splitlines()[-_TAIL:]
            if lines:
                return "; its last words:\n" + "\n".join(f"    {line}" for line in lines)
        return ""
