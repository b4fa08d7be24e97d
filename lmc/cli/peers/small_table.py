"""The scores of the small workloads as a table, and beside the bars of the project.

    workload     client      by            seconds  tokens/s  output  prompt  computed  hit rate  passes    MiB  floor  speed  same text
    W1           parallel    lmc              1.90     269.5     512  20,480     1,848     0.910      17    620   0.84   1.68
                 parallel    vllm             3.20     160.0     512  20,480     2,592     0.873             900   0.50   1.00  31 of 32

floor: the share of what the machine could do; speed: of the fastest peer's; same text: of the generations, those whose texts ours has, too
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from lmc.cli.peers.small_run import Run
from lmc.cli.peers.small_turns import Score
from lmc.cli.workloads.results import known

HEAD = (f"{'workload':12}{'client':12}{'by':15}{'seconds':>9}{'tokens/s':>10}{'output':>8}{'prompt':>9}{'computed':>10}{'hit rate':>10}"
        f"{'passes':>8}{'MiB':>8}{'floor':>7}{'speed':>7}{'same text':>13}")
#: How much faster than which peer the project wants to be, at bfloat16.
BARS = {
    "W1": ("vllm", 1.8), "W2": ("vllm", 1.6), "W3": ("vllm", 1.6), "W4": ("vllm", 1.5), "W5": ("vllm", 1.5), "W6": ("vllm", 1.4),
    "W7 prefill": ("vllm", 1.15), "W7 batch 1": ("llama", 1.0), "W7 batch 8": ("vllm", 1.5), "W7 batch 32": ("vllm", 1.2),
}
FLOOR_BAR = 0.8


def lines(scores: Sequence[Score], own: str, floor: float | None, *, greedy: bool) -> Iterator[str]:
    """A workload's lines.  own: our name; floor: the least seconds; greedy: whether texts are to be compared"""
    fastest = min((score.median.seconds for score in scores if not score.contestant.startswith(own)), default=None)
    ours = next((score.median for score in scores if score.contestant == own), None)
    for number, score in enumerate(scores):
        run = score.median
        compared = greedy and ours is not None and run is not ours and score.contestant != own
        yield (f"{score.workload if number == 0 else '':12}{'parallel' if score.parallel else 'sequential':12}{score.contestant:15}"
               f"{run.seconds:9.2f}{_rate(run):10,.1f}{run.output:8,}{run.prompt:9,}{known(run.computed, 10, ',')}"
               f"{known(run.hit_rate, 10, '.3f')}{known(run.passes, 8, ',')}"
               f"{known(None if run.peak_bytes is None else run.peak_bytes / 2**20, 8, ',.0f')}"
               f"{known(None if floor is None else floor / run.seconds, 7, '.2f')}"
               f"{known(None if fastest is None else fastest / run.seconds, 7, '.2f')}"
               f"{same_texts(score, scores, own) if compared else '':>13}").rstrip()


def _rate(run: Run) -> float:
    """Generated tokens a second; of a prompt's run the prompt's."""
    return (run.prompt if run.output <= run.calls else run.output) / run.seconds


def same_texts(score: Score, scores: Sequence[Score], own: str) -> str:
    """Over all rounds, because their data differ."""
    ours = next(other for other in scores if other.contestant == own)
    same = sum((Counter(run.texts) & Counter(mine.texts)).total() for run, mine in zip(score.runs, ours.runs))
    return f"{same:,} of {sum(run.calls for run in score.runs):,}"


def work_differs(scores: Sequence[Score], own: str) -> list[str]:
    """What was not equal work: other numbers of generations, or of tokens in or out, than ours."""
    ours = next(score for score in scores if score.contestant == own)
    found = []
    for score in scores:
        for run, mine in zip(score.runs, ours.runs):
            for what in ("calls", "output", "prompt"):
                if getattr(run, what) != getattr(mine, what):
                    found.append(f"    {score.contestant} differs in {what}: {getattr(run, what):,} for our {getattr(mine, what):,}")
                    break
            else:
                continue
            break
    return found


def bar_lines(scores: Sequence[Score], own: str, floors: Mapping[str, float | None], dtype: str) -> Iterator[str]:
    """How far the bars are met, each workload's own best: by token ids or as a program."""
    for name in dict.fromkeys(score.workload for score in scores):
        here = [score for score in scores if score.workload == name]
        ours = min((score for score in here if score.contestant.startswith(own)), key=lambda score: score.median.seconds)
        peers = [score for score in here if not score.contestant.startswith(own)]
        parts = [f"{name:12}{ours.contestant} {ours.median.seconds:.2f} s"]
        if peers:
            best = min(peers, key=lambda score: score.median.seconds)
            parts.append(f"{best.median.seconds / ours.median.seconds:.2f} times the best peer, {best.contestant}")
        peer, wanted = BARS[name]
        asked = [score.median.seconds / ours.median.seconds for score in peers if score.contestant == peer and score.precision == dtype]
        if asked and dtype == "bfloat16":
            parts.append(f"{min(asked):.2f} times {peer}, the bar is {wanted}: {'met' if min(asked) >= wanted else 'missed'}")
        if (floor := floors[name]) is not None:
            share = floor / ours.median.seconds
            parts.append(f"{share:.2f} of the roofline, the bar is {FLOOR_BAR}: {'met' if share >= FLOOR_BAR else 'missed'}")
        yield "; ".join(parts)


def scores_data(scores: Sequence[Score], floors: Mapping[str, float | None]) -> list[dict[str, Any]]:
    """Every number of every run, as JSON."""
    return [{"workload": score.workload, "contestant": score.contestant, "precision": score.precision,
             "client": "parallel" if score.parallel else "sequential", "floor": floors[score.workload],
             "median_seconds": score.median.seconds, "runs": [asdict(run) for run in score.runs]} for score in scores]
