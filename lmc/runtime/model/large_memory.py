"""Memory that is read from end to end at every step: weights, keys and values, logits.

    memory = LargeMemory()
    weight = memory.copy(weight)           # the same numbers, in huge pages
    pool = zeros((30, 3, 8192, 64), torch.bfloat16)

A processor looks up every page that it reads, and a step reads hundreds of megabytes: with pages of 2 MiB instead of 4 KiB the same
memory was read 1.9 times as fast (in a virtual machine, where look-ups are dear).  Linux gives such pages where a program asks for
them; elsewhere this is plain memory.  A tensor keeps the memory alive that it lies in.
"""

from __future__ import annotations

import mmap
import sys
from contextlib import suppress
from math import prod

import torch

_HUGE = 2 << 20
#: Tensors are gathered in chunks of at least this size, so that few of their pages are half used.
_CHUNK = 32 << 20
# A line of the cache: vectors that begin on one are read in one piece.
_LINE = 64


def zeros(shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    """As `torch.zeros`.  Memory is taken when it is first written."""
    size = prod(shape) * dtype.itemsize
    if size < _HUGE:
        return torch.zeros(shape, dtype=dtype)
    return _lying_in(_mapped(size), 0, shape, dtype)


class LargeMemory:
    """Tensors side by side in large chunks."""

    __slots__ = ("_chunk", "_used")

    def __init__(self) -> None:
        self._chunk: mmap.mmap | None = None
        self._used = 0

    def copy(self, tensor: torch.Tensor) -> torch.Tensor:
        """The same numbers, row by row, in this memory."""
        size = -(-tensor.nbytes // _LINE) * _LINE
        if self._chunk is None or self._used + size > len(self._chunk) - _HUGE:
            self._chunk, self._used = _mapped(max(size, _CHUNK)), 0
        placed = _lying_in(self._chunk, self._used, tuple(tensor.shape), tensor.dtype)
        self._used += size
        return placed.copy_(tensor)


class Recycled:
    """Tensors that are large and short-lived: the memory of one is used again when nothing refers to it any more.

    What the system gives and takes at each step costs a fault for each page: a millisecond or two for the logits of 32 rows."""

    __slots__ = ("_buffers",)

    def __init__(self) -> None:
        self._buffers: list[mmap.mmap] = []

    def empty(self, rows: int, columns: int) -> torch.Tensor:
        """(rows, columns) float32, with anything in it."""
        size = rows * columns * 4
        if size < _HUGE:
            return torch.empty(rows, columns)
        for buffer in self._buffers:
            # Every tensor over a buffer holds a reference to it; the others are the list, `buffer` and the argument.
            if sys.getrefcount(buffer) == 3 and len(buffer) >= size + _HUGE:
                return _lying_in(buffer, 0, (rows, columns), torch.float32)
        # One for the step in hand and one for those whose logits somebody still reads.
        self._buffers = [*self._buffers[-1:], _mapped(size)]
        return _lying_in(self._buffers[-1], 0, (rows, columns), torch.float32)


def _mapped(size: int) -> mmap.mmap:
    """At least `size` bytes from the first border of a huge page on."""
    if not hasattr(mmap, "MADV_HUGEPAGE"):
        return mmap.mmap(-1, size + _HUGE)
    # Private: shared memory, the default, gets no huge pages.
    chunk = mmap.mmap(-1, size + _HUGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    with suppress(OSError):  # a kernel without huge pages: plain memory
        chunk.madvise(mmap.MADV_HUGEPAGE)
    return chunk


def _lying_in(chunk: mmap.mmap, begin: int, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    base = torch.frombuffer(chunk, dtype=torch.uint8, count=1).data_ptr()
    return torch.frombuffer(chunk, dtype=dtype, count=prod(shape), offset=-base % _HUGE + begin).view(shape)
