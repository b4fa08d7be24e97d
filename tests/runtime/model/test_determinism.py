"""The default on a CPU is deterministic (case F-05): on the real model, in both dtypes, greedy ids are the same cold, warm, after
partial eviction, alone and side by side, and however prompts are cut into chunks.

Several questions behind one prefix of 300 tokens, which is more than one span of attention.
"""

import pytest

from lmc.embed import cache_folder
from lmc.runtime.engine import Engine
from lmc.runtime.model.load import load_model
from lmc.runtime.model.native_llama import NativeLlama
from lmc.runtime.request import DoneEvent, Generated, GenerateRequest
from lmc.runtime.tokenizer import load_tokenizer
from tests.runtime.model.native import needs_compiler
from tests.runtime.model.test_greedy import STORY

pytestmark = [pytest.mark.model, needs_compiler]

PREFIX, NEW_TOKENS = 300, 4


@pytest.fixture(scope="module")
def tokenizer(model_folder):
    return load_tokenizer(model_folder)


@pytest.fixture(scope="module")
def prompts(tokenizer) -> list[tuple[int, ...]]:
    prefix = tokenizer.encode(STORY * 5)[:PREFIX]
    questions = [f"\n\nQuestion {n}: what did the keeper {verb}?\nAnswer:" for n in range(8) for verb in ("see", "carry", "count", "hear")]
    return [(*prefix, *tokenizer.encode(question)) for question in questions]


def run(engine: Engine, prompts: list[tuple[int, ...]]) -> list[Generated]:
    tickets = [engine.submit(GenerateRequest(prompt=prompt, max_tokens=NEW_TOKENS)) for prompt in prompts]
    results = {}
    while engine.busy:
        for event in engine.step():
            assert isinstance(event, DoneEvent), event
            results[event.ticket] = event.result
    return [results[ticket] for ticket in tickets]


def ids(results: list[Generated]) -> list[tuple[int, ...]]:
    return [result.ids for result in results]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_ids_are_the_same_in_any_company(model_folder, tokenizer, prompts, dtype):
    loaded = load_model(model_folder, dtype=dtype, kernels="native", cache=cache_folder())

    def engine(**options) -> Engine:
        model = NativeLlama(loaded.weights, loaded.library, level=loaded.level, threads=loaded.threads)
        return Engine(model, tokenizer, **{"slots": 2048, **options})

    beside = engine()
    batch = run(beside, prompts)
    assert len(batch) == 32 and len(set(ids(batch))) > 4, "answers that differ, or nothing is compared"
    warm = run(beside, prompts[:8])
    assert ids(warm) == ids(batch[:8]) and min(result.usage.cached for result in warm) >= PREFIX

    chunked = run(engine(max_batch_tokens=47), prompts[:8])
    assert ids(chunked) == ids(batch[:8])
    alone = engine(cache=False)
    assert ids(run(alone, prompts[:1]) + run(alone, prompts[31:])) == ids([batch[0], batch[31]])

    small = engine(slots=len(prompts[0]) + 150)
    run(small, prompts[:1])
    run(small, [tuple(tokenizer.encode("Something else. " * 60))[:230]])
    again = run(small, prompts[:1])
    assert ids(again) == ids(batch[:1]) and 0 < again[0].usage.cached < PREFIX, "a part of the prefix was evicted"
