"""`lmc bench masks`: what masks cost, and beside them those of other engines where `make bench-peers` has installed them.

    engine            compile ms    worst   first us    worst   again us    worst   refused
    lmc                      9.0     80.1        190      900       0.12     0.20         0
    lmc, from disk           7.9     75.4        0.3    2,100       0.12     0.20         0
    llguidance               0.7      7.4        8.2      334        8.0      330         0

Each of twenty constraints is compiled, and a text that it accepts is replayed token by token, twice: at each token the mask is asked
for.  Of a constraint the median counts; the medians and the worst of the twenty are shown (of masks the worst of all).  `refused`
counts constraints that an engine does not compile, forbids the text of, or does not end within the time.
"""

from __future__ import annotations

import base64
import json
import select
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmc.cli.mask_suite import Measured, suite

if TYPE_CHECKING:
    from lmc.regex.dfa import ByteDfa
    from lmc.runtime.mask_store import MaskStore
    from lmc.runtime.token_index import TokenIndex
    from lmc.runtime.tokenizer import Tokenizer

PEERS = ("llguidance", "xgrammar", "outlines-core")
# Seconds that a peer has for one constraint, its start included.
_PATIENCE = 60.0
# A look-up is shorter than the clock's own time, so so many are timed together.
_TOGETHER = 200
_HEAD = (f"{'engine':18}{'compile ms':>11}{'worst':>9}{'first us':>11}{'worst':>9}{'again us':>11}{'worst':>9}{'refused':>10}")


@dataclass(frozen=True, slots=True)
class Measurement:
    """Milliseconds to compile; microseconds of each mask in the first and in a later replay."""

    compile: float
    first: tuple[float, ...]
    again: tuple[float, ...]


def mask_table(tokenizer: Tokenizer, peers: Path) -> Iterator[str]:
    """peers: the folder of virtual environments that `make bench-peers` made, beside `benchmarks/peers`"""
    from lmc.runtime.mask_store import MaskStore
    from lmc.runtime.token_index import TokenIndex

    index, measured = TokenIndex(tokenizer.token_bytes), suite()
    yield _HEAD
    with tempfile.TemporaryDirectory() as folder:
        store = MaskStore(Path(folder), index)
        yield _line("lmc", [own(one, tokenizer, index, store) for one in measured])
        yield _line("lmc, from disk", [own(one, tokenizer, index, store) for one in measured])
    python = peers / "constraints" / "bin" / "python"
    if not python.exists():
        yield f"no peers in {peers}: `make bench-peers` installs them"
        return
    for name in PEERS:
        yield _line(name, peer(name, measured, tokenizer, [str(python), str(peers.parent / "benchmarks/peers/masks.py"), name]))


def own(one: Measured, tokenizer: Tokenizer, index: TokenIndex, store: MaskStore) -> Measurement:
    """Masks that the store has are read from it, and in the end it has them all."""
    from lmc.runtime.constraint import START, TokenConstraint

    started = time.perf_counter()
    dfa = _automaton(one)
    constraint = TokenConstraint(dfa, index, store)
    compiled = 1e3 * (time.perf_counter() - started)
    states, first, state = [], [], START
    for token in tokenizer.encode(one.sample):
        started = time.perf_counter()
        ids = constraint.allowed(state)
        first.append(1e6 * (time.perf_counter() - started))
        assert token in ids, (one.name, token)
        states.append(state)
        state = constraint.advance(state, tokenizer.token_bytes[token])
    assert constraint.accepting(state), one.name
    again = []
    for state in states:
        started = time.perf_counter()
        for _ in range(_TOGETHER):
            constraint.allowed(state)
        again.append(1e6 * (time.perf_counter() - started) / _TOGETHER)
    constraint.save()
    return Measurement(compiled, tuple(first), tuple(again))


def peer(name: str, measured: list[Measured], tokenizer: Tokenizer, command: list[str]) -> list[Measurement | None]:
    """None for what it refuses.  After a constraint that it does not end it is started anew with those behind."""
    found: list[Measurement | None] = []
    while len(found) < len(measured):
        left = [{"kind": one.kind, "text": one.text, "ids": tokenizer.encode(one.sample)} for one in measured[len(found) :]]
        job = {"tokens": [base64.b64encode(data).decode() for data in tokenizer.token_bytes], "end": min(tokenizer.end_ids),
               "constraints": left}
        answers = list(_answers(command, json.dumps(job)))
        found += [Measurement(a["compile"], tuple(a["first"]), tuple(a["again"])) if "compile" in a else None for a in answers]
        if len(found) < len(measured):
            found.append(None)
    return found


def _answers(command: list[str], job: str) -> Iterator[dict[str, Any]]:
    """One for each constraint, up to the first that takes too long or ends the process."""
    with tempfile.TemporaryFile("w+") as given:
        given.write(job)
        given.seek(0)
        # Unbuffered, so that what was read is what `select` knows of.
        with subprocess.Popen(command, bufsize=0, stdin=given, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
            try:
                while select.select([process.stdout], [], [], _PATIENCE)[0] and (line := process.stdout.readline()):
                    yield json.loads(line)
            finally:
                process.kill()


def _automaton(one: Measured) -> ByteDfa:
    from lmc.regex.build import compile_regex
    from lmc.regex.schema import compile_schema

    return compile_regex(one.text) if one.kind == "regex" else compile_schema(one.text)


def _line(name: str, found: list[Measurement | None]) -> str:
    done = [one for one in found if one is not None]
    if not done:
        return f"{name:18}   nothing measured; refused {len(found)}"
    compiled = [one.compile for one in done]
    cells = f"{name:18}{statistics.median(compiled):11,.1f}{max(compiled):9,.1f}"
    for replays in ([one.first for one in done], [one.again for one in done]):
        cells += f"{statistics.median(map(statistics.median, replays)):11,.2f}{max(map(max, replays)):9,.1f}"
    return f"{cells}{len(found) - len(done):10}"
