"""The native CPU step beside transformers, in one run on one model: decoding at batch 1, 8 and 32, and a prefill of 512 tokens.

    python benchmarks/cpu_kernels.py                                  the default model in bfloat16, as the bars are set
    python benchmarks/cpu_kernels.py --dtype float32 --kernels native,torch --repeat 3 --work decode1

Contestants take turns within each repetition, so that a busy neighbour hits all of them; medians of the repetitions count.  Decoding
computes one token a row behind 255 in the cache; transformers gets its own cache and computes the logits of the last token only.
Close everything else: beside another process the barriers of torch's threads cost up to 200 times what they should.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import torch
import transformers

from lmc.embed import cache_folder
from lmc.runtime.batch import Row
from lmc.runtime.model.load import load_model
from lmc.runtime.model.registry import resolve_model

CONTEXT, PROMPT = 256, 512
# Work -> (rows, tokens computed, the least ratio to transformers that the issue asks for).
WORK = {"decode1": (1, 1, 3.5), "decode8": (8, 8, 3.5), "decode32": (32, 32, 2.5), "prefill": (1, PROMPT, 1.3)}


class Ours:
    """A model of `lmc` with room for the largest work."""

    def __init__(self, folder: Path, dtype: str, kernels: str):
        self.model = load_model(folder, dtype=dtype, kernels=kernels, cache=cache_folder())
        self.model.allocate(32 * CONTEXT + PROMPT)
        self.name = f"native:{self.model.level}" if hasattr(self.model, "level") else "torch"

    def work(self, name: str) -> Callable[[], object]:
        if name == "prefill":
            rows = [Row(_tokens(1, PROMPT)[0], 0, list(range(PROMPT)), [PROMPT - 1])]
        else:
            batch = WORK[name][0]
            places = [list(range(row * CONTEXT, (row + 1) * CONTEXT)) for row in range(batch)]
            for ids, slots in zip(_tokens(batch, CONTEXT - 1), places):
                self.model.forward([Row(ids, 0, slots[:-1], [])])
            rows = [Row([7], CONTEXT - 1, slots, [0]) for slots in places]
        return lambda: self.model.forward(rows)


class Theirs:
    """transformers, as `generate` would call it."""

    name = "transformers"

    def __init__(self, folder: Path, dtype: str):
        self.model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=getattr(torch, dtype)).eval()

    @torch.no_grad()
    def work(self, name: str) -> Callable[[], object]:
        if name == "prefill":
            prompt = torch.tensor(_tokens(1, PROMPT))
            return torch.no_grad()(lambda: self.model(prompt, use_cache=True, logits_to_keep=1))
        ids = torch.tensor(_tokens(WORK[name][0], CONTEXT - 1))
        cache = self.model(ids, use_cache=True, logits_to_keep=1).past_key_values
        following = torch.full((len(ids), 1), 7)

        @torch.no_grad()
        def decode() -> None:
            self.model(following, past_key_values=cache, use_cache=True)
            cache.crop(-1)  # the token just added: each repetition has the same context

        return decode


def main() -> int:
    given = _arguments()
    # One name of an argument of transformers is on its way out in favour of one that older versions do not know.
    warnings.simplefilter("ignore", FutureWarning)
    transformers.logging.set_verbosity_error()
    folder = resolve_model(given.model, cache_folder())
    contestants = [*(Ours(folder, given.dtype, kernels) for kernels in given.kernels.split(",")), Theirs(folder, given.dtype)]
    names = [contestant.name for contestant in contestants]
    print(f"{given.model}, {given.dtype}, {torch.get_num_threads()} threads, median of {given.repeat}; tokens/s, and times transformers")
    print(f"{'':<10}" + "".join(f"{name:>24}" for name in names) + f"{'bar':>8}")
    missed = False
    for name in given.work.split(","):
        speeds = _speeds([contestant.work(name) for contestant in contestants], WORK[name][1], given.repeat)
        ratios = [speed / speeds[-1] for speed in speeds]
        missed |= ratios[0] < WORK[name][2]
        cells = "".join(f"{speed:>14,.0f}   ({ratio:>4.2f})" for speed, ratio in zip(speeds, ratios))
        print(f"{name:<10}{cells}{WORK[name][2]:>8}", flush=True)
    return 1 if missed else 0


def _speeds(works: list[Callable[[], object]], tokens: int, repeat: int) -> list[float]:
    """Tokens a second of each, measured by turns."""
    seconds: list[list[float]] = [[] for _ in works]
    for turn in range(repeat + 1):
        for work, taken in zip(works, seconds):
            begin = time.perf_counter()
            work()
            if turn:  # the first round warms caches
                taken.append(time.perf_counter() - begin)
    return [tokens / statistics.median(taken) for taken in seconds]


def _tokens(rows: int, length: int) -> list[list[int]]:
    generator = torch.Generator().manual_seed(length)
    return torch.randint(100, 40_000, (rows, length), generator=generator).tolist()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="default")
    parser.add_argument("--dtype", default="bfloat16", choices=["float32", "bfloat16"])
    parser.add_argument("--kernels", default="native", help="comma-separated: native, native:LEVEL, torch; the first is held to the bars")
    parser.add_argument("--work", default=",".join(WORK), help="comma-separated")
    parser.add_argument("--repeat", type=int, default=15)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
