"""Requests under way: clients that go, too many at a time, memory that is full, faults, the end of the server.  Steps are counted, not timed."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from concurrent.futures import ThreadPoolExecutor

import httpx
import openai
import pytest

from lmc.runtime.dry import DryModel
from lmc.server import connection

from tests.server.running import KEYS, LIMIT, GatedModel, keyed, running, wait_for

CHAT = "/v1/chat/completions"
LONG = {"model": "dry", "messages": [{"role": "user", "content": "Tell me about tea."}], "max_tokens": 2000, "ignore_eos": True}


class Line:
    """A connection by hand, to be cut at any moment."""

    def __init__(self, served, body, path=CHAT, key="none"):
        host, port = served.url.removeprefix("http://").split(":")
        self.link = socket.create_connection((host, int(port)), timeout=LIMIT)
        data = json.dumps(body).encode()
        head = (f"POST {path} HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {key}\r\ncontent-type: application/json\r\n"
                f"content-length: {len(data)}\r\n\r\n")
        self.link.sendall(head.encode() + data)
        self.read = b""

    def until(self, text: bytes) -> bytes:
        while text not in self.read:
            more = self.link.recv(65536)
            assert more, f"closed before {text!r}: {self.read[-300:]!r}"
            self.read += more
        return self.read

    def rest(self) -> bytes:
        while more := self.link.recv(65536):
            self.read += more
        return self.read

    def close(self) -> None:
        self.link.close()


@pytest.fixture
def gated():
    model = GatedModel()
    with running(model, slots=4096) as served:
        yield served, model


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("choices", [1, 3])
def test_a_client_that_goes_frees_its_slots_within_two_steps(gated, stream, choices):
    served, model = gated
    line = Line(served, LONG | {"stream": stream, "n": choices})
    model.let(4)
    if stream:
        line.until(b'"content":"')
    wait_for(lambda: served.session.stats.running == choices and model.passes == 4, "the request does not run")
    assert served.session.stats.used_slots > 0
    line.close()
    wait_for(lambda: served.state.gate.open == 0, "nobody noticed that the client is gone")
    model.let(2)
    wait_for(lambda: served.session.stats.running == 0, "two steps later the request still runs")
    stats = served.session.stats
    assert stats.used_slots == 0 and model.passes <= 6 and stats.free_slots + stats.cached_slots == 4096
    if not stream:
        wait_for(lambda: b'status="499"' in served.state.metrics.text(), "it is not counted as one that went")


def test_a_client_that_goes_before_its_first_token(gated):
    served, model = gated
    line = Line(served, LONG | {"stream": True})
    wait_for(lambda: served.state.gate.open == 1, "the request is not there")
    line.close()
    wait_for(lambda: served.state.gate.open == 0, "nobody noticed that the client is gone")
    model.let(2)
    wait_for(lambda: served.session.stats.used_slots == 0 and not served.session.stats.running, "it still holds memory")


def test_others_go_on_when_a_client_goes(gated):
    served, model = gated
    model.open()
    alone = served.chat("Hello", max_tokens=30).choices[0].message.content
    lines = [Line(served, LONG | {"stream": True}) for _ in range(4)]
    for line in lines:
        line.until(b'"content":"')
        line.close()
    assert served.chat("Hello", max_tokens=30).choices[0].message.content == alone
    wait_for(lambda: served.state.gate.open == 0, "a request is left")


def test_a_client_that_does_not_read_is_given_up(monkeypatch):
    monkeypatch.setattr(connection, "SEND_SECONDS", 0.01)
    closed, sent = [], []

    async def events():
        try:
            while True:
                yield connection.event("x")
        finally:
            closed.append(True)

    async def receive():
        await asyncio.Event().wait()

    async def send(message):
        sent.append(message)
        if len(sent) > 3:
            await asyncio.Event().wait()

    async def main():
        await asyncio.wait_for(connection.EventStream(events(), asyncio.Event())({"type": "http"}, receive, send), LIMIT)

    asyncio.run(main())
    assert closed == [True] and len(sent) == 4 and sent[-1]["more_body"], "nothing follows what was not taken"


def test_too_many_are_told_to_come_again():
    model = GatedModel()
    with running(model, max_open=3) as served:
        line = Line(served, LONG | {"n": 2})
        wait_for(lambda: served.state.gate.open == 2, "the request is not there")
        for body in (LONG | {"n": 2}, LONG | {"n": 2, "stream": True}):
            answer = served.post(CHAT, body)
            assert answer.status_code == 429 and answer.headers["retry-after"] == "1"
            assert answer.json()["error"]["code"] == "rate_limit_exceeded"
        with pytest.raises(openai.RateLimitError):
            served.chat("Hi", n=2)
        assert served.post(CHAT, LONG | {"n": 4}).status_code == 400
        # One more has room, and a place that is free again is taken.
        model.open()
        assert served.chat("Hi", n=1).choices
        line.close()
        wait_for(lambda: served.state.gate.open == 0, "a request is left")
        assert served.chat("Hi", n=3).choices and b"lmc_turned_away_total 3.0" in served.state.metrics.text()


def test_one_client_leaves_room_for_others():
    model = GatedModel()
    with running(model, max_open=4, max_open_each=2, **keyed("alice", "bob")) as served:
        line = Line(served, LONG | {"n": 2}, key=KEYS["alice"])
        wait_for(lambda: served.state.gate.open == 2, "the request is not there")
        headers = {"authorization": f"Bearer {KEYS['alice']}"}
        answer = served.post(CHAT, LONG, headers=headers)
        assert answer.status_code == 429 and "2 is the most for one client" in answer.json()["error"]["message"]
        assert served.post(CHAT, LONG | {"n": 3}, headers=headers).status_code == 400
        model.open()
        assert served.post(CHAT, LONG | {"n": 2, "max_tokens": 3}, headers={"authorization": f"Bearer {KEYS['bob']}"}).status_code == 200
        line.close()


def test_a_full_pool_stops_nobody():
    """Together they need several pools; each ends as if it was alone."""
    with running(slots=160) as served:
        questions = [f"Question {i}: tell me about tea." for i in range(12)]
        alone = [served.chat(question, max_tokens=60, extra_body={"ignore_eos": True}).choices[0].message.content for question in questions]
        with ThreadPoolExecutor(12) as threads:
            together = list(threads.map(
                lambda question: served.chat(question, max_tokens=60, extra_body={"ignore_eos": True}).choices[0].message.content, questions))
        assert together == alone
        stats = served.session.stats
        assert stats.used_slots == 0 and stats.free_slots + stats.cached_slots == 160


class BreakingModel(DryModel):
    """Fails from a given step on."""

    def __init__(self, good: int):
        super().__init__()
        self.left = good

    def forward(self, rows):
        self.left -= 1
        if self.left < 0:
            raise RuntimeError("secret /home/operator/model.bin is broken")
        return super().forward(rows)


def test_a_fault_before_the_first_token_has_a_status():
    with running(BreakingModel(0)) as served:
        for stream in (False, True):
            answer = served.post(CHAT, LONG | {"stream": stream})
            assert answer.status_code == 500 and answer.json()["error"]["code"] == "E0820"
            assert answer.json()["error"]["type"] == "server_error" and "operator" not in answer.text
        assert served.get("/health").status_code == 200, "one request failed, the engine goes on"


def test_a_fault_in_the_middle_of_a_stream_is_its_last_event():
    with running(BreakingModel(5)) as served:
        text = served.post(CHAT, LONG | {"stream": True}).text
        events = text.strip().split("\n\n")
        assert '"content":' in events[1] and events[-1].startswith("event: error\ndata: ") and "[DONE]" not in text
        error = json.loads(events[-1].removeprefix("event: error\ndata: "))["error"]
        assert error["code"] == "E0820" and "operator" not in text
    with running(BreakingModel(5)) as served:
        with pytest.raises(openai.APIError) as caught:
            list(served.chat("tea", stream=True, max_tokens=100, extra_body={"ignore_eos": True}))
        assert caught.value.code == "E0820"


class DyingModel(DryModel):
    """Takes the engine's thread with it."""

    def forward(self, rows):
        raise SystemExit("the thread ends")


def test_an_engine_that_has_ended_is_told():
    with running(DyingModel()) as served:
        assert served.get("/health").status_code == 200
        assert served.post(CHAT, LONG).status_code == 500
        wait_for(lambda: served.session.ended, "the engine goes on")
        answer = served.get("/health")
        assert answer.status_code == 503 and answer.json() == {"status": "the engine has ended"}
        assert served.post(CHAT, LONG).status_code == 500


def test_an_engine_that_is_stuck_is_told():
    model = GatedModel()
    with running(model, stuck_seconds=0.05) as served:
        assert served.get("/health").status_code == 200
        line = Line(served, LONG)
        wait_for(lambda: served.get("/health").status_code == 503, "nobody says that the step does not end")
        assert "a step of the engine has taken" in served.get("/health").json()["status"]
        line.close()
        model.open()
        wait_for(lambda: served.get("/health").status_code == 200, "it does not recover")


# The end of a server.

def test_the_end_waits_for_what_runs(gated):
    served, model = gated
    whole = Line(served, LONG | {"max_tokens": 10})
    piecewise = Line(served, LONG | {"max_tokens": 10, "stream": True})
    wait_for(lambda: served.state.gate.open == 2, "the requests are not there")
    served.end()
    wait_for(lambda: refuses(served), "it still takes requests")
    model.open()
    assert b'"completion_tokens":10' in whole.rest() and b"[DONE]" in piecewise.rest()


def test_what_does_not_end_is_told_so():
    model = GatedModel()
    with running(model, drain_seconds=0.1) as served:
        whole, piecewise = Line(served, LONG), Line(served, LONG | {"stream": True})
        wait_for(lambda: served.state.gate.open == 2, "the requests are not there")
        model.let(6)
        piecewise.until(b'"content":"')
        served.end()
        assert whole.until(b"E0839").startswith(b"HTTP/1.1 503") and b"retry-after" in whole.read
        assert b"event: error\ndata: " in piecewise.until(b"E0839")


def test_a_second_signal_ends_it_at_once():
    model = GatedModel()
    with running(model, drain_seconds=1000.0) as served:
        line = Line(served, LONG)
        wait_for(lambda: served.state.gate.open == 1, "the request is not there")
        served.end()
        served.end()
        assert line.until(b"E0839").startswith(b"HTTP/1.1 503")


def refuses(served) -> bool:
    try:
        return served.get("/v1/models").status_code == 503
    except httpx.TransportError:
        return True


def test_nothing_is_left_behind():
    before = threading.active_count()
    with running() as served:
        served.chat("tea")
    wait_for(lambda: threading.active_count() <= before + 1, "threads are left")
