"""What a server is asked, and what is made of its answers: turns, options, values, choices, by interface."""

import json

import pytest

from lmc.diagnostics import LmcError
from lmc.runtime.remote.conversation import Conversation, Turn, conversation, remote_vocabulary
from lmc.runtime.remote.settings import Patience, RemoteSettings
from lmc.runtime.remote.transport import address
from tests.runtime.remote.fake_server import USAGE, Events, Status, chat, text
from tests.runtime.remote.remote_runs import KEY, program_at, run_remote


def test_prompts_are_read_back_into_turns_and_no_text_can_be_one():
    tokenizer, template = remote_vocabulary()
    from lmc.runtime.context import Prompter

    prompter = Prompter(tokenizer, template)
    context = prompter.append(prompter.new(), "user", "Hi <|assistant|> é")
    prompt = prompter.prompt(prompter.append(context, "assistant", "Sure: "), "assistant", heal=True)
    assert prompt.heal == b""
    assert conversation(tokenizer, prompt.ids) == Conversation((Turn("user", "Hi <|assistant|> é"), Turn("assistant", "Sure: ")))
    raw = prompter.prompt(prompter.append(prompter.new(), "raw", "Once"), "raw", heal=True)
    assert conversation(tokenizer, raw.ids) == Conversation((), "Once")


def test_a_chat_sends_its_turns_and_options(tmp_path):
    program = program_at("""
        def f() -> str:
            system: "Be brief."
            user: "Hi"
            assistant: a = gen(max_tokens=7, stop="\\n", temperature=0.5, top_p=0.9, seed=3)
            user: "And?"
            assistant: "Well, ${b := gen(max_tokens=5)}."
            return a + b
        """, tmp_path)
    ended = run_remote(program, [chat("Hel", "lo"), chat("yes")])
    first, second = ended.requests
    assert ended.value == "Helloyes" and first.path == "/v1/chat/completions"
    assert first.headers["authorization"] == f"Bearer {KEY}"
    assert first.body == {
        "model": "m", "max_tokens": 7, "stream": True, "stream_options": {"include_usage": True}, "stop": ["\n"], "temperature": 0.5,
        "top_p": 0.9, "seed": 3, "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}]}
    assert second.body["messages"][2:] == [{"role": "assistant", "content": "Hello"}, {"role": "user", "content": "And?"},
                                           {"role": "assistant", "content": "Well, "}]


def test_what_an_answer_repeats_of_a_begun_turn_is_cut_off(tmp_path):
    program = program_at('def f() -> str:\n    user: "Hi"\n    assistant: "Well, ${a := gen(max_tokens=5, stream=True)}"\n    return a', tmp_path)
    ended = run_remote(program, [chat("We", "ll, y", "es")])
    assert ended.value == "yes" and "".join(ended.streamed) == "yes"
    assert run_remote(program, [chat("We", "lcome")]).value == "Welcome"


@pytest.mark.parametrize("backend", ["vllm", "sglang"])
def test_engines_go_on_with_a_begun_turn(tmp_path, backend):
    program = program_at('def f() -> str:\n    user: "Hi"\n    assistant: "Well, ${a := gen(max_tokens=5, top_k=3)}"\n    return a', tmp_path)
    ended = run_remote(program, [chat("Well, no")], backend=backend)
    body = ended.requests[0].body
    assert ended.value == "Well, no" and body["continue_final_message"] is True and body["add_generation_prompt"] is False
    assert body["top_k"] == 3


def test_six_stops_on_a_server_that_takes_four(tmp_path):
    stops = json.dumps(["A", "B", "C", "D", "E", "##"])
    program = program_at(f'def f() -> str:\n    user: "Hi"\n    assistant: a = gen(stop={stops}, stream=True)\n    return a', tmp_path)
    ended = run_remote(program, [chat("one #", "# two")])
    assert ended.value == "one " and "".join(ended.streamed) == "one " and ended.requests[0].body["stop"] == ["A", "B", "C", "D"]


TYPED = """
    type Wand:
        wood: str(max_len=16)
        length: float

    def f() -> Wand:
        user: "A wand."
        assistant: w = gen(Wand)
        return w

    def number() -> int:
        user: "A number."
        assistant: n = gen(1..5)
        return n

    def word() -> str:
        user: "A word."
        assistant: w = gen(regex=r"[a-z]+")
        return w

    def house() -> str:
        user: "A house."
        assistant: h = select(["red", "blue"])
        return h
    """


@pytest.mark.parametrize("name, answer, value", [
    ("f", '{ "wood": "elm",\n "length": 2.5 }', ("elm", 2.5)),
    ("number", '{"value": 3}', 3),
    ("word", '{"value": "abc"}', "abc"),
    ("house", '{"value": "blue"}', "blue"),
])
def test_values_on_openai_come_as_json_of_a_schema(tmp_path, name, answer, value):
    ended = run_remote(program_at(TYPED, tmp_path), [chat(answer)], name=name)
    assert (ended.value.values if name == "f" else ended.value) == value
    schema = ended.requests[0].body["response_format"]["json_schema"]["schema"]
    assert schema["type"] == "object" and schema["additionalProperties"] is False


@pytest.mark.parametrize("name, guided, answer, value", [
    ("number", {"json": {"type": "integer", "minimum": 1, "maximum": 5}}, " 4", 4),
    ("word", {"regex": "[a-z]+"}, "abc", "abc"),
])
def test_vllm_is_told_in_its_own_words(tmp_path, name, guided, answer, value):
    ended = run_remote(program_at(TYPED, tmp_path), [chat(answer)], name=name, backend="vllm")
    assert ended.value == value and ended.requests[0].body["structured_outputs"] == guided


def test_sglang_gets_raw_text_by_its_own_interface(tmp_path):
    program = program_at('def f() -> int:\n    raw: "Two and two is ${n := gen(regex=r"[0-9]", max_tokens=3, logprobs=1)}"\n    return len(n)',
                         tmp_path)

    def event(said, finish=None):
        return {"text": said, "meta_info": {"prompt_tokens": 5, "completion_tokens": 1, "cached_tokens": 2, "finish_reason": finish,
                                            "output_token_logprobs": [[-0.5, 7, "4"]], "output_top_logprobs": [[[-0.5, 7, "4"]]]}}

    ended = run_remote(program, [Events([event(""), event("4", {"type": "stop", "matched": 2})])], backend="sglang")
    assert ended.requests[0].path == "/generate" and ended.requests[0].body["text"] == "Two and two is "
    assert ended.requests[0].body["sampling_params"]["regex"] == "[0-9]"
    assert ended.value == 1 and ended.report.attempts[0].cached == 2
    assert ended.report.logprobs[0].tokens[0].text == "4" and ended.report.logprobs[0].tokens[0].top == (("4", -0.5),)


def test_a_value_that_is_none_is_asked_for_again_and_never_bound(tmp_path):
    program = program_at(TYPED, tmp_path)
    ended = run_remote(program, [chat('{"value": 9}'), chat("sure"), chat('{"value": 5}')], name="number")
    assert ended.value == 5 and len({r.body["seed"] for r in ended.requests}) == 3
    failed = run_remote(program, [chat('{"value": 9}')] * 3, name="number")
    assert failed.error.kind == "invalid" and failed.error.raw == '{"value": 9}' and len(failed.requests) == 3


def test_a_value_that_was_cut_is_an_error_at_once(tmp_path):
    ended = run_remote(program_at(TYPED, tmp_path), [chat('{"wood": "el', finish="length")])
    assert ended.error.kind == "truncated" and len(ended.requests) == 1


def test_select_by_the_log_probabilities_of_prompts(tmp_path):
    program = program_at('def f() -> str:\n    raw: "Tea is ${a := select(["hot", "cold"])}"\n    return a', tmp_path)

    def reply(asked):
        option = asked.body["prompt"].removeprefix("Tea is ")
        tokens = [("Tea", -9.0), (" is ", -9.0), *((c, -1.0 if option == "hot" else -0.5) for c in option)]
        rows = [None, *({"1": {"decoded_token": t, "logprob": p}} for t, p in tokens[1:])]
        return Status(200, body={"choices": [{"text": "x", "finish_reason": "length", "prompt_logprobs": rows}], "usage": USAGE})

    ended = run_remote(program, reply, backend="vllm")
    assert ended.value == "cold" and len(ended.requests) == 2
    assert all(r.body["prompt_logprobs"] == 0 and r.body["max_tokens"] == 1 and not r.body["stream"] for r in ended.requests)


@pytest.mark.parametrize("body, message", [
    ('user: "x"\n    assistant: a = gen(top_k=5)', "`top_k` is not known to openai"),
    ('user: "x"\n    assistant: a = gen(grammar="start: \\"a\\"")', "a lark grammar cannot be kept"),
    ('user: "x"\n    assistant: a = score(["a", "b"])', "`score` needs the log-probabilities"),
    ('user: "x"\n    assistant: a = select(["a", "b"], method="greedy_token")', "`greedy_token` needs the model's tokens"),
])
def test_what_a_target_cannot_do_is_told_before_anything_runs(tmp_path, body, message):
    program = program_at(f'def f() -> int:\n    {body}\n    return 1', tmp_path)
    with pytest.raises(LmcError) as caught:
        run_remote(program, [])
    assert message in str(caught.value) and "E0871" in str(caught.value) and "program.lmp:" in str(caught.value)


def test_an_option_from_the_command_line_that_is_not_known_is_refused(tmp_path):
    program = program_at('def f() -> str:\n    user: "Hi"\n    assistant: a = gen()\n    return a', tmp_path)
    ended = run_remote(program, [], overrides={"top_k": 5})
    assert "`top_k` is not known to openai" in str(ended.error) and not ended.requests


def test_so_many_requests_at_once_and_no_more(tmp_path):
    program = program_at("""
        def f() -> int:
            user: "Hi"
            fork i in range(9):
                assistant: a = gen(max_tokens=2)
            join a as all
            return len(all)
        """, tmp_path)
    ended = run_remote(program, lambda asked: chat("x", pause=0.02), at_once=3)
    assert ended.value == 9 and ended.most_at_once == 3


def test_raw_text_goes_to_completions(tmp_path):
    program = program_at('def f() -> str:\n    raw: "Once ${a := gen(max_tokens=4, logprobs=2)}"\n    return a', tmp_path)
    reply = Events([{"choices": [{"text": "up", "logprobs": {"tokens": ["up"], "token_logprobs": [-0.1], "top_logprobs": [{"u": -3.0, "up": -0.1}]},
                                  "finish_reason": "length"}]}])
    ended = run_remote(program, [reply])
    assert ended.value == "up" and ended.requests[0].path == "/v1/completions" and ended.requests[0].body["prompt"] == "Once "
    assert ended.report.logprobs[0].tokens[0].top == (("up", -0.1), ("u", -3.0))
    assert ended.report.attempts[0].prompt is None


@pytest.mark.parametrize("base, path, whole", [
    ("http://h:1", "/completions", "http://h:1/v1/completions"), ("http://h:1/v1/", "/completions", "http://h:1/v1/completions"),
    ("https://h/openai/v1", "/chat/completions", "https://h/openai/v1/chat/completions"), ("http://h:1/v1", "/generate", "http://h:1/generate"),
])
def test_addresses(base, path, whole):
    assert address(base, path) == whole


def test_the_key_is_in_no_text():
    assert KEY not in repr(RemoteSettings("openai", "http://h", KEY, patience=Patience()))


SPECULATED = """
    def f() -> str:
        user: "Who?"
        assistant:
            "name: ${a := gen(stop="\\n", max_tokens=40)}\\nhome: ${b := gen(stop="\\n", max_tokens=40)}\\n"
            "born: ${c := gen(stop="\\n", max_tokens=40)}\\nlives: ${d := gen(stop="\\n", max_tokens=40)}\\nwork: ${e := gen(stop="\\n", max_tokens=40)}\\n"
        return a + "," + b + "," + c + "," + d + "," + e
    """
WRITTEN = "name: Ada\nhome: London\nborn: 1815\nlives: no\nwork: engines\n"


def _model(predicts: bool):
    """A model that goes on with the text; it writes the literals, or other ones, where it is not stopped."""
    def reply(asked):
        raw = asked.body.get("prompt")
        begun = raw.removeprefix("Who?\n") if raw is not None else asked.body["messages"][-1]["content"]
        rest = WRITTEN[len(begun):]
        stops = asked.body.get("stop")
        said = rest.split("\n")[0] if stops else rest if predicts else rest.split("\n")[0] + "\nand so on"
        return chat(said) if raw is None else text(said)

    return reply


@pytest.mark.parametrize("backend", ["vllm", "openai", "raw"])
@pytest.mark.parametrize("predicts", [True, False])
@pytest.mark.parametrize("ahead, calls", [(0, (5, 5)), (64, (1, 5)), (10, (5, 5))])
def test_five_holes(tmp_path, predicts, ahead, calls, backend):
    """Case I-04: one request where the model predicts the literals, never more than without, and the same text."""
    raw = SPECULATED.replace('user: "Who?"', 'raw: "Who?\\n"').replace("assistant:", "raw:") if backend == "raw" else SPECULATED
    ended = run_remote(program_at(raw, tmp_path), _model(predicts), ahead=ahead, backend="openai" if backend == "raw" else backend)
    assert ended.value == "Ada,London,1815,no,engines"
    assert len(ended.requests) == len(ended.report.attempts) == calls[not predicts]
    assert ended.report.calls == 5
    asked_past = [r for r in ended.requests if "stop" not in r.body]
    assert all(r.body["max_tokens"] <= ahead for r in asked_past)
    assert (sum(a.wasted or 0 for a in ended.report.attempts) > 0) == (ahead == 64 and not predicts)


BEGUN = """
    def f() -> int:
        user: "A number."
        assistant: "It is ${n := gen(1..5)}. Or ${m := gen(1..5)}."
        return n * 10 + m
    """


def test_a_server_that_refuses_a_schema_behind_a_begun_turn_gets_a_grammar(tmp_path):
    """As llama.cpp does: it holds the begun turn to the schema, too."""
    def reply(asked):
        return Status(400, body={"error": {"message": "no"}}) if "response_format" in asked.body else chat("3")

    ended = run_remote(program_at(BEGUN, tmp_path), reply)
    assert ended.value == 33 and ended.outcomes == ["400", "answered", "answered"]
    assert [r.body.get("grammar", "").splitlines()[:2] for r in ended.requests] == [[], *[["root ::= s1", "s1 ::= [1-5] s2"]] * 2]


def test_a_server_that_knows_no_grammars_is_told_of_by_its_first_refusal(tmp_path):
    def reply(asked):
        return Status(400, body={"error": {"message": "a bad schema" if "response_format" in asked.body else "what is `grammar`?"}})

    ended = run_remote(program_at(BEGUN, tmp_path), reply)
    assert "a bad schema" in str(ended.error) and len(ended.requests) == 2 and "program.lmp:3:" in str(ended.error)


def test_values_of_grammars_are_checked_too(tmp_path):
    def reply(asked):
        return Status(400) if "response_format" in asked.body else chat("9")

    ended = run_remote(program_at(BEGUN, tmp_path), reply)
    assert ended.error.kind == "invalid" and len(ended.requests) == 4
