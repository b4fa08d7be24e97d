"""Functions of programs as routes: arguments, results, options, events, errors, and what of them is never told."""

from __future__ import annotations

import asyncio
import json
import threading

import pytest

from lmc.diagnostics import CompileError, LmcError, UsageError
from lmc.server.program_files import load_programs
from lmc.server.program_routes import program_router
from tests.runtime.programs import dry_session
from tests.server.offered import KINDS, asked, events_of, offering, written

WAND = {"wood": "oak", "core": "feather", "length": 3.5}
FULL = {"wand": WAND, "action": {"type": "Finish", "answer": "yes", "steps": 2}, "grade": "B", "level": 5, "whole": -7, "right": False,
        "tags": ["x", "y"], "note": "n", "counts": {"a": 1}, "code": "Z99"}


def error_of(response) -> dict:
    assert response.headers["content-type"] == "application/json"
    return response.json()["error"]


def test_values_of_every_type_go_in_and_come_out(tmp_path):
    response = asked(tmp_path, KINDS, "everything", FULL)
    assert response.status_code == 200, response.text
    body = response.json()
    assert body["value"] == FULL
    assert list(body["value"]["action"]) == ["type", "answer", "steps"], "the tag comes first"
    assert body["usage"] == {"calls": 0, "prompt_tokens": 0, "cached_tokens": 0, "generated_tokens": 0, "jumped_tokens": 0}
    assert body["printed"] == body["warnings"] == [] and body["seconds"] >= 0


def test_defaults_of_parameters_and_fields_are_filled_in(tmp_path):
    value = asked(tmp_path, KINDS, "everything", {"wand": {"wood": "oak"}, "action": {"type": "Search", "query": "q"}}).json()["value"]
    assert value == {"wand": {"wood": "oak", "core": "hair", "length": 10.5}, "action": {"type": "Search", "query": "q"}, "grade": "A",
                     "level": 3, "whole": 0, "right": True, "tags": ["a"], "note": None, "counts": {}, "code": "A10"}


@pytest.mark.parametrize("change, place, words", [
    ({"wand": {"wood": "oak", "length": "long"}}, "wand.length", "expected float, found 'long'"),
    ({"wand": {"wood": "x" * 17}}, "wand.wood", "expected str(max_len=16)"),
    ({"action": {"type": "Search"}}, "action", "with the field `query`"),
    ({"action": {"type": "Jump"}}, "action", "expected one of Search, Finish"),
    ({"grade": "D"}, "grade", "expected \"A\" | \"B\" | \"C\", found 'D'"),
    ({"level": 6}, "level", "expected 1..5, found 6"),
    ({"whole": 2**63}, "whole", "expected int"),
    ({"whole": 1.5}, "whole", "expected int"),
    ({"right": 1}, "right", "expected bool"),
    ({"tags": ["a", 2]}, "tags[1]", "expected str, found 2"),
    ({"tags": ["a"] * 4}, "tags", "expected at most 3 elements"),
    ({"counts": {"a": "b"}}, "counts['a']", "expected int"),
    ({"code": "A1"}, "code", "found 'A1'"),
    ({"tag": []}, "tag", "has no parameter `tag`\ndid you mean `tags`?"),
], ids=lambda value: value if isinstance(value, str) and "\n" not in value else None)
def test_a_wrong_argument_is_told_with_its_place(change, place, words, tmp_path):
    response = asked(tmp_path, KINDS, "everything", {**FULL, **change})
    error = error_of(response)
    assert response.status_code == 422 and error["code"] == "E0851" and error["param"] == place
    assert words in error["message"] and "everything(wand: " in error["message"], error["message"]


def test_all_wrong_arguments_are_told_together(tmp_path):
    message = error_of(asked(tmp_path, KINDS, "everything", {"level": 9, "grade": "E"}))["message"]
    assert [word in message for word in ("needs the argument `wand`", "needs the argument `action`", "`level`", "`grade`")] == [True] * 4


@pytest.mark.parametrize("body, status, words", [
    (b"", 400, "the body is no JSON"), (b"{", 400, "line 1, column 2"), (b'{"text": NaN}', 400, "NaN is no number of JSON"),
    (b'{"text": "a", "text": "b"}', 400, 'the name "text" comes twice'), (b"\xff{}", 400, "no JSON"), (b"[]", 422, "the body is a list"),
    (b"null", 422, "the body is null"), (b'"x"', 422, "the body is a text"), (b"3", 422, "the body is a number"),
    (b"[" * 100_000, 400, "nested too deeply"), (b'{"text": ' + b"9" * 5_000 + b"}", 400, "no JSON"),
    (b'{"text": "\\ud800"}', 422, "expected str"), (b'{"text": ' + b"[" * 900 + b"]" * 900 + b"}", 422, ""),
], ids=range(13))
def test_a_body_that_is_no_object_of_arguments(body, status, words, tmp_path):
    response = asked(tmp_path, KINDS, "label", body)
    assert response.status_code == status and words in error_of(response)["message"], response.text


def test_the_model_answers_and_the_seed_repeats_the_run(tmp_path):
    async def use(client, state):
        async def story(**query):
            response = await client.post("/programs/p/story", json={"about": "a fox"}, params={"temperature": 1, **query})
            assert response.status_code == 200, response.text
            return response.json()

        return [await story(seed=5), await story(seed=5), await story(seed=6), await story()]

    one, again, other, drawn = offering(tmp_path, {"p.lmp": KINDS}, use)
    assert one["value"] == again["value"] != other["value"] and one["seed"] == 5 and drawn["seed"] not in (5, 6)
    assert one["printed"] == ["about a fox"] and one["usage"]["calls"] == 1 and one["usage"]["generated_tokens"] == 40
    assert one["usage"]["cached_tokens"] == 0 < again["usage"]["cached_tokens"]


def test_a_function_that_returns_nothing(tmp_path):
    body = asked(tmp_path, KINDS, "nothing").json()
    assert body["value"] is None and body["printed"] == ["done"]


@pytest.mark.parametrize("query, place, words", [
    ({"sed": 1}, "sed", "did you mean `seed`?"), ({"zzzz": 1}, "zzzz", "the options are seed"), ({"seed": "x"}, "seed", "expected a whole"),
    ({"seed": -1}, "seed", "from 0"), ({"temperature": "hot"}, "temperature", "expected a number from 0"), ({"temperature": "inf"}, "temperature", "number"),
    ({"top_p": 1.5}, "top_p", "up to 1"), ({"max_tokens": 0}, "max_tokens", "from 1"), ({"max_tokens": 200_001}, "max_tokens", "up to 200,000"),
    ({"deadline": 0}, "deadline", "above 0"), ({"stream": "yes"}, "stream", "`true` or `false`"), ({"seed": ["1", "2"]}, "seed", "twice"),
], ids=range(12))
def test_options_are_checked(query, place, words, tmp_path):
    response = asked(tmp_path, KINDS, "label", {"text": "x"}, query=query)
    assert response.status_code == 400 and error_of(response)["param"] == place and words in error_of(response)["message"], response.text


BUDGETS = '''
    def main(n: int = 3) -> list[str]:
        return [one(i) for i in range(n)]
    def one(i: int) -> str:
        user: "Say ${i}"
        assistant: text = gen(max_tokens=10, ignore_eos=True)
        return text
'''


@pytest.mark.parametrize("query, words", [({"max_calls": 2}, "has made 2 calls"), ({"max_tokens": 5}, "has generated 5 tokens"),
                                          ({"deadline": 0.000001}, "its deadline")], ids=["calls", "tokens", "deadline"])
def test_budgets_of_a_request(query, words, tmp_path):
    response = asked(tmp_path, BUDGETS, "main", query=query)
    error = error_of(response)
    assert (response.status_code, error["code"], error["kind"], error["type"]) == (422, "E0838", "budget", "run_error")
    assert words in error["message"] and "deadline" in error["help"] and "--max" not in response.text


FAILING = '''
    import "lib/parts.lmp" as parts
    extern def look(name: str) -> str
    def failed(text: str) -> str:
        fail("not ${text}")
    def inner(n: int) -> str:
        return parts.digits("x", n)
    def asks() -> str:
        return input("name?")
    def cut() -> int:
        user: "Count."
        assistant: n = gen(list[int](min_items=5), max_tokens=12)
        return len(n)
    def caught() -> list[str]:
        try:
            x = parts.digits("x", 1)
        except Error as e:
            return [e.kind, e.where]
        return []
    def looked(name: str) -> str:
        return look(name)
'''
PARTS = '''
    def digits(text: str, n: int) -> str:
        return str(int(text) + n)
'''


def failing(tmp_path, function, body=None, **options):
    def look(name):
        if name == "wrong":
            return 3
        raise RuntimeError("the password is hunter2, in /etc/secret")

    content = {} if body is None else body

    async def use(client, state):
        return await client.post(f"/programs/p/{function}", json=content, **options)

    return offering(tmp_path, {"p.lmp": FAILING, "lib/parts.lmp": PARTS}, use, functions={"look": look})


@pytest.mark.parametrize("function, body, status, code, kind, place", [
    ("failed", {"text": "good"}, 422, "E0831", "fail", ("p.lmp", 4)),
    ("inner", {"n": 3}, 422, "E0833", "value", ("lib/parts.lmp", 2)),
    ("asks", {}, 422, "E0834", "input", ("p.lmp", 8)),
    ("looked", {"name": "x"}, 502, "E0713", "extern", ("p.lmp", 20)),
    ("looked", {"name": "wrong"}, 502, "E0714", "extern", ("p.lmp", 20)),
], ids=["fail", "value", "input", "extern-raises", "extern-type"])
def test_errors_of_a_run_have_kind_code_and_place(function, body, status, code, kind, place, tmp_path):
    response = failing(tmp_path, function, body)
    error = error_of(response)
    assert (response.status_code, error["code"], error["kind"], error["type"]) == (status, code, kind, "run_error")
    assert (error["location"]["file"], error["location"]["line"]) == place and error["location"]["column"] > 1
    for secret in (str(tmp_path), "hunter2", "Traceback", "site-packages", "/etc/"):
        assert secret not in response.text
    if function == "inner":
        assert error["notes"] == ["in `digits`, called at p.lmp:6:12"] or "p.lmp:6" in "".join(error["notes"])
    if kind == "extern":
        assert error["message"] == "the extern `look` failed; the server's log says more"


def test_a_cut_value_carries_what_was_written(tmp_path):
    response = failing(tmp_path, "cut")
    error = error_of(response)
    assert response.status_code == 422 and error["kind"] == "truncated" and error["raw"].startswith("[")


def test_a_program_sees_no_folder_of_the_server_either(tmp_path):
    kind, where = failing(tmp_path, "caught").json()["value"]
    assert (kind, where) == ("value", "lib/parts.lmp:2:16")


def test_events(tmp_path):
    for how in ({"query": {"stream": "true"}}, {"headers": {"accept": "text/event-stream"}}):
        response = asked(tmp_path, KINDS, "story", {"about": "a fox"}, **how)
        assert response.status_code == 200 and response.headers["content-type"].startswith("text/event-stream")
        events = events_of(response.text)
        assert events[0] == ("print", {"text": "about a fox"}) and events[-1][0] == "value"
        texts = [data["text"] for name, data in events if name == "text"]
        if "query" in how:
            assert len(texts) > 5 and "".join(texts) == events[-1][1]["value"]
            assert {(data["where"], data["path"]) for name, data in events if name == "text"} == {("p.lmp:46:23", "")}
        value = events[-1][1]
        assert value["usage"]["generated_tokens"] == 40 and value["seed"] >= 0 and "printed" not in value


def test_events_can_be_declined(tmp_path):
    response = asked(tmp_path, KINDS, "nothing", query={"stream": "false"}, headers={"accept": "text/event-stream"})
    assert response.headers["content-type"] == "application/json"


def test_a_run_that_fails_ends_its_events_with_the_error(tmp_path):
    response = failing(tmp_path, "failed", {"text": "good"}, params={"stream": "true"})
    assert response.status_code == 200
    ((name, data),) = events_of(response.text)
    assert name == "error" and data["error"]["message"] == "not good" and data["error"]["location"]["file"] == "p.lmp"
    # What is wrong before the run begins has a status.
    assert failing(tmp_path, "failed", {}, params={"stream": "true"}).status_code == 422


def test_branches_name_their_path(tmp_path):
    text = '''
        def main() -> list[str]:
            user: "Go."
            fork i in range(2):
                assistant: t = gen(max_tokens=8, ignore_eos=True)
            join t as ts
            return ts
    '''
    events = events_of(asked(tmp_path, text, "main", query={"stream": "true"}).text)
    paths = {data["path"] for name, data in events if name == "text"}
    assert len(paths) == 2
    for number, path in enumerate(sorted(paths)):
        assert "".join(d["text"] for n, d in events if n == "text" and d["path"] == path) == events[-1][1]["value"][number]


def test_pieces_of_one_turn_name_their_place(tmp_path):
    text = '''
        def main() -> str:
            user: "Go."
            assistant:
                first = gen(max_tokens=8, ignore_eos=True)
                ", "
                second = gen(max_tokens=8, ignore_eos=True)
            return first + "|" + second
    '''
    events = events_of(asked(tmp_path, text, "main", query={"stream": "true"}).text)
    texts = ["".join(data["text"] for name, data in events if name == "text" and data["where"] == where) for where in ("p.lmp:4:17", "p.lmp:6:18")]
    assert "|".join(texts) == events[-1][1]["value"]


def test_what_is_not_there(tmp_path):
    async def use(client, state):
        answers = [await client.post(path, json={}) for path in
                   ("/programs/q/story", "/programs/p/stori", "/programs/p/conversation", "/programs/p/zz")]
        wrong = await client.get("/programs/p/story")
        document = (await client.get("/openapi.json")).json()
        return answers, wrong, document

    answers, wrong, document = offering(tmp_path, {"p.lmp": KINDS}, use)
    assert [a.status_code for a in answers] == [404] * 4 and wrong.status_code == 405
    messages = [error_of(a)["message"] for a in answers]
    assert messages[0] == "there is no program `q`; there are: `p`" and "did you mean `story`?" in messages[1]
    assert "context, which has no JSON" in messages[2] and "`everything`, `label`, `story`, `nothing`" in messages[3]
    assert not any("conversation" in path for path in document["paths"])


def test_a_full_server_says_so_before_a_stream_begins(tmp_path):
    async def use(client, state):
        with state.gate.entered(1, ""):
            return [await client.post("/programs/p/nothing", json={}, params={"stream": s}) for s in ("true", "false")]

    for response in offering(tmp_path, {"p.lmp": KINDS}, use, max_open=1):
        assert response.status_code == 429 and response.headers["retry-after"]


def test_arguments_have_a_longest_form(tmp_path):
    response = asked(tmp_path, KINDS, "label", {"text": "x" * 2_000}, max_prompt_bytes=1_000)
    assert response.status_code == 413 and "at most 1,000" in error_of(response)["message"]


def test_what_is_printed_has_a_bound(tmp_path):
    text = '''
        def main(line: str):
            for i in range(2000):
                print(line)
    '''
    error = error_of(asked(tmp_path, text, "main", {"line": "x" * 1_000}))
    assert error["kind"] == "budget" and "printed more than 1,048,576 characters" in error["message"]


def test_an_endless_loop_ends_by_its_budget_and_others_are_answered_meanwhile(tmp_path):
    text = '''
        def endless() -> int:
            n = 0
            while n >= 0:
                n += 1
            return n
        def quick() -> int:
            return 1
    '''

    async def use(client, state):
        slow = asyncio.create_task(client.post("/programs/p/endless", json={}))
        await asyncio.sleep(0)
        quick = await client.post("/programs/p/quick", json={})
        assert quick.json()["value"] == 1 and not slow.done()
        return await slow

    response = offering(tmp_path, {"p.lmp": text}, use)
    assert response.status_code == 422 and error_of(response)["kind"] == "budget"


# ---------------------------------------------------------------------- clients that go away


def scope_of(function, query):
    path = f"/programs/p/{function}"
    return {"type": "http", "asgi": {"version": "3.0", "spec_version": "2.3"}, "http_version": "1.1", "method": "POST", "scheme": "http",
            "path": path, "raw_path": path.encode(), "root_path": "", "query_string": query, "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 80),
            "headers": [(b"host", b"localhost"), (b"content-type", b"application/json")]}


def call_of(state, function, body, query=b""):
    """An ASGI call of the application, which hangs up when told to: the task, the event to set, and what was sent."""
    from lmc.server.app import make_app

    hang_up, sent = asyncio.Event(), []
    content = [json.dumps(body).encode()]

    async def receive():
        if content:
            return {"type": "http.request", "body": content.pop(), "more_body": False}
        await hang_up.wait()
        return {"type": "http.disconnect"}

    async def send(message):
        sent.append(message)

    return asyncio.create_task(make_app(state)(scope_of(function, query), receive, send)), hang_up, sent


LONG = '''
    extern def wait_for_it() -> str
    def long() -> list[str]:
        return [one(i) for i in range(3)]
    def one(i: int) -> str:
        user: "Say ${i}"
        assistant: text = gen(max_tokens=4000, ignore_eos=True)
        return text
    def waits() -> str:
        found = wait_for_it()
        user: "${found}"
        assistant: text = gen(max_tokens=4)
        return text
'''


@pytest.mark.parametrize("query", [b"", b"stream=true"], ids=["whole", "events"])
def test_a_client_that_goes_away_frees_its_slots_within_two_steps(query, tmp_path):
    async def use(client, state):
        task, hang_up, sent = call_of(state, "long", {}, query)
        while state.session.stats.running < 3:
            await asyncio.sleep(0.001)
        hang_up.set()
        await task
        # The commands to cancel are queued once the answer has ended: two steps later, at most, the slots are free.
        steps = state.session.stats.steps
        while state.session.stats.used_slots:
            assert state.session.stats.steps <= steps + 2
            await asyncio.sleep(0.001)
        assert not any(message.get("body") for message in sent) or query
        return sent

    sent = offering(tmp_path, {"p.lmp": LONG}, use, functions={"wait_for_it": lambda: ""})
    assert not any(b"event: value" in message.get("body", b"") for message in sent)


def test_what_an_extern_gives_after_its_client_has_gone_is_dropped(tmp_path):
    entered, release, left = threading.Event(), threading.Event(), threading.Event()

    def wait_for_it():
        entered.set()
        assert release.wait(20)
        left.set()
        return "late"

    async def use(client, state):
        task, hang_up, sent = call_of(state, "waits", {})
        await asyncio.to_thread(entered.wait, 20)
        hang_up.set()
        await task
        release.set()
        await asyncio.to_thread(left.wait, 20)
        for _ in range(5):
            await asyncio.sleep(0)
        assert state.session.requests == [], "nothing was generated for it"

    offering(tmp_path, {"p.lmp": LONG}, use, functions={"wait_for_it": wait_for_it})


def test_a_client_that_reads_too_slowly_ends_its_run(monkeypatch, tmp_path):
    import lmc.server.program_run as program_run

    monkeypatch.setattr(program_run, "MOST_WAITING", 300)

    async def use(client, state):
        from lmc.server.app import make_app

        sent, blocked = [], asyncio.Event()
        content = [b"{}"]

        async def receive():
            if content:
                return {"type": "http.request", "body": content.pop(), "more_body": False}
            await asyncio.Event().wait()

        async def send(message):
            sent.append(message)
            if message.get("body") and len(sent) == 2:
                while state.session.under_way:
                    await asyncio.sleep(0.001)
                blocked.set()

        await make_app(state)(scope_of("long", b"stream=true"), receive, send)
        assert blocked.is_set()
        return b"".join(message.get("body", b"") for message in sent).decode()

    name, data = events_of(offering(tmp_path, {"p.lmp": LONG}, use, functions={"wait_for_it": lambda: ""}))[-1]
    assert name == "error" and data["error"]["message"] == "the client reads its events too slowly"


# ------------------------------------------------------------------------------- before it starts


def test_files_that_do_not_compile_are_told_all_together(tmp_path):
    paths = written(tmp_path, {"a.lmp": "def f() -> int:\n    return x\n", "b.lmp": "def g() -> int:\n    return y\n", "c.lmp": "def h():\n    pass\n"})
    with pytest.raises(CompileError) as refused:
        load_programs(paths, {})
    assert {d.span.file for d in refused.value.diagnostics} == {str(tmp_path / "a.lmp"), str(tmp_path / "b.lmp")}
    assert "return x" in str(refused.value) and "return y" in str(refused.value)


def test_two_files_of_one_name_are_refused(tmp_path):
    (tmp_path / "other").mkdir()
    paths = [*written(tmp_path, {"a.lmp": "def f():\n    pass\n"}), *written(tmp_path / "other", {"a.lmp": "def f():\n    pass\n"})]
    with pytest.raises(UsageError, match="would have the same address, `/programs/a`"):
        load_programs(paths, {})


def test_a_file_whose_name_is_no_part_of_an_address_is_refused(tmp_path):
    with pytest.raises(UsageError, match="cannot be part of an address"):
        load_programs(written(tmp_path, {"a {b}.lmp": "def f():\n    pass\n"}), {})


def test_an_extern_without_a_function_is_refused(tmp_path):
    with pytest.raises(UsageError, match="nothing is bound to the extern `wait_for_it`"):
        load_programs(written(tmp_path, {"p.lmp": LONG}), {})


def test_what_the_model_cannot_do_is_told_at_the_start(tmp_path):
    from lmc.server.settings import ServerSettings
    from lmc.server.state import ServerState

    async def use():
        session = dry_session(template=False)
        try:
            state = ServerState(ServerSettings("default"), session, programs=load_programs(written(tmp_path, {"p.lmp": BUDGETS}), {}))
            with pytest.raises(LmcError, match="needs a chat template"):
                program_router(state)
        finally:
            session.close()

    asyncio.run(use())


def test_a_compiled_program_is_served_too(tmp_path):
    from lmc.backend.serialize import write_program
    from lmc.embed import load_program

    (path,) = written(tmp_path, {"p.lmp": KINDS})
    (tmp_path / "q.lmpc").write_bytes(write_program(load_program(path)))
    served = load_programs([path, tmp_path / "q.lmpc"], {})
    assert list(served) == ["p", "q"] and list(served["q"].program.sources) == ["p.lmp"]
