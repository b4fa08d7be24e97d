"""Requests that are wrong: a 4xx in OpenAI's form that names the field, never a 5xx and never silence."""

from __future__ import annotations

import json
import subprocess

import openai
import pytest

from lmc.server.openai_bodies import CompletionBody

from tests.server.running import HTTP, running

CHAT, TEXT = "/v1/chat/completions", "/v1/completions"
HI = [{"role": "user", "content": "Hi"}]


@pytest.fixture(scope="module")
def served():
    with running(slots=600) as one:
        yield one


def refusal(served, path, body, status=400) -> dict:
    answer = served.post(path, body)
    assert answer.status_code == status, answer.text
    error = answer.json()["error"]
    assert set(error) == {"message", "type", "param", "code"} and error["message"]
    return error


@pytest.mark.parametrize("name, value", [
    ("temprature", 0.5), ("tools", [{"type": "function", "function": {"name": "f"}}]), ("tool_choice", "required"),
    ("functions", [{}]), ("audio", {"voice": "x"}), ("modalities", ["text", "audio"]), ("prediction", {}), ("best_of", 2), ("suffix", "x"),
    ("reasoning_effort", "low"), ("service_tier", "priority"), ("web_search_options", {}), ("guided_json", {}), ("chat_template", "x"),
])
@pytest.mark.parametrize("path", [CHAT, TEXT])
def test_a_field_that_is_not_known_is_named(served, path, name, value):
    error = refusal(served, path, {"model": "dry", **({"messages": HI} if path == CHAT else {"prompt": "Hi"}), name: value})
    assert error["param"] == name and f"`{name}`: this server does not know the field" in error["message"]


@pytest.mark.parametrize("name, value", [
    ("temperature", -1), ("temperature", 2.5), ("temperature", "hot"), ("temperature", True), ("top_p", 1.5), ("top_k", -2), ("top_k", 1.5),
    ("min_p", 2), ("n", 0), ("n", 17), ("n", "2"), ("seed", 2**63), ("seed", 1.5), ("max_tokens", 0), ("max_tokens", -1), ("max_tokens", 2.5),
    ("max_completion_tokens", 0), ("stop", ""), ("stop", [""]), ("stop", ["a"] * 65), ("stop", "x" * 1001), ("stop", [1]), ("stop", {}),
    ("frequency_penalty", 3), ("presence_penalty", -3), ("repetition_penalty", 0), ("logit_bias", {"x": 1}), ("logit_bias", {"1": 101}),
    ("logit_bias", {"99999": 1}), ("logit_bias", [1]), ("stream", "yes"), ("logprobs", 3), ("prompt_logprobs", 5),
    ("response_format", {"type": "xml"}), ("response_format", {"type": "json_schema"}), ("response_format", {"type": "text", "json_schema": {}}),
    ("regex", 5), ("structured_outputs", {}), ("structured_outputs", {"regex": "a", "choice": ["b"]}), ("structured_outputs", {"choice": []}),
    ("min_tokens", -1), ("min_tokens", 10**9), ("user", 5), ("metadata", "x"), ("ignore_eos", 1), ("heal", "no"),
])
def test_a_value_out_of_its_bounds_is_named(served, name, value):
    error = refusal(served, CHAT, {"model": "dry", "messages": HI, name: value})
    assert error["param"].startswith(name) and name in error["message"]


@pytest.mark.parametrize("body, param", [
    ({"messages": HI}, "model"), ({"model": "dry"}, "messages"), ({"model": "dry", "messages": []}, "messages"),
    ({"model": "dry", "messages": [{"role": "tool", "content": "x"}]}, "messages[0].role"),
    ({"model": "dry", "messages": [{"role": "user"}]}, "messages[0].content"),
    ({"model": "dry", "messages": [{"role": "user", "content": 5}]}, "messages[0].content"),
    ({"model": "dry", "messages": [{"role": "user", "content": [{"type": "text"}]}]}, "messages[0].content"),
    ({"model": "dry", "messages": [*HI, {"role": "system", "content": "x"}]}, "messages[1]"),
    ({"model": "dry", "messages": [HI[0] | {"tool_calls": [{}]}]}, "messages[0].tool_calls"),
])
def test_messages_that_are_wrong(served, body, param):
    assert refusal(served, CHAT, body)["param"] == param


@pytest.mark.parametrize("more, word", [
    ({"top_logprobs": 3}, "logprobs"), ({"max_tokens": 3, "max_completion_tokens": 4}, "max_completion_tokens"),
    ({"stream_options": {"include_usage": True}}, "stream"), ({"continue_final_message": True}, "continue_final_message"),
    ({"add_generation_prompt": False}, "user"), ({"regex": "a", "response_format": {"type": "json_object"}}, "`response_format` and `regex`"),
    ({"min_tokens": 5, "max_tokens": 4}, "min_tokens"),
])
def test_fields_that_do_not_go_together(served, more, word):
    assert word in refusal(served, CHAT, {"model": "dry", "messages": HI, **more})["message"]


@pytest.mark.parametrize("more, word", [
    ({"prompt": []}, "prompt"), ({"prompt": {}}, "prompt"), ({"prompt": [1, "a"]}, "prompt"), ({"prompt": [[]]}, "prompt"),
    ({"prompt": [999_999]}, "prompt"), ({"prompt": [-1]}, "prompt"), ({"max_tokens": 0}, "echo"), ({"echo": True, "logprobs": 2}, "logprobs"),
    ({"prompt": [""] * 300}, "300 generations"), ({"prompt": ["a"] * 30, "n": 10}, "300 generations"), ({"echo": True, "stream": True}, "echo"), ({"logprobs": 21}, "logprobs"), ({"prompt": ""}, "begin"),
])
def test_completions_that_are_wrong(served, more, word):
    assert word in refusal(served, TEXT, {"model": "dry", "prompt": "tea", **more})["message"]


def test_pictures_are_refused_by_name(served):
    parts = [{"type": "text", "text": "What is it?"}, {"type": "image_url", "image_url": {"url": "http://127.0.0.1:9/x.png"}}]
    error = refusal(served, CHAT, {"model": "dry", "messages": [{"role": "user", "content": parts}]})
    assert error["param"] == "messages[0].content" and "part 1 is of `image_url`" in error["message"]


@pytest.mark.parametrize("path", [CHAT, TEXT])
def test_a_model_that_is_not_here(served, path):
    body = {"model": "gpt-9", "messages": HI} if path == CHAT else {"model": "gpt-9", "prompt": "x"}
    error = refusal(served, path, body, 404)
    assert error["code"] == "model_not_found" and error["param"] == "model" and "`dry`" in error["message"]


def test_the_client_of_openai_raises_its_own_errors(served):
    with pytest.raises(openai.NotFoundError):
        served.client().chat.completions.create(model="gpt-9", messages=HI)
    with pytest.raises(openai.BadRequestError) as caught:
        served.chat("Hi", temperature=-1)
    assert caught.value.param == "temperature"


@pytest.mark.parametrize("content", [
    b"", b"{", b"[]", b"null", b'"x"', b"\xff\xfe", b"[" * 100_000, b'{"model": "dry", "messages": NaN}', b'{"a": 1e999}',
    b'{"model": "dry", "messages": [{"role": "user", "content": "\\ud800"}]}',
    b'{"model": "dry", "messages": [{"role": "user", "content": "x"}], "temperature": Infinity}',
    b'{"model": "\\ud800", "messages": [{"role": "user", "content": "x"}]}', b'{"\\ud800": 1}',
])
@pytest.mark.parametrize("path", [CHAT, TEXT])
def test_bodies_that_are_no_request(served, path, content):
    answer = HTTP.post(served.url + path, content=content, headers={"content-type": "application/json"})
    assert answer.status_code == 400 and answer.json()["error"]["message"]


@pytest.mark.parametrize("more", [{"prompt": [1] * 400_000}, {"prompt": [[1]] * 200_000}, {"zzz": [[[0]] * 4] * 100_000}, {"stop": ["a"] * 400_000}])
def test_very_many_values_are_not_looked_at(more):
    """Checking them would keep others waiting: the body is refused before that."""
    with pytest.raises(ValueError, match="more than 300,000 values"):
        CompletionBody.model_validate({"model": "dry", "prompt": "x", **more})


@pytest.mark.parametrize("path, method, status", [("/nothing", "GET", 404), (CHAT, "GET", 405), ("/", "GET", 404), ("/docs", "GET", 404)])
def test_paths_that_are_not_there(served, path, method, status):
    answer = HTTP.request(method, served.url + path)
    assert answer.status_code == status and answer.json()["error"]["code"] == "E0882"


def test_a_prompt_longer_than_the_pool(served):
    error = refusal(served, CHAT, {"model": "dry", "messages": [{"role": "user", "content": "the cat " * 600}]})
    assert "slots for keys and values" in error["message"] and error["code"] == "E0819"


def test_a_prompt_longer_than_the_context():
    with running(slots=1 << 15) as served:
        error = refusal(served, CHAT, {"model": "dry", "messages": [{"role": "user", "content": "the cat " * 5000}], "stream": True})
        assert error["code"] == "context_length_exceeded" and "the model's context 8192" in error["message"]
        assert served.chat("Hi").choices


@pytest.mark.parametrize("more, code, word", [
    ({"regex": "("}, "E0601", "regex"), ({"regex": "(?=a)b"}, "E0601", "regex"),
    ({"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "strin"}}}}, "E0605", "strin"),
    ({"structured_outputs": {"json": "{"}}, "E0605", "JSON"), ({"structured_outputs": {"grammar": 'start: "a'}}, "E0606", "grammar"),
    ({"regex": "[ab]{50}", "max_tokens": 5}, "E0641", "tokens"),
])
@pytest.mark.parametrize("stream", [False, True])
def test_constraints_that_are_wrong(served, more, code, word, stream):
    error = refusal(served, CHAT, {"model": "dry", "messages": HI, "max_tokens": 20, "stream": stream, **more})
    assert error["code"] == code and word in error["message"]
    assert error["param"] == next(name for name in more if name != "max_tokens") or code == "E0641"


def test_curl(served):
    """The command of the documentation."""
    said = subprocess.run(
        ["curl", "-sS", f"{served.url}{CHAT}", "-H", "content-type: application/json", "-d",
         json.dumps({"model": "dry", "messages": HI, "max_tokens": 3})], capture_output=True, text=True, timeout=20, check=True)
    assert json.loads(said.stdout)["usage"]["completion_tokens"] <= 3 and not said.stderr
    said = subprocess.run(["curl", "-sS", "-N", f"{served.url}{CHAT}", "--json", json.dumps(
        {"model": "dry", "messages": HI, "max_tokens": 3, "stream": True})], capture_output=True, text=True, timeout=20, check=True)
    lines = [line for line in said.stdout.split("\n") if line]
    assert all(line.startswith("data: ") for line in lines) and lines[-1] == "data: [DONE]"
    # A form, as `curl -d` sends it unless it is told.
    said = subprocess.run(["curl", "-sS", f"{served.url}{CHAT}", "-d", "{}"], capture_output=True, text=True, timeout=20, check=True)
    assert "application/json" in json.loads(said.stdout)["error"]["message"]
