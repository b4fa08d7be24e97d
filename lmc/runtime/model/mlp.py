"""The second half of a layer: a gated MLP, or several of which each token goes through a few (Mixtral).

    GatedMlp     down(silu(gate) * value)
    Experts      the router's probabilities -> for each token its `chosen` likeliest experts, their results weighted and added

The weights of a token's experts are made to sum to one.  This file does not know attention, norms or files.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F

from lmc.runtime.model.linear import ExactLinear, Linear

# torch gives the last elements of each thread's share another formula than the rest, and shares out more than this many.
_ONE_SHARE = 32_768


@dataclass(frozen=True, slots=True)
class GatedMlp:
    """`gate_up` gives the gate and the value side by side.  exact: a token's bits do not depend on the tokens beside it."""

    gate_up: Linear | ExactLinear
    down: Linear | ExactLinear
    exact: bool

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        # x: (tokens, hidden) of the compute dtype -> the same
        gate, value = self.gate_up(x).chunk(2, dim=-1)
        return self.down(self._silu(gate) * value)

    def _silu(self, x: torch.Tensor) -> torch.Tensor:
        # x: (tokens, intermediate), in exact mode in pieces in which an element's formula does not depend on the batch.
        if not self.exact:
            return F.silu(x)
        return torch.cat([F.silu(piece) for piece in x.split(max(1, _ONE_SHARE // x.shape[1]))])


@dataclass(frozen=True, slots=True)
class Experts:
    """`router` gives one number for each expert; `chosen`: how many of them a token goes through."""

    router: Linear | ExactLinear
    experts: tuple[GatedMlp, ...]
    chosen: int

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        # x: (tokens, hidden) of the compute dtype -> (tokens, hidden) float32
        shares, numbers = self.router(x).float().softmax(dim=-1).topk(self.chosen, dim=-1)
        shares = shares / shares.sum(dim=-1, keepdim=True)
        out = x.new_zeros(x.shape, dtype=torch.float32)
        # In the order of the experts, so that a token's sum has one order whatever tokens are beside it.
        for number, expert in enumerate(self.experts):
            tokens, places = (numbers == number).nonzero(as_tuple=True)
            if len(tokens):
                out.index_add_(0, tokens, expert(x.index_select(0, tokens)).float() * shares[tokens, places, None])
        return out
