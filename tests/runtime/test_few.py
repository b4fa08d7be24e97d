"""Steps that leave few tokens: the engine asks for all that may be drawn and no others matter; the head gives the same bits."""

import random

import numpy as np
import pytest
import torch

from lmc.runtime.dry import DryModel, dry_tokenizer
from lmc.runtime.engine import Engine
from lmc.runtime.model import head as head_file
from lmc.runtime.model.head import Head
from lmc.runtime.model.linear import ExactLinear, Linear, exact_range
from lmc.runtime.request import GenerateRequest, Sampling
from tests.runtime.test_jump import finish
from tests.runtime.words import Words

PIECES = [*"abcdefghijklmnopqrstuvwxyz 0123456789{}\":,.", "true", "false", '":', '"}', "ab", " a", "12"]


class BlankModel(DryModel):
    """Knows only the logits that it is asked for."""

    asked = 0

    def forward(self, rows):
        logits = super().forward(rows)
        wanted = [ids for row in rows for ids in row.few or [None] * len(row.outputs)]
        for row, ids in zip(logits, wanted, strict=True):
            if ids is not None:
                self.asked += 1
                kept = row[torch.from_numpy(ids)].clone()
                row.fill_(-torch.inf)
                row[torch.from_numpy(ids)] = kept
        return logits


@pytest.mark.parametrize("jump", ["off", "exact", "canonical"])
def test_no_other_logits_matter(jump):
    words, rng = Words(PIECES), random.Random(7)
    patterns = [words.constraint(p) for p in (r'\{"name":"[a-z ]{1,6}","ok":(true|false)\}', "[a-z]{2,5}", r"\d\d(\.\d)?", "[ab]*")]
    whole = Engine(DryModel(words), words, slots=2048, jump=jump)
    blank_model = BlankModel(words)
    blank = Engine(blank_model, words, slots=2048, jump=jump)
    for _ in range(12):
        requests = [GenerateRequest(
            tuple(rng.randrange(len(PIECES)) for _ in range(rng.randint(1, 9))), 30, heal=rng.choice([b"", b"", b" ", b"ab"]),
            constraint=rng.choice(patterns), follow=rng.choice([b"", b"a", b"."]), min_tokens=rng.choice([0, 3]),
            ignore_eos=rng.random() < 0.2, logprobs=rng.choice([0, 0, 2]),
            sampling=Sampling(temperature=rng.choice([0.0, 1.0]), seed=rng.randrange(99), repetition_penalty=rng.choice([1.0, 1.5]),
                              top_k=rng.choice([0, 3]), logit_bias=rng.choice([(), ((0, 2.0), (5, -1.0))])))
            for _ in range(6)]
        for one, other in zip(finish(whole, *requests), finish(blank, *requests), strict=True):
            assert (one.ids, one.text, one.finish, one.logprobs) == (other.ids, other.text, other.finish, other.logprobs)
    assert blank_model.asked > 50


def test_log_probabilities_and_free_text_ask_for_all():
    words = Words(PIECES)
    model = BlankModel(words)
    engine = Engine(model, words, slots=256)
    finish(engine, GenerateRequest((1,), 5), GenerateRequest((2,), 5, constraint=words.constraint("[a-z]{3}"), logprobs=1))
    assert model.asked == 0
    tokenizer = dry_tokenizer()
    assert tokenizer.size < 1000, "else what is few would never be many here"


def test_without_a_narrow_head_all_are_asked_for():
    words = Words(PIECES)
    asked = {}
    for narrow in (True, False):
        model = BlankModel(words)
        finish(Engine(model, words, slots=256, narrow_head=narrow), GenerateRequest((2,), 5, constraint=words.constraint("[a-z]{3}")))
        asked[narrow] = model.asked
    assert asked[True] > asked[False] == 0


def product_of(weight, exact):
    product = Linear(weight)
    return ExactLinear(product, *exact_range(product, weight.shape[1], weight.dtype)) if exact else product


def random_weight(vocab, hidden, dtype):
    return (torch.randn(vocab, hidden, generator=torch.Generator().manual_seed(3)) * 0.05).to(dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("exact", [False, True])
def test_a_narrow_head_has_the_bits_of_the_whole(dtype, exact):
    """The shape of the default model."""
    weight = random_weight(49152, 576, dtype)
    head = Head(product_of(weight, exact), weight)
    assert head.least is not None, "this machine computes every row whole"
    rng = np.random.default_rng(5)
    for rows in (1, 2, 8, 32):
        x = torch.randn(rows, 576, generator=torch.Generator().manual_seed(rows)).to(dtype)
        whole = head(x)
        assert whole.dtype == torch.float32
        for most in (1, 3, 20, 60):
            wanted = [None if rows > 1 and rng.random() < 0.3 else np.sort(rng.choice(49152, rng.integers(1, most + 1), replace=False))
                      for _ in range(rows)]
            narrow = head(x, wanted)
            for row, ids in enumerate(wanted):
                one, other = (narrow[row], whole[row]) if ids is None else (narrow[row, ids], whole[row, ids])
                assert torch.equal(one, other), (rows, most, row)
                assert ids is None or int((narrow[row] > -torch.inf).sum()) <= most * rows


def test_where_rows_ask_for_much_or_bits_differ_all_is_computed(monkeypatch):
    weight = random_weight(4096, 64, torch.float32)
    product = Linear(weight)
    x, few = torch.randn(2, 64), [np.arange(10), np.arange(3000)]
    assert torch.equal(Head(product, weight)(x, few), product(x)), "more ids than are gathered"
    assert torch.equal(Head(product, None)(x, few[:1] * 2), product(x)), "no plain matrix"
    monkeypatch.setattr(head_file, "narrow_product", lambda product, weight, x, ids, least: product(x)[:, ids] + 1e-6)
    other = Head(product, weight)
    assert other.least is None and torch.equal(other(x, few[:1] * 2), product(x))
