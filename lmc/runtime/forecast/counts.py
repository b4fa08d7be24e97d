"""What is counted of a forecast: tokens of each call's prompt by where they come from, and the sums over all calls.

    counts.calls[0].text                 text between what generations write, as the report of a run counts it
    counts.saved_tokens                  known prompt tokens that need no computing
    counts.peak                          keys and values that are needed at once

This file does not know how the calls were found, nor how the numbers are shown.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from lmc.backend.program import FunctionCode, Program
from lmc.diagnostics import RunError
from lmc.runtime.forecast.bounds import forced_share
from lmc.runtime.forecast.memory import Peak, memory_peak
from lmc.runtime.forecast.prompts import Segment, Written
from lmc.runtime.forecast.sharing import Sharing, shared_tokens
from lmc.runtime.forecast.tree import Call, Group, calls_of


@dataclass(frozen=True, slots=True)
class Target:
    """What will run the program.

    name: the model; slot_bytes: bytes of keys and values of a token; limit: the longest prompt with its answer, in tokens
    emulations: what it cannot do itself, and what is done in its place, in words
    """

    name: str
    slot_bytes: int
    limit: int
    emulations: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Stretch:
    """Text of a prompt between two generations.  known: tokens that are exactly those of the run; about: tokens of known text beside
    a value that is not known; unknown: how many such values there are"""

    known: int
    about: int
    unknown: int


@dataclass(frozen=True, slots=True)
class ForeseenCall:
    """A call with its counts.

    text: of its prompt before, between and after what generations write in it, as `text` of a report's call
    static: known tokens that are the same in every run and branch; varying: those that are not
    shared: known tokens that an earlier call's prompt has; saved: known prompt tokens that need no computing, over all its requests
    open: whether its prompt holds what only the run knows; forced: the share of its value that its constraint forces, if it has one
    """

    call: Call
    text: tuple[Stretch, ...]
    static: int
    varying: int
    shared: int
    saved: int
    open: bool
    forced: float | None

    @property
    def tokens(self) -> int:
        """Known tokens of the prompt."""
        return self.static + self.varying

    @property
    def read(self) -> int:
        """Known tokens that all its requests read: each option of a choice reads the prompt, and itself but for its last token."""
        options = self.call.prompt.options or ()
        return self.tokens * max(1, len(options)) + sum(options) - len(options)

    @property
    def exact(self) -> bool:
        """Whether all of its text is known, so that the counts are those of the run."""
        return not any(stretch.about or stretch.unknown for stretch in self.text)


@dataclass(frozen=True, eq=False)
class Counts:
    """root: the calls as a tree; error: with which every run stops after them; note: why not all calls are there, or empty"""

    program: Program
    code: FunctionCode
    target: Target
    root: Group
    error: RunError | None
    note: str

    @cached_property
    def calls(self) -> tuple[ForeseenCall, ...]:
        """The calls in program order; of what data repeat, the first."""
        return self._counted(tuple(calls_of(self.root)))

    @cached_property
    def all_calls(self) -> tuple[ForeseenCall, ...]:
        """The calls with the second one of what data repeat."""
        return self._counted(tuple(calls_of(self.root, twins=True)))

    @property
    def peak(self) -> Peak:
        return memory_peak(c.call for c in self.calls)

    @property
    def in_sequence(self) -> int:
        """The longest chain of calls that wait for one another."""
        return max((c.call.level + 1 for c in self.calls), default=0)

    @property
    def prompt_tokens(self) -> int:
        """Known prompt tokens of all requests."""
        return sum(c.read for c in self.calls)

    @property
    def saved_tokens(self) -> int:
        """Those of them that need not be computed."""
        return sum(c.saved for c in self.calls)

    def _counted(self, calls: tuple[Call, ...]) -> tuple[ForeseenCall, ...]:
        shares: dict[int, float | None] = {}
        for call in calls:
            if call.constraint is not None and call.constraint not in shares:
                shares[call.constraint] = forced_share(self.program.constraints[call.constraint])
        return tuple(_counted(call, sharing, shares[call.constraint] if call.constraint is not None else None)
                     for call, sharing in zip(calls, shared_tokens(calls)))


def _counted(call: Call, sharing: Sharing, forced: float | None) -> ForeseenCall:
    stretches, known, about, unknown, varying = [], 0, 0, 0, 0
    for part in (*call.prompt.parts, None):
        if isinstance(part, Segment):
            varying += part.varying
            known += part.tokens * part.exact
            about += part.tokens * (not part.exact)
            unknown += len(part.units) - part.tokens
        else:
            stretches.append(Stretch(known, about, unknown))
            known = about = unknown = 0
    tokens = sum(s.known + s.about for s in stretches)
    holes = any(isinstance(p, Written) for p in call.prompt.parts) or any(s.unknown for s in stretches)
    return ForeseenCall(call, tuple(stretches), tokens - varying, varying, sharing.shared, sharing.saved, holes, forced)
