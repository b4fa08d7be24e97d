"""Other decoders, such as GPT-2 and Gemma: the network of transformers, with our attention over our pool in the place of its own.

    rows -> one ragged batch (1, tokens) with positions -> the network of transformers
                                                           at each layer: keys and values to the pool, `attend` over the rows' slots
         -> logits of the wanted tokens

transformers looks attention functions up by a name, in one table for the whole process, so each model registers under a name of its
own.  It is the fall-back: correct and cached like the fast path, slower, and a row's bits may depend on the rows beside it.
"""

from __future__ import annotations

import itertools
import weakref
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from lmc.diagnostics import Diagnostic, LmcError
from lmc.runtime.batch import Row
from lmc.runtime.model.attention import Tile, attend, plan_tiles
from lmc.runtime.model.decoder_config import DecoderConfig

_NUMBERS = itertools.count()
# What layers hand to an attention function beside what `attend` uses, and what changes nothing here.
_HARMLESS = frozenset({"dropout", "position_ids", "use_cache", "output_attentions", "output_hidden_states", "is_causal",
                       "cache_position", "position_embeddings", "return_dict"})


@dataclass(slots=True)
class _Step:
    """What the layers of one forward pass share.  new_slots: (tokens,); tiles: by window, planned when a layer first asks."""

    rows: list[Row]
    new_slots: torch.Tensor
    tiles: dict[int | None, list[Tile]] = field(default_factory=dict)


class Decoder:
    """A `lmc.runtime.batch.Model`.  `allocate` comes before the first `forward`; not for two threads at once."""

    __slots__ = ("config", "dtype", "vocab_size", "max_positions", "network", "pool_k", "pool_v", "step", "__weakref__")
    deterministic = False

    def __init__(self, config: DecoderConfig, network: Any, dtype: torch.dtype):
        self.config, self.network, self.dtype = config, network, dtype
        self.vocab_size, self.max_positions = config.vocab_size, config.max_positions
        self.pool_k = self.pool_v = self.step = None
        network.set_attn_implementation(_register(self))

    def slot_bytes(self) -> int:
        """Bytes of keys and values of one token over all layers."""
        return self.config.slot_bytes(self.dtype.itemsize)

    def allocate(self, slots: int) -> None:
        """Make the pool, once: keys and values of `slots` tokens in each layer."""
        assert self.pool_k is None, "the pool is there already"
        shape = (slots, self.config.kv_heads, self.config.head_dim)
        self.pool_k = [torch.zeros(shape, dtype=self.dtype) for _ in range(self.config.layers)]
        self.pool_v = [torch.zeros(shape, dtype=self.dtype) for _ in range(self.config.layers)]

    @torch.inference_mode()
    def forward(self, rows: list[Row]) -> torch.Tensor:
        """Compute the rows' tokens; logits (outputs, vocab) float32 of the wanted ones, in the order of the rows."""
        assert self.pool_k is not None, "allocate comes first"
        ids = np.concatenate([np.asarray(row.tokens, np.int64) for row in rows])
        positions = np.concatenate([np.arange(row.start, row.start + len(row.tokens)) for row in rows])
        slots = np.concatenate([np.asarray(row.slots[row.start :], np.int64) for row in rows])
        assert len(positions) == len(slots), "a row has one slot for each position"
        firsts = np.cumsum([0, *(len(row.tokens) for row in rows)])
        wanted = [int(first) + output for first, row in zip(firsts, rows) for output in row.outputs]
        self.step = _Step(rows, torch.from_numpy(slots))
        try:
            found = self.network(input_ids=torch.from_numpy(ids)[None], position_ids=torch.from_numpy(positions)[None],
                                 use_cache=False, logits_to_keep=torch.tensor(wanted, dtype=torch.int64))
        finally:
            self.step = None
        return found.logits[0].float()

    def attend(self, layer: int, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float, window: int | None) -> torch.Tensor:
        """Attention of one layer of the step in progress.  q: (heads, tokens, head_dim), k, v: (kv_heads, tokens, head_dim)

        Returns (tokens, heads, head_dim).
        """
        step, pool_k, pool_v = self.step, self.pool_k[layer], self.pool_v[layer]
        heads, tokens, head_dim = q.shape
        pool_k.index_copy_(0, step.new_slots, k.transpose(0, 1).to(self.dtype))
        pool_v.index_copy_(0, step.new_slots, v.transpose(0, 1).to(self.dtype))
        if window not in step.tiles:
            step.tiles[window] = plan_tiles(step.rows, group=heads // len(k), dtype=self.dtype, window=window,
                                            slot_bytes=self.slot_bytes() // self.config.layers)
        out = attend(q.transpose(0, 1).to(self.dtype), pool_k, pool_v, step.tiles[window], scale=scale)
        return out.view(tokens, heads, head_dim).to(q.dtype)


def load_decoder(folder: Path, config: DecoderConfig, dtype: torch.dtype, *, deterministic: bool = False) -> Decoder:
    """The model in `folder`.  Raises `LmcError` E0815 for tensors that do not fit, E0816 where deterministic bits are asked for."""
    from transformers import AutoModelForCausalLM
    from transformers.utils import logging

    if deterministic:
        raise LmcError(Diagnostic("E0816", f"{folder}: transformers computes {config.family} models, and its bits depend on the rows "
                                  "beside a row", None, help="run without the deterministic option"))
    # Its bars would be drawn across our own output.
    logging.disable_progress_bar()
    network, report = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype, local_files_only=True, use_safetensors=True,
                                                           output_loading_info=True)
    if faults := [f"the tensor `{name}` {what}" for key, what in
                  (("missing_keys", "is missing"), ("mismatched_keys", "has another shape"), ("unexpected_keys", "is not part of this model"))
                  for name in sorted(map(str, report[key]))]:
        help = "the weights do not fit config.json: fetch both from the same place"
        raise LmcError([Diagnostic("E0815", f"{folder}: {fault}", None, help=help) for fault in faults])
    return Decoder(config, network.eval(), dtype)


def _register(decoder: Decoder) -> str:
    """Puts a function for this model alone into the table of transformers, which must not keep the model alive; gives its name."""
    from transformers import AttentionInterface

    name, model = f"lmc_pool_{next(_NUMBERS)}", weakref.ref(decoder)

    def over_the_pool(module: Any, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, mask: torch.Tensor | None,
                      scaling: float | None = None, sliding_window: int | None = None, **options: Any) -> tuple[torch.Tensor, None]:
        # query: (1, heads, tokens, head_dim) -> (1, tokens, heads, head_dim)
        _refuse(mask, options)
        scale = query.shape[-1] ** -0.5 if scaling is None else scaling
        return model().attend(module.layer_idx, query[0], key[0], value[0], scale, sliding_window)[None], None

    AttentionInterface.register(name, over_the_pool)
    return name


def _refuse(mask: torch.Tensor | None, options: dict[str, Any]) -> None:
    """A model that asks for more than causal attention with a window is not computed wrongly."""
    asked = sorted(name for name, value in options.items() if value is not None and name not in _HARMLESS)
    if mask is not None:
        asked.append("a mask of its own")
    if asked:
        raise LmcError(Diagnostic("E0811", f"the model's attention needs {', '.join(asked)}, which is not supported", None))
