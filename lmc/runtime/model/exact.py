"""Does deterministic mode keep its promise on this machine?  Asked of the model itself, when it is loaded.

    one row of 100 tokens, alone        ==, bit for bit,        the same tokens in four chunks, beside other rows

Whether torch's kernels give a row the same bits in any company depends on the processor, the build and the number of threads, so it is
tried and not assumed.  One layer with the model's own weights shows it; this file does not know what a layer does.
"""

from __future__ import annotations

from dataclasses import replace

import torch

from lmc.diagnostics import Diagnostic, LmcError
from lmc.runtime.batch import Row
from lmc.runtime.model.llama import Llama

_TOKENS = 100
# Edges at and beside multiples of the attention's tile; the first chunk is one token beside others, the last one token alone.
_CUTS = (0, 1, 18, _TOKENS - 1, _TOKENS)
_WANTED = (0, 1, 17, 18, 64, 98, 99)


def check_exact(model: Llama) -> None:
    """Raises `LmcError` E0816 if a row's logits depend on its chunks or its neighbours."""
    first = Llama(replace(model.config, layers=1, max_positions=max(_TOKENS, model.max_positions)), model.embedding, model.layers[:1],
                  model.final_norm, model.head, deterministic=True)
    first.allocate(3 * _TOKENS)
    tokens = [7919 * i % model.vocab_size for i in range(_TOKENS)]
    alone = first.forward([Row(tokens, 0, list(range(_TOKENS)), list(_WANTED))])
    slots = list(range(2 * _TOKENS - 1, _TOKENS - 1, -1))
    parts = []
    for begin, end in zip(_CUTS, _CUTS[1:]):
        wanted = [place - begin for place in _WANTED if begin <= place < end]
        row = Row(tokens[begin:end], begin, slots[:end], wanted)
        parts.append(first.forward([row] if end == _TOKENS else [_neighbour(model, 5), row, _neighbour(model, 37)]))
    if not torch.equal(torch.cat(parts), alone):
        raise LmcError(Diagnostic(
            "E0816", f"on this machine a row's {str(model.dtype).removeprefix('torch.')} bits depend on the rows beside it", None,
            help="run with one thread (OMP_NUM_THREADS=1), or without the deterministic option"))


def _neighbour(model: Llama, length: int) -> Row:
    """A row whose logits nobody wants."""
    tokens = [104729 * (i + length) % model.vocab_size for i in range(length)]
    first = 2 * _TOKENS + length
    return Row(tokens, 0, list(range(first, first + length)), [])
