"""The native library in Python: its structures and functions by ctypes, and the levels that this machine can run.

    library = load_library(cache)
    library.levels()                 # ("amx", "avx512_bf16", "avx512", "avx2", "scalar"), the best first

Field by field the same as native.h; `LMC_ABI` there and `_ABI` here are raised together.  This file knows no models.
"""

from __future__ import annotations

import ctypes
from ctypes import POINTER, Structure, c_char_p, c_float, c_int, c_int32, c_int64, c_void_p
from pathlib import Path

from lmc.runtime.native.build import CannotBuild, library_path

_ABI = 2
DONE, CANCELLED, NO_MEMORY = 0, 1, 2


class Matrix(Structure):
    """`lmc_matrix`"""

    _fields_ = [("packed", c_void_p), ("bias", c_void_p), ("outputs", c_int64), ("blocks", c_int64), ("words", c_int64)]


class Expert(Structure):
    """`lmc_expert`"""

    _fields_ = [("gate_up", Matrix), ("down", Matrix)]


class Layer(Structure):
    """`lmc_layer`"""

    _fields_ = [("attention_norm", c_void_p), ("mlp_norm", c_void_p), ("query_norm", c_void_p), ("key_norm", c_void_p),
                ("qkv", Matrix), ("output", Matrix), ("gate_up", Matrix), ("down", Matrix), ("window", c_int64),
                ("router", Matrix), ("experts", POINTER(Expert)), ("expert_count", c_int64), ("chosen", c_int64)]


class Model(Structure):
    """`lmc_model`"""

    _fields_ = [("bf16", c_int64), ("layers", c_int64), ("hidden", c_int64), ("heads", c_int64), ("kv_heads", c_int64),
                ("head_dim", c_int64), ("slots", c_int64), ("norm_eps", c_float), ("scale", c_float), ("embedding", c_void_p),
                ("layer", POINTER(Layer)), ("final_norm", c_void_p), ("head", Matrix), ("cosines", c_void_p), ("sines", c_void_p),
                ("keys", c_void_p), ("values", c_void_p)]


class Step(Structure):
    """`lmc_step`"""

    _fields_ = [("tokens", c_int64), ("rows", c_int64), ("outputs", c_int64), ("whole", c_int64), ("head_block_count", c_int64),
                ("ids", c_void_p), ("row_token", c_void_p), ("row_start", c_void_p), ("row_slot", c_void_p), ("slots", c_void_p),
                ("wanted", c_void_p), ("places", c_void_p), ("head_blocks", c_void_p), ("logits", c_void_p)]


class Library:
    """The functions of native.h."""

    __slots__ = ("path", "level_name", "level_works", "open", "close", "run", "cancel")

    def __init__(self, path: Path):
        self.path = path
        loaded = ctypes.CDLL(str(path))
        if loaded.lmc_abi() != _ABI:
            raise OSError(f"it has the interface {loaded.lmc_abi()}, expected {_ABI}")
        self.level_name = _function(loaded.lmc_level_name, c_char_p, c_int)
        self.level_works = _function(loaded.lmc_level_works, c_int, c_int)
        self.open = _function(loaded.lmc_open, c_void_p, POINTER(Model), c_int, c_int)
        self.close = _function(loaded.lmc_close, None, c_void_p)
        self.run = _function(loaded.lmc_run, c_int, c_void_p, POINTER(Step))
        self.cancel = _function(loaded.lmc_cancel, None, c_void_p)

    def levels(self) -> tuple[str, ...]:
        """The dispatch levels that this machine can run, the best first."""
        return tuple(name for number, name in self._all_levels() if self.level_works(number))

    def level_number(self, level: str) -> int:
        """What `open` wants for a level of `levels()`."""
        return next(number for number, name in self._all_levels() if name == level)

    def _all_levels(self) -> list[tuple[int, str]]:
        found: list[tuple[int, str]] = []
        while (name := self.level_name(len(found))) is not None:
            found.append((len(found), name.decode()))
        return found


def load_library(cache: Path) -> Library:
    """Build the library if need be, and load it.  Raises `CannotBuild` with the reason where that fails."""
    path = library_path(cache)
    try:
        return Library(path)
    except (OSError, AttributeError) as error:
        raise CannotBuild(f"{path} cannot be loaded: {error}") from None


def _function(function: ctypes._CFuncPtr, result: type | None, *arguments: type) -> ctypes._CFuncPtr:
    function.restype, function.argtypes = result, list(arguments)
    return function
