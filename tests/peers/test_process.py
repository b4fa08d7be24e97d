"""The client of peers: answers find who asked, a peer that dies, hangs or babbles is an error with its last words, and nothing stays."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lmc.cli.peers.exchange import PeerAsk, PeerError, PeerSetting
from lmc.cli.peers.process import Peer

FAKE = Path(__file__).with_name("fake_peer.py")
SETTING = PeerSetting("nowhere")


def fake(*words: str, patience: float = 20.0) -> Peer:
    return Peer("fake", [sys.executable, str(FAKE), *words], patience=patience)


def with_peer(work, *words: str, patience: float = 20.0):
    """What `work`, a coroutine function of an opened peer, gives."""
    async def run():
        await peer.open(SETTING)
        return await work(peer)

    peer = fake(*words, patience=patience)
    try:
        return asyncio.run(run())
    finally:
        peer.close()


def alive(process: int) -> bool:
    """A zombie is dead."""
    try:
        return " Z " not in Path(f"/proc/{process}/stat").read_text().rpartition(")")[2][:4]
    except OSError:
        return False


def test_answers_find_who_asked():
    async def work(peer):
        assert (peer.ready.engine, peer.ready.precision) == ("fake 1.0", "bfloat16") and "score" in peer.ready.can
        asks = [PeerAsk((5, 6, 7, token), 1 + token % 3) for token in range(50)]
        return await asyncio.gather(*map(peer.generate, asks)), await peer.stats()

    answers, stats = with_peer(work)
    assert [len(answer.ids) for answer in answers] == [1 + token % 3 for token in range(50)]
    assert (answers[0].computed, answers[0].cached) == (4, 0) and {answer.cached for answer in answers[1:]} == {3}
    assert (stats.computed, stats.cached) == (4 + 49, 3 * 49)
    assert stats.generated == stats.passes == sum(len(answer.ids) for answer in answers)


def test_options_reach_the_peer():
    async def work(peer):
        return [await peer.generate(ask) for ask in (
            PeerAsk((1, 2), 4, temperature=0.7, seed=40), PeerAsk((1, 2), 4, stop=(" 102",)), PeerAsk((1, 2), 9, regex="a+"),
        )], await peer.score((3, 4, 5), 1)

    (drawn, stopped, held), score = with_peer(work)
    assert drawn.ids == (40, 41, 42, 43) and drawn.finish == "length"
    assert (stopped.text, stopped.finish) == (" 100 101", "stop")
    assert len(held.ids) == 3
    assert score.logprobs == (-4.0, -5.0) and score.computed == 3


def test_a_program_of_its_own():
    async def work(peer):
        ran = await peer.program("few_shot", [{"prefix": "a", "question": "b"}, {"prefix": "a", "question": "c"}])
        return ran, await peer.stats(), peer.ready.takes_requests

    ran, stats, takes_requests = with_peer(work, "programs")
    assert ran.texts == ("few_shot of prefix, question",) * 2 and takes_requests
    assert (ran.lengths, ran.prompt, ran.computed, ran.cached) == ((2, 2), 20, 4, 16)
    assert (stats.computed, stats.cached, stats.generated) == (4, 16, 4)
    assert not with_peer(work, "only-programs")[2]
    with pytest.raises(PeerError, match="refused: ValueError: this engine has no language for programs"):
        with_peer(work)


def test_a_reset_empties_the_cache():
    async def work(peer):
        first = await peer.generate(PeerAsk((1, 2, 3), 1))
        again = await peer.generate(PeerAsk((1, 2, 3), 1))
        await peer.reset()
        return first.cached, again.cached, (await peer.generate(PeerAsk((1, 2, 3), 1))).cached

    assert with_peer(work) == (0, 2, 0)


def test_requests_that_come_together_are_one_batch():
    async def work(peer):
        answers = await asyncio.gather(*(peer.generate(PeerAsk((9, token), 2)) for token in range(20)), return_exceptions=True)
        alone = await peer.generate(PeerAsk((9, 9), 2))
        scored = await asyncio.gather(peer.generate(PeerAsk((9, 9), 2)), *(peer.score((9, token), 1) for token in range(3)))
        return answers, alone, scored

    answers, alone, (generated, *scores) = with_peer(work, "batch")
    assert {answer.text for answer in answers} == {"20"} and alone.text == "1"
    assert generated.text == "1" and [score.logprobs for score in scores] == [(-3.0,)] * 3, "generations and scores are batches of their own"


def test_a_request_that_is_refused_fails_no_other():
    async def work(peer):
        asks = [PeerAsk((9, 1), 2), PeerAsk((9, 2), 2), PeerAsk((9, 3), 2, regex="a")]
        refused = await asyncio.gather(*map(peer.generate, asks), return_exceptions=True)
        broken = await asyncio.gather(*map(peer.generate, [*asks[:2], PeerAsk((9, 1 << 21), 2)]), return_exceptions=True)
        return refused, broken

    (*good, bad), broken = with_peer(work, "batch")
    assert "ValueError: no constraints" in str(bad) and [answer.text for answer in good] == ["2", "2"], "the others are a batch as ever"
    assert "ValueError: no token 2097152" in str(broken[2]) and [answer.text for answer in broken[:2]] == ["1", "1"], "each is tried alone"


def test_one_peer_serves_several_event_loops():
    peer = fake()
    try:
        asyncio.run(peer.open(SETTING))
        assert [asyncio.run(peer.generate(PeerAsk((1, 2), 1))).cached for _ in range(2)] == [0, 1]
    finally:
        peer.close()


@pytest.mark.parametrize("word, says", [
    ("die", "ended with exit code 7; its last words:"),
    ("babble", "said what is not the protocol: Loading: 100%"),
])
def test_a_peer_that_breaks_fails_all_that_waits(word, says):
    async def work(peer):
        results = await asyncio.gather(peer.generate(PeerAsk((13,), 1)), peer.generate(PeerAsk((13, 1), 1)), return_exceptions=True)
        assert peer.ended
        with pytest.raises(PeerError):
            await peer.generate(PeerAsk((1,), 1))
        return [str(result) for result in results]

    for text in with_peer(work, word):
        assert "E0874" in text and f"the peer `fake` {says}" in text and ("out of luck" in text) == (word == "die")


@pytest.mark.parametrize("word", ["hang", "stuck"])
def test_a_peer_that_hangs_is_killed(word):
    async def work(peer):
        with pytest.raises(PeerError, match="said nothing for 0.3 seconds"):
            await peer.generate(PeerAsk((13,), 1))
        return peer._process.pid

    started = time.monotonic()
    assert not alive(with_peer(work, word, patience=0.3))
    assert time.monotonic() - started < 15, "and closing it does not wait for it"


def test_what_is_not_there_and_what_cannot_open():
    with pytest.raises(PeerError, match="cannot be started: /nowhere/python: No such file"):
        Peer("vllm", ["/nowhere/python"])
    peer = fake("dead-open")
    with pytest.raises(PeerError, match=r"(?s)ended with exit code 3; its last words:.*it cannot read the weights"):
        asyncio.run(peer.open(SETTING))
    peer.close()
    peer.close()


def test_a_waiter_that_is_cancelled_gives_its_request_up():
    async def work(peer):
        waiting = asyncio.create_task(peer.generate(PeerAsk((13,), 1)))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert not peer._waiting
        return (await peer.generate(PeerAsk((1,), 1))).ids

    assert with_peer(work, "hang") == (100,)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes of a session are found in /proc")
def test_its_processes_are_stopped_measured_and_gone():
    async def work(peer):
        child = int(peer.ready.notes[0].split()[1])
        peer.pause()
        stopped = [state(process) for process in (peer._process.pid, child)]
        peer.resume()
        peer.reset_peak()
        assert (await peer.generate(PeerAsk((1,), 1))).ids == (100,)
        assert peer.peak_bytes() > 2 << 20
        peer.pause()
        return child, stopped

    child, stopped = with_peer(work, "child")
    assert stopped == ["T", "T"]
    assert not alive(child), "closed while it was stopped"


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are looked at in /proc")
def test_what_a_peer_started_does_not_outlive_it():
    """Its client is gone and it is killed, all of it stopped because another one had its turn: nobody cleans up but what watches it."""
    process = subprocess.Popen([sys.executable, str(FAKE), "child"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                               start_new_session=True)
    process.stdin.write(json.dumps({"op": "open", "dtype": "float32"}).encode() + b"\n")
    process.stdin.flush()
    child = int(json.loads(process.stdout.readline())["notes"][0].split()[1])
    assert alive(child)
    os.killpg(process.pid, signal.SIGSTOP)
    process.kill()
    process.communicate()
    for _ in range(300):
        if not alive(child):
            return
        time.sleep(0.1)
    os.kill(child, signal.SIGKILL)
    raise AssertionError("the peer's process is still there")


def state(process: int) -> str:
    """`T` once the signal has arrived, which takes until the process's turn on a busy machine; nothing tells who is not its parent."""
    for _ in range(2000):
        found = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
        if found == "T":
            return found
        time.sleep(0.005)
    return found
