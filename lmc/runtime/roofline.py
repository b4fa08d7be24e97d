"""What this machine can do at best: bytes read and products computed in a second, measured with torch, and what a pass then must take.

    roof = measure_roofline(folder, "bfloat16")
    roof.bandwidth                 25.1e9 bytes a second
    roof.products[32]              2.3e11 floating-point operations a second, 32 rows at a time
    roof.pass_seconds(32, 32)      how long a pass of 32 rows takes at least, all 32 with logits

A pass reads every weight once and multiplies every row with each; attention, norms and drawing are taken as free.  Products are the
best of float32 and bfloat16, plain and packed, over one layer's matrices, which a large cache holds: what memory costs is in the
bandwidth.  A native step may be faster than torch at few rows.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
import torch.nn.functional as F

from lmc.runtime.model.config import ModelConfig, read_config
from lmc.runtime.model.linear import Linear
from lmc.runtime.model.load import DTYPES

#: Rows at which products are measured.
ROWS = (1, 8, 32, 512)
# Larger than any cache of a processor that this is run on.
_READ_BYTES = 1 << 29
_REPEAT = 5
# A kind of product that has fallen so far behind the best is not measured with more rows: without bfloat16 in the processor it takes
# minutes.
_BEHIND = 0.5


@dataclass(frozen=True, slots=True)
class Roofline:
    """bandwidth: bytes a second; products: by rows, operations a second; layer_numbers, head_numbers: weights that each token and each
    row with logits goes through; number_bytes: of one weight; threads: torch's"""

    bandwidth: float
    products: Mapping[int, float]
    layer_numbers: int
    head_numbers: int
    number_bytes: int
    threads: int

    @property
    def weight_bytes(self) -> int:
        return self.number_bytes * (self.layer_numbers + self.head_numbers)

    def rate(self, rows: int) -> float:
        """Operations a second with so many rows, between two measured numbers of rows in proportion."""
        known = sorted(self.products)
        place = bisect_left(known, rows)
        if place == 0 or place == len(known):
            return self.products[known[min(place, len(known) - 1)]]
        low, high = known[place - 1], known[place]
        share = (rows - low) / (high - low)
        return self.products[low] * (1 - share) + self.products[high] * share

    def pass_seconds(self, rows: int, heads: int) -> float:
        """The least time of one forward pass: rows tokens, heads of them with logits."""
        operations = 2 * (self.layer_numbers * rows + self.head_numbers * heads)
        return max(self.weight_bytes / self.bandwidth, operations / self.rate(rows))


def measure_roofline(folder: Path, dtype: str) -> Roofline:
    """folder: a model's, of the Llama kind; dtype: of the weights.  Takes some seconds.  Raises `LmcError` for a wrong folder."""
    config = read_config(folder)
    shapes = _layer_shapes(config)
    numbers = config.layers * sum(out * width for out, width in shapes)
    return Roofline(_bandwidth(), _best_products(shapes), numbers, config.vocab_size * config.hidden, DTYPES[dtype].itemsize, torch.get_num_threads())


def _layer_shapes(config: ModelConfig) -> list[tuple[int, int]]:
    """(outputs, inputs) of a layer's products."""
    wide, narrow = config.heads * config.head_dim, config.kv_heads * config.head_dim
    return [(wide + 2 * narrow, config.hidden), (config.hidden, wide), (2 * config.intermediate, config.hidden),
            (config.hidden, config.intermediate)]


def _bandwidth() -> float:
    """Bytes a second of one long read by all threads."""
    numbers = torch.ones(_READ_BYTES // 4)
    return numbers.nbytes / _least_seconds(numbers.sum)


def _best_products(shapes: list[tuple[int, int]]) -> dict[int, float]:
    kinds = [(dtype, packed) for dtype in DTYPES.values() for packed in (False, True)]
    best: dict[int, float] = {}
    for rows in ROWS:
        rates = {kind: _product_rate(shapes, rows, *kind) for kind in kinds}
        best[rows] = max(rates.values())
        kinds = [kind for kind, rate in rates.items() if rate >= _BEHIND * best[rows]]
    return best


def _product_rate(shapes: list[tuple[int, int]], rows: int, dtype: torch.dtype, packed: bool) -> float:
    """Operations a second; 0 where this machine cannot."""
    weights = [torch.randn(shape).to(dtype) for shape in shapes]
    inputs = [torch.randn(rows, width).to(dtype) for _, width in shapes]
    products: list[Callable[[torch.Tensor], torch.Tensor]] = [partial(F.linear, weight=weight) for weight in weights]
    if packed:
        linears = [Linear(weight) for weight in weights]
        if linears[0].packed is None:
            return 0.0
        products = list(linears)

    def work() -> None:
        for product, x in zip(products, inputs):
            product(x)

    with torch.inference_mode():
        return 2 * rows * sum(out * width for out, width in shapes) / _least_seconds(work)


def _least_seconds(work: Callable[[], object]) -> float:
    work()
    times = []
    for _ in range(_REPEAT):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return min(times)
