"""The numbers of a run, and their one line for people.

    calls 9 · generated 512 tokens (301 jumped) · from cache 1,204 tokens · 12.3 s · seed 123
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from lmc.runtime.attempts import Attempt, NetworkTotals

if TYPE_CHECKING:
    from lmc.runtime.request import Origin, Usage


@dataclass(frozen=True, slots=True)
class TokenChoice:
    """A token that was chosen, its natural log-probability before masks and penalties, and the best alternatives, best first.

    `text` is the token's own; half a character shows as `\ufffd`, a control token as the empty text.
    """

    text: str
    logprob: float
    top: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class Recorded:
    """What `gen(logprobs=N)` recorded: `where` the `gen` stands, its value as text, and its tokens in order."""

    where: str
    text: str
    tokens: tuple[TokenChoice, ...]


@dataclass(frozen=True, slots=True)
class CallCount:
    """What one call of the model read and wrote, in tokens.

    kind: `gen`, `select` or `score`; where: its place; function, path: who asked, as in `Origin`
    prompt: tokens of the prompt; of a choice, those that its options share
    text, written: the same by where they come from, in turn: text, then what a generation wrote, then text, …; `text` has one more
    cached, computed: prompt tokens that were found in the cache, and that were not; of a choice, over all options; what was computed
        ahead for several calls counts as computed by the first of them
    generated: tokens that the model wrote or chose
    """

    kind: str
    where: str
    function: str
    path: str
    prompt: int
    text: tuple[int, ...]
    written: tuple[int, ...]
    cached: int
    computed: int
    generated: int


def call_count(origin: Origin, prompt: int, written: tuple[tuple[int, int], ...], usage: Usage) -> CallCount:
    """`written`: where in the prompt generations stand, as (start, end)."""
    starts, ends = [start for start, _ in written], [end for _, end in written]
    text = tuple(start - end for start, end in zip([*starts, prompt], [0, *ends]))
    return CallCount(origin.kind, str(origin.span), origin.function, origin.path, prompt, text,
                     tuple(end - start for start, end in written), usage.cached, usage.computed, usage.generated)


@dataclass(frozen=True, slots=True)
class Report:
    """What a run did.

    calls: generations and choices asked of the model
    generated: tokens that the model wrote or chose; jumped: those of them that needed no forward pass of their own
    cached, computed: prompt tokens that were found in the cache, and that were not: the sums over the calls, and what was computed
        ahead and no call found
    seconds: wall-clock time
    seed: the program seed; the same one gives the same run
    warnings: what the reader of the result should know (a text that ended at the model's context), in order
    logprobs: of each generation with the option `logprobs`, in the order in which they were asked for
    by_call: each call that was answered, in the order in which they were asked for; of several runs together, those of the last
    attempts: each request that was sent over the network; of several runs together, those of the last
    network: their sums; None where no server was asked
    """

    calls: int = 0
    generated: int = 0
    cached: int = 0
    computed: int = 0
    seconds: float = 0.0
    seed: int = 0
    warnings: tuple[str, ...] = ()
    logprobs: tuple[Recorded, ...] = ()
    jumped: int = 0
    by_call: tuple[CallCount, ...] = ()
    attempts: tuple[Attempt, ...] = ()
    network: NetworkTotals | None = None

    def beside(self, other: Report) -> Report:
        """Both runs together, side by side: the time is the longer one, the seed that of `other`."""
        return replace(other, calls=self.calls + other.calls, generated=self.generated + other.generated,
                       cached=self.cached + other.cached, computed=self.computed + other.computed,
                       seconds=max(self.seconds, other.seconds), warnings=self.warnings + other.warnings,
                       logprobs=self.logprobs + other.logprobs, jumped=self.jumped + other.jumped,
                       # A module that runs for days must not keep every call that it ever made.
                       by_call=other.by_call, attempts=other.attempts, network=_sum(self.network, other.network))


def summary_line(report: Report) -> str:
    """The line that `lmc run` ends with."""
    if report.network is not None:
        return (f"calls {report.calls:,} · {report.network.text()} · generated {report.generated:,} tokens"
                f" · {report.seconds:.1f} s · seed {report.seed}")
    jumped = f" ({report.jumped:,} jumped)" if report.jumped else ""
    return (f"calls {report.calls:,} · generated {report.generated:,} tokens{jumped} · from cache {report.cached:,} tokens"
            f" · {report.seconds:.1f} s · seed {report.seed}")


def report_data(report: Report) -> dict[str, Any]:
    """All numbers as JSON data, for `lmc run --report`."""
    return asdict(report)


def _sum(one: NetworkTotals | None, other: NetworkTotals | None) -> NetworkTotals | None:
    return other if one is None else one if other is None else one + other
