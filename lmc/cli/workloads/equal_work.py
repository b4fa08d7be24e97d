"""Whether two engines did the same work: the prompts that both were asked, the tokens that both wrote, the rows whose results agree.

    vllm: 22 of 24 prompts and 3 of 4 results as lmc's, 1,020 tokens for 1,024

Prompts that hold nothing generated are the same by construction.  One that goes on from a generation differs where two engines wrote
different texts, which the last bits of their numbers decide.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from lmc.cli.workloads.contender import Outcome


@dataclass(frozen=True, slots=True)
class EqualWork:
    """Of `prompts` prompts `same_prompts` were those of the other engine, of `rows` rows `same_rows` have the same result; `output`
    tokens were written, by the other one `other_output`."""

    prompts: int
    same_prompts: int
    rows: int
    same_rows: int
    output: int
    other_output: int

    def text(self, name: str, other: str) -> str:
        return (f"{name}: {self.same_prompts:,} of {self.prompts:,} prompts and {self.same_rows:,} of {self.rows:,} results as {other}'s, "
                f"{self.output:,} tokens for {self.other_output:,}")


def equal_work(outcome: Outcome, other: Outcome) -> EqualWork:
    """The same rows of the same workload."""
    assert (outcome.workload, outcome.programs) == (other.workload, other.programs), (outcome.workload, other.workload)
    same = Counter(outcome.asked) & Counter(other.asked)
    agree = sum(a is not None and a == b for a, b in zip(outcome.values, other.values, strict=True))
    return EqualWork(len(outcome.asked), same.total(), outcome.programs, agree, outcome.output, other.output)
