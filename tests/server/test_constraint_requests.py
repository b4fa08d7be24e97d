"""Case L-05 over HTTP: requests that bring bad constraints get a 4xx each, and nobody else notices."""

from __future__ import annotations

import json
import socket
import threading

import httpx
import pytest

from lmc.server.settings import CompileLimits
from tests.server.running import running, wait_for
from tests.server.test_constraint_compiler import HOSTILE, alive, deep, nested_one_of

TURN = {"model": "dry", "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 30}


def with_schema(schema: object) -> dict:
    return {**TURN, "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}}


@pytest.fixture(scope="module")
def served():
    with running(compile=CompileLimits(seconds=0.5), max_body_bytes=8 << 20) as one:
        yield one


BAD = {
    "regex": {**TURN, "regex": "a(b"},
    "nested-counts": {**TURN, "regex": "((x{1,999}){1,999}){1,999}"},
    "hostile": {**TURN, "regex": HOSTILE},
    "keyword": with_schema({"typ": "string"}),
    "nothing-fits": with_schema({"type": "integer", "minimum": 3, "maximum": 1}),
    "grammar": {**TURN, "structured_outputs": {"grammar": "start: missing"}},
    "deep": {**TURN, "structured_outputs": {"json": deep(5_000)}},
    "oneOf": with_schema(nested_one_of(12)),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_one_is_a_400_with_our_diagnostic(served, name):
    if name == "grammar":
        pytest.importorskip("llguidance")
    answer = served.post("/v1/chat/completions", BAD[name])
    error = answer.json()["error"]
    assert answer.status_code == 400 and error["code"] in ("E0601", "E0605", "E0606", "E0610"), answer.text
    assert error["param"] in ("regex", "response_format", "structured_outputs")
    # It is remembered: nothing compiles a second time.
    before = served.state.compiler.compilations
    assert served.post("/v1/chat/completions", BAD[name]).json()["error"] == error
    assert served.state.compiler.compilations == before
    assert served.get("/health").status_code == 200


def test_a_huge_schema_is_not_even_read(served):
    """Told by its length before anything is sent of it, or once it has grown too long."""
    head = b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % (50 << 20)
    with socket.create_connection(served.url.removeprefix("http://").split(":")) as client:
        client.sendall(head)
        assert client.recv(100).startswith(b"HTTP/1.1 413 ")
    chunks = (b" " * (1 << 20) for _ in range(9))
    assert httpx.post(f"{served.url}/v1/chat/completions", content=chunks, headers={"content-type": "application/json"}).status_code == 413


def test_a_client_that_gives_up_ends_the_compilation():
    with running(compile=CompileLimits(seconds=60.0)) as patient:
        compiler = patient.state.compiler
        body = json.dumps({**TURN, "regex": HOSTILE + "y"}).encode()
        with socket.create_connection(patient.url.removeprefix("http://").split(":")) as client:
            client.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
                           b"content-length: %d\r\n\r\n" % len(body) + body)
            wait_for(lambda: compiler.compilations == 1 and compiler.pids, "nothing compiles")
            (pid,) = compiler.pids
        wait_for(lambda: not alive(pid), "the process goes on")
        assert patient.chat("Hi").choices[0].message.content


def test_others_go_on_while_one_compiles():
    """Steps are counted, not seconds: they are answered whole before the hostile one is."""
    with running(compile=CompileLimits(seconds=60.0)) as patient:
        gate = threading.Event()

        def hostile() -> None:
            with httpx.Client(timeout=60) as client:
                client.post(f"{patient.url}/v1/chat/completions", json={**TURN, "regex": HOSTILE + "z"})
            gate.set()

        thread = threading.Thread(target=hostile, daemon=True)
        thread.start()
        wait_for(lambda: patient.state.compiler.compilations == 1, "nothing compiles")
        before = patient.session.stats.steps
        for number in range(2):
            assert patient.complete("one two", max_tokens=40, extra_body={"ignore_eos": True}).usage.completion_tokens == 40
            assert json.loads(patient.post("/v1/chat/completions", with_schema({"type": "integer", "minimum": number})).json()
                              ["choices"][0]["message"]["content"]) >= number
        assert patient.session.stats.steps >= before + 80 and not gate.is_set()
    thread.join(20)
