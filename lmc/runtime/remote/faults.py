"""What can go wrong with a request, and whether it may be sent again.

    connection refused      nothing was sent: again
    429, wait 2 s           not answered: again, after 2 s
    dropped, no answer      maybe answered, and so billed: only where that was allowed
    400                     the request is wrong: never
"""

from __future__ import annotations

from email.utils import parsedate_to_datetime
from enum import Enum
from time import time

from lmc.diagnostics import RunError
from lmc.runtime.failures import failure
from lmc.runtime.remote.settings import Patience

#: Statuses that say: not now.
_AGAIN = frozenset({408, 425, 429, 500, 502, 503, 504, 529})
#: The outcome where a connection was lost.
DROPPED = "dropped"
_NO_KEY = "the key comes from the environment: OPENAI_API_KEY, or the variable that `--key-env NAME` says"
_STATUS_HELPS = {"401": _NO_KEY, "403": _NO_KEY, "404": "is the model named as the server names it, and does the address end in `/v1`?"}
#: Seconds.
_LONGEST_BACK_OFF = 8.0


class Again(Enum):
    """`SAFE`: nothing was billed; `BILLED`: that is not sure; `NEVER`: it would not help."""

    SAFE = "safe"
    BILLED = "billed"
    NEVER = "never"


class Fault(Exception):
    """An attempt failed.

    outcome: in a few words, for the report; wait: what the server asks for, in seconds
    broken: whether an answer came that is none; raw: the text that came before; shown: whether some of it was handed on, which
    cannot be taken back
    """

    def __init__(self, message: str, *, outcome: str, again: Again, wait: float | None = None, broken: bool = False):
        super().__init__(message)
        self.message, self.outcome, self.again, self.wait, self.broken = message, outcome, again, wait, broken
        self.raw: str | None = None
        self.shown = False

    @property
    def billed(self) -> str:
        """For the report: an answer that came is billed, one that was lost may be."""
        return {Again.BILLED: "maybe", Again.SAFE: "no", Again.NEVER: "yes" if self.broken else "no"}[self.again]


def status_fault(status: int, told: str, wait: float | None) -> Fault:
    """Of an answer that is no success; `told` is what the server says of it."""
    again = Again.SAFE if status in _AGAIN else Again.NEVER
    message = f"the server answers with status {status}" + f": {told}" * bool(told)
    return Fault(message, outcome=str(status), again=again, wait=wait)


def asked_wait(headers: dict[str, str]) -> float | None:
    """The seconds that the server asks to wait: a number, or a date."""
    if "retry-after-ms" in headers:
        return _seconds(headers["retry-after-ms"], 1000)
    given = headers.get("retry-after", "")
    seconds = _seconds(given, 1)
    return seconds if seconds is not None else _until(given)


def next_wait(fault: Fault, patience: Patience, number: int, waited: float, jitter: float) -> float | None:
    """The seconds before the next attempt, None where there is none.

    number: of the attempt that failed, from 1; waited: all waits so far
    jitter: from 0 to 1, so that many do not come back at once
    """
    allowed = fault.again is Again.SAFE or fault.again is Again.BILLED and patience.repeat_billed
    if fault.shown or not allowed or number >= patience.attempts:
        return None
    back_off = min(_LONGEST_BACK_OFF, patience.first_wait * 2 ** (number - 1)) * (0.5 + jitter / 2)
    wait = fault.wait if fault.wait is not None else back_off
    return wait if wait <= patience.longest_wait and waited + wait <= patience.waits else None


def given_up(fault: Fault, patience: Patience, number: int) -> RunError:
    """The error of the request, without a place."""
    message = fault.message + f", after {number} attempts" * (number > 1)
    helps = []
    if fault.wait is not None and fault.wait > patience.longest_wait:
        message += f"; it asks to wait {_duration(fault.wait)}, and {_duration(patience.longest_wait)} is the longest wait"
        helps.append("come back later, or raise the longest wait: `--longest-wait SECONDS`")
    elif fault.again is Again.BILLED:
        message += "; the request may have been billed"
        helps.append("it is sent again only where that is allowed: `--repeat-billed`")
    elif fault.outcome in _STATUS_HELPS:
        helps.append(_STATUS_HELPS[fault.outcome])
    if fault.raw:
        helps.append(f"what came before: {fault.raw[:200]!r}")
    code = "E0873" if fault.broken else "E0872"
    return failure(code, message, None, kind="model", help="\n".join(helps) or None, raw=fault.raw)


def _duration(seconds: float) -> str:
    for unit, size in (("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:,.0f} {unit}"
    return f"{seconds:,.3g} s"


def _seconds(number: str, in_one: int) -> float | None:
    try:
        return max(0.0, float(number) / in_one)
    except ValueError:
        return None


def _until(date: str) -> float | None:
    try:
        return max(0.0, parsedate_to_datetime(date).timestamp() - time())
    except (ValueError, TypeError):
        return None
