"""Which kernels compute a model: Triton's on a GPU, the native CPU step, or torch.

    choose_kernels("auto", config, cache)            a GPU where there is one, else native where it can be, else torch with the reason
    choose_kernels("native:avx2", config, cache)     the native step at one dispatch level, or an error
    choose_kernels("triton", config, cache)          Triton on a GPU, or an error
    choose_kernels("torch", config, cache)           torch

This file knows what they lack; building it is the business of `lmc.runtime.native`.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import torch

from lmc.diagnostics import Diagnostic, LmcError, Severity
from lmc.runtime.kernel_names import check_kernels
from lmc.runtime.model.config import ModelConfig
from lmc.runtime.model.decoder_config import DecoderConfig
from lmc.runtime.native.build import CannotBuild
from lmc.runtime.native.library import Library, load_library

#: The longest head that the native step has room for (`LONGEST_HEAD` in tokens.h).
_LONGEST_HEAD = 512


@dataclass(frozen=True, slots=True)
class Kernels:
    """gpu: Triton computes on a GPU; `library`: the native step, or None; `reason`: why torch computes, where that was not asked for."""

    library: Library | None = None
    level: str = ""
    threads: int = 1
    reason: str | None = None
    gpu: bool = False

    @property
    def name(self) -> str:
        """As people write it: "torch", "triton" or "native:amx"."""
        if self.gpu:
            return "triton"
        return f"native:{self.level}" if self.library is not None else "torch"


def choose_kernels(wanted: str, config: ModelConfig | DecoderConfig | None, cache: Path | None) -> Kernels:
    """`wanted`: "auto", "native", "native:LEVEL", "triton" or "torch"; config: of the model, None for any; cache: where the library
    is kept.  Raises `LmcError` E0822 where kernels are asked for that cannot run, E0851 for another word.
    """
    check_kernels(wanted)
    kind, _, level = wanted.partition(":")
    if kind == "torch":
        return Kernels()
    no_gpu = _no_gpu(config) if kind in ("auto", "triton") else ""
    if no_gpu is None:
        return Kernels(gpu=True)
    if kind == "triton":
        raise LmcError(Diagnostic("E0822", f"the Triton kernels cannot run: {no_gpu}", None,
                                  help="left out, `--kernels` takes what this machine has"))
    found = _native(level, config, cache)
    if found.library is None and kind == "native":
        raise LmcError(Diagnostic("E0822", f"the native kernels cannot run: {found.reason}", None,
                                  help="`lmc doctor` shows what is there; with `--kernels torch` the model runs more slowly"))
    return found


def fallback_warning(kernels: Kernels) -> Diagnostic | None:
    """What a user is told where torch computes and that was not asked for."""
    if kernels.reason is None:
        return None
    return Diagnostic("W182", f"torch computes the model: {kernels.reason}", None, severity=Severity.WARNING,
                      help="the native kernels are faster; `lmc doctor` shows what is there")


def missing_feature(config: ModelConfig | DecoderConfig) -> str | None:
    """What the model has and the native step lacks."""
    if isinstance(config, DecoderConfig):
        return f"it is a {config.family} model, which transformers computes"
    if config.head_dim > _LONGEST_HEAD:
        return f"the model's heads have {config.head_dim} numbers, the native step has room for {_LONGEST_HEAD}"
    return None


def missing_on_gpu(config: ModelConfig | DecoderConfig) -> str | None:
    """What the model has and the kernels for GPUs lack."""
    if isinstance(config, DecoderConfig):
        return f"it is a {config.family} model, which transformers computes"
    if config.window is not None:
        return f"its layers see only the last {config.window} tokens"
    return f"its layers have {config.experts} experts" if config.experts else None


def _no_gpu(config: ModelConfig | DecoderConfig | None) -> str | None:
    """Why the Triton kernels cannot run, or None."""
    if not torch.cuda.is_available():
        return "torch finds no GPU"
    if find_spec("triton") is None:
        return "the package triton is not installed"
    return missing_on_gpu(config) if config is not None else None


def _native(level: str, config: ModelConfig | DecoderConfig | None, cache: Path | None) -> Kernels:
    lacking = missing_feature(config) if config is not None else None
    if lacking is not None:
        return Kernels(reason=lacking)
    if cache is None:
        return Kernels(reason="no cache folder was given to keep the library in")
    try:
        library = load_library(cache)
    except CannotBuild as error:
        return Kernels(reason=str(error))
    levels = library.levels()
    if level and level not in levels:
        return Kernels(reason=f"this machine has no level `{level}`, only {', '.join(levels)}")
    return Kernels(library, level or levels[0], torch.get_num_threads())
