"""The real default model: greedy text of the engine equals transformers' greedy `generate`, token for token, in float32.

Twenty prompts of all kinds run side by side in the engine and one by one in transformers.  From a position where transformers' two
best logits are within 1e-4 either may follow; the test prints these positions.
"""

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
def reference(model_folder, tokenizer, prompts) -> list[tuple[list[int], torch.Tensor]]:
    """Of each prompt transformers' tokens, without the end token, and their logits (tokens, vocab)."""
    model = transformers.AutoModelForCausalLM.from_pretrained(model_folder, dtype=torch.float32)
    # Control tokens are written by templates only; the engine never draws them.
    ends, silent = sorted(tokenizer.end_ids), sorted(tokenizer.control_ids - tokenizer.end_ids)
    results = []
    for ids in prompts:
        out = model.generate(
            torch.tensor([ids]), attention_mask=torch.ones(1, len(ids), dtype=torch.long), do_sample=False, max_new_tokens=NEW_TOKENS,
            suppress_tokens=silent, eos_token_id=ends, pad_token_id=ends[0], return_dict_in_generate=True, output_scores=True)
        tokens = out.sequences[0, len(ids) :].tolist()
        results.append((tokens, torch.cat(out.scores)))
    return results


@pytest.mark.parametrize("kernels", ["torch", pytest.param("native", marks=needs_compiler)])
def test_greedy_equals_transformers(model_folder, tokenizer, prompts, reference, capsys, kernels):
    results = run_engine(load_model(model_folder, kernels=kernels, cache=cache_folder()), tokenizer, prompts)
    compared, ties = 0, []
    for number, (result, (wanted, scores)) in enumerate(zip(results, reference)):
        got = list(result.ids)
        if wanted[-1] in tokenizer.end_ids:
            wanted = wanted[:-1]
            assert result.finish is Finish.EOS or got != wanted
        else:
            assert result.finish is Finish.LENGTH or got != wanted
        same = next((i for i, (a, b) in enumerate(zip(got, wanted)) if a != b), min(len(got), len(wanted)))
        compared += same
        if got != wanted:
            best = scores[same].topk(2).values
            ties.append(f"prompt {number}, token {same}: the two best logits are {float(best[0] - best[1]):.1e} apart")
            assert best[0] - best[1] < TIE, f"prompt {number}, token {same}: {got[: same + 1]} instead of {wanted[: same + 1]}"
            chosen = got[same] if same < len(got) else min(tokenizer.end_ids)
            assert best[0] - scores[same, chosen] < TIE
    with capsys.disabled():
        print(f"\n{kernels}: {compared} tokens equal transformers'; positions with a tie of the best logits: {ties or 'none'}")
    # Ties are rare: most of the text must have been compared.
    assert compared >= 400


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
