"""Random statements: assignments, control flow, what the host sees.

    statements.body("    ", scope, 4)       four lines or blocks at that indentation, written to `lines`

Conversation (turns, generations, forks) is in `conversation.py`.
"""

from __future__ import annotations

from collections.abc import Callable

from tests.differential.expressions import LABELS, Expressions
from tests.differential.scope import Scope

#: No deeper blocks than this.
MAX_DEPTH = 4
Write = Callable[[str, Scope], None]


class Statements(Expressions):
    """Writes `lines`."""

    def __init__(self, rng):
        super().__init__(rng)
        # Not every program has errors that it catches: those that have are compared less strictly.
        self.trying = self.chance(0.25)
        self.lines: list[str] = []

    def line(self, indent: str, text: str) -> None:
        self.lines.append(indent + text)

    def block(self, indent: str, head: str, scope: Scope, size: int, first: str = "") -> None:
        """A header and a body below it, which is never empty."""
        self.line(indent, head)
        before = len(self.lines)
        if first:
            self.line(indent + "    ", first)
        self.body(indent + "    ", scope, size)
        if len(self.lines) == before:
            self.line(indent + "    ", "pass")

    def body(self, indent: str, scope: Scope, size: int) -> None:
        for _ in range(size):
            self.rng.choice(self.choices(scope))(indent, scope)

    def choices(self, scope: Scope) -> list[Write]:
        """What may stand here, more likely ones several times."""
        flat: list[Write] = [self.assignment, self.assignment, self.again]
        if scope.effects:
            flat.append(self.extern)
        if scope.prints:
            flat.append(self.print_)
        if scope.loop:
            flat.append(self.leave_round)
        if scope.depth >= MAX_DEPTH:
            return flat
        if scope.result is not None:
            flat.append(self.early_return)
        blocks = [self.if_, self.for_, self.gather, self.while_, self.match_label]
        return [*flat, *blocks, *([self.try_] if self.trying else [])]

    # ---------------------------------------------------------- one line

    def assignment(self, indent: str, scope: Scope) -> None:
        type_ = self.rng.choice(["str", "str", "int", "bool", "list[str]", "list[str]", "list[int]", "Note"])
        name, value = self.fresh(), self.value(scope, type_, 2)
        self.line(indent, f"{name}: {type_} = {value}")
        scope.bind(type_, name, own=True)

    def again(self, indent: str, scope: Scope) -> None:
        """Another value for a name, which loops then carry."""
        found = [(n, t) for t in ("str", "int", "list[str]") for n in scope.having(t) if n in scope.own]
        if found:
            name, type_ = self.rng.choice(found)
            self.line(indent, f"{name} {self.rng.choice(['+=', '+=', '='])} {self.value(scope, type_, 2)}")

    def extern(self, indent: str, scope: Scope) -> None:
        self.line(indent, self.rng.choice([f"log({self.value(scope, 'str')})", f"log({self.text(scope)})"]))

    def print_(self, indent: str, scope: Scope) -> None:
        self.line(indent, f"print({self.value(scope, self.rng.choice(['str', 'int', 'bool']))})")

    def leave_round(self, indent: str, scope: Scope) -> None:
        self.line(indent, f"if {self.value(scope, 'bool')}:")
        self.line(indent + "    ", self.rng.choice(["break", "continue"]))

    def early_return(self, indent: str, scope: Scope) -> None:
        self.line(indent, f"if {self.value(scope, 'bool')}:")
        self.line(indent + "    ", f"return {self.value(scope, scope.result)}" if scope.result else "return")

    # ------------------------------------------------------------ blocks

    def if_(self, indent: str, scope: Scope) -> None:
        self.block(indent, f"if {self.value(scope, 'bool')}:", scope.inside(), self.rng.randint(1, 2))
        if self.chance(0.3):
            self.block(indent, f"elif {self.value(scope, 'bool')}:", scope.inside(), 1)
        if self.chance(0.5):
            self.block(indent, "else:", scope.inside(), self.rng.randint(1, 2))

    def for_(self, indent: str, scope: Scope) -> None:
        type_, name = self.rng.choice([("str", self.fresh("x")), ("int", self.fresh("i"))])
        times = self.rng.randint(1, 3)
        items = f"({self.value(scope, f'list[{type_}]', 1)})[:{times}]" if self.chance(0.7) or type_ == "str" else f"range({times})"
        inner = scope.inside(times=scope.times * times, loop=True)
        inner.bind(type_, name)
        if self.chance(0.2):
            index = self.fresh("i")
            inner.bind("int", index)
            name, items = f"{index}, {name}", f"enumerate({items})"
        self.block(indent, f"for {name} in {items}:", inner, self.rng.randint(1, 3))

    def gather(self, indent: str, scope: Scope) -> None:
        """A loop over calls that only collects: what `parallelise` is after, or nearly."""
        out, name = self.fresh(), self.fresh("x")
        items = self.value(scope, "list[str]", 1)
        inner = scope.inside(times=scope.times * 3)
        inner.bind("str", name)
        call = self.call(inner, "str", 1) or self.value(inner, "str", 2)
        self.line(indent, f"{out}: list[str] = []")
        self.line(indent, f"for {name} in ({items})[:3]:")
        self.line(indent + "    ", f"{out} += [{call}]")
        if self.chance(0.3):
            count = [n for n in scope.having("int") if n in scope.own]
            if count:
                self.line(indent + "    ", f"{self.rng.choice(count)} += {self.value(inner, 'int', 1)}")
        scope.bind("list[str]", out, own=True)

    def while_(self, indent: str, scope: Scope) -> None:
        """It counts, so it ends; rarely it does not, and the budget ends it."""
        name, times = self.fresh("n"), self.rng.randint(1, 3)
        self.line(indent, f"{name} = 0")
        if scope.risky and self.chance(0.1):
            self.line(indent, f"while {name} < {times}:")
            self.line(indent + "    ", f"{name} += 0")
            return
        inner = scope.inside(times=scope.times * times, loop=True)
        inner.bind("int", name)
        more = "" if self.chance(0.5) else f" and {self.value(scope.inside(effects=False), 'bool', 1)}"
        self.block(indent, f"while {name} < {times}{more}:", inner, self.rng.randint(1, 2), f"{name} += 1")
        scope.bind("int", name)

    def try_(self, indent: str, scope: Scope) -> None:
        """What fails in it may fail beside a generation, so no effects: how many of them there were would be chance."""
        inner = scope.inside(risky=True, effects=False, prints=False)
        self.block(indent, "try:", inner, self.rng.randint(1, 3))
        if self.chance(0.3):
            self.line(indent + "    ", f"fail({self.text(inner)})" if self.chance(0.5) else f"assert {self.value(inner, 'bool')}, \"no\"")
        name = self.fresh("e")
        after = scope.inside()
        told = self.fresh()
        kept = self.rng.choice([f"{name}.message", f'"${{{name}.kind}} ${{{name}.where}}"'])
        after.bind("str", told)
        self.block(indent, f"except Error as {name}:", after, self.rng.randint(0, 2), f"{told}: str = {kept}")

    def match_label(self, indent: str, scope: Scope) -> None:
        names = scope.having("Label")
        if not names:
            return
        self.line(indent, f"match {self.rng.choice(names)}:")
        first, *others = LABELS
        self.block(indent + "    ", f'case "{first}":', scope.inside(), self.rng.randint(1, 2))
        self.block(indent + "    ", "case " + " | ".join(f'"{o}"' for o in others) + ":" if self.chance(0.5) else "case _:",
                   scope.inside(), 1)
