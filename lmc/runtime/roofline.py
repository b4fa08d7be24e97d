"""What this machine can do at best: bytes read and products computed in a second, measured with torch, and what a pass then must take.

    roof = measure_roofline(folder, "bfloat16")
    roof.bandwidth                 25.1e9 bytes a second
    roof.products[32]              2.3e11 floating-point operations a second, 32 rows at a time
    roof.pass_seconds(32, 32)      how long a pass of 32 rows takes at least, all 32 with logits

A pass reads every weight once and multiplies every row with each; attention, norms and drawing are taken as free.  Products are the
best of float32 and bfloat16, plain and packed, over matrices of the model's shapes that do not fit the cache; a native step may be
faster than torch at few rows.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
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
# Layers whose matrices are multiplied by turns: their weights do not stay in the cache.
_LAYERS = 12
_REPEAT = 3


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
    products = {rows: max(_product_rate(shapes, rows, kind, packed) for kind in DTYPES.values() for packed in (False, True)) for rows in ROWS}
    numbers = config.layers * sum(out * width for out, width in shapes)
    return Roofline(_bandwidth(), products, numbers, config.vocab_size * config.hidden, DTYPES[dtype].itemsize, torch.get_num_threads())


def _layer_shapes(config: ModelConfig) -> list[tuple[int, int]]:
    """(outputs, inputs) of a layer's products."""
    wide, narrow = config.heads * config.head_dim, config.kv_heads * config.head_dim
    return [(wide + 2 * narrow, config.hidden), (config.hidden, wide), (2 * config.intermediate, config.hidden),
            (config.hidden, config.intermediate)]


def _bandwidth() -> float:
    """Bytes a second of one long read by all threads."""
    numbers = torch.ones(_READ_BYTES // 4)
    return numbers.nbytes / _least_seconds(numbers.sum)


def _product_rate(shapes: list[tuple[int, int]], rows: int, dtype: torch.dtype, packed: bool) -> float:
    weights = [[torch.randn(shape).to(dtype) for shape in shapes] for _ in range(_LAYERS)]
    inputs = [torch.randn(rows, width).to(dtype) for _, width in shapes]
    if packed:
        products = [[Linear(weight) for weight in layer] for layer in weights]
        if any(product.packed is None for product in products[0]):
            return 0.0
    else:
        products = [[lambda x, weight=weight: F.linear(x, weight) for weight in layer] for layer in weights]

    def work() -> None:
        for layer in products:
            for product, x in zip(layer, inputs):
                product(x)

    with torch.inference_mode():
        return 2 * rows * _LAYERS * sum(out * width for out, width in shapes) / _least_seconds(work)


def _least_seconds(work) -> float:
    work()
    times = []
    for _ in range(_REPEAT):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return min(times)
