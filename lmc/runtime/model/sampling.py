"""How the next token is drawn from a row of logits.

    logits -> log-probability record (of the unmodified logits)
           -> repetition penalty over prompt and generated, frequency and presence penalty over generated, logit bias
           -> mask (`allowed`, `banned`)
           -> temperature 0: the best, lowest id on a tie
              otherwise: temperature, top_k, top_p, min_p, each on what the one before left
           -> one uniform number u = philox(seed, k); the first survivor, in ascending order of ids, whose summed probability exceeds u

Everything after the mask is float64 over the survivors alone.  The best token survives every filter.  This file does not know
constraints, requests or the model; what may be drawn is handed to it.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
import torch

from lmc.diagnostics import Diagnostic, RunError
from lmc.runtime.model.philox import uniform
from lmc.runtime.request import Sampling, TokenLogprob

_NONE = np.empty(0, np.int64)
# Of a penalty or bias: far above any logit, and no sum of several overflows.
_LARGEST = 1e9
_NEVER: Mapping[int, int] = {}


class Choice(NamedTuple):
    """All that the draw of one row depends on, beside its logits.

    allowed: sorted ids that the constraint leaves, or None for all; banned: ids that may not come (before their time)
    counts: how often each id was generated so far; prompt_ids: ids of the prompt, read by `repetition_penalty` only
    k: index of the drawn token in its generation; logprobs: alternatives to record, 0 records nothing
    """

    sampling: Sampling
    allowed: np.ndarray | None = None
    banned: np.ndarray = _NONE
    counts: Mapping[int, int] = _NEVER
    prompt_ids: Sequence[int] = ()
    k: int = 0
    logprobs: int = 0


def sampling_fault(sampling: Sampling, vocab_size: int) -> str | None:
    """What is wrong with the options, in the user's words, or None.  `top_k` 0 and -1 both mean off."""
    checks = (
        ("temperature", 0 <= sampling.temperature < math.inf, "a number of at least 0"),
        ("top_p", 0 <= sampling.top_p <= 1, "a number from 0 to 1"),
        ("top_k", sampling.top_k >= -1, "a whole number of at least -1"),
        ("min_p", 0 <= sampling.min_p <= 1, "a number from 0 to 1"),
        ("seed", 0 <= sampling.seed < 2**64, "an unsigned 64-bit number"),
        ("frequency_penalty", abs(sampling.frequency_penalty) <= _LARGEST, f"a number of at most {_LARGEST:g}"),
        ("presence_penalty", abs(sampling.presence_penalty) <= _LARGEST, f"a number of at most {_LARGEST:g}"),
        ("repetition_penalty", 1 / _LARGEST <= sampling.repetition_penalty <= _LARGEST, f"a number above 0, at most {_LARGEST:g}"),
    )
    for name, fits, expected in checks:
        if not fits:
            return f"`{name}` is {getattr(sampling, name)!r}, expected {expected}"
    for token, bias in sampling.logit_bias:
        if not 0 <= token < vocab_size:
            return f"`logit_bias` names the token {token}, expected 0 to {vocab_size - 1}"
        if not (abs(bias) <= _LARGEST or bias == -math.inf):
            return f"`logit_bias` of the token {token} is {bias!r}, expected -inf or a number of at most {_LARGEST:g}"
    return None


def draw(logits: torch.Tensor, sampling: Sampling, *, allowed: np.ndarray | None = None, banned: np.ndarray = _NONE,
         counts: Mapping[int, int] = _NEVER, prompt_ids: Sequence[int] = (), k: int = 0,
         logprobs: int = 0) -> tuple[int, TokenLogprob | None]:
    """The next token of one row and its log-probability record (None where `logprobs` is 0).  Arguments as in `Choice`.

    logits: (vocab,) float32
    Raises `RunError` of kind "model": E0817 where the logits are not finite, E0818 where nothing may be drawn.
    """
    row = logits.numpy()
    return draw_choice(row, int(row.argmax()), Choice(sampling, allowed, banned, counts, prompt_ids, k, logprobs))


def draw_choice(row: np.ndarray, best: int, choice: Choice) -> tuple[int, TokenLogprob | None]:
    """As `draw`.  row: (vocab,) float32; best: the place of its greatest, which is cheapest to find for all rows of a step at once"""
    # The best of all is the best of what is left if it is left; NaN counts as the greatest, so it shows here too.
    _check_peak(row[best])
    token = best if _takes_best(best, choice) else _pick(row, choice)
    return token, record(row, token, choice.logprobs) if choice.logprobs else None


def draw_rows(logits: torch.Tensor, choices: Sequence[Choice]) -> list[tuple[int, TokenLogprob | None] | RunError]:
    """`draw` for each row; a row that cannot be drawn gives its error and does not disturb the others.

    logits: (rows, vocab) float32
    """
    table = logits.numpy()
    results: list[tuple[int, TokenLogprob | None] | RunError] = []
    for row, best, choice in zip(table, best_of(table), choices, strict=True):
        try:
            results.append(draw_choice(row, best, choice))
        except RunError as error:
            results.append(error)
    return results


def best_of(table: np.ndarray) -> list[int]:
    """The place of the greatest of each row.  table: (rows, vocab) float32"""
    return table.argmax(axis=1).tolist() if len(table) else []


def record(row: np.ndarray, token: int, alternatives: int) -> TokenLogprob:
    """Natural log-probabilities of `token` and of the best `alternatives` tokens.  row: (vocab,) float32, unmodified."""
    total = log_total(row)
    best = _best_first(row, min(alternatives, len(row)))
    return TokenLogprob(token, float(row[token]) - total, tuple((int(i), float(row[i]) - total) for i in best))


def log_total(row: np.ndarray) -> float:
    """log(sum(exp(row))), in float64.  row: (vocab,)"""
    peak = float(row.max())
    return peak + math.log(float(np.exp(row.astype(np.float64) - peak).sum()))


def _check_peak(peak: np.floating) -> None:
    # argmax takes NaN for the greatest, so the peak tells: NaN or +inf anywhere, or -inf everywhere.
    if not math.isfinite(peak):
        message = f"the model's logits are not finite ({peak}, in float32): its weights or its computation overflow"
        raise RunError(Diagnostic("E0817", message, None, help="check the model files; load the model in float32"), kind="model")


def _takes_best(token: int, choice: Choice) -> bool:
    """Whether the draw is `token`, the best of the unmodified row (the usual greedy row, found for all rows in one call)."""
    if choice.sampling.temperature > 0 or _modifies(choice):
        return False
    if choice.allowed is not None:
        place = int(np.searchsorted(choice.allowed, token))
        if place == len(choice.allowed) or choice.allowed[place] != token:
            return False
    return not np.count_nonzero(choice.banned == token)


def _modifies(choice: Choice) -> bool:
    sampling = choice.sampling
    counted = bool(choice.counts) and (sampling.frequency_penalty != 0 or sampling.presence_penalty != 0)
    return counted or sampling.repetition_penalty != 1 or bool(sampling.logit_bias)


def _pick(row: np.ndarray, choice: Choice) -> int:
    if _modifies(choice):
        row = _modified(row, choice)
    sampling = choice.sampling
    if choice.allowed is None:
        if sampling.temperature == 0:
            return _best_but(row, choice.banned)
        weights, number = _all_weights(row, choice), uniform(sampling.seed, choice.k)
        if not _filters(sampling):
            return drawn_place(weights, number)
        ids, weights = _filtered(np.arange(len(row)), weights, sampling)
        return int(ids[drawn_place(weights, number)])
    ids, values = _survivors(row, choice)
    if sampling.temperature == 0 or len(ids) == 1:
        return int(ids[values.argmax()])
    ids, weights = _filtered(ids, weights_of(values.astype(np.float64), sampling.temperature), sampling)
    return int(ids[drawn_place(weights, uniform(sampling.seed, choice.k))])


def _all_weights(row: np.ndarray, choice: Choice) -> np.ndarray:
    """Probabilities up to a factor where no constraint leaves anything out, 0 for what is banned; the best is 1.  In memory that is used
    again: to get and touch the vocabulary's numbers anew takes longer than to compute them."""
    weights = _scratch(len(row))
    weights[:] = row
    weights[choice.banned] = -np.inf
    return weights_of(weights, choice.sampling.temperature)


def weights_of(values: np.ndarray, temperature: float) -> np.ndarray:
    """What becomes of logits, in their place: probabilities up to a factor, the best is 1.  values: (n,) float64"""
    peak = float(values.max())
    if peak == -np.inf:
        raise _nothing_left()
    # Torch's exponential takes 40 % of the time of numpy's where there is no AVX-512, all threads where there are many tokens, and
    # is, too, a function of the number alone: a test compares bits at all places.
    tensor = torch.from_numpy(values)
    # Scaled before the exponential and relative to the best: the best is exactly 0 however small the temperature is.
    return tensor.sub_(peak).div_(temperature).exp_().numpy()


# Weights that are summed at once before they are gone through one by one.
_BLOCK = 256


def drawn_place(weights: np.ndarray, number: float) -> int:
    """The first place whose weight, added to all before it, exceeds the share `number` of the whole: first the block of places, then the
    place in it, because sums of blocks are much faster than as many running sums."""
    sums = np.cumsum(np.add.reduceat(weights, np.arange(0, len(weights), _BLOCK)))
    goal = number * sums[-1]
    block = int(np.searchsorted(sums, goal, side="right"))
    if block < len(sums):
        first = block * _BLOCK
        running = np.cumsum(weights[first : first + _BLOCK])
        place = int(np.searchsorted(running, goal - (sums[block - 1] if block else 0.0), side="right"))
        if place < len(running):
            return first + place
        # Rounding carried the number over the end of its block.
        weights = weights[: first + _BLOCK]
    return int(np.flatnonzero(weights)[-1])


_kept = threading.local()


def _scratch(size: int) -> np.ndarray:
    """float64 of this thread, of the last size that was asked for."""
    array = getattr(_kept, "array", None)
    if array is None or len(array) != size:
        array = _kept.array = np.empty(size)
    return array


def _filters(sampling: Sampling) -> bool:
    return sampling.top_k > 0 or sampling.top_p < 1 or sampling.min_p > 0


def _best_but(row: np.ndarray, banned: np.ndarray) -> int:
    """The best of a row without those that may not come; of equals the lowest, as `argmax` takes the first."""
    row = row.copy()
    row[banned] = -np.inf
    best = int(row.argmax())
    if row[best] == -np.inf:
        raise _nothing_left()
    return best


def _modified(row: np.ndarray, choice: Choice) -> np.ndarray:
    # (vocab,) float32 -> (vocab,) float64
    sampling, row = choice.sampling, row.astype(np.float64)
    if sampling.repetition_penalty != 1:
        seen = np.unique(np.fromiter(chain(choice.prompt_ids, choice.counts), np.int64))
        values = row[seen]
        row[seen] = np.where(values > 0, values / sampling.repetition_penalty, values * sampling.repetition_penalty)
    if choice.counts:
        ids = np.fromiter(choice.counts, np.int64)
        times = np.fromiter(choice.counts.values(), np.float64)
        row[ids] -= sampling.frequency_penalty * times + sampling.presence_penalty * (times > 0)
    for token, bias in sampling.logit_bias:
        row[token] += bias
    return row


def _survivors(row: np.ndarray, choice: Choice) -> tuple[np.ndarray, np.ndarray]:
    """Ids that may be drawn, ascending, and their logits."""
    if choice.allowed is None:
        ids = np.arange(len(row)) if len(choice.banned) == 0 else np.delete(np.arange(len(row)), choice.banned)
    else:
        ids = choice.allowed if len(choice.banned) == 0 else choice.allowed[~np.isin(choice.allowed, choice.banned)]
    values = row[ids]
    possible = values > -np.inf
    if not possible.all():
        ids, values = ids[possible], values[possible]
    if len(ids) == 0:
        raise _nothing_left()
    return ids, values


def _nothing_left() -> RunError:
    message = "no token may come next: the constraint, the bans and the bias leave none"
    return RunError(Diagnostic("E0818", message, None, help="loosen `logit_bias` or the constraint"), kind="model")


def _filtered(ids: np.ndarray, weights: np.ndarray, sampling: Sampling) -> tuple[np.ndarray, np.ndarray]:
    """What top_k, top_p and min_p leave, ids still ascending.  weights: probabilities up to a factor, the best is 1."""
    if 0 < sampling.top_k < len(ids):
        keep = np.sort(_best_first(weights, sampling.top_k))
        ids, weights = ids[keep], weights[keep]
    if sampling.top_p < 1:
        keep = np.sort(_nucleus(weights, sampling.top_p))
        ids, weights = ids[keep], weights[keep]
    if sampling.min_p > 0:
        keep = weights >= sampling.min_p
        ids, weights = ids[keep], weights[keep]
    return ids, weights


# Sorting a vocabulary takes milliseconds; the nucleus nearly always lies in its best few.
_NUCLEUS_TRIES = (64, 1024)


def _nucleus(weights: np.ndarray, top_p: float) -> np.ndarray:
    """Places of the fewest weights, best first, that hold `top_p` of the whole; at least one."""
    goal = top_p * float(weights.sum())
    for count in (*_NUCLEUS_TRIES, len(weights)):
        places = _best_first(weights, min(count, len(weights)))
        sums = np.cumsum(weights[places])
        if len(sums) == len(weights) or sums[-1] >= goal:
            break
    return places[: int(np.searchsorted(sums, goal, side="left")) + 1]


def _best_first(values: np.ndarray, count: int) -> np.ndarray:
    """Places of the `count` greatest values, greatest first, the lower place on a tie."""
    if count == 0:
        return _NONE
    bound = np.partition(values, len(values) - count)[len(values) - count]
    above = np.flatnonzero(values > bound)
    places = np.concatenate((above, np.flatnonzero(values == bound)[: count - len(above)]))
    return places[np.lexsort((places, -values[places]))]
