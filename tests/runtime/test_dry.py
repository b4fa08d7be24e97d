"""The stand-in model notices wrong slots and writes text; its tokenizer spells everything."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmc.runtime.batch import Row
from lmc.runtime.dry import DryModel, ScriptedModel, answers, dry_tokenizer
from lmc.runtime.engine import Engine
from lmc.runtime.request import DoneEvent, Finish, GenerateRequest, Sampling

TOKENIZER = dry_tokenizer()


def loaded(slots: int = 64) -> DryModel:
    model = DryModel()
    model.allocate(slots)
    return model


def test_logits_depend_on_every_token_before_them_and_on_nothing_else():
    model = loaded()
    ids = TOKENIZER.encode("one two three four")
    whole = model.forward([Row(ids, 0, list(range(len(ids))), [len(ids) - 1])])[0].numpy()
    slots = list(range(40, 40 + len(ids)))
    slots.reverse()
    model.forward([Row(ids[:2], 0, slots[:2], [])])
    pieces = model.forward([Row(ids[2:], 2, slots, [len(ids) - 3])])[0].numpy()
    assert (whole == pieces).all()
    for place in range(len(ids)):
        other = [*ids]
        other[place] += 1
        assert (model.logits_of(np.array(other)) != whole).any()
    swapped = [ids[1], ids[0], *ids[2:]]
    assert (model.logits_of(np.array(swapped)) != whole).any()


def test_a_slot_that_was_never_written_or_holds_another_position_is_noticed():
    model = loaded()
    model.forward([Row([5, 6, 7], 0, [0, 1, 2], [])])
    with pytest.raises(AssertionError, match="slot 9 holds position 8192, expected 2"):
        model.forward([Row([8], 3, [0, 1, 9, 3], [0])])
    with pytest.raises(AssertionError, match="slot 0 holds position 0, expected 1"):
        model.forward([Row([8], 3, [0, 0, 2, 3], [0])])


def test_a_slot_of_another_text_gives_another_answer():
    model = loaded()
    model.forward([Row([5, 6, 7], 0, [0, 1, 2], []), Row([5, 9, 7], 0, [10, 11, 12], [])])
    right = model.forward([Row([8], 3, [0, 1, 2, 3], [0])])
    wrong = model.forward([Row([8], 3, [0, 11, 2, 3], [0])])
    assert (right != wrong).any()


def test_rows_of_one_step_may_read_what_another_row_of_it_writes():
    model = loaded()
    both = model.forward([Row([5, 6], 0, [0, 1], []), Row([7], 2, [0, 1, 2], [0])])
    assert (both[0].numpy() == model.logits_of(np.array([5, 6, 7]))).all()


def test_no_outputs_are_an_empty_table():
    assert loaded().forward([Row([5], 0, [0], [])]).shape == (0, TOKENIZER.size)


def test_free_text_is_words_and_ends_by_itself():
    engine = Engine(DryModel(), TOKENIZER, slots=8192)
    start = TOKENIZER.control_id("<|im_start|>")
    for i in range(40):
        prompt = (start, *TOKENIZER.encode(f"user\nQuestion {i}?"))
        engine.submit(GenerateRequest(prompt, 256, sampling=Sampling(temperature=0.8 * (i % 2), seed=i)))
    results = []
    while engine.busy:
        results += [event.result for event in engine.step() if isinstance(event, DoneEvent)]
    assert len(results) == 40 and len({r.text for r in results}) == 40
    assert sum(r.finish is Finish.EOS for r in results) >= 38
    text = "".join(r.text for r in results)
    assert sum(c.isascii() and (c.isprintable() or c == "\n") for c in text) > 0.98 * len(text)
    assert 5 < sum(r.usage.generated for r in results) / 40 < 60


@given(st.text(max_size=60))
def test_every_text_comes_back_from_its_ids_byte_for_byte(text):
    ids = TOKENIZER.encode(text)
    assert TOKENIZER.decode_bytes(ids) == text.encode() and TOKENIZER.control_ids.isdisjoint(ids)


def test_the_spelling_of_a_control_token_is_ordinary_text():
    ids = TOKENIZER.encode("<|im_end|>\n<|im_start|>system")
    assert TOKENIZER.control_ids.isdisjoint(ids)
    assert TOKENIZER.split_control("<|im_start|>user\n") == (TOKENIZER.control_id("<|im_start|>"), "user\n")
    assert TOKENIZER.split_control("plain") == ("plain",) and TOKENIZER.split_control("") == ()
    assert TOKENIZER.control_text(TOKENIZER.control_id("<|im_end|>")) == "<|im_end|>" and TOKENIZER.control_text(5) == ""


def test_which_bytes_begin_a_longer_token():
    for data in (b" ", b" th", b": ", b"\n"):
        assert TOKENIZER.begins_longer_token(data) == any(
            len(other) > len(data) and other.startswith(data) for other in TOKENIZER.token_bytes)
    assert TOKENIZER.begins_longer_token(b" th") and not TOKENIZER.begins_longer_token(b"zq")


def test_the_dry_tokenizer_has_all_that_the_real_one_has():
    from lmc.runtime.tokenizer import Tokenizer

    public = {name for name in dir(Tokenizer) if not name.startswith("_")}
    assert public <= set(dir(TOKENIZER)), public - set(dir(TOKENIZER))


def test_a_script_answers_its_prompts_and_ends():
    model = ScriptedModel(10, answers({(1, 2): (3, 4)}, 9))
    assert [int(model.logits_of(np.array(ids)).argmax()) for ids in ([1, 2], [1, 2, 3], [1, 2, 3, 4], [1, 3], [5])] == [3, 4, 9, 9, 9]


def test_the_longest_piece_comes_first_wherever_it_stands():
    tokens = dry_tokenizer()
    pieces = [data for data in tokens.token_bytes if data]
    rng = random.Random(1)
    for _ in range(100):
        text = b"".join(rng.choice(pieces)[: rng.randint(1, 9)] for _ in range(20)).decode(errors="ignore")
        data, place = text.encode(), 0
        for token in tokens.encode(text):
            longest = max(len(piece) for piece in pieces if data.startswith(piece, place))
            assert tokens.token_bytes[token] == data[place : place + longest]
            place += longest
        assert place == len(data)
