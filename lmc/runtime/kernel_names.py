"""The words that say what computes a model: `auto`, `native`, `native:LEVEL`, `triton`, `torch`.

This file knows the words alone, and imports nothing heavy; `lmc.runtime.model.kernels` knows what they mean on this machine.
"""

from __future__ import annotations

from lmc.diagnostics import Diagnostic, UsageError

#: Dispatch levels of the native step, on all machines, the best of each first.
LEVELS = ("amx", "avx512_bf16", "avx512", "avx2", "neon", "scalar")


def check_kernels(kernels: str) -> None:
    """Raises `UsageError` for another word."""
    kind, colon, level = kernels.partition(":")
    if kind not in ("auto", "native", "triton", "torch") or colon and kind != "native":
        message = f"`kernels` is {kernels!r}, expected \"auto\", \"native\", \"native:LEVEL\", \"triton\" or \"torch\""
        raise UsageError(Diagnostic("E0851", message, None, help="left out, the fastest that this machine has run"))
    if colon and level not in LEVELS:
        message = f"`kernels` is {kernels!r}, and the native kernels have no level {level!r}"
        raise UsageError(Diagnostic("E0851", message, None, help=f"the levels are {', '.join(LEVELS)}"))
