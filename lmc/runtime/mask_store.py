"""Masks on disk, so that the next start need not make them again.

    <cache>/masks/4be1…-07c9….masks          the tokenizer's digest, the automaton's digest

    magic    digest of the rest    vocabulary, masks, states     state -> mask     tokens per mask     the masks
                                                                                   few: ids, many: a bit per token

A file is written beside its place and moved there, so it is never seen half.  What is read is checked; a file that is broken or of
another version is as good as none.  A cache that cannot be written costs time at the next start and nothing else.  This file does
not know how masks are made.
"""

from __future__ import annotations

import hashlib
import os
import struct
import tempfile
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path

import numpy as np

from lmc.regex.dfa import START, ByteDfa
from lmc.runtime.token_index import TokenIndex

_MAGIC = b"lmc masks 1\n"
_DIGEST = 16
# Vocabulary, number of masks, number of states.
_SIZES = struct.Struct("<III")
#: Bytes that all files may have together; beyond, those not used for longest go.
MOST_BYTES = 256 << 20


class MaskStore:
    """The masks of one vocabulary's constraints under `folder`, which is made when first written to."""

    def __init__(self, folder: Path, index: TokenIndex):
        self._folder, self._index = folder, index

    @cached_property
    def _vocabulary(self) -> str:
        return self._index.digest()

    def load(self, dfa: ByteDfa) -> dict[int, np.ndarray]:
        """Masks by state: sorted int64 ids; equal ones are one array.  Empty where there is no file that can be used."""
        path = self._path(dfa)
        try:
            masks = unpack(path.read_bytes(), self._index.size, dfa.states)
            os.utime(path)  # used now
        except (OSError, BadMasks):
            return {}
        return masks

    def save(self, dfa: ByteDfa, masks: Mapping[int, np.ndarray]) -> None:
        """Replace the automaton's file."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=self._folder, suffix=".part")
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(pack(masks, self._index.size))
                os.replace(name, self._path(dfa))
            except OSError:
                os.unlink(name)
                raise
            self._make_room()
        except OSError:
            return

    def _path(self, dfa: ByteDfa) -> Path:
        return self._folder / f"{self._vocabulary}-{dfa.digest()}.masks"

    def _make_room(self) -> None:
        """Parts that a killed process left count too, and go in their turn."""
        with os.scandir(self._folder) as entries:
            found = [(entry.stat().st_mtime, entry.stat().st_size, entry.path) for entry in entries]
        total = 0
        for _, size, path in sorted(found, reverse=True):
            total += size
            if total > MOST_BYTES:
                os.unlink(path)


class BadMasks(ValueError):
    """The data are no masks of this vocabulary and automaton."""


def pack(masks: Mapping[int, np.ndarray], size: int) -> bytes:
    """As a file holds them.  masks: sorted ids by state; size: of the vocabulary."""
    kept = {id(mask): mask for mask in masks.values()}
    number = {key: place for place, key in enumerate(kept)}
    rows = np.array([(state, number[id(mask)]) for state, mask in sorted(masks.items())], "<i4").reshape(-1, 2)
    parts = [_SIZES.pack(size, len(kept), len(rows)), rows.tobytes(), np.array([len(m) for m in kept.values()], "<i4").tobytes()]
    for mask in kept.values():
        if _as_ids(len(mask), size):
            parts.append(mask.astype("<i4").tobytes())
        else:
            bits = np.zeros(size, bool)
            bits[mask] = True
            parts.append(np.packbits(bits).tobytes())
    body = b"".join(parts)
    return _MAGIC + hashlib.blake2b(body, digest_size=_DIGEST).digest() + body


def unpack(data: bytes, size: int, states: int) -> dict[int, np.ndarray]:
    """The inverse of `pack`.  Raises `BadMasks` for what is no such file, or of another vocabulary or automaton."""
    head = len(_MAGIC) + _DIGEST
    body = data[head:]
    if data[:head] != _MAGIC + hashlib.blake2b(body, digest_size=_DIGEST).digest() or len(body) < _SIZES.size:
        raise BadMasks
    vocabulary, count, rows = _SIZES.unpack_from(body)
    if vocabulary != size or len(body) < _SIZES.size + 8 * rows + 4 * count:
        raise BadMasks
    table = np.frombuffer(body, "<i4", 2 * rows, _SIZES.size).reshape(rows, 2)
    lengths = np.frombuffer(body, "<i4", count, _SIZES.size + 8 * rows)
    masks, place = [], _SIZES.size + 8 * rows + 4 * count
    for length in lengths.tolist():
        mask, place = _read(body, place, length, size)
        masks.append(mask)
    if place != len(body) or rows and not (START <= table[:, 0].min() and table[:, 0].max() < states):
        raise BadMasks
    if rows and not (0 <= table[:, 1].min() and table[:, 1].max() < count):
        raise BadMasks
    return {state: masks[number] for state, number in table.tolist()}


def _read(body: bytes, place: int, length: int, size: int) -> tuple[np.ndarray, int]:
    """The mask of `length` tokens that begins at `place`, and where the next one does."""
    end = place + (4 * length if _as_ids(length, size) else (size + 7) // 8)
    if not 0 <= length <= size or end > len(body):
        raise BadMasks
    if _as_ids(length, size):
        ids = np.frombuffer(body, "<i4", length, place).astype(np.int64)
    else:
        ids = np.flatnonzero(np.unpackbits(np.frombuffer(body, np.uint8, end - place, place), count=size)).astype(np.int64)
    if len(ids) != length or length and not (ids[0] >= 0 and ids[-1] < size and (np.diff(ids) > 0).all()):
        raise BadMasks
    return ids, end


def _as_ids(length: int, size: int) -> bool:
    """Whether four bytes for each token are less than a bit for each of the vocabulary."""
    return 32 * length < size
