"""`lmc serve` under clients that come in numbers and go without a word.  For long: `python -m benchmarks.serve_load`."""

import asyncio
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.serve_load import load, serving, table
from benchmarks.stream_clients import Tally, a_request, client, stream

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    with serving("--dry", "--name", "default", log=tmp_path_factory.mktemp("serve") / "log") as served:
        yield served


def answers(served, count: int, **more) -> Tally:
    """So many requests, side by side."""
    tally = Tally()

    async def main() -> None:
        await asyncio.gather(*(stream(served.address, {**a_request(random.Random(n)), **more}, tally) for n in range(count)))

    asyncio.run(main())
    return tally


def test_many_clients_for_a_while(served):
    loaded = load(served, 32, 3.0)
    assert loaded.faults() == [], table(loaded)
    assert loaded.tally.answers > 32 and loaded.tally.given_up and loaded.tally.events > loaded.tally.answers


def test_a_process_of_clients_that_is_killed(served):
    """Its connections end in the middle of answers; those of others do not."""
    command = [sys.executable, "-m", "benchmarks.stream_clients", served.address[0], str(served.address[1]), "16", "60"]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    tally = Tally()

    async def main() -> None:
        assert await asyncio.to_thread(process.stdout.readline) == "begun\n"
        # The others ask before the kill, while it happens and after it.
        staying = [asyncio.create_task(client(served.address, n, lambda: process.poll() is None or tally.answers < 24, tally)) for n in range(4)]
        while served.metric("lmc_requests_running") < 4:
            await asyncio.sleep(0.02)
        process.send_signal(signal.SIGKILL)
        await asyncio.to_thread(process.wait)
        await asyncio.gather(*staying)

    try:
        asyncio.run(main())
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == -signal.SIGKILL and not tally.errors
    assert served.wait_until_quiet() == {}


def test_half_of_the_clients_leave_in_the_middle(served):
    tally = Tally()

    async def main() -> None:
        bodies = [{**a_request(random.Random(n)), "max_tokens": 64, "temperature": 0.8} for n in range(24)]
        await asyncio.gather(*(stream(served.address, body, tally, leaves_after=3 if n % 2 else None) for n, body in enumerate(bodies)))

    asyncio.run(main())
    assert not tally.errors and tally.answers >= 12 and tally.given_up > 6
    assert served.wait_until_quiet() == {}


def test_a_full_pool_stops_nobody(tmp_path):
    """Together they want many times what the pool holds: they are retracted and wait, and all are answered."""
    with serving("--dry", "--name", "default", "--pool-tokens", "900", log=tmp_path / "log") as served:
        tally = answers(served, 40)
        assert not tally.errors and tally.answers == 40
        # What can never fit is refused by name, and nobody else is.
        too_long = answers(served, 1, messages=[{"role": "user", "content": "word " * 2000}])
        (error,) = too_long.errors
        assert "status 400" in error and not too_long.answers
        assert answers(served, 4).answers == 4 and served.wait_until_quiet() == {}
