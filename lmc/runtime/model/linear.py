"""Products of token rows with weight matrices: packed for oneDNN where this torch can, and row-exact on demand.

    product = Linear(weight, bias)        weight: (out, in)
    product(x)                            x: (tokens, in) -> (tokens, out)

Plain `F.linear` in float32 repacks the weights at each call and has three classes of bits by row count.  A packed product is two to
four times as fast for few rows and has two classes, a single row and the rest; a single row padded to two leaves one.  `ExactLinear`
relies on that only after `exact_range` has tried it on this machine.  This file does not know what the matrices mean.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F

from lmc.diagnostics import Diagnostic, LmcError


class Linear:
    """`x @ weight.T + bias`, packed where possible."""

    __slots__ = ("weight", "bias", "packed")

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None = None):
        self.bias = bias
        self.packed = _packed(weight)
        # Packed weights are a copy: the plain ones are let go.
        self.weight = weight if self.packed is None else None

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        # x: (tokens, in) of the weight's dtype -> (tokens, out)
        if self.packed is None:
            return F.linear(x, self.weight, self.bias)
        return torch.ops.mkldnn._linear_pointwise(x, self.packed, self.bias, "none", [], "")


class ExactLinear:
    """A `Linear` that always works on `least` to `most` rows at once (padded, in pieces): a range that `exact_range` found."""

    __slots__ = ("product", "least", "most")

    def __init__(self, product: Linear, least: int, most: int):
        self.product, self.least, self.most = product, least, most

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        # x: (tokens, in) -> (tokens, out)
        if self.least <= len(x) <= self.most:
            return self.product(x)
        return torch.cat([self._piece(piece) for piece in x.split(self.most)])

    def _piece(self, x: torch.Tensor) -> torch.Tensor:
        missing = self.least - len(x)
        return self.product(x) if missing <= 0 else self.product(F.pad(x, (0, 0, 0, missing)))[: len(x)]


def exact_range(product: Linear, columns: int, dtype: torch.dtype) -> tuple[int, int]:
    """Least and most rows between which a row's result has the same bits whatever rows are beside it, on this machine.

    columns: in-features.  It holds for all matrices of one shape.  Raises `LmcError` E0816 if there is no such range.
    """
    # More than 256 rows gain nothing more, and what was tested is all that is used.  Rounding to bfloat16 hides most differences
    # between kernels, so a test of the free range would pass by luck: there the number of rows is fixed.
    ways = ((2, 256), (16, 16), (1, 1)) if dtype == torch.float32 else ((16, 16), (1, 1))
    for least, most in ways:
        if _rows_agree(ExactLinear(product, least, most), columns, dtype):
            return least, most
    raise LmcError(Diagnostic(
        "E0816", f"on this machine a product of {columns} columns in {str(dtype).removeprefix('torch.')} gives different bits in "
        "different batches", None, help="use float32, or run without the deterministic option"))


def _rows_agree(product: ExactLinear, columns: int, dtype: torch.dtype) -> bool:
    x = torch.randn(max(product.most, 64), columns, generator=torch.Generator().manual_seed(1)).to(dtype)
    whole = product(x)
    for count in (1, 2, 3, 8, 17, 64):
        # From the front and from the back: neither the number of rows nor the place of a row may matter.
        if not torch.equal(product(x[:count]), whole[:count]) or not torch.equal(product(x[-count:]), whole[-count:]):
            return False
    return True


def _packed(weight: torch.Tensor) -> torch.Tensor | None:
    """The weight in oneDNN's own layout, or None where this torch or this machine cannot."""
    if not torch.backends.mkldnn.is_available() or weight.device.type != "cpu":
        return None
    if weight.dtype not in (torch.float32, torch.bfloat16):
        return None
    try:
        # Names of torch's inductor, not a public interface: each use is a probe.
        if weight.dtype == torch.bfloat16 and not torch.ops.mkldnn._is_mkldnn_bf16_supported():
            return None
        packed = torch.ops.mkldnn._reorder_linear_weight(weight.contiguous(), None)
        probe = torch.zeros(1, weight.shape[1], dtype=weight.dtype)
        result = torch.ops.mkldnn._linear_pointwise(probe, packed, None, "none", [], "")
    except (AttributeError, RuntimeError, TypeError):
        return None
    return packed if result.shape == (1, weight.shape[0]) else None
