"""One run of a program's function: its counts, budgets, seed, and where its output goes.

Thousands of instances (rows of a batch, calls from Python) share one session; what they do not share is here.  Going over a
budget is an error that names the loop or function that went over, and that `try` does not catch.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from lmc.backend.program import Program
from lmc.diagnostics import RunError, Span
from lmc.runtime.attempts import Attempt, network_totals
from lmc.runtime.binding import Bound
from lmc.runtime.failures import failure
from lmc.runtime.leases import Leases
from lmc.runtime.report import CallCount, Recorded, Report, call_count
from lmc.runtime.request import Origin, Usage


@dataclass(frozen=True, slots=True)
class Budgets:
    """What one run may use.  `iterations`: rounds of loops and calls of functions in a row without asking the model."""

    calls: int = 1_000
    tokens: int = 200_000
    depth: int = 100
    iterations: int = 100_000


@dataclass(frozen=True, slots=True)
class RunOptions:
    """seed: the program seed; drawn at random where neither this nor the program's `config` gives one
    row: which row of a batch this is; rows draw different random numbers
    parallel: whether calls of the model that do not wait for one another are made side by side
    overrides: options of the command line, above `config` and below those of a `gen`
    """

    seed: int | None = None
    row: str = ""
    overrides: Mapping[str, Any] = field(default_factory=dict)
    budgets: Budgets = Budgets()
    parallel: bool = True


@dataclass(frozen=True, slots=True)
class Sinks:
    """Where a run's output goes and its input comes from; all are called in the event loop's thread, but `input`, which may wait.

    print: the text of one `print`, without the newline
    stream: text of a streaming generation as it comes, with the path of the branch that it comes from
    input: prompt -> line; EOFError is the end of the input; None where there is nobody to ask
    stream_at: called in place of `stream` where it is there, with the place of the generation too
    """

    print: Callable[[str], None]
    stream: Callable[[str, str], None]
    input: Callable[[str], str] | None = None
    stream_at: Callable[[str, str, Span | None], None] | None = None


def program_seed(options: RunOptions, program: Program) -> int:
    """The seed given for the run, else that of the program's `config`, else one drawn at random."""
    given = options.seed if options.seed is not None else program.config.get("seed")
    # 32 bits are enough to differ and short enough to type again.
    return secrets.randbits(32) if given is None else given


class Instance:
    """The state of one run that all its frames share."""

    __slots__ = ("bound", "options", "sinks", "seed", "calls", "usage", "idle", "warnings", "recorded", "counted", "attempts", "leases",
                 "turn", "_start", "_end")

    def __init__(self, bound: Bound, options: RunOptions, sinks: Sinks):
        self.bound = bound
        self.options = options
        self.sinks = sinks
        self.seed = program_seed(options, bound.program)
        self.calls = 0
        self.usage = Usage()
        #: Rounds of loops and calls of functions since the model was asked last.
        self.idle = 0
        self.warnings: list[str] = []
        #: By the number of the call, because side by side they end in any order.
        self.recorded: dict[int, Recorded] = {}
        self.counted: dict[int, CallCount] = {}
        #: What was asked over the network, in the order in which it ended.
        self.attempts: list[Attempt] = []
        self.leases = Leases(bound.session)
        #: Held while the model is asked.
        self.turn: AbstractAsyncContextManager[Any] = nullcontext() if options.parallel else asyncio.Lock()
        self._start = time.monotonic()
        self._end: float | None = None

    def show(self, path: str, text: str, span: Span | None) -> None:
        """Pass on text of a streaming generation that stands at `span`."""
        if self.sinks.stream_at is not None:
            self.sinks.stream_at(path, text, span)
        else:
            self.sinks.stream(path, text)

    def derived_seed(self, path: str, site: str) -> int:
        """The unsigned 64-bit seed of a `gen` without one: it depends on where the `gen` stands and not on when it runs."""
        key = f"{self.seed}\0{self.options.row}\0{path}{site}"
        return int.from_bytes(blake2b(key.encode(), digest_size=8).digest(), "little")

    def count_call(self, where: str, span: Span | None) -> int:
        """Before the model is asked; gives the call's number.  `where` names the function that asks."""
        most = self.options.budgets.calls
        if self.calls >= most:
            message = f"the run has made {most:,} calls of the model, its budget"
            raise _over_budget(message, where, span, "--max-calls", "max_calls")
        self.calls += 1
        self.idle = 0
        return self.calls

    def note_usage(self, call: int, origin: Origin, prompt: tuple[int, ...], written: tuple[tuple[int, int], ...], usage: Usage) -> None:
        """A call is answered: `call` is its number, `prompt` what it read (of a choice, what its options share), `written` as in
        `call_count`."""
        # What was computed ahead of it is in the cache when it comes, and was computed for it all the same.
        ahead = self.leases.found_first(prompt, usage.cached)
        usage += Usage(cached=-ahead, computed=ahead)
        self.usage += usage
        length = len(prompt)
        if self.bound.session.remote is not None:
            length, written = usage.cached + usage.computed, ()
        self.counted[call] = call_count(origin, length, written, usage)

    def count_round(self, what: str, where: str, span: Span | None) -> None:
        """Before a round of a loop, or a call of a function.  `what` names it."""
        self.idle += 1
        most = self.options.budgets.iterations
        if self.idle > most:
            message = f"{what} goes on after {most:,} rounds of loops and calls of functions without the model, the budget"
            raise _over_budget(message, where, span)

    def check_depth(self, depth: int, name: str, where: str, span: Span | None) -> None:
        """Before a call of the function `name`."""
        most = self.options.budgets.depth
        if depth >= most:
            raise _over_budget(f"`{name}` would be called {most + 1} calls deep, the budget for recursion is {most}", where, span)

    def tokens_left(self, where: str, span: Span | None, written: int | None = None) -> int:
        """How many more tokens may be generated, at least one; `written`: how many were, where it is not the count of the whole run."""
        left = self.options.budgets.tokens - (self.usage.generated if written is None else written)
        if left <= 0:
            raise self.out_of_tokens(where, span)
        return left

    def out_of_tokens(self, where: str, span: Span | None) -> RunError:
        most = self.options.budgets.tokens
        return _over_budget(f"the run has generated {most:,} tokens, its budget", where, span, "--max-tokens", "max_tokens")

    def stop_clock(self) -> None:
        self._end = time.monotonic()

    def report(self) -> Report:
        """The numbers so far, or of the whole run once it is over."""
        seconds = (self._end or time.monotonic()) - self._start
        usage = self.usage + Usage(computed=self.leases.unread)
        recorded = tuple(self.recorded[call] for call in sorted(self.recorded))
        counted = tuple(self.counted[call] for call in sorted(self.counted))
        return Report(self.calls, usage.generated, usage.cached, usage.computed, seconds, self.seed, tuple(self.warnings), recorded,
                      usage.jumped, counted, tuple(self.attempts), network_totals(self.attempts) if self.attempts else None)


def _over_budget(message: str, where: str, span: Span | None, flag: str = "", argument: str = "") -> RunError:
    """The error of a budget that is used up; `flag` and `argument` raise it on the command line and in `lmc.load`."""
    help = "check that it comes to an end"
    if flag:
        help = f"if the program is right, raise it: `{flag} N`, or `lmc.load(…, {argument}=N)`"
    return failure("E0838", message, span, kind="budget", help=help, label=f"in `{where}`")
