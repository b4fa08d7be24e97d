"""What a narrow output matrix saves: milliseconds of the whole one and of n allowed tokens, at several batch sizes.

    python benchmarks/narrow_head.py [--model NAME]

      ids   batch 1     of all   batch 8     of all   batch 32     of all
      all     4.912                7.300                14.811
        4     0.051      0.010     0.070      0.010      0.110      0.007

Where a row's cost passes that of `all`, `MOST_IDS` of lmc/runtime/model/head.py (ids of all rows together) and `_FEW` of
lmc/runtime/generation.py (ids of one row) should end.
"""

import statistics
import time

import click
import numpy as np
import torch

from lmc.embed import cache_folder
from lmc.runtime.model.head import MOST_IDS, Head, narrow_product
from lmc.runtime.model.load import load_model
from lmc.runtime.model.registry import resolve_model

BATCHES = (1, 8, 32)
IDS = (1, 4, 16, 64, 300, 1000, 2000, 4000, 8000, 16000)


@click.command()
@click.option("--model", default="default")
@click.option("--repeat", default=20)
def main(model: str, repeat: int) -> None:
    llama = load_model(resolve_model(model, cache_folder()), kernels="torch")
    head, rows = llama.head, llama.embedding.shape[1]
    if head.least is None:
        raise SystemExit("on this machine every row is computed whole")
    print(f"at least {head.least} ids are computed at once, at most {MOST_IDS} are gathered")
    print(f"{'ids':>6}" + "".join(f"{f'batch {batch}':>11}{'of all':>9}" for batch in BATCHES))
    inputs = [torch.randn(batch, rows).to(llama.dtype) for batch in BATCHES]
    whole = [_milliseconds(lambda x=x: head(x), repeat) for x in inputs]
    print(f"{'all':>6}" + "".join(f"{ms:11.3f}{'':9}" for ms in whole))
    for count in IDS:
        ids = np.sort(np.random.default_rng(1).choice(len(llama.embedding), count, replace=False))
        times = [_milliseconds(lambda x=x: _narrow(head, x, ids), repeat) for x in inputs]
        print(f"{count:6}" + "".join(f"{ms:11.3f}{ms / most:9.3f}" for ms, most in zip(times, whole)))


def _narrow(head: Head, x: torch.Tensor, ids: np.ndarray) -> torch.Tensor:
    """As the head does it, whatever the number of ids."""
    logits = torch.full((len(x), len(head.weight)), -torch.inf)
    logits[:, ids] = narrow_product(head.product, head.weight, x, ids, head.least).float()
    return logits


def _milliseconds(call, repeat: int) -> float:
    call()
    times = []
    for _ in range(repeat):
        started = time.perf_counter()
        call()
        times.append(1e3 * (time.perf_counter() - started))
    return statistics.median(times)


if __name__ == "__main__":
    main()
