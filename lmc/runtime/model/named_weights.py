"""The tensors of a checkpoint by their names, each to be taken once, in the dtype that computes.

    weights = NamedWeights(tensors, torch.bfloat16, deterministic=False)
    weights.matrix("model.embed_tokens.weight")
    weights.stacked("model.layers.0.self_attn.", "q_proj", "k_proj", "v_proj")      # one above the other, with their biases

What is left in the end was never used: a fault.  This file does not know which tensors a model wants.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import torch

from lmc.runtime.model.linear import ExactLinear, Linear, exact_range

EMBEDDING, HEAD = "model.embed_tokens.weight", "lm_head.weight"
#: Gate, value and output of an MLP, and of Mixtral's experts.
MLP_PARTS, EXPERT_PARTS = ("gate_proj", "up_proj", "down_proj"), ("w1", "w3", "w2")


class NamedWeights:
    """The tensors read, each to be taken once.  `ranges`: what `exact_range` found for matrices of a shape."""

    __slots__ = ("tensors", "dtype", "deterministic", "ranges")

    def __init__(self, tensors: dict[str, torch.Tensor], dtype: torch.dtype, deterministic: bool):
        self.tensors, self.dtype, self.deterministic = tensors, dtype, deterministic
        self.ranges: dict[tuple[torch.Size, bool], tuple[int, int]] = {}

    def drop_tied_head(self, folder: Path) -> None:
        """A tied model's own output matrix is not used: it is the embedding, as config.json says."""
        head = self.tensors.pop(HEAD, None)
        if head is not None and not torch.equal(head, self.tensors[EMBEDDING]):
            warnings.warn(f"{folder}: config.json ties the output matrix to the embedding, but `{HEAD}` differs from it; "
                          "the embedding is used", stacklevel=3)

    def assert_all_used(self) -> None:
        assert not self.tensors, f"never used: {sorted(self.tensors)}"

    def matrix(self, name: str) -> torch.Tensor:
        return self.tensors.pop(name).to(self.dtype)

    def norm(self, name: str) -> torch.Tensor | None:
        return self.tensors.pop(name).float() if name in self.tensors else None

    def stacked(self, prefix: str, *names: str) -> tuple[torch.Tensor, torch.Tensor | None]:
        """The matrices `names`, one above the other, and their biases."""
        weight = torch.cat([self.matrix(f"{prefix}{name}.weight") for name in names])
        biases = [self.matrix(f"{prefix}{name}.bias") for name in names if f"{prefix}{name}.bias" in self.tensors]
        return weight, torch.cat(biases) if biases else None

    def linear(self, prefix: str, *names: str) -> Linear | ExactLinear:
        """The product with the matrices `names`, one above the other."""
        return self.product(*self.stacked(prefix, *names))

    def product(self, weight: torch.Tensor, bias: torch.Tensor | None) -> Linear | ExactLinear:
        product = Linear(weight, bias)
        if not self.deterministic:
            return product
        key = (weight.shape, bias is not None)
        if key not in self.ranges:
            self.ranges[key] = exact_range(product, weight.shape[1], self.dtype)
        return ExactLinear(product, *self.ranges[key])
