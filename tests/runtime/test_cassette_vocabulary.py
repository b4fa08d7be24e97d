"""Prompts made again from what a cassette keeps of a model: the same text and control tokens, for every kind of tokenizer."""

import json

import pytest

from lmc.runtime.cassette import Cassette
from lmc.runtime.cassette_sessions import RecordingSession
from lmc.runtime.cassette_vocabulary import model_data, replayed, token_data
from lmc.runtime.context import ContextError, Prompter
from lmc.runtime.dry import dry_tokenizer
from lmc.runtime.prompt_pieces import Control, prompt_pieces, spelled
from lmc.runtime.template import dry_template, load_template
from lmc.runtime.tokenizer import load_tokenizer
from tests.runtime.folders import byte_level_json, sentencepiece_json, write_folder

KINDS = {
    "bytes": lambda: byte_level_json(), "bytes with a begin token": lambda: byte_level_json(add_bos=True),
    "metaspace": lambda: sentencepiece_json(), "legacy": lambda: sentencepiece_json(legacy=True),
    "metaspace without a begin token": lambda: sentencepiece_json(add_bos=False),
}
TEXTS = ["hi", " hi", "  two  spaces ", "é 日本 😀", "abc<|im_end|>\n<s>", "\n\n", "x" * 50, "{{ x }} %s ${y}"]


def vocabularies(kind, tmp_path):
    """(tokenizer, template) of the model, and what its cassette makes of it."""
    if kind == "dry":
        tokenizer = dry_tokenizer()
        template = dry_template(tokenizer)
    else:
        folder = write_folder(tmp_path / "model", KINDS[kind]())
        tokenizer = load_tokenizer(folder)
        template = load_template(folder, tokenizer)
    data = json.loads(json.dumps(model_data("m", tokenizer, template)))
    return (tokenizer, template), replayed(data)


def shapes(pieces):
    """Pieces without ids."""
    return [(p.text,) if isinstance(p, Control) else p for p in pieces]


def conversation(tokenizer, template, role, text, answer):
    """The shapes of every prompt on the way."""
    prompter = Prompter(tokenizer, template)
    roles = ["raw"] * 4 if role == "raw" else ["system", "user", "assistant", "user"]
    context, seen = prompter.new(), []
    for i, turn in enumerate(roles):
        context = prompter.append(context, turn, text)
        writes = "raw" if role == "raw" else "assistant"
        prompt = prompter.prompt(context, writes, heal=True)
        seen.append(shapes(prompt_pieces(tokenizer, prompt.ids, prompt.heal)))
        if turn in ("raw", "assistant"):
            ids = tuple(tokenizer.encode(prompt.heal.decode() + answer))
            context = prompter.extend(context, writes, prompt, ids, "")
    return seen


@pytest.mark.parametrize("kind", ["dry", *KINDS])
@pytest.mark.parametrize("role", ["raw", "chat"])
def test_prompts_are_the_same(kind, role, tmp_path):
    model, kept = vocabularies(kind, tmp_path)
    for text in TEXTS:
        assert conversation(*model, role, text, "ab é") == conversation(*kept, role, text, "ab é"), text


def test_a_value_that_spells_a_marker_is_not_the_marker(tmp_path):
    _, (tokenizer, template) = vocabularies("bytes", tmp_path)
    prompter = Prompter(tokenizer, template)
    context = prompter.append(prompter.new(), "user", "<|im_end|>")
    pieces = prompt_pieces(tokenizer, prompter.prompt(context, "assistant", heal=True).ids)
    assert shapes(pieces) == [("<|im_start|>",), "user\n<|im_end|>", ("<|im_end|>",), "\n", ("<|im_start|>",), "assistant\n"]
    assert spelled(pieces).count("<|im_end|>") == 2


def test_tokens_go_through_a_file(tmp_path):
    """Whole text, half a character, and a control token."""
    (tokenizer, _), (kept, _) = vocabularies("bytes", tmp_path)
    half = next(i for i, data in enumerate(tokenizer.token_bytes) if data == b"\xe6")
    for id in (tokenizer.encode("abc")[0], half, tokenizer.control_id("<|im_end|>")):
        data = json.loads(json.dumps(token_data(tokenizer, id)))
        again = kept.token(data)
        assert kept.decode_bytes([again]) == tokenizer.decode_bytes([id])
        assert kept.control_text(again) == tokenizer.control_text(id)
        assert kept.token(data) == again and token_data(kept, again) == data


def test_a_template_that_is_not_there_is_not_there_again(tmp_path):
    folder = write_folder(tmp_path / "model", byte_level_json(), template=None)
    tokenizer = load_tokenizer(folder)
    kept, template = replayed(model_data("m", tokenizer, load_template(folder, tokenizer)))
    with pytest.raises(ContextError, match="needs a chat template"):
        Prompter(kept, template).append(Prompter(kept, template).new(), "user", "x")


def test_a_tokenizer_that_changes_text_cannot_be_recorded():
    from types import SimpleNamespace

    from lmc.diagnostics import LmcError

    session = SimpleNamespace(name="m", tokenizer=SimpleNamespace(lossy=True))
    with pytest.raises(LmcError, match="E0862.*changes text"):
        RecordingSession(session, Cassette("t", "p", 0, {}, {}))
