"""`lmc serve` under load for long: no request may fail, nothing may be left, and the table says how long a step takes.

    python -m benchmarks.serve_load                                  the stand-in model, 64 clients, two minutes
    python -m benchmarks.serve_load --model default --clients 8      the default model

The script starts the server itself, on a free port of the loopback, and asks no other.  Ends with 1 where something was broken.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.stream_clients import Tally, client

#: What memory may grow by from the first fifth of the time to the end: allocators' ups and downs, and masks that are kept.
GROWTH_BYTES = 64 << 20
#: Seconds in which a server must have given everything back once nobody asks.
_QUIET = 10.0
#: Seconds for a server to start, and to end.
_STARTS, _ENDS = 120.0, 60.0


@dataclass(frozen=True)
class Served:
    """A server that answers."""

    address: tuple[str, int]
    pid: int

    def metric(self, name: str) -> float:
        """One number of `/metrics`; name: with its labels."""
        return self.metrics()[name]

    def metrics(self) -> dict[str, float]:
        with urllib.request.urlopen(f"http://{self.address[0]}:{self.address[1]}/metrics", timeout=30) as answer:
            lines = answer.read().decode().splitlines()
        return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines) if name and not name.startswith("#")}

    def left(self) -> dict[str, float]:
        """What is in use, by name; nothing once nobody asks."""
        numbers = self.metrics()
        names = ("lmc_requests_running", "lmc_requests_waiting", "lmc_generations_open", 'lmc_kv_slots{state="used"}')
        return {name: numbers[name] for name in names if numbers[name]}

    def steps(self) -> list[tuple[float, float]]:
        """Bounds of the histogram of the engine's steps in seconds, each with how many took no longer."""
        found = ((re.fullmatch(r'lmc_step_seconds_bucket\{le="(.*)"\}', name), count) for name, count in self.metrics().items())
        return sorted((float(match[1]), count) for match, count in found if match)

    def open_files(self) -> int:
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def threads(self) -> int:
        return len(os.listdir(f"/proc/{self.pid}/task"))

    def resident(self) -> int:
        """Bytes."""
        return int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def wait_until_quiet(self, seconds: float = _QUIET) -> dict[str, float]:
        """What is still in use after so long, empty where all was given back."""
        end = time.monotonic() + seconds
        while (left := self.left()) and time.monotonic() < end:
            time.sleep(0.05)
        return left


@contextmanager
def serving(*options: str, log: Path) -> Iterator[Served]:
    """`lmc serve` in a process of its own, on a free port; what it says goes into `log`.  Raises `AssertionError` with the end of it where
    the server does not start, or does not end when it is asked to."""
    command = [sys.executable, "-c", "from lmc.cli import main; main()", "serve", "--host", "127.0.0.1", "--port", "0", *options]
    with log.open("wb") as said, subprocess.Popen(command, stdout=said, stderr=said) as process:
        try:
            yield Served(_address(process, log), process.pid)
        finally:
            process.terminate()
            try:
                process.wait(_ENDS)
            except subprocess.TimeoutExpired:
                process.kill()
                raise AssertionError(f"the server does not end: {log.read_text(errors='replace')[-2000:]}") from None


def _address(process: subprocess.Popen[bytes], log: Path) -> tuple[str, int]:
    end = time.monotonic() + _STARTS
    while time.monotonic() < end and process.poll() is None:
        if found := re.search(r"http://(127\.0\.0\.1):(\d+)", log.read_text(errors="replace")):
            return found[1], int(found[2])
        time.sleep(0.05)
    raise AssertionError(f"the server does not start: {log.read_text(errors='replace')[-2000:]}")


@dataclass
class Loaded:
    """What a run under load gave.  before, after: files, threads and bytes of the server after its first fifth and in the end, while nobody
    asks."""

    tally: Tally
    seconds: float
    before: tuple[int, int, int]
    after: tuple[int, int, int]
    left: dict[str, float]
    steps: list[tuple[float, float]]

    def faults(self) -> list[str]:
        found = [f"{count} times {error}" for error, count in self.tally.errors.items()]
        found += [f"{count:g} left of {name}" for name, count in self.left.items()]
        for what, before, after, more in zip(("files", "threads", "bytes"), self.before, self.after, (4, 2, GROWTH_BYTES)):
            if after > before + more:
                found.append(f"{what} grew from {before} to {after}")
        return found if self.tally.answers else [*found, "no answer came"]


def load(served: Served, clients: int, seconds: float) -> Loaded:
    """Clients that ask for so long: a fifth of it to warm up, then, once nobody asks, the first look at what the server uses."""
    tally, begun = Tally(), time.monotonic()
    asyncio.run(_ask(served, clients, seconds / 5, tally))
    left = served.wait_until_quiet()
    before = _footprint(served)
    asyncio.run(_ask(served, clients, seconds * 4 / 5, tally))
    took, left = time.monotonic() - begun, {**left, **served.wait_until_quiet()}
    return Loaded(tally, took, before, _footprint(served), left, served.steps())


async def _ask(served: Served, clients: int, seconds: float, tally: Tally) -> None:
    end = time.monotonic() + seconds
    await asyncio.gather(*(client(served.address, number, lambda: time.monotonic() < end, tally) for number in range(clients)))


def _footprint(served: Served) -> tuple[int, int, int]:
    return served.open_files(), served.threads(), served.resident()


def quantile(values: Sequence[float], part: float) -> float:
    return sorted(values)[min(int(part * len(values)), len(values) - 1)] if values else float("nan")


def step_quantile(steps: Sequence[tuple[float, float]], part: float) -> float:
    """The least bound that so many of the steps keep to.  steps: bound in seconds, and how many steps took no longer."""
    wanted = part * steps[-1][1] if steps else 0
    return next((bound for bound, count in steps if count >= wanted), float("nan"))


def table(loaded: Loaded) -> str:
    tally, ms = loaded.tally, 1000
    rows = [
        ("answers, given up", f"{tally.answers}, {tally.given_up} in {loaded.seconds:.0f} s ({tally.events / loaded.seconds:,.0f} events/s)"),
        ("errors", str(sum(tally.errors.values()))),
        ("first event, ms, p50 / p99", f"{quantile(tally.first, 0.5) * ms:.1f} / {quantile(tally.first, 0.99) * ms:.1f}"),
        ("between events, ms, p50 / p99", f"{quantile(tally.gaps, 0.5) * ms:.1f} / {quantile(tally.gaps, 0.99) * ms:.1f}"),
        ("engine's steps, ms, p50 / p99 at most",
         f"{step_quantile(loaded.steps, 0.5) * ms:g} / {step_quantile(loaded.steps, 0.99) * ms:g} of {loaded.steps[-1][1] if loaded.steps else 0:,.0f}"),
        ("files, threads", f"{loaded.before[0]}, {loaded.before[1]} -> {loaded.after[0]}, {loaded.after[1]}"),
        ("resident, MiB", f"{loaded.before[2] / 2**20:.0f} -> {loaded.after[2] / 2**20:.0f}"),
        ("in use afterwards", ", ".join(f"{name} {count:g}" for name, count in loaded.left.items()) or "nothing"),
    ]
    return "\n".join(f"{name:40} {value}" for name, value in rows)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", help="a model's name; without one, the stand-in model")
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=120.0)
    given = parser.parse_args()
    # A pool that is soon full: until then its memory grows with what is written into it.
    options = ("--model", given.model, "--pool-bytes", "256MiB") if given.model else ("--dry",)
    with tempfile.TemporaryDirectory() as folder, serving(*options, "--name", "default", log=Path(folder) / "server.log") as served:
        print(f"{given.model or 'the stand-in model'}, {given.clients} clients, load of the machine {os.getloadavg()[0]:.1f}")
        loaded = load(served, given.clients, given.seconds)
    print(table(loaded))
    for fault in loaded.faults():
        print(f"BROKEN: {fault}")
    return bool(loaded.faults())


if __name__ == "__main__":
    sys.exit(main())
