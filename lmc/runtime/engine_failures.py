"""How a request fails in the engine: what is refused, what was given up, and what of a fault the user is told.

Each is a `RunError` without a place; who asked adds it.
"""

from __future__ import annotations

import traceback
from pathlib import Path

from lmc.diagnostics import Diagnostic, LmcError, RunError
from lmc.runtime.constraint import too_few_tokens
from lmc.runtime.request import GenerateRequest


def cancelled() -> RunError:
    """The error of a request that was given up."""
    return RunError(Diagnostic("E0839", "the request was cancelled", None), kind="cancelled")


def broken(error: BaseException) -> RunError:
    """The error of a request that something wrong inside `lmc` ended."""
    message = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    frames = traceback.extract_tb(error.__traceback__)
    notes = (f"raised in {Path(frames[-1].filename).name}:{frames[-1].lineno}",) if frames else ()
    return RunError(Diagnostic("E0843", message, None, help="please report this with the program that shows it", notes=notes),
                    kind="internal")


def check_room(tokens: int, spare: int, positions: int, slots: int) -> None:
    more = " and one to generate" if spare else ""
    if tokens + spare > positions:
        message = f"the prompt has {tokens} tokens{more}, the model's context {positions}"
        raise RunError(Diagnostic("E0837", message, None, help="shorten the prompt, or take a model with a longer context"),
                       kind="context_length")
    if tokens + spare > slots:
        message = f"the prompt needs {tokens} slots for keys and values{more}, the pool has {slots}"
        raise RunError(Diagnostic("E0819", message, None, help="give the pool more memory, or shorten the prompt"), kind="pool")


def check_tokens(request: GenerateRequest, most: int) -> None:
    """Refuse a typed value whose shortest form does not fit.  While bytes are healed the first token may spell some of the value too,
    so one token less may do."""
    if request.constraint is None:
        return
    healed = 1 if request.heal else 0
    fewest = request.constraint.min_tokens(enough=most + healed) - healed
    if fewest > most:
        raise RunError(too_few_tokens(fewest, most), kind="truncated")


def as_run_error(error: Exception) -> RunError:
    if isinstance(error, RunError):
        return error
    if isinstance(error, LmcError):
        return RunError(error.diagnostics, error.sources, kind="invalid")
    return broken(error)


def model_failed(error: Exception) -> RunError:
    if isinstance(error, AssertionError):
        return broken(error)
    return RunError(Diagnostic("E0820", f"the forward pass failed with {type(error).__name__}: {error}", None), kind="model")


def not_finite() -> RunError:
    return RunError(Diagnostic("E0817", "the model's logits are not finite", None,
                               help="check the model files; load the model in float32"), kind="model")
