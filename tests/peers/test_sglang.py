"""SGLang's adapters without SGLang: its programs ask for what the small workloads ask for, and what hangs in its interpreter ends here."""

import asyncio
import sys
import threading
from collections import Counter
from pathlib import Path

import pytest

from lmc.cli.peers.exchange import PeerAnswer
from lmc.cli.peers.small_programs import PROGRAMS
from lmc.cli.peers.small_workloads import SMALL_WORKLOADS
from tests.peers import fake_sglang
from tests.peers.small_data import REGEX, small_set

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks" / "peers"
DATA = small_set(0)


@pytest.fixture(autouse=True)
def adapters(monkeypatch):
    """The adapters import one another by the names of their files, and SGLang's stand-in."""
    monkeypatch.syspath_prepend(str(FOLDER))
    monkeypatch.setitem(sys.modules, "sglang", fake_sglang)
    yield
    for name in ("sglang_programs", "sglang_frontend", "sglang_peer"):
        sys.modules.pop(name, None)


def rows(name: str) -> tuple[str, list[dict]]:
    program, made = PROGRAMS[name]
    return program, list(made(DATA[name], lambda ids: bytes(ids).decode()))


def asked_by_workload(name: str) -> Counter:
    """Prompts as texts, with their settings."""
    found = Counter()

    async def ask(one):
        found[bytes(one.ids).decode(), one.max_tokens, one.temperature, one.regex, one.ignore_eos] += 1
        return PeerAnswer((120,) * one.max_tokens, "x" * one.max_tokens, "length", len(one.ids), 0)

    workload = next(workload for workload in SMALL_WORKLOADS if workload.name == name)
    asyncio.run(workload.run(DATA[name], ask, True))
    return found


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_asks_for_what_the_workload_asks_for(name):
    from sglang_frontend import Frontend

    found = Counter()

    def backend(calls):
        def generate(text, *, max_tokens, temperature, regex=None, ignore_eos=False):
            found[text, max_tokens, temperature, regex, ignore_eos] += 1
            calls.count(max_tokens, len(text), 1)
            return "x" * max_tokens

        return generate

    answer = asyncio.run(Frontend(backend).run(*rows(name)))
    assert found == asked_by_workload(name)
    assert sorted(answer["lengths"]) == sorted(map(len, answer["texts"])), "every text is given, once"
    assert answer["prompt"] == sum(len(text) * count for (text, *_), count in found.items())
    assert (answer["computed"], answer["cached"]) == (answer["prompt"] - found.total(), found.total())


def test_what_rows_share_is_bound():
    """So SGLang's interpreter finds the prefix by tracing, as where it stands in the program."""
    import sglang_programs
    from sglang_frontend import texts_of

    seen = []

    class Traced:
        def bind(self, **named):
            seen.append(named)
            return self

        def run_batch(self, own, **_):
            seen.append(own)
            return []

    sglang_programs.PROGRAMS["few_shot"] = Traced()
    texts_of(None, *rows("W1"))
    shared, own = seen
    assert shared == {"prefix": bytes(DATA["W1"]["prefix"]).decode(), "tokens": 3}
    assert [set(row) for row in own] == [{"question"}] * 4


def test_the_regex_is_that_of_the_data():
    from sglang_programs import PERSON

    assert PERSON == REGEX


def test_end_tokens_are_never_drawn_where_they_are_passed_over():
    """Its own `ignore_eos` would write them."""
    from sglang_peer import Sglang

    engine, asked = Sglang(), []

    class Server:
        async def call(self, method, path, body):
            asked.append(body["sampling_params"])
            return {"output_ids": [7, 8], "text": "ab", "meta_info": {"finish_reason": {"type": "length"}, "prompt_tokens": 3, "cached_tokens": 1}}

    engine.server, engine.constraints, engine.never = Server(), set(), {2: -100.0}
    for ask in ({"ids": [1], "max_tokens": 2, "ignore_eos": True}, {"ids": [1], "max_tokens": 2}):
        assert asyncio.run(engine.generate(ask))["ids"] == [7, 8]
    assert [settings["logit_bias"] for settings in asked] == [{2: -100.0}, None]


def test_end_tokens_of_a_folder(tmp_path):
    from end_tokens import end_tokens, never

    assert end_tokens(tmp_path) == []
    (tmp_path / "config.json").write_text('{"eos_token_id": 2}')
    assert end_tokens(tmp_path) == [2]
    (tmp_path / "generation_config.json").write_text('{"eos_token_id": [3, 4]}')
    assert never(end_tokens(tmp_path)) == {3: -100.0, 4: -100.0}


def test_a_count_that_is_not_known():
    from sglang_frontend import Calls

    calls = Calls()
    calls.count(None, 600, 0)
    calls.count(16, 640, 600)
    assert (calls.lengths, calls.prompt, calls.computed, calls.cached) == ([16], 640, 640, 600), "a hint is computed, and no generation"
    calls.count(16, 640, None)
    assert (calls.computed, calls.cached, calls.prompt) == (None, None, 1280)


def test_an_end_token_is_not_counted():
    from sglang_frontend import written

    assert written({"completion_tokens": 57, "finish_reason": {"type": "stop", "matched": 2}}) == 56
    assert written({"completion_tokens": 57, "finish_reason": {"type": "stop", "matched": "END"}}) == 57
    assert written({"completion_tokens": 16, "finish_reason": {"type": "length", "length": 16}}) == 16


def test_a_request_that_fails_ends_a_run_that_hangs(monkeypatch):
    import sglang_frontend

    monkeypatch.setattr(sglang_frontend, "_LAST_WORDS", 0.01)
    let_go = threading.Event()

    def broken(*_, **__):
        raise ConnectionError("nobody listens")

    def backend(calls):
        ask = calls.watched(broken)

        def generate(text, **_):
            try:
                ask(text)
            except ConnectionError:
                # The interpreter waits for what its dead thread was to give.
                let_go.wait(60)
            return ""

        return generate

    frontend = sglang_frontend.Frontend(backend)
    with pytest.raises(ConnectionError, match="nobody listens"):
        asyncio.run(frontend.run(*rows("W1")))
    let_go.set()


def test_a_program_that_fails_or_is_not_there():
    from sglang_frontend import Frontend

    def backend(calls):
        raise RuntimeError("no tokenizer")

    with pytest.raises(RuntimeError, match="no tokenizer"):
        asyncio.run(Frontend(backend).run(*rows("W1")))
    with pytest.raises(ValueError, match="there is no program `sort`"):
        asyncio.run(Frontend(lambda calls: None).run("sort", [{}]))


SERVER = """
import http.server, json, sys
class Answers(http.server.BaseHTTPRequestHandler):
    def answer(self):
        length = int(self.headers.get("Content-Length") or 0)
        said = json.dumps({"path": self.path, "got": self.rfile.read(length).decode()}).encode()
        self.send_response(404 if self.path == "/none" else 200)
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)
    do_GET = do_POST = answer
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Answers).serve_forever()
"""


def test_a_server_on_the_loopback():
    from loopback_server import LoopbackServer, free_port

    async def used(server):
        await server.start()
        try:
            with pytest.raises(RuntimeError, match="the server answers 404"):
                await server.call("GET", "/none")
            return await server.call("POST", "/generate", {"ids": [1]})
        finally:
            server.stop()
            server.stop()

    port = free_port()
    server = LoopbackServer("the server", [sys.executable, "-c", SERVER, str(port)], port)
    assert asyncio.run(used(server)) == {"path": "/generate", "got": '{"ids": [1]}'}
    assert server.process.poll() is not None
    with pytest.raises(RuntimeError, match="the server ended with exit code 3"):
        asyncio.run(LoopbackServer("the server", [sys.executable, "-c", "raise SystemExit(3)"], free_port()).start())
