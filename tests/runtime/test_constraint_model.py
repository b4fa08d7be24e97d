"""Masks over the default model's 49,152 tokens, against trying each of them."""

import numpy as np
import pytest

from lmc.regex.build import compile_regex
from lmc.regex.dfa import START
from lmc.regex.schema import compile_type
from lmc.runtime.constraint import TokenConstraint, TokenIndex
from lmc.runtime.tokenizer import load_tokenizer
from lmc.types import BOOL, FLOAT, Field, ListT, LiteralT, OptionalT, RangeT, RecordT, StrT

pytestmark = pytest.mark.model

WAND = RecordT("Wand", (Field("wood", StrT(max_len=16)), Field("length", FLOAT)))
CHARACTER = RecordT(
    "Character",
    (
        Field("name", StrT(max_len=40)), Field("house", LiteralT(("Gryffindor", "Slytherin"))),
        Field("born", StrT(regex=r"\d{4}-\d{2}-\d{2}")), Field("alive", BOOL), Field("wand", WAND),
        Field("friends", ListT(StrT(max_len=30), max_items=5)), Field("age", OptionalT(RangeT(1, 150))),
    ),
)
SAMPLE = (
    '{"name":"Zoë \\"the fox\\" 😀","house":"Slytherin","born":"1980-07-31","alive":true,"wand":{"wood":"holly","length":11.5},'
    '"friends":["Ron","Hermione"],"age":null}'
)


@pytest.fixture(scope="module")
def tokenizer(model_folder):
    return load_tokenizer(model_folder)


@pytest.fixture(scope="module")
def index(tokenizer):
    return TokenIndex(tokenizer.token_bytes)


def slow_mask(dfa, token_bytes, state, prefix=b""):
    """Every byte class in use here has a byte that is a token, so that being alive as bytes is being alive."""
    def good(data):
        return dfa.step(state, data[len(prefix) :]) if data.startswith(prefix) else prefix.startswith(data)

    return [number for number, data in enumerate(token_bytes) if data and good(data)]


def test_a_value_is_allowed_token_by_token(tokenizer, index):
    constraint = TokenConstraint(compile_type(CHARACTER), index)
    state = START
    for token in tokenizer.encode(SAMPLE):
        assert token in constraint.allowed(state)
        state = constraint.advance(state, tokenizer.token_bytes[token])
    assert constraint.complete(state)


@pytest.mark.parametrize("text", ["", '{"name":"Zo', '{"name":"Zoë","house":"', '{"name":"x","house":"Slytherin","born":"19'])
def test_masks_of_the_whole_vocabulary(tokenizer, index, text):
    constraint = TokenConstraint(compile_type(CHARACTER), index)
    state = constraint.advance(START, text.encode())
    assert constraint.allowed(state).tolist() == slow_mask(constraint.dfa, tokenizer.token_bytes, state)


@pytest.mark.parametrize("prefix", [b" ", b"\n\n", b" the", "é".encode()[:1]])
def test_reopened_bytes_over_the_whole_vocabulary(tokenizer, index, prefix):
    dfa = compile_regex(r"(?s)[a-z]+ .*|\xa9?")
    constraint = TokenConstraint(dfa, index)
    assert constraint.allowed(START, prefix).tolist() == slow_mask(dfa, tokenizer.token_bytes, START, prefix)


def test_what_this_vocabulary_cannot_spell(index):
    # SmolLM2 has no token with the byte 04.
    with pytest.raises(Exception, match="cannot spell any text"):
        TokenConstraint(compile_regex(r"a\x04"), index)
    constraint = TokenConstraint(compile_regex(r"x(\x04y|z)"), index)
    state = constraint.advance(START, b"x")
    assert np.array_equal(constraint.allowed(state), index.exactly(b"z"))
