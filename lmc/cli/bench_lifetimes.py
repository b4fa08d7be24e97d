"""`lmc bench lifetimes`: prompt tokens found in the cache with plain LRU, with hints, and with an oracle that knows the future.

    trace       of set    pool    LRU  hints  oracle
    chat          0.50   5,200   61.0   72.1    74.0

Sessions ask again and again, each time with all that was said before; between two calls they wait for a person or a tool.  Engine,
scheduler and tree are the real ones, the model is the stand-in; time is counted in steps of the engine.  `of set`: the pool as a part
of the working set, which is all tokens of the trace, each prefix counted once.  The oracle evicts the leaf whose next use is farthest.
The trace `program` comes from a compiled program (`lifetimes_program.py`), all others send by hand what the passes would.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lmc.cli.lifetimes_traces import SHAPES, Shape

if TYPE_CHECKING:
    from lmc.runtime.radix import RadixTree

POLICIES = ("lru", "hints", "oracle")
SHARES = (0.25, 0.5, 0.75)
_HEAD = f"{'trace':12}{'of set':>7}{'pool':>9}{'LRU':>7}{'hints':>7}{'oracle':>8}"
TRACES = (*SHAPES, "program")


@dataclass(eq=False, slots=True)
class _Session:
    number: int
    ids: tuple[int, ...]
    turns: list[tuple[tuple[int, ...], int]]  # what each adds, and the wait before it
    begins: int
    turn: int = 0
    next_use: int = 0
    handle: int | None = None
    open: int = 0
    answers: list[tuple[int, ...]] = field(default_factory=list)


def sessions(shape: Shape, seed: int = 1) -> list[_Session]:
    rng = random.Random(seed)

    def tokens(count: int) -> tuple[int, ...]:
        return tuple(rng.randrange(256) for _ in range(count))

    header, begins, made = tokens(shape.header), 0, []
    for number in range(shape.sessions):
        turns = [(tokens(rng.randint(*shape.added)), round(rng.expovariate(1 / shape.wait)) if shape.wait else 0)
                 for _ in range(rng.randint(*shape.turns))]
        made.append(_Session(number, header, turns, begins, next_use=begins))
        begins += round(rng.expovariate(1 / shape.apart)) if shape.apart else 0
    return made


class Replay:
    """One run of a trace."""

    def __init__(self, shape: Shape, slots: int, policy: str):
        from lmc.runtime.dry import DryModel, dry_tokenizer
        from lmc.runtime.engine import Engine

        self.shape, self.policy = shape, policy
        self.sessions = sessions(shape)
        self.tree = _oracle_tree(self) if policy == "oracle" else None
        tokens = dry_tokenizer()
        self.engine = Engine(DryModel(tokens, max_positions=1 << 16), tokens, slots=slots, tree=self.tree)
        self.now = 0
        self.prompt = self.cached = 0

    def run(self) -> float:
        """The part of all prompt tokens that was found, in percent."""
        due = [(s.begins, s.number) for s in self.sessions]
        heapq.heapify(due)
        asked: dict[int, _Session] = {}
        while due or self.engine.busy:
            if not self.engine.busy:
                self.now = max(self.now, due[0][0])
            while due and due[0][0] <= self.now:
                self._ask(self.sessions[heapq.heappop(due)[1]], asked)
            for event in self.engine.step():
                session = asked.pop(event.ticket, None)
                if session is not None and self._answered(session, event.result):
                    heapq.heappush(due, (session.next_use, session.number))
            self.now += 1
        return 100 * self.cached / self.prompt

    def _ask(self, session: _Session, asked: dict[int, _Session]) -> None:
        from lmc.runtime.request import GenerateRequest, Sampling

        session.ids += session.turns[session.turn][0]
        session.open, session.answers = self.shape.branches, []
        for branch in range(self.shape.branches):
            prompt = session.ids + (branch,) * (self.shape.branches > 1)
            sampling = Sampling(temperature=1.0, seed=session.number * 100 + branch)
            asked[self.engine.submit(GenerateRequest(prompt, self.shape.answer, ignore_eos=True, sampling=sampling))] = session
            self.prompt += len(prompt)

    def _answered(self, session: _Session, result: Any) -> bool:
        """Whether the session goes on, now that all its branches may be there."""
        self.cached += result.usage.cached
        session.answers.append(result.ids)
        session.open -= 1
        if session.open:
            return False
        before = session.ids
        session.ids += session.answers[0] if self.shape.branches == 1 else (0,) + session.answers[0]
        session.turn += 1
        over = session.turn == len(session.turns)
        session.next_use = 1 << 40 if over else self.now + 1 + session.turns[session.turn][1]
        if self.policy == "hints":
            self._hint(session, before, over)
        return not over

    def _hint(self, session: _Session, before: tuple[int, ...], over: bool) -> None:
        """What `lifetimes` and `fork_hints` say at this place of a program."""
        from lmc.runtime.hints import Keep, Pin, Release

        engine, old = self.engine, session.handle
        session.handle = engine.reserve()
        engine.hint(Keep(session.handle, session.ids))
        if old is not None:
            engine.hint(Release(old))
        if session.turn == 1:
            engine.hint(Pin(self.sessions[0].ids[: self.shape.header]))
        if over:
            engine.hint(Release(session.handle))


def _oracle_tree(replay: Replay) -> RadixTree:
    from lmc.runtime.radix import Node, RadixTree

    class OracleTree(RadixTree):
        """Evicts the leaf whose next use is farthest."""

        __slots__ = ()

        def evict(self, count: int) -> list[int]:
            slots: list[int] = []
            uses = self._next_uses()
            while len(slots) < count:
                leaves = [n for n in self.nodes() if self._evictable(n)]
                if not leaves:
                    break
                node = max(leaves, key=lambda n: (uses.get(n, 1 << 50), -n.used))
                surplus = len(node.key) - (count - len(slots))
                if surplus > 0:
                    self._split(node, surplus)
                slots += self._remove(node)
            return slots

        def _next_uses(self) -> dict[Node, int]:
            uses: dict[Node, int] = {}
            for session in replay.sessions:
                if session.turn < len(session.turns):
                    _, node = self.match_length(list(session.ids))
                    while node.parent is not None:
                        uses[node] = min(uses.get(node, 1 << 50), session.next_use)
                        node = node.parent
            return uses

    return OracleTree()


def working_set(shape: Shape) -> int:
    """All tokens of a trace, each prefix counted once."""
    replay = Replay(shape, 1 << 17, "lru")
    replay.run()
    return replay.engine.stats.cached_slots


def lifetimes_table(names: tuple[str, ...], shares: tuple[float, ...] = SHARES) -> Iterator[str]:
    yield _HEAD
    for name in names:
        whole = _whole_program() if name == "program" else working_set(SHAPES[name])
        for share in shares:
            slots = int(whole * share)
            rates = _of_program(slots) if name == "program" else [Replay(SHAPES[name], slots, policy).run() for policy in POLICIES]
            yield f"{name:12}{share:7.2f}{slots:9,}" + "".join(f"{rate:{width}.1f}" for rate, width in zip(rates, (7, 7, 8)))


def _whole_program() -> int:
    from lmc.cli.lifetimes_program import found

    return found(SHAPES["chat"], 1 << 17, hints=False)[1]


def _of_program(slots: int) -> list[float]:
    """Without hints and with them.  Nobody knows the future of a program: there is no oracle."""
    from lmc.cli.lifetimes_program import found

    return [found(SHAPES["chat"], slots, hints=hints)[0] for hints in (False, True)]
