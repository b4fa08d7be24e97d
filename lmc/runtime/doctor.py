"""What is there to run a model on this machine: found out as a run would, without fetching or reading weights.

    for line in examine(model="default", cache=cache, dtype="float32", kernels="auto").lines(): print(line)

    lmc        0.1.0, Python 3.11.2
    torch      2.13.0, 2 threads
    cache      /home/ada/.cache/lmc
    model      default: /home/ada/.cache/lmc/models/smollm2-135m-instruct
    dtype      float32
    kernels    native:amx of amx, avx512_bf16, avx512, avx2, scalar; 2 threads
    …

What is wrong is collected, not raised: the point is to see it beside the rest.
"""

from __future__ import annotations

import platform
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import torch

from lmc.diagnostics import Diagnostic, LmcError
from lmc.runtime.kernel_names import check_kernels
from lmc.runtime.memory import default_slots
from lmc.runtime.model.config import ModelConfig
from lmc.runtime.model.decoder_config import DecoderConfig
from lmc.runtime.model.kernels import Kernels, choose_kernels, fallback_warning
from lmc.runtime.model.load import DTYPES, check_model
from lmc.runtime.model.registry import present_model
from lmc.runtime.native.build import CannotBuild, compiler_version, find_compiler


@dataclass(frozen=True, slots=True)
class Examined:
    """facts: what there is, by name; faults: what a run would fail with; warnings: what it would say."""

    facts: tuple[tuple[str, str], ...]
    faults: tuple[Diagnostic, ...]
    warnings: tuple[Diagnostic, ...]

    def lines(self) -> list[str]:
        """For people, one fact a line."""
        return [f"{name:<10} {fact}" for name, fact in self.facts]


def examine(*, model: str, cache: Path, dtype: str, kernels: str, pool_tokens: int | None = None) -> Examined:
    """Arguments as those of `open_session`.  The native library is built if need be.  Raises `UsageError` for a wrong argument."""
    check_kernels(kernels)
    cache = cache.expanduser()
    facts = [("lmc", f"{version('lmc')}, Python {platform.python_version()}"),
             ("torch", f"{torch.__version__}, {_count(torch.get_num_threads(), 'thread')}"), ("cache", str(cache))]
    faults: list[Diagnostic] = []
    config = None
    try:
        folder = present_model(model, cache)
        facts.append(("model", f"{model}: {folder or 'not fetched; lmc models pull ' + model}"))
        config = check_model(folder, dtype=dtype) if folder is not None else None
    except LmcError as error:
        facts.append(("model", f"{model}: cannot be used"))
        faults += error.diagnostics
    facts.append(("dtype", dtype))
    chosen = Kernels()
    try:
        chosen = choose_kernels(kernels, config, cache)
        facts.append(("kernels", _kernels_text(chosen)))
    except LmcError as error:
        facts.append(("kernels", "none"))
        faults += error.diagnostics
    facts += [("library", str(chosen.library.path) if chosen.library is not None else "none"), ("compiler", _compiler_text())]
    if config is not None:
        facts.append(("pool", _pool_text(config, dtype, pool_tokens)))
    warning = fallback_warning(chosen)
    return Examined(tuple(facts), tuple(faults), () if warning is None else (warning,))


def _kernels_text(chosen: Kernels) -> str:
    if chosen.library is None:
        return "torch" if chosen.reason is None else f"torch, because {chosen.reason}"
    return f"{chosen.name} of {', '.join(chosen.library.levels())}; {_count(chosen.threads, 'thread')}"


def _compiler_text() -> str:
    compiler = find_compiler()
    if compiler is None:
        return "none"
    try:
        return f"{compiler}: {compiler_version(compiler)}"
    except CannotBuild as error:
        return f"{compiler}: {error}"


def _pool_text(config: ModelConfig | DecoderConfig, dtype: str, pool_tokens: int | None) -> str:
    slot_bytes = config.slot_bytes(DTYPES[dtype].itemsize)
    slots = pool_tokens or default_slots(slot_bytes, config.max_positions)
    return f"{slots:,} tokens, {slots * slot_bytes / 2**20:,.0f} MiB; context {min(slots, config.max_positions):,}"


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
