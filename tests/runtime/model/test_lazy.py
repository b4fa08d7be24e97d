"""Weights are read when something is first computed; what can be known before is known before."""

import json

import pytest
import torch

import lmc
from lmc.cli.entry import run_command
from lmc.runtime.model import load
from lmc.runtime.model.lazy import lazy_model
from lmc.runtime.model.load import load_model
from tests.runtime.folders import CHATML, byte_level_json, write_folder
from tests.runtime.model import tiny

PROGRAM = '''
def plain(n: int = 3) -> int:
    user: "never sent"
    return n * 2

def asks(n: int = 3) -> str:
    if n == 0:
        return "nothing to ask"
    user: "hi"
    assistant: answer = gen(max_tokens=n)
    return answer
'''


@pytest.fixture(scope="module")
def whole_folder(tmp_path_factory):
    """Weights, tokenizer and template."""
    tokenizer = byte_level_json()
    folder = tiny.save(tiny.build("Llama", vocab_size=512), tmp_path_factory.mktemp("model"))
    config = json.loads((folder / "config.json").read_text())
    return write_folder(folder, tokenizer, template=CHATML, config=config)


@pytest.fixture
def reads(monkeypatch):
    """Counts how often weights are read."""
    counted = []
    read = load.read_tensors
    monkeypatch.setattr(load, "read_tensors", lambda *args: counted.append(1) or read(*args))
    return counted


def test_the_first_forward_reads_and_gives_the_same(whole_folder, reads):
    model, known = lazy_model(whole_folder), load_model(whole_folder)
    reads.clear()
    for one in (model, known):
        one.allocate(64)
    assert not model.loaded and not reads
    assert (model.vocab_size, model.max_positions, model.slot_bytes()) == (known.vocab_size, known.max_positions, known.slot_bytes())
    row = tiny.whole(tiny.ids(12), list(range(12)))
    assert torch.equal(model.forward([row]), known.forward([row])) and torch.equal(model.forward([row]), known.forward([row]))
    assert model.loaded and len(reads) == 1
    assert lazy_model(whole_folder, dtype="bfloat16").slot_bytes() == known.slot_bytes() // 2


def test_a_program_that_never_asks_does_not_read_the_weights(whole_folder, tmp_path, reads, capsys):
    path = tmp_path / "program.lmp"
    path.write_text(PROGRAM)
    with lmc.load(path, model=str(whole_folder), pool_tokens=64) as one, lmc.load(path, model=str(whole_folder), pool_tokens=64) as two:
        assert one.plain() == 6 and one.asks(0) == two.asks(0) == "nothing to ask"
        assert not reads
        assert one.asks(2) == two.asks(2)
        assert len(reads) == 1, "two modules, one model"
    reads.clear()
    command = ["run", f"{path}:plain", "--model", str(whole_folder), "--pool-tokens", "64", "-q"]
    assert run_command(command) == 0 and capsys.readouterr().out == "6\n" and not reads
    assert run_command(["run", f"{path}:asks", *command[2:]]) == 0 and len(reads) == 1


def test_what_does_not_fit_is_refused_before_anything_runs(whole_folder, tmp_path, monkeypatch):
    monkeypatch.setattr(load, "expected_shapes", lambda config: {"model.embed_tokens.weight": (1, 1)})
    path = tmp_path / "program.lmp"
    path.write_text(PROGRAM)
    with lmc.load(path, model=str(whole_folder), pool_tokens=64) as module, pytest.raises(lmc.LmcError, match="is not part of this model"):
        module.plain()
