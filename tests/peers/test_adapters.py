"""What can be tried of the adapters without their engines: transformers on a small random model, and regexes as grammars."""

import asyncio
import sys
from pathlib import Path

import pytest

from tests.peers.small_data import REGEX

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks" / "peers"


@pytest.fixture(scope="module", autouse=True)
def adapters():
    """The adapters import one another by the names of their files, as their engines' Pythons do."""
    sys.path.insert(0, str(FOLDER))
    yield
    sys.path.remove(str(FOLDER))


@pytest.fixture(scope="module")
def small_model(tmp_path_factory) -> Path:
    """A Llama of two layers with random weights, over bytes."""
    import tokenizers
    import torch
    import transformers

    folder = tmp_path_factory.mktemp("model")
    torch.manual_seed(1)
    config = transformers.LlamaConfig(vocab_size=258, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
                                      num_key_value_heads=2, max_position_embeddings=512, bos_token_id=256, eos_token_id=257, initializer_range=0.5)
    transformers.LlamaForCausalLM(config).save_pretrained(folder)
    inner = tokenizers.Tokenizer(tokenizers.models.WordLevel({f"t{number}": number for number in range(258)}, unk_token="t0"))
    transformers.PreTrainedTokenizerFast(tokenizer_object=inner, unk_token="t0", eos_token="t257").save_pretrained(folder)
    return folder


def opened(folder: Path):
    from transformers_peer import Transformers

    engine = Transformers()
    asyncio.run(engine.open({"model": str(folder), "dtype": "float32", "threads": 1, "pool_bytes": 1 << 30}))
    return engine


def test_vllm_computes_where_its_process_may(monkeypatch):
    import vllm_peer

    monkeypatch.setattr(vllm_peer.os, "sched_getaffinity", lambda process: {5, 11, 3}, raising=False)
    assert (vllm_peer.cores(2), vllm_peer.cores(9)) == ("3,5", "3,5,11")


def plain(engine, ids: list[int], count: int) -> list[int]:
    """The likeliest tokens, the whole prompt computed for each."""
    import torch

    written: list[int] = []
    with torch.inference_mode():
        for _ in range(count):
            written.append(int(engine.model(torch.tensor([[*ids, *written]])).logits[0, -1].argmax()))
    return written


PREFIX = [number % 200 for number in range(3, 40)]


def test_what_rows_share_is_computed_once_and_changes_nothing(small_model):
    engine = opened(small_model)
    rows = [[*PREFIX, 7], [*PREFIX, 8, 9, 10], [11, 12], [*PREFIX, 7, 7]]
    answers = engine.run([{"ids": ids, "max_tokens": 5 + place, "ignore_eos": True} for place, ids in enumerate(rows)])
    for place, (ids, answer) in enumerate(zip(rows, answers)):
        assert answer["ids"] == plain(engine, ids, 5 + place), place
        assert answer["computed"] + answer["cached"] == len(ids)
    # The prefix once, and each row's own tokens.
    assert sum(answer["computed"] for answer in answers) == len(PREFIX) + 1 + 3 + 2 + 2


def test_a_turn_goes_on_from_what_was_kept(small_model):
    engine = opened(small_model)
    (first,) = engine.run([{"ids": PREFIX, "max_tokens": 6, "ignore_eos": True}])
    longer = [*PREFIX, *first["ids"], 20, 21]
    second, other = engine.run([{"ids": longer, "max_tokens": 4, "ignore_eos": True}, {"ids": PREFIX[:5], "max_tokens": 2, "ignore_eos": True}])
    assert (second["ids"], other["ids"]) == (plain(engine, longer, 4), plain(engine, PREFIX[:5], 2))
    # The last token that was drawn had not been computed.
    assert (second["computed"], other["computed"]) == (3, 1)
    asyncio.run(engine.reset())
    (again,) = engine.run([{"ids": longer, "max_tokens": 4, "ignore_eos": True}])
    assert again["cached"] == 0 and again["ids"] == second["ids"]


def test_what_is_kept_stays_within_its_bytes(small_model):
    engine = opened(small_model)
    # Keys and values of two layers, two heads of eight numbers, in float32: 256 bytes a token.
    engine.room = 256 * 50
    for start in range(4):
        engine.run([{"ids": [start, *PREFIX], "max_tokens": 3, "ignore_eos": True}])
    assert len(engine.kept) == 1


def test_ends_stops_and_seeds(small_model):
    engine = opened(small_model)
    likeliest = plain(engine, PREFIX, 6)
    engine.ends = {likeliest[3]}
    cut = likeliest.index(likeliest[3])
    (ended,) = engine.run([{"ids": PREFIX, "max_tokens": 6}])
    assert (ended["ids"], ended["finish"]) == (likeliest[:cut], "eos")
    (passed_over,) = engine.run([{"ids": PREFIX, "max_tokens": 6, "ignore_eos": True}])
    assert passed_over["ids"][:cut] == likeliest[:cut] and len(passed_over["ids"]) == 6 and likeliest[3] not in passed_over["ids"]
    engine.ends = set()
    stop = f"t{likeliest[1]}"
    (stopped,) = engine.run([{"ids": PREFIX, "max_tokens": 6, "ignore_eos": True, "stop": [stop]}])
    assert stopped["finish"] == "stop" and stop not in stopped["text"]
    drawn = [engine.run([{"ids": PREFIX, "max_tokens": 8, "ignore_eos": True, "temperature": 1.5, "top_p": 0.9, "seed": seed}])[0]["ids"]
             for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]
    with pytest.raises(ValueError, match="no constrained generation"):
        asyncio.run(engine.generate({"ids": PREFIX, "max_tokens": 6, "regex": "a"}))


def plain_scores(engine, ids: list[int], start: int) -> list[float]:
    import torch

    with torch.inference_mode():
        logits = engine.model(torch.tensor([ids])).logits[0].log_softmax(-1)
    return [logits[place - 1, ids[place]].item() for place in range(start, len(ids))]


def test_options_share_their_prompt(small_model):
    """Two questions behind the same examples, three options each: examples once, each question once, each option by itself."""
    engine = opened(small_model)
    questions = [[*PREFIX, *(number % 50 + first for number in range(20))] for first in (60, 130)]
    options = [[5], [6, 7, 8, 9], [6, 7]]
    asks = [{"ids": [*question, *option], "start": len(question)} for question in questions for option in options]

    async def all_at_once():
        return await asyncio.gather(*map(engine.score, asks))

    answers = asyncio.run(all_at_once())
    for ask, answer in zip(asks, answers):
        assert answer["logprobs"] == pytest.approx(plain_scores(engine, ask["ids"], ask["start"]), abs=1e-4)
        # What comes after the last token is not asked for, so that one is not read.
        assert answer["computed"] + answer["cached"] == len(ask["ids"]) - 1
    # The last token of a question stands before the first of each option.
    assert sum(answer["computed"] for answer in answers) == len(PREFIX) + 2 * 19 + 2 * sum(map(len, options))
    (again,) = asyncio.run(all_at_once())[:1]
    assert again["computed"] == 1 and again["logprobs"] == pytest.approx(answers[0]["logprobs"], abs=1e-4)


def test_a_regex_as_a_grammar():
    from regex_grammar import grammar

    assert grammar("ab+") == 'root ::= "a" ("b"){1,}'
    assert grammar(r"(yes|no){1,2} [a-z_]*x?") == 'root ::= ((("yes" | "no"))){1,2} " " ([a-z_]){0,} ("x"){0,1}'
    assert grammar(r'\{"a": [^"\n]\}') == 'root ::= "{\\"a\\": " [^"\\n] "}"'
    assert grammar(r"[\]\-^\\]\d") == 'root ::= [\\]\\x2d\\x5e\\\\] [0-9]'
    assert grammar(REGEX).startswith('root ::= "{\\n  \\"name\\": \\"" [A-Z] ([a-z]){1,12} " "')
    for regex in (r"a\b", r"(?=a)", r"(a)\1", r"^a", r"\W"):
        with pytest.raises(ValueError):
            grammar(regex)
