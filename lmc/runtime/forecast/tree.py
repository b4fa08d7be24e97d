"""The calls that a run will make, as the tree that the program's blocks make of them.

    Group def judge
      Group fork  1..1
        Group branch 0      Call gen 30:21, Call gen 32:20
        Group branch 1      …
      Call gen 40:26

A group that data repeat has one member that stands for all, and a `twin` of it: a second one, from which it shows what two of them
share.  The walk fills these; nothing else changes them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from lmc.diagnostics import Span
from lmc.runtime.forecast.prompts import ForeseenPrompt, Written
from lmc.types import Type


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """A call of the model.

    kind: `gen`, `select` or `score`, or another op of `lm.`; function, path: as in `Origin`; source: how it is written
    maybe: how many things that data decide are around it; level: how many calls must have ended before it
    constraint: the number of the automaton that its value must match
    """

    kind: str
    span: Span | None
    source: str
    function: str
    path: str
    type: Type
    prompt: ForeseenPrompt
    written: Written
    maybe: int
    level: int
    constraint: int | None

    @property
    def sure(self) -> bool:
        """Whether it happens in every run that does not fail."""
        return self.maybe == 0


@dataclass(slots=True, eq=False)
class Group:
    """kind: `def`, `fork`, `arms`, `map`, `loop` and their members `branch`, `arm`, `element`, `round`; or `if`, `else`, `try`,
    `except`
    least, most: how often its member happens, where data decide; of a group whose members all stand here, their number
    note: what a reader must know, such as that a recursion is not followed
    """

    kind: str
    span: Span | None
    name: str
    least: int = 1
    most: int | None = 1
    members: list[Group | Call] = field(default_factory=list)
    twin: Group | None = None
    note: str = ""

    @property
    def repeated(self) -> bool:
        """Whether its one member stands for a number of them that data decide."""
        return self.twin is not None


def calls_of(node: Group | Call, *, twins: bool = False) -> Iterator[Call]:
    """The calls in program order; with `twins` also the second one of what data repeat."""
    if isinstance(node, Call):
        yield node
        return
    for member in node.members:
        yield from calls_of(member, twins=twins)
    if twins and node.twin is not None:
        yield from calls_of(node.twin, twins=True)
