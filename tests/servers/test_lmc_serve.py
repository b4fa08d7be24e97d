"""Programs on `lmc serve` and in this process: the same text, by the OpenAI and the vLLM interface.

The server reads again what it has written in the tokens that it wrote (`--exact-turns`): the stand-in model writes words in pieces that
nobody would cut them into.
"""

import os
from pathlib import Path

import pytest

import lmc
from benchmarks.serve_load import serving
from lmc.diagnostics import LmcError
from tests.test_examples import CALLS, EXAMPLES, calc, search

BACKENDS = ("openai", "vllm")
#: Their values are no objects (a union is none either), so by OpenAI's interface the model writes them into one, `{"value": 7}`, which is
#: another text.
WRAPPED = ("react", "tree", "vote")
#: What CI runs on the default model; `LMC_ALL_EXAMPLES=1` runs them all, which takes minutes.
REAL = [(name, backend) for name in sorted(CALLS) for backend in BACKENDS
        if os.environ.get("LMC_ALL_EXAMPLES") or (name, backend) == ("react", "vllm")]
TALK = """\
def talk(topic: str) -> str:
    system: "You are brief."
    user: "Name one fact about ${topic}."
    assistant: "Well: ${a := gen(max_tokens=8, stop="\\n")} and${b := gen(max_tokens=6)}"
    user: "Why?"
    assistant: c = gen(max_tokens=8)
    return a + "|" + b + "|" + c
"""


def greedy(name: str, folder: Path) -> Path:
    """The example without its temperatures: a draw by another seed says nothing of what was asked."""
    text = (EXAMPLES / f"{name}.lmp").read_text(encoding="utf-8")
    for temperature in ("0.7", "0.8"):
        text = text.replace(f" with temperature={temperature}:", " with temperature=0:")
    path = folder / f"{name}.lmp"
    path.write_text(text, encoding="utf-8")
    return path


def run(path: Path, **settings) -> tuple[str, str]:
    """The results of an example and what it printed and streamed."""
    said: list[str] = []
    lines = iter(["What is a prime?", "Give one.", "/quit"])
    externs = {"search": search, "calc": calc} if path.stem == "react" else {}
    with lmc.load(path, externs=externs, seed=11, print=said.append, stream=said.append, input=lambda prompt: next(lines), **settings) as module:
        return repr(CALLS[path.stem](module)), "".join(said)


def remote(backend: str, served, model: str) -> dict:
    url = "http://{}:{}".format(*served.address)
    return {"backend": backend, "base_url": url, "model": model, "network": {"deadline": 120, "attempts": 1}}


@pytest.fixture(scope="module")
def stand_in(tmp_path_factory):
    with serving("--dry", "--exact-turns", log=tmp_path_factory.mktemp("serve") / "log") as served:
        yield served


@pytest.fixture(scope="module")
def default_model(tmp_path_factory, model_folder):
    with serving("--model", str(model_folder), "--deterministic", "--exact-turns", log=tmp_path_factory.mktemp("serve") / "log") as served:
        yield served


def compare(name: str, backend: str, served, called: str, folder: Path, **local) -> None:
    path = greedy(name, folder)
    if backend == "openai" and name in WRAPPED:
        assert run(path, **remote(backend, served, called))[0] != "None"
        return
    if (name, backend) == ("classify", "openai"):
        # It chooses in raw text, where this interface gives no log-probabilities and takes no schema.
        with pytest.raises(LmcError, match="`select` in raw text"):
            run(path, **remote(backend, served, called))
        return
    assert run(path, **remote(backend, served, called)) == run(path, **local)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", sorted(CALLS))
def test_an_example_on_the_stand_in_model(name, backend, stand_in, tmp_path):
    compare(name, backend, stand_in, "dry", tmp_path, dry=True)


@pytest.mark.model
@pytest.mark.parametrize("name, backend", REAL)
def test_an_example_on_the_default_model(name, backend, default_model, model_folder, tmp_path):
    compare(name, backend, default_model, model_folder.name, tmp_path, model=str(model_folder), deterministic=True)


@pytest.mark.model
@pytest.mark.parametrize("backend", BACKENDS)
def test_turns_and_begun_turns_on_the_default_model(backend, default_model, model_folder, tmp_path):
    path = tmp_path / "talk.lmp"
    path.write_text(TALK, encoding="utf-8")
    with lmc.load(path, **remote(backend, default_model, model_folder.name)) as there, \
            lmc.load(path, model=str(model_folder), deterministic=True) as here:
        assert there.talk("tea") == here.talk("tea")
