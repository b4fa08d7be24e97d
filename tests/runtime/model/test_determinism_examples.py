"""Case F-05 for the seven examples: what they ask the real model has the same answers, bit for bit, however and beside whom it is asked.

Their prompts are in the model's own tokens; what stands in them as earlier answers comes from a stand-in that is brief, so that they
are there at once.  Generations are cut to a few tokens.
"""

from dataclasses import replace

import pytest

from lmc.embed import cache_folder
from lmc.runtime import tokenizer as tokenizers
from lmc.runtime.dry import ScriptedModel
from lmc.runtime.engine import Engine
from lmc.runtime.engine_thread import EngineThread
from lmc.runtime.model import lazy
from lmc.runtime.model.load import load_model
from lmc.runtime.model.native_llama import NativeLlama
from lmc.runtime.request import DoneEvent, Generated, GenerateRequest, ScoreRequest
from tests import test_examples
from tests.runtime.model.native import needs_compiler

pytestmark = [pytest.mark.model, needs_compiler]

NEW_TOKENS = 3

Asked = GenerateRequest | ScoreRequest


class Brief(ScriptedModel):
    """Ends whatever may end: a text by its end token, a string by its quote."""

    weight_bytes = 0

    def __init__(self, tokenizer):
        quotes = {token: 5.0 for token, data in enumerate(tokenizer.token_bytes) if data[:1] == b'"'}
        super().__init__(tokenizer.size, lambda ids: {**quotes, min(tokenizer.end_ids): 9.0})


@pytest.fixture(scope="module")
def tokenizer(model_folder):
    return tokenizers.load_tokenizer(model_folder)


@pytest.fixture(scope="module")
def asked(model_folder, tokenizer) -> dict[str, list[Asked]]:
    """What each example asks, as it is written."""
    found: dict[str, list[Asked]] = {}
    submit = EngineThread.submit
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lazy, "lazy_model", lambda folder, **_: Brief(tokenizer))
        patch.setattr(tokenizers, "load_tokenizer", lambda folder: tokenizer)
        for name in test_examples.CALLS:
            requests = found[name] = []
            patch.setattr(EngineThread, "submit", lambda self, request, to=requests: to.append(request) or submit(self, request))
            # A pool of its own size, so that nobody else gets this engine.
            test_examples.run(name, level=0, model=str(model_folder), pool_tokens=8191)
    return {name: [shortened(request) for request in requests] for name, requests in found.items()}


def shortened(request: Asked) -> Asked:
    if isinstance(request, ScoreRequest):
        return request
    least = request.constraint.min_tokens(enough=40) if request.constraint is not None else 0
    return replace(request, max_tokens=max(NEW_TOKENS, least), then=None, stream=False)


def answers(engine: Engine, requests: list[Asked]) -> tuple[list[object], list[int]]:
    """Of each request the tokens or log-probabilities that came out, and how many tokens of its prompt the cache had."""
    tickets, results = [engine.submit(request) for request in requests], {}
    while engine.busy:
        for event in engine.step():
            assert isinstance(event, DoneEvent), event
            results[event.ticket] = event.result
    ordered = [results[ticket] for ticket in tickets]
    return [one.ids if isinstance(one, Generated) else one.logprobs for one in ordered], [one.usage.cached for one in ordered]


def length(request: Asked) -> int:
    return len(request.prompt) if isinstance(request, GenerateRequest) else len(request.ids)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_the_examples_are_answered_alike_in_any_company(model_folder, tokenizer, asked, dtype):
    loaded = load_model(model_folder, dtype=dtype, kernels="native", cache=cache_folder())

    def engine(**options) -> Engine:
        model = NativeLlama(loaded.weights, loaded.library, level=loaded.level, threads=loaded.threads)
        return Engine(model, tokenizer, **{"slots": 6144, **options})

    every = [request for requests in asked.values() for request in requests]
    batch = (every * 32)[:32]
    assert all(asked.values()) and len(every) > 20
    beside = engine()
    wanted, cold = answers(beside, batch)
    assert len(set(map(str, wanted))) > 15, "answers that differ, or nothing is compared"
    # The longest prompt, and some of all kinds; the one that is looked at more closely is behind it.
    eight = [max(range(32), key=lambda n: length(batch[n])), *range(1, 29, 4)]
    some = [batch[n] for n in eight]

    warm, cached = answers(beside, some)
    assert warm == [wanted[n] for n in eight]
    # The last token of a prompt is computed again: its logits are wanted.
    assert all(found >= length(request) - 2 for found, request in zip(cached, some) if isinstance(request, GenerateRequest))
    assert sum(cached) > sum(cold[n] for n in eight)

    assert answers(engine(max_batch_tokens=37), some)[0] == warm
    one = next(n for n in eight[1:] if isinstance(batch[n], GenerateRequest) and length(batch[n]) > 60)
    for n in (one, eight[-1]):
        assert answers(engine(cache=False), [batch[n]])[0] == [wanted[n]]

    small = engine(slots=length(batch[one]) + 60)
    answers(small, [batch[one]])
    answers(small, [GenerateRequest(tuple(tokenizer.encode("Something else. " * 60))[:90], 4)])
    again, (found,) = answers(small, [batch[one]])
    assert again == [wanted[one]] and 0 < found < length(batch[one]) - 2, "a part of it was evicted"
