"""What a step's forward pass reads, as tensors on the device; padded, where it decodes, to one of a few sizes.

    5 rows of one token, 9 tiles      ->  8 tokens, 16 tiles         the sizes of the graph that computes it

A token of padding writes its keys and values to the pool's spare slot, which no tile reads, and is no query of any tile; a tile of
padding has no query; what is merged for padding goes to a token of padding.  So padding changes nothing that is read.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np
import torch

from lmc.runtime.batch import Row
from lmc.runtime.model.gpu.attention import PlacedPlan, place
from lmc.runtime.model.gpu.tiles import AttentionPlan, Tiles, plan_attention
from lmc.runtime.model.llama import output_indexes


@dataclass(frozen=True, slots=True)
class StepInputs:
    """ids, positions, new_slots: (tokens,) int32; outputs: (outputs,) int32 into the tokens."""

    ids: torch.Tensor
    positions: torch.Tensor
    new_slots: torch.Tensor
    outputs: torch.Tensor
    plan: PlacedPlan

    def tensors(self) -> list[torch.Tensor]:
        """All that differ from step to step, in a fixed order: what a graph reads.  The room for partial results is not among them."""
        return [self.ids, self.positions, self.new_slots, self.outputs, self.plan.slots, *self.plan.single, *self.plan.many,
                *self.plan.merge]


def step_inputs(rows: list[Row], *, few: int, many: int, heads: int, head_dim: int, spare_slot: int, device: torch.device,
                exact: bool, padded: bool) -> StepInputs:
    """few, many: queries of a tile, see `plan_attention`; padded: every row has one token and one output."""
    plan = plan_attention(rows, few=few, many=many, exact=exact)
    ids = np.concatenate([np.asarray(row.tokens, np.int32) for row in rows])
    positions = np.concatenate([np.arange(row.start, row.start + len(row.tokens), dtype=np.int32) for row in rows])
    new_slots = np.concatenate([np.asarray(row.slots[row.start :], np.int32) for row in rows])
    outputs = output_indexes(rows).astype(np.int32)
    if padded:
        # At least one token of padding: it takes what is merged for padding.
        count = _size(len(ids) + 1)
        ids, positions, outputs = (_filled(a, count, 0) for a in (ids, positions, outputs))
        new_slots = _filled(new_slots, count, spare_slot)
        plan = _padded(plan, count)
    on_device = [torch.from_numpy(a).to(device, non_blocking=True) for a in (ids, positions, new_slots, outputs)]
    return StepInputs(*on_device, place(plan, heads=heads, head_dim=head_dim, device=device))


def _padded(plan: AttentionPlan, tokens: int) -> AttentionPlan:
    partials = _size(plan.partials)
    # Padding merges nothing into the last token, which is padding.
    return replace(plan, slots=_filled(plan.slots, _size(len(plan.slots)), 0), single=_padded_tiles(plan.single),
                   many=_padded_tiles(plan.many), partials=partials, merged_tokens=_filled(plan.merged_tokens, tokens, tokens - 1),
                   merge_first=_filled(plan.merge_first, tokens + 1, plan.partials),
                   merge_rows=_filled(plan.merge_rows, partials, 0))


def _padded_tiles(tiles: Tiles) -> Tiles:
    """More tiles, of no queries."""
    columns = [getattr(tiles, field.name) for field in fields(Tiles)]
    return Tiles(*(_filled(column, _size(len(column)), 0) for column in columns))


def _size(count: int) -> int:
    """The next power of two: few sizes, so few graphs.  Nothing stays nothing."""
    return 1 << (count - 1).bit_length() if count else 0


def _filled(array: np.ndarray, count: int, value: int) -> np.ndarray:
    return np.concatenate((array, np.full(count - len(array), value, array.dtype)))
