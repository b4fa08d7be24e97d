"""The numbers of a run, and their one line for people.

    calls 9 · generated 512 tokens (301 jumped) · from cache 1,204 tokens · 12.3 s · seed 123
"""

from __future__ import annotations

from dataclasses import dataclass, replace


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
class Report:
    """What a run did.

    calls: generations and choices asked of the model
    generated: tokens that the model wrote or chose; jumped: those of them that needed no forward pass of their own
    cached, computed: prompt tokens that were found in the cache, and that were not
    seconds: wall-clock time
    seed: the program seed; the same one gives the same run
    warnings: what the reader of the result should know (a text that ended at the model's context), in order
    logprobs: of each generation with the option `logprobs`, in the order in which they were asked for
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

    def beside(self, other: Report) -> Report:
        """Both runs together, side by side: the time is the longer one, the seed that of `other`."""
        return replace(other, calls=self.calls + other.calls, generated=self.generated + other.generated,
                       cached=self.cached + other.cached, computed=self.computed + other.computed,
                       seconds=max(self.seconds, other.seconds), warnings=self.warnings + other.warnings,
                       logprobs=self.logprobs + other.logprobs, jumped=self.jumped + other.jumped)


def summary_line(report: Report) -> str:
    """The line that `lmc run` ends with."""
    jumped = f" ({report.jumped:,} jumped)" if report.jumped else ""
    return (f"calls {report.calls:,} · generated {report.generated:,} tokens{jumped} · from cache {report.cached:,} tokens"
            f" · {report.seconds:.1f} s · seed {report.seed}")
