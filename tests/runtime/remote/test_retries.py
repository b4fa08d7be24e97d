"""What is tried again, and what is not: case I-01, and errors inside an answer (I-02)."""

import asyncio
import socket
from dataclasses import replace

import pytest

from lmc.runtime.remote.faults import Again, Fault, asked_wait, next_wait
from lmc.runtime.remote.openai_interface import OpenAi
from lmc.runtime.remote.reading import Reading
from lmc.runtime.remote.settings import Patience, Prices, RemoteSettings
from lmc.runtime.remote.transport import Transport
from tests.runtime.remote.fake_server import Dropped, Events, FakeServer, Silent, Status, chat, text
from tests.runtime.remote.remote_runs import HASTY, KEY, program_at, run_remote

TWO_GENS = """
    extern def note(text: str) -> str

    def f() -> str:
        user: "Hi"
        assistant: a = gen(max_tokens=5)
        b = note(a)
        user: "And ${b}?"
        assistant: c = gen(max_tokens=5)
        return c
    """


@pytest.fixture
def noted(tmp_path):
    """The program of the case, its extern, and what the extern was called with."""
    calls: list[str] = []

    def note(text: str) -> str:
        calls.append(text)
        return text

    return program_at(TWO_GENS, tmp_path), {"note": note}, calls


@pytest.mark.parametrize("fault, outcomes", [
    ([Status(429, {"retry-after": "0.05"})], ["429"]),
    ([Status(500), Status(500)], ["500", "500"]),
    ([Status(503)], ["503"]),
])
def test_what_was_not_answered_is_tried_again(noted, fault, outcomes):
    program, externs, calls = noted
    ended = run_remote(program, [chat("A"), *fault, chat("B")], externs=externs)
    assert ended.value == "B" and calls == ["A"]
    assert ended.outcomes == ["answered", *outcomes, "answered"]
    assert [a.billed for a in ended.report.attempts] == ["yes", *["no"] * len(outcomes), "yes"]
    assert all(a.waited > 0 for a in ended.report.attempts[1:-1])


def test_a_wait_of_days_is_not_waited_for(noted):
    program, externs, calls = noted
    ended = run_remote(program, [chat("A"), Status(429, {"retry-after": str(114 * 3600)})], externs=externs)
    assert "114 h" in str(ended.error) and "60 s" in str(ended.error) and ended.error.kind == "model"
    assert calls == ["A"] and ended.outcomes == ["answered", "429"]


def test_a_wrong_request_is_not_sent_again(noted):
    program, externs, calls = noted
    ended = run_remote(program, [chat("A"), Status(400, body={"error": {"message": f"bad key {KEY}"}})], externs=externs)
    assert "status 400: bad key …" in str(ended.error) and KEY not in str(ended.error)
    assert calls == ["A"] and len(ended.requests) == 2


def test_what_may_have_been_billed_is_sent_again_only_where_that_is_allowed(noted):
    program, externs, calls = noted
    ended = run_remote(program, [chat("A"), Dropped()], externs=externs)
    assert "may have been billed" in str(ended.error) and "--repeat-billed" in str(ended.error)
    assert ended.outcomes == ["answered", "dropped"] and ended.report.attempts[1].billed == "maybe"
    again = run_remote(program, [chat("A"), Dropped(), chat("B")], externs=externs, patience=replace(HASTY, repeat_billed=True))
    assert again.value == "B" and again.outcomes == ["answered", "dropped", "answered"]
    assert calls == ["A", "A"]


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def test_a_server_that_comes_late_is_waited_for():
    port, tried = free_port(), []

    async def main():
        transport = Transport(RemoteSettings("openai", f"http://127.0.0.1:{port}", patience=replace(HASTY, attempts=50, waits=20)))
        asking = asyncio.create_task(transport.ask("/completions", {}, Reading(OpenAi()), tried.append))
        while len(tried) < 2:
            await asyncio.sleep(0.01)
        async with FakeServer([text("here")], port=port):
            answer, last = await asking
            await transport.close()
        return answer.text, last.number

    said, number = asyncio.run(main())
    assert said == "here" and number == len(tried) + 1 and {(t.outcome, t.billed) for t in tried} == {("no connection", "no")}


def test_a_refused_connection_is_told_in_the_end():
    tried = []

    async def main():
        transport = Transport(RemoteSettings("openai", f"http://127.0.0.1:{free_port()}", patience=HASTY))
        with pytest.raises(Exception, match="cannot be reached.*after 4 attempts"):
            await transport.ask("/completions", {}, Reading(OpenAi()), tried.append)

    asyncio.run(main())
    assert [(t.outcome, t.billed) for t in tried] == [("no connection", "no")] * 4


@pytest.mark.parametrize("reply, message", [
    (Events([{"choices": [{"delta": {"content": "par"}}]}, {"error": {"message": "out of memory"}}]), "out of memory"),
    (Events([{"error": {"message": "overloaded"}}]), "overloaded"),
    (chat("par", "tial", finish=None, usage=None, done=False), "ends before the answer does"),
    (chat("par", finish=None, usage=None, done=False, closes=True), "connection was lost"),
    (Events([{"choices": [], "usage": None}]), "sends no answer"),
    (chat("par", finish="content_filter"), "content_filter"),
    (Events([{"choices": [{"delta": {"refusal": "no"}, "finish_reason": "stop"}]}]), "refusal: no"),
    (Events(["what?"]), "sends what is no answer"),
    (Events([{"choices": [{"delta": {"content": 5}}]}]), "another form"),
    (Status(200, body={"error": {"message": "no such model"}}), "no such model"),
])
def test_an_answer_that_is_not_whole_is_an_error(tmp_path, reply, message):
    program = program_at('def f() -> str:\n    user: "Hi"\n    assistant: a = gen(max_tokens=5)\n    return a', tmp_path)
    ended = run_remote(program, [reply])
    assert message in str(ended.error) and "program.lmp:3:" in str(ended.error)
    assert ended.value is None and len(ended.requests) == 1
    assert ended.error.kind == "model"


def test_text_that_was_streamed_is_never_asked_for_again(tmp_path):
    program = program_at('def f() -> str:\n    user: "Hi"\n    assistant: a = gen(max_tokens=5, stream=True)\n    return a', tmp_path)
    broken = chat("par", finish=None, usage=None, done=False, closes=True)
    ended = run_remote(program, [broken, chat("x")], patience=replace(HASTY, repeat_billed=True))
    assert ended.streamed == ["par"] and ended.error.raw == "par"
    assert [(a.outcome, a.billed) for a in ended.report.attempts] == [("dropped", "maybe")]


def test_a_key_that_is_refused_says_where_keys_come_from(tmp_path):
    program = program_at('def f() -> str:\n    user: "Hi"\n    assistant: a = gen(max_tokens=5)\n    return a', tmp_path)
    ended = run_remote(program, [Status(401, body={"message": "bad key"})])
    assert "status 401: bad key" in str(ended.error) and "--key-env" in str(ended.error) and len(ended.requests) == 1


def test_what_came_before_an_error_is_told(tmp_path):
    program = program_at('def f() -> str:\n    user: "Hi"\n    assistant: a = gen(max_tokens=5)\n    return a', tmp_path)
    ended = run_remote(program, [chat("par", "tial", finish=None, usage=None, done=False)])
    assert ended.error.raw == "partial"


def test_null_content_and_a_last_event_without_choices_are_no_errors(tmp_path):
    program = program_at('def f() -> str:\n    user: "Hi"\n    assistant: a = gen(max_tokens=5)\n    return a', tmp_path)
    events = [{"choices": [{"delta": {"role": "assistant", "content": None}}]}, {"choices": [{"delta": {"content": "yes"}}]},
              {"choices": [{"delta": {}, "finish_reason": "stop"}]}, {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 1}}]
    ended = run_remote(program, [Events(events)])
    assert ended.value == "yes" and ended.report.attempts[0].prompt == 3


def test_a_deadline_ends_a_slow_drip(tmp_path):
    program = program_at('def f() -> str:\n    user: "Hi"\n    assistant: a = gen(max_tokens=50)\n    return a', tmp_path)
    ended = run_remote(program, [chat(*"drop" * 10, pause=0.05)], patience=Patience(deadline=0.3))
    assert "within 0.3 s" in str(ended.error) and ended.outcomes == ["deadline"]
    assert ended.error.raw and ("drop" * 10).startswith(ended.error.raw)


def test_a_deadline_behind_streamed_text_is_final(tmp_path):
    program = program_at('def f() -> str:\n    user: "Hi"\n    assistant: a = gen(max_tokens=50, stream=True)\n    return a', tmp_path)
    ended = run_remote(program, [chat(*"drop" * 10, pause=0.05)] * 2, patience=Patience(deadline=0.3, repeat_billed=True))
    assert ended.outcomes == ["deadline"] and "".join(ended.streamed) == ended.error.raw


def test_a_cancelled_run_closes_its_connection(tmp_path):
    program = program_at('def f() -> str:\n    user: "Hi"\n    assistant: a = gen(max_tokens=50)\n    return a', tmp_path)
    silent = Silent()
    with pytest.raises(TimeoutError):
        run_remote(program, [silent], cancel_after=0.2)
    assert silent.gone.is_set()


def test_usage_is_counted_and_what_is_unknown_is_unknown(tmp_path):
    from lmc.runtime.report import summary_line

    program = program_at(TWO_GENS, tmp_path)
    ended = run_remote(program, [chat("A"), chat("B", usage=None)], externs={"note": str}, prices=Prices(2.0, 10.0))
    known, unknown = ended.report.attempts
    assert (known.prompt, known.generated) == (10, 4) and known.cost == pytest.approx((20 + 40) / 1e6)
    assert unknown.prompt is unknown.generated is unknown.cost is None
    line = summary_line(ended.report)
    assert "requests 2" in line and "those of 1 requests unknown" in line and "cost 0.000060 and what is unknown" in line


@pytest.mark.parametrize("headers, seconds", [({"retry-after": "7"}, 7.0), ({"retry-after-ms": "1500"}, 1.5), ({"retry-after": "soon"}, None),
                                              ({}, None), ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0)])
def test_waits_that_servers_ask_for(headers, seconds):
    assert asked_wait(headers) == seconds


def test_waits_double_and_end_with_their_budget():
    patience, fault = Patience(attempts=10, waits=3.0), Fault("", outcome="500", again=Again.SAFE)
    assert [next_wait(fault, patience, number, 0.0, 1.0) for number in (1, 2, 3)] == [0.5, 1.0, 2.0]
    assert next_wait(fault, patience, 3, 1.5, 1.0) is None
    assert next_wait(fault, patience, 10, 0.0, 1.0) is None


def test_without_tls_no_connection_is_used_twice(noted):
    """llama.cpp says that it keeps connections, and closes each behind its stream: a request sent into the close is lost."""
    program, externs, _ = noted
    assert run_remote(program, [chat("A"), chat("B")], externs=externs).connections == 2


def test_an_error_whose_body_is_without_end_is_cut(noted):
    program, externs, _ = noted
    ended = run_remote(program, [Status(400, body={"error": {"message": "x" * 10_000_000}})], externs=externs)
    assert "status 400" in str(ended.error) and len(str(ended.error)) < 2000


def test_a_refused_constraint_is_the_error_of_its_request_alone(tmp_path):
    """Case L-05, as far as it concerns a client: a server that cannot compile a regex says so, and other branches go on."""
    program = program_at("""
        def f() -> list[str]:
            user: "Hi"
            fork i in range(4):
                user: "${i}"
                try:
                    assistant: a = gen(regex=r"[a-z]+", max_tokens=5)
                except Error:
                    a = "refused"
            join a as all
            return all
        """, tmp_path)

    def reply(asked):
        if asked.body["messages"][-1]["content"].endswith("2"):
            return Status(400, body={"error": {"message": "the regex takes more than 5 s"}})
        return chat('{"value": "ok"}')

    ended = run_remote(program, reply)
    assert list(ended.value) == ["ok", "ok", "refused", "ok"] and ended.outcomes.count("400") == 1
