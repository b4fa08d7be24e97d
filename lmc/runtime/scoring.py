"""One scoring: log-probabilities of given tokens, each given all tokens before it.

The last token need not be computed: nothing is asked of what comes after it.
"""

from __future__ import annotations

import math

import numpy as np

from lmc.runtime.model.sampling import log_total
from lmc.runtime.request import Scored, ScoreRequest, Usage


class Scoring:
    """The state of one scoring; `take` the logits of the positions from `wanted` on, in any number of pieces."""

    __slots__ = ("request", "_logprobs")

    def __init__(self, request: ScoreRequest):
        self.request = request
        self._logprobs: list[float] = []

    @property
    def wanted(self) -> int:
        """The next position whose logits are needed."""
        return self.request.start - 1 + len(self._logprobs)

    @property
    def finished(self) -> bool:
        return self.wanted == len(self.request.ids) - 1

    def take(self, logits: np.ndarray) -> bool:
        """logits: (positions, vocab) float32.  False, and nothing taken, where they are not finite."""
        logprobs = []
        for row, target in zip(logits, self.request.ids[self.wanted + 1 :]):
            # NaN counts as the greatest, so the peak shows it.
            if not math.isfinite(row[row.argmax()]):
                return False
            logprobs.append(float(row[target]) - log_total(row))
        self._logprobs += logprobs
        return True

    def result(self, cached: int, computed: int, passes: int) -> Scored:
        """The outcome, once `finished`.  Arguments as in `Usage`."""
        return Scored(tuple(self._logprobs), Usage(cached, computed, 0, passes))
