"""What a statement of a random program may use where it stands, and the functions that it may call."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Callee:
    """A function or part that is already written.

    cost: model calls of one call, at most; talks: `chat` or `raw` where it continues or takes a conversation of that kind, else ""
    effects: reaches an effectful extern; prints: reaches `print`; risky: may fail
    """

    name: str
    kind: str
    params: tuple[str, ...]
    result: str
    cost: int
    talks: str = ""
    effects: bool = False
    prints: bool = False
    risky: bool = False


@dataclass
class Scope:
    """A place in a function.

    talks: what its conversation is: `chat`, `raw`, or "" where it has none
    names: those that have a value here, by type; own: those that may be assigned again here
    role: of the block around, "" between turns; result: of the function, None where `return` may not stand
    times: how often this place runs at most; loop: in a loop; risky: may fail here; effects, prints: externs, `print` may stand here
    """

    talks: str
    result: str | None
    names: dict[str, list[str]] = field(default_factory=dict)
    own: set[str] = field(default_factory=set)
    role: str = ""
    times: int = 1
    loop: bool = False
    risky: bool = False
    effects: bool = True
    prints: bool = True
    depth: int = 0

    def inside(self, **changes) -> Scope:
        """The scope of a block in here: what it binds is not seen outside."""
        copies = {"names": {t: list(names) for t, names in self.names.items()}, "own": set(self.own), "depth": self.depth + 1}
        return dataclasses.replace(self, **{**copies, **changes})

    def branch(self, width: int, **changes) -> Scope:
        """The scope of a branch: outer names may only be read, and what is shown keeps no order among branches."""
        return self.inside(**{"own": set(), "times": self.times * width, "loop": False, "result": None, "prints": False, **changes})

    def bind(self, type_: str, name: str, *, own: bool = False) -> None:
        self.names.setdefault(type_, []).append(name)
        if own:
            self.own.add(name)

    def having(self, type_: str) -> list[str]:
        return self.names.get(type_, [])
