"""The real default model: greedy text of the engine equals transformers' greedy `generate`, token for token, in float32.

Twenty prompts of all kinds run side by side in the engine.  Of each, transformers computes prompt and answer in one pass: where the
best of its logits at every position is the token that the engine drew, its `generate` writes that text, which it is asked for
itself for two of the prompts.  Where its two best logits are within 1e-4 either may follow; the test prints these positions.
"""

from collections.abc import Callable
from functools import cache

import pytest
import torch
import transformers

from lmc.embed import cache_folder
from lmc.runtime.batch import Row
from lmc.runtime.engine import Engine
from lmc.runtime.model.load import load_model
from lmc.runtime.request import DoneEvent, Finish, GenerateRequest
from lmc.runtime.tokenizer import load_tokenizer
from tests.runtime.model.native import needs_compiler

pytestmark = pytest.mark.model

NEW_TOKENS = 32
TIE = 1e-4
#: Prompts without a tie that transformers answers itself, by their numbers: it takes two seconds for each.
GENERATED = (0, 17)

STORY = (
    "The lighthouse keeper climbed the hundred and ninety steps every evening, counting them aloud although nobody listened. "
    "In winter the wind came through the cracks in the old stone and the lamp oil thickened in its can, so that he carried it "
    "under his coat to keep it warm. He wrote down each ship that passed: its flag, its heading, the hour. "
)
# (role, text): "raw" is text without a template.
PROMPTS = [
    ("raw", "The capital of France is"),
    ("raw", "Once upon a time, in a small village by the sea,"),
    ("raw", "A"),
    ("raw", "1, 2, 3, 4, 5, 6,"),
    ("raw", "\n\n1. First item\n2. Second item\n"),
    ("raw", "x =  5\ny = 12\nx * y ="),
    ("raw", "def fibonacci(n):\n    if n < 2:\n        return n\n"),
    ("raw", "#include <stdio.h>\n\nint main(void) {\n\tfor (int i = 0; i < 10; i++) {\n"),
    ("raw", '{"name": "Ada Lovelace", "born": "1815-12-10", "fields": ['),
    ("raw", "SELECT name, count(*) FROM orders WHERE"),
    ("raw", "Le chat est assis sur la"),
    ("raw", "Привет, как"),
    ("raw", "今日は天気が"),
    ("raw", "Ünïcödé — “quotes”, emoji 🙂🙃 and math ∑ᵢ xᵢ² ≤"),
    ("raw", STORY),
    ("raw", STORY * 4 + "One night"),
    ("user", "What is the boiling point of water in Celsius?"),
    ("user", "Write a haiku about autumn."),
    ("user", "Translate to German: Good morning, my friend."),
    ("user", f"Summarise in one sentence.\n\n{STORY * 4}"),
]


def prompt_ids(tokenizer, role: str, text: str) -> list[int]:
    if role == "raw":
        return tokenizer.encode(text)
    start, end = tokenizer.control_id("<|im_start|>"), tokenizer.control_id("<|im_end|>")
    return [start, *tokenizer.encode(f"user\n{text}"), end, *tokenizer.encode("\n"), start, *tokenizer.encode("assistant\n")]


@pytest.fixture(scope="module")
def tokenizer(model_folder):
    return load_tokenizer(model_folder)


@pytest.fixture(scope="module")
def prompts(tokenizer) -> list[list[int]]:
    found = [prompt_ids(tokenizer, role, text) for role, text in PROMPTS]
    assert len(found) == 20 and max(map(len, found)) > 250
    return found


@pytest.fixture(scope="module")
def reference(model_folder) -> transformers.PreTrainedModel:
    return transformers.AutoModelForCausalLM.from_pretrained(model_folder, dtype=torch.float32)


@pytest.fixture(scope="module")
def following(reference, tokenizer) -> Callable[[tuple[int, ...], int], torch.Tensor]:
    """Of a text and a place in it the logits of what comes at this place and at each after it: (tokens, vocab)."""

    @cache
    def logits(ids: tuple[int, ...], start: int) -> torch.Tensor:
        with torch.no_grad():
            found = reference(torch.tensor([ids]), logits_to_keep=len(ids) - start + 1).logits[0]
        found[:, silent(tokenizer)] = -torch.inf
        return found

    return logits


def silent(tokenizer) -> list[int]:
    """Control tokens are written by templates only; the engine never draws them."""
    return sorted(tokenizer.control_ids - tokenizer.end_ids)


@pytest.mark.parametrize("kernels", ["torch", pytest.param("native", marks=needs_compiler)])
def test_greedy_equals_transformers(model_folder, tokenizer, prompts, following, written, capsys, kernels):
    results = run_engine(load_model(model_folder, kernels=kernels, cache=cache_folder()), tokenizer, prompts)
    ends, compared, ties = sorted(tokenizer.end_ids), 0, []
    for number, (result, prompt) in enumerate(zip(results, prompts, strict=True)):
        assert result.finish is Finish.EOS or result.finish is Finish.LENGTH and len(result.ids) == NEW_TOKENS
        scores = following((*prompt, *result.ids), len(prompt))
        for place, row in enumerate(scores[: NEW_TOKENS]):
            drawn = ends if place == len(result.ids) else [result.ids[place]]
            best, second = row.topk(2).values.tolist()
            got = float(row[drawn].max())
            assert best - got < TIE, f"prompt {number}, token {place}: {tokenizer.decode_bytes(drawn)} instead of {int(row.argmax())}"
            compared += 1
            if best - second < TIE:
                ties.append(f"prompt {number}, token {place}: the two best logits are {best - second:.1e} apart")
    with capsys.disabled():
        print(f"\n{kernels}: {compared} tokens are transformers' choice; positions with a tie of the best logits: {ties or 'none'}")
    assert compared >= 400
    for number in GENERATED:
        assert list(results[number].ids) == written[number], number


@pytest.fixture(scope="module")
def written(reference, tokenizer, prompts) -> dict[int, list[int]]:
    """What transformers writes by itself, without the end token, by the numbers of the prompts."""
    ends, texts = sorted(tokenizer.end_ids), {}
    for number in GENERATED:
        prompt = prompts[number]
        out = reference.generate(
            torch.tensor([prompt]), attention_mask=torch.ones(1, len(prompt), dtype=torch.long), do_sample=False,
            max_new_tokens=NEW_TOKENS, suppress_tokens=silent(tokenizer), eos_token_id=ends, pad_token_id=ends[0])
        texts[number] = [token for token in out[0, len(prompt) :].tolist() if token not in ends]
    return texts


def run_engine(model, tokenizer, prompts) -> list:
    engine = Engine(model, tokenizer, slots=4096)
    tickets = [engine.submit(GenerateRequest(prompt=tuple(ids), max_tokens=NEW_TOKENS)) for ids in prompts]
    results = {}
    while engine.busy:
        for event in engine.step():
            assert isinstance(event, DoneEvent), event
            results[event.ticket] = event.result
    return [results[ticket] for ticket in tickets]


@pytest.mark.parametrize("kernels", ["torch", pytest.param("native", marks=needs_compiler)])
def test_bfloat16_is_near_on_real_text(model_folder, tokenizer, kernels):
    """Kullback-Leibler divergence per token from float32, on text that the model knows how to go on."""
    tokens = tokenizer.encode(STORY)
    logprobs = []
    for dtype, computing in (("float32", "torch"), ("bfloat16", kernels)):
        model = load_model(model_folder, dtype=dtype, kernels=computing, cache=cache_folder())
        model.allocate(len(tokens))
        row = Row(tokens, 0, list(range(len(tokens))), list(range(len(tokens))))
        logprobs.append(model.forward([row]).log_softmax(-1))
    wanted, got = logprobs
    divergence = (wanted.exp() * (wanted - got)).sum(-1)
    assert divergence.mean() < 2e-3 and divergence.max() < 2e-2


def test_deterministic_mode_on_the_real_shapes(model_folder, tokenizer):
    """Chunks, neighbours and decoding leave the bits alone at 576 and 1536 columns too."""
    exact = load_model(model_folder, deterministic=True)
    exact.allocate(1024)
    tokens = tokenizer.encode(STORY)[:70]
    other = tokenizer.encode("Something else altogether, and longer than one tile.")
    alone = exact.forward([Row(tokens, 0, list(range(70)), [10, 63, 69])])
    slots = list(range(200, 270))
    parts = [exact.forward([Row(other, 0, list(range(600, 600 + len(other))), []), Row(tokens[:30], 0, slots[:30], [10])]),
             exact.forward([Row(tokens[30:69], 30, slots[:69], [33]), Row(other, 0, list(range(700, 700 + len(other))), [])]),
             exact.forward([Row(tokens[69:], 69, slots, [0])])]
    assert torch.equal(torch.cat(parts), alone)
