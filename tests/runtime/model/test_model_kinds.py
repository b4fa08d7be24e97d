"""Programs on models of each kind: the engine, its cache and its constraints do not know what computes the logits."""

import json

import pytest

import lmc
from tests.runtime.folders import CHATML, byte_level_json, write_folder
from tests.runtime.model import test_decoder, tiny
from tests.runtime.model.tiny_gguf import write_gguf

PROGRAM = '''
def ask(topic: str) -> list[str]:
    user: "Some words about ${topic}, please."
    fork n in range(3):
        user: "Answer ${n}."
        assistant: answer = gen(regex="[a-h]{4,8}", max_tokens=8, temperature=0.0)
    join answer as answers
    return answers
'''


def folder_of(model, folder):
    config = json.loads((tiny.save(model, folder) / "config.json").read_text())
    return write_folder(folder, byte_level_json(), template=CHATML, config=config)


def made(kind: str, folder):
    if kind == "gguf":
        return write_gguf(folder / "m.gguf")
    if kind == "mixtral":
        return folder_of(tiny.build("Mixtral", vocab_size=512, num_local_experts=4, sliding_window=20), folder)
    return folder_of(test_decoder.build(kind, vocab_size=512), folder)


@pytest.mark.parametrize("kind", ["gguf", "mixtral", "gpt2", "gemma"])
@pytest.mark.filterwarnings("ignore:.*W182")
def test_a_program_gives_the_same_cold_and_warm(kind, tmp_path):
    path = tmp_path / "program.lmp"
    path.write_text(PROGRAM)
    with lmc.load(path, model=str(made(kind, tmp_path)), pool_tokens=400, cache=tmp_path / "cache") as module:
        first, second = module.ask("rain"), module.ask("rain")
        assert len(first) == 3 and all(4 <= len(answer) <= 8 and set(answer) <= set("abcdefgh") for answer in first)
        assert first == second
