"""Every option of OpenAI's interface changes what comes back, as it should; asked by OpenAI's own client."""

from __future__ import annotations

import json

import openai
import pytest

from lmc.runtime.dry import dry_tokenizer

from tests.server.running import running

SCHEMA = {"type": "object", "properties": {"age": {"type": "integer", "minimum": 0, "maximum": 99}, "name": {"enum": ["Ada", "Bob"]}},
          "required": ["age", "name"]}


@pytest.fixture(scope="module")
def served():
    with running() as one:
        yield one


def text(answer, place: int = 0) -> str:
    return answer.choices[place].message.content


def test_a_chat_has_the_form_of_openai(served):
    answer = served.chat("Tell me about tea.")
    assert answer.object == "chat.completion" and answer.id.startswith("chatcmpl-") and answer.model == "dry"
    assert answer.choices[0].message.role == "assistant" and text(answer)
    usage = answer.usage
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens and 0 < usage.completion_tokens <= 24
    assert text(served.chat("Tell me about tea.")) == text(answer)
    assert text(served.chat("Tell me about coffee.")) != text(answer)


def test_roles_make_different_prompts(served):
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}]
    with_system = served.chat("", messages=messages)
    assert text(with_system) != text(served.chat("Hi"))
    assert text(served.chat("", messages=[messages[0] | {"role": "developer"}, messages[1]])) == text(with_system)
    talk = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}, {"role": "user", "content": "Hi"}]
    assert text(served.chat("", messages=talk)) != text(served.chat("Hi"))


def test_a_turn_without_text_is_a_turn(served):
    empty = served.chat("", messages=[{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}, {"role": "user", "content": ""}])
    assert empty.usage.prompt_tokens > served.chat("Hi").usage.prompt_tokens and text(empty) != text(served.chat("Hi"))


def test_parts_of_text_are_one_text(served):
    parts = [{"type": "text", "text": "Tell me "}, {"type": "text", "text": "about tea."}]
    assert text(served.chat("", messages=[{"role": "user", "content": parts}])) == text(served.chat("Tell me about tea."))


def test_messages_of_one_role_are_one_turn(served):
    two = [{"role": "user", "content": "Hi"}, {"role": "user", "content": "there"}]
    assert text(served.chat("", messages=two)) == text(served.chat("Hi\n\nthere"))


def test_a_last_message_of_the_assistant_is_gone_on_with(served):
    whole = served.chat("Tell me about tea.", max_tokens=16, logprobs=True)
    tokens = [token.token for token in whole.choices[0].logprobs.content]
    # A beginning that is read in the tokens that it was written in.
    spelled = {id: data.decode(errors="replace") for id, data in enumerate(dry_tokenizer().token_bytes)}
    count = next(n for n in range(8, 0, -1) if [spelled[i] for i in dry_tokenizer().encode("".join(tokens[:n]))] == tokens[:n])
    half = "".join(tokens[:count])
    messages = [{"role": "user", "content": "Tell me about tea."}, {"role": "assistant", "content": half}]
    rest = served.chat("", messages=messages, max_tokens=16, extra_body={"heal": False})
    assert (half + text(rest)).startswith(text(whole))


def test_temperature_and_seed(served):
    greedy = text(served.chat("tea"))
    drawn = [text(served.chat("tea", temperature=1.5, seed=seed)) for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2] and greedy not in drawn


def test_without_a_seed_answers_differ(served):
    assert len({text(served.chat("tea", temperature=1.5)) for _ in range(4)}) > 1


@pytest.mark.parametrize("option", [{"top_p": 1e-6}, {"extra_body": {"top_k": 1}}, {"extra_body": {"min_p": 1.0}}])
def test_what_leaves_one_token_is_greedy(served, option):
    assert text(served.chat("tea", temperature=1.5, seed=3, **option)) == text(served.chat("tea"))


@pytest.mark.parametrize("option", [
    {"frequency_penalty": 2.0}, {"presence_penalty": 2.0}, {"extra_body": {"repetition_penalty": 3.0}}, {"logit_bias": {"100": 20}},
])
def test_penalties_and_biases_change_the_text(served, option):
    question = "the the the of of of and and and"
    assert text(served.chat(question, max_tokens=40, **option)) != text(served.chat(question, max_tokens=40))


def test_a_bias_decides(served):
    (token,) = dry_tokenizer().encode("true")
    assert text(served.chat("tea", logit_bias={str(token): 100}, max_tokens=3)) == "truetruetrue"


@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens"])
def test_limits(served, name):
    answer = served.client().chat.completions.create(model="dry", messages=[{"role": "user", "content": "tea"}], temperature=0, **{name: 3})
    assert answer.usage.completion_tokens == 3 and answer.choices[0].finish_reason == "length"


def test_without_a_limit_a_chat_ends_by_itself(served):
    answer = served.client().chat.completions.create(model="dry", messages=[{"role": "user", "content": "tea"}], temperature=0)
    assert answer.choices[0].finish_reason == "stop" and answer.usage.completion_tokens > 3


def test_min_tokens_and_ignore_eos(served):
    ended = served.chat("tea", max_tokens=500).usage.completion_tokens
    assert ended < 400
    assert served.chat("tea", max_tokens=500, extra_body={"min_tokens": 400}).usage.completion_tokens >= 400
    on = served.chat("tea", max_tokens=500, extra_body={"ignore_eos": True})
    assert on.usage.completion_tokens == 500 and on.choices[0].finish_reason == "length"


def test_stop(served):
    whole = text(served.chat("tea"))
    word = whole.split()[2]
    for stop in (word, ["no such text", word]):
        answer = served.chat("tea", stop=stop)
        assert text(answer) == whole[: whole.index(word)] and answer.choices[0].finish_reason == "stop"
        assert answer.choices[0].stop_reason == word


def test_choices(served):
    three = served.chat("tea", temperature=1.5, seed=7, n=3)
    assert [choice.index for choice in three.choices] == [0, 1, 2] and len({text(three, i) for i in range(3)}) == 3
    assert text(three) == text(served.chat("tea", temperature=1.5, seed=7))
    again = served.chat("tea", temperature=1.5, seed=7, n=3)
    assert [text(three, i) for i in range(3)] == [text(again, i) for i in range(3)]
    assert three.usage.prompt_tokens == served.chat("tea").usage.prompt_tokens


def test_choices_share_their_prompt(served):
    before = served.session.stats.prompt
    answer = served.chat("a prompt that is long enough to be seen, and that nobody has asked before", n=4)
    assert served.session.stats.prompt - before < answer.usage.prompt_tokens + 8


def test_what_the_cache_had_is_told(served):
    question = "Something that was never asked here before: how warm is the sea today?"
    first, second = served.chat(question).usage, served.chat(question).usage
    assert second.prompt_tokens_details.cached_tokens >= second.prompt_tokens - 1 > first.prompt_tokens_details.cached_tokens


def test_logprobs_of_a_chat(served):
    answer = served.chat("tea", logprobs=True, top_logprobs=3, max_tokens=5)
    content = answer.choices[0].logprobs.content
    assert len(content) == 5 and "".join(token.token for token in content) == text(answer)
    for token in content:
        assert token.logprob <= 0 and bytes(token.bytes).decode() == token.token and len(token.top_logprobs) == 3
        assert token.top_logprobs[0].logprob >= token.top_logprobs[1].logprob
        assert token.token == token.top_logprobs[0].token, "greedy takes the likeliest"
    assert served.chat("tea", max_tokens=5).choices[0].logprobs is None
    assert served.chat("tea", max_tokens=5, logprobs=True).choices[0].logprobs.content[0].top_logprobs == []


def test_logprobs_of_a_completion(served):
    answer = served.complete("tea is", logprobs=2, max_tokens=4).choices[0]
    logprobs = answer.logprobs
    assert "".join(logprobs.tokens) == answer.text and len(logprobs.token_logprobs) == 4
    assert logprobs.text_offset == [len("".join(logprobs.tokens[:i])) for i in range(4)]
    assert all(len(top) == 2 and token in top for token, top in zip(logprobs.tokens, logprobs.top_logprobs))
    assert served.complete("tea is", logprobs=0, max_tokens=4).choices[0].logprobs.top_logprobs is None


def test_a_completion_is_not_healed_and_a_chat_is(served):
    prompt = "The weather in sp"
    plain = served.complete(prompt, max_tokens=12).choices[0]
    healed = served.complete(prompt, max_tokens=12, extra_body={"heal": True}).choices[0]
    ids = dry_tokenizer().encode(prompt)
    assert served.complete(ids, max_tokens=12).choices[0].text == plain.text
    assert plain.text != healed.text
    begun = [{"role": "user", "content": "tea"}, {"role": "assistant", "content": "It is a goo"}]
    assert text(served.chat("", messages=begun)) != text(served.chat("", messages=begun, extra_body={"heal": False}))


def test_several_prompts(served):
    both = served.complete(["tea is", "coffee is"], max_tokens=6, n=2)
    assert [choice.index for choice in both.choices] == [0, 1, 2, 3]
    for place, prompt in ((0, "tea is"), (2, "coffee is")):
        assert both.choices[place].text == served.complete(prompt, max_tokens=6).choices[0].text
    assert both.usage.prompt_tokens == sum(served.complete(p).usage.prompt_tokens for p in ("tea is", "coffee is"))


def test_a_completion_has_16_tokens_unless_it_is_said(served):
    assert served.complete("tea", extra_body={"ignore_eos": True}).usage.completion_tokens == 16


def test_echo(served):
    plain = served.complete("tea is", max_tokens=4).choices[0].text
    assert served.complete("tea is", max_tokens=4, echo=True).choices[0].text == "tea is" + plain
    scored = served.complete("tea is", max_tokens=0, echo=True, logprobs=0).choices[0]
    assert scored.text == "tea is" == "".join(scored.logprobs.tokens)
    assert scored.logprobs.token_logprobs[0] is None and all(p < 0 for p in scored.logprobs.token_logprobs[1:])
    more = served.complete("tea is", max_tokens=2, echo=True, logprobs=0).choices[0].logprobs
    assert more.tokens[: len(scored.logprobs.tokens)] == scored.logprobs.tokens and len(more.tokens) == len(scored.logprobs.tokens) + 2


def test_prompt_logprobs_are_those_of_echo(served):
    scored = served.complete("tea is good", max_tokens=0, echo=True, logprobs=0).choices[0].logprobs
    told = served.complete("tea is good", max_tokens=1, extra_body={"prompt_logprobs": 0}).choices[0].prompt_logprobs
    assert told[0] is None
    found = [next(iter(place.values())) for place in told[1:]]
    assert [one["decoded_token"] for one in found] == scored.tokens[1:]
    assert [one["logprob"] for one in found] == pytest.approx(scored.token_logprobs[1:])
    chat = served.chat("tea", max_tokens=1, extra_body={"prompt_logprobs": 0})
    assert len(chat.prompt_logprobs) == chat.usage.prompt_tokens


@pytest.mark.parametrize("option", [
    {"response_format": {"type": "json_schema", "json_schema": {"name": "person", "schema": SCHEMA, "strict": True}}},
    {"extra_body": {"structured_outputs": {"json": SCHEMA}}}, {"extra_body": {"structured_outputs": {"json": json.dumps(SCHEMA)}}},
])
def test_schemas(served, option):
    answer = served.chat("Who?", max_tokens=60, **option)
    value = json.loads(text(answer))
    assert set(value) == {"age", "name"} and value["name"] in ("Ada", "Bob") and 0 <= value["age"] <= 99
    assert answer.choices[0].finish_reason == "stop"


@pytest.mark.parametrize("option", [
    {"response_format": {"type": "json_object"}}, {"extra_body": {"structured_outputs": {"json_object": True}}},
])
def test_any_object(served, option):
    answer = served.chat("Who?", max_tokens=400, temperature=0.5, seed=1, logit_bias={}, **option)
    assert text(answer).startswith("{")
    if answer.choices[0].finish_reason == "stop":
        assert isinstance(json.loads(text(answer)), dict)


def test_plain_text_is_no_constraint(served):
    assert text(served.chat("tea", response_format={"type": "text"})) == text(served.chat("tea"))


@pytest.mark.parametrize("route", ["chat", "complete"])
@pytest.mark.parametrize("extra, pattern", [
    ({"regex": "[ab]{5}"}, "[ab]{5}"), ({"structured_outputs": {"regex": "[ab]{5}"}}, "[ab]{5}"),
    ({"structured_outputs": {"choice": ["yes (sure)", "no."]}}, r"yes \(sure\)|no\."),
    ({"structured_outputs": {"grammar": 'start: "(" start ")" | "x"'}}, r"\(*x\)*"),
])
def test_patterns(served, route, extra, pattern):
    choice = getattr(served, route)("tea", max_tokens=30, extra_body=extra).choices[0]
    import re

    found = choice.message.content if route == "chat" else choice.text
    assert re.fullmatch(pattern, found) or "grammar" in str(extra) and choice.finish_reason == "length"


def test_fields_that_change_nothing(served):
    plain = text(served.chat("tea"))
    assert text(served.chat("tea", user="me", metadata={"a": "b"}, store=False)) == plain
    assert text(served.chat("tea", tools=[], extra_body={"stop": None, "best_of": 1})) == plain


# Streams.

def test_a_stream_is_the_whole_answer_in_pieces(served):
    whole = served.chat("tea")
    chunks = list(served.chat("tea", stream=True))
    assert chunks[0].choices[0].delta.role == "assistant" and len(chunks) > 5
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == text(whole)
    assert [c.choices[0].finish_reason for c in chunks] == [None] * (len(chunks) - 1) + [whole.choices[0].finish_reason]
    assert all(chunk.usage is None for chunk in chunks) and len({chunk.id for chunk in chunks}) == 1


def test_usage_of_a_stream(served):
    whole = served.chat("tea")
    *chunks, last = served.chat("tea", stream=True, stream_options={"include_usage": True})
    assert last.choices == [] and last.usage.completion_tokens == whole.usage.completion_tokens
    assert last.usage.prompt_tokens == whole.usage.prompt_tokens


def test_choices_of_a_stream(served):
    whole = served.chat("tea", n=2, temperature=1.5, seed=1)
    texts = ["", ""]
    for chunk in served.chat("tea", n=2, temperature=1.5, seed=1, stream=True):
        texts[chunk.choices[0].index] += chunk.choices[0].delta.content or ""
    assert texts == [text(whole, 0), text(whole, 1)]


def test_logprobs_of_a_stream(served):
    found = [token.token for chunk in served.chat("tea", stream=True, logprobs=True, max_tokens=5) if chunk.choices[0].logprobs
             for token in chunk.choices[0].logprobs.content]
    assert "".join(found) == text(served.chat("tea", max_tokens=5))


def test_a_stream_of_a_completion(served):
    chunks = list(served.complete("tea is", stream=True, stop=["\n"], max_tokens=30))
    assert "".join(c.choices[0].text for c in chunks) == served.complete("tea is", stop=["\n"], max_tokens=30).choices[0].text


async def _pieces(client) -> str:
    stream = await client.chat.completions.create(model="dry", messages=[{"role": "user", "content": "tea"}], temperature=0, max_tokens=24,
                                                  stream=True)
    return "".join([chunk.choices[0].delta.content or "" async for chunk in stream])


def test_the_asynchronous_client(served):
    import asyncio

    async def main() -> list[str]:
        async with served.async_client() as client:
            return await asyncio.gather(*[_pieces(client) for _ in range(5)])

    assert set(asyncio.run(main())) == {text(served.chat("tea"))}


def test_models(served):
    models = served.client().models.list().data
    assert [model.id for model in models] == ["dry"] and served.client().models.retrieve("dry").owned_by == "lmc"
    with pytest.raises(openai.NotFoundError) as caught:
        served.client().models.retrieve("other/name")
    assert caught.value.code == "model_not_found"
