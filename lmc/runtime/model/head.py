"""The output matrix: all logits of a row, or only those that its mask leaves.

    head(x)                                x: (rows, hidden) -> (rows, vocab) float32
    head(x, [None, np.array([7, 90])])     the same first row; of the second at least the logits 7 and 90, the others may be -inf

Half of the steps of typed values leave a few tokens, and their rows of the matrix are a thousandth of it.  They are gathered, packed
as the whole matrix is, and multiplied: the same accumulation over the hidden dimension, so the same bits.  Whether that is so depends
on the machine, so `Head` tries it when it is made, pads what it must, and else computes every row whole.  This file does not know
what the tokens are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
import torch.nn.functional as F

from lmc.runtime.model.linear import ExactLinear, Linear

#: The most ids that all rows of a step may ask for together; beyond, gathering is no longer sure to be faster.
MOST_IDS = 2048
# Fewest ids that are computed at once: oneDNN shares the hidden dimension out among threads where there are fewer still.
_LEAST = (16, 64, 256)


class Head:
    """`product`: the whole output matrix; `weight`: its plain form, (vocab, hidden), where that is there anyway (an embedding that is
    tied to it), else None; then every row is computed whole."""

    __slots__ = ("product", "weight", "least")

    def __init__(self, product: Linear | ExactLinear, weight: torch.Tensor | None):
        self.product, self.weight = product, weight
        #: Fewest ids of a narrow product, or None where there are none.
        self.least = None if weight is None or weight.device.type != "cpu" else _least_ids(product, weight)

    def __call__(self, x: torch.Tensor, wanted: Sequence[np.ndarray | None] = ()) -> torch.Tensor:
        # x: (rows, hidden) of the weight's dtype -> (rows, vocab) float32.  wanted: sorted ids by row, None for all
        few = [row for row, ids in enumerate(wanted) if ids is not None] if self.least is not None else []
        ids = np.unique(np.concatenate([wanted[row] for row in few])) if few else np.empty(0, np.int64)
        if not 0 < len(ids) <= MOST_IDS:
            return self.product(x).float()
        logits = torch.full((len(x), len(self.weight)), -torch.inf)
        narrow = _as_beside(x, few, lambda part: narrow_product(self.product, self.weight, part, ids, self.least))
        logits[np.ix_(few, ids)] = narrow.float()
        if whole := sorted(set(range(len(x))) - set(few)):
            logits[whole] = _as_beside(x, whole, self.product).float()
        return logits


def narrow_product(product: Linear | ExactLinear, weight: torch.Tensor, x: torch.Tensor, ids: np.ndarray,
                   least: int) -> torch.Tensor:
    """Columns `ids` of `product(x)`.  x: (rows, hidden) -> (rows, len(ids))"""
    count = max(least, -(-len(ids) // 16) * 16)
    gathered = Linear(weight[torch.from_numpy(np.resize(ids, count))])
    if isinstance(product, ExactLinear):
        gathered = ExactLinear(gathered, product.least, product.most)
    return gathered(x)[:, : len(ids)]


def _as_beside(x: torch.Tensor, rows: list[int], product: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
    """`product` of some rows of `x`, with the bits that they have beside the others: a single row of several is padded to two."""
    part = x[rows]
    return product(F.pad(part, (0, 0, 0, 1)))[:1] if len(rows) == 1 < len(x) else product(part)


def _least_ids(product: Linear | ExactLinear, weight: torch.Tensor) -> int | None:
    """Found by trying on this machine, with the weights themselves."""
    vocab, hidden = weight.shape
    x = torch.randn(8, hidden, generator=torch.Generator().manual_seed(1)).to(weight.dtype)
    whole = [(rows, product(x[:rows])) for rows in (1, 2, 8)]
    spread = [np.unique(np.linspace(0, vocab - 1, count).astype(np.int64)) for count in (1, 2, 17, 48, min(vocab, 300))]
    for least in _LEAST:
        pairs = ((narrow_product(product, weight, x[:rows], ids, least), logits[:, ids]) for rows, logits in whole for ids in spread)
        if all(torch.equal(narrow, logits) for narrow, logits in pairs):
            return least
    return None
