"""Random expressions that have a type, and the texts they stand in.

    Expressions(rng).value(scope, "list[str]")       [clean(v1) for x2 in v3 if len(x2) > 1]

Only where a scope is `risky` may an expression fail when it runs.  Nothing here asks the model except calls of functions that do; they
are paid for from `budget`.
"""

from __future__ import annotations

import json
import random

from tests.differential.scope import Callee, Scope

WORDS = ("tea", "rain", "a", "", "Äpfel", "one two", "3", "<|im_end|>", "yes")
#: Few, so that texts meet and prefixes are shared.
SENTENCES = ("You are brief. ", "Judge the text.\\n", "A text: ", "Answer: ", "Think. ", "{\\\"a\\\": 1} ", "And then, ", "Items:\\n")
LABELS = ("yes", "no", "maybe")


class Expressions:
    """`callees` are the functions written so far, `spent` the model calls of the function being written, at most `cap`."""

    def __init__(self, rng: random.Random):
        self.rng = rng
        self.count = 0
        self.spent = 0
        self.cap = 0
        self.callees: list[Callee] = []
        self.used: set[Callee] = set()

    def fresh(self, stem: str = "v") -> str:
        self.count += 1
        return f"{stem}{self.count}"

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    def pay(self, times: int) -> bool:
        """Whether `times` more model calls are within the budget; if so they are spent."""
        if self.spent + times > self.cap:
            return False
        self.spent += times
        return True

    def value(self, scope: Scope, type_: str, depth: int = 2) -> str:
        """An expression of a type; deeper ones with `depth`."""
        names = scope.having(type_)
        if names and self.chance(0.5 if depth else 0.8):
            return self.rng.choice(names)
        if depth and self.chance(0.25) and (call := self.call(scope, type_, depth - 1)):
            return call
        if depth and self.chance(0.1):
            return f"({self.value(scope, type_, depth - 1)} if {self.value(scope, 'bool', depth - 1)} " \
                   f"else {self.value(scope, type_, depth - 1)})"
        make = {"str": self.str_, "int": self.int_, "bool": self.bool_, "list[str]": self.strings, "list[int]": self.ints,
                "Label": self.label, "Note": self.note, "context": lambda scope, depth: "here"}[type_]
        return make(scope, depth)

    def call(self, scope: Scope, type_: str | None, depth: int) -> str:
        """A call of a `def` whose result has the type, or "" where none fits.  None: any that has no result."""
        fitting = [c for c in self.callees if c.kind == "def" and c.result == (type_ or "") and self.fits(c, scope)]
        if not fitting:
            return ""
        callee = self.rng.choice(fitting)
        if not self.pay(callee.cost * scope.times):
            return ""
        self.used.add(callee)
        return f"{callee.name}({', '.join(self.value(scope, p, depth) for p in callee.params)})"

    def fits(self, callee: Callee, scope: Scope) -> bool:
        takes_context = "context" in callee.params
        return ((scope.effects or not callee.effects) and (scope.prints or not callee.prints) and (scope.risky or not callee.risky)
                and (not takes_context or callee.talks == scope.talks and not scope.role))

    # ---------------------------------------------------------- by type

    def str_(self, scope: Scope, depth: int) -> str:
        if not depth:
            return json.dumps(self.rng.choice(WORDS), ensure_ascii=False)
        inner = lambda type_: self.value(scope, type_, depth - 1)  # noqa: E731
        options = [
            lambda: self.text(scope, depth - 1), lambda: f"({inner('str')} + {inner('str')})", lambda: f"{inner('str')}.upper()",
            lambda: f"str({inner('int')})", lambda: f"json({inner('Note')})", lambda: f"lines({inner('list[str]')})",
            lambda: f"bullets({inner('list[str]')})", lambda: f'", ".join({inner("list[str]")})', lambda: f"clean({inner('str')})",
            lambda: f"{inner('str')}[{self.rng.randint(-2, 2)}:]", lambda: f"{inner('Note')}.text", lambda: self.first(scope, depth),
        ]
        if scope.effects:
            options.append(lambda: f"log({inner('str')})")
        if scope.risky:
            options += [lambda: f"{inner('list[str]')}[{self.rng.randint(0, 2)}]", lambda: f"majority({inner('list[str]')})"]
        return self.rng.choice(options)()

    def first(self, scope: Scope, depth: int) -> str:
        names = scope.having("list[str]")
        name = self.rng.choice(names) if names else ""
        return f'({name}[0] if len({name}) > 0 else {self.value(scope, "str", depth - 1)})' if name else '"nothing"'

    def int_(self, scope: Scope, depth: int) -> str:
        if not depth:
            return str(self.rng.randint(-2, 5))
        inner = lambda type_: self.value(scope, type_, depth - 1)  # noqa: E731
        options = [
            lambda: str(self.rng.randint(-2, 9)), lambda: f"len({inner('str')})", lambda: f"len({inner('list[str]')})",
            lambda: f"({inner('int')} {self.rng.choice('+-')} {inner('int')})", lambda: f"sum({inner('list[int]')})",
            lambda: f"price({inner('str')})", lambda: f"{inner('str')}.count({inner('str')})", lambda: f"{inner('Note')}.score",
            lambda: f"({inner('int')} % 7)", lambda: f"min({inner('int')}, {inner('int')})",
        ]
        if scope.effects:
            options.append(lambda: f"measure({inner('int')})")
        if scope.risky:
            options += [lambda: f"int({inner('str')})", lambda: f"({inner('int')} // {inner('int')})", lambda: f"max({inner('list[int]')})"]
        return self.rng.choice(options)()

    def bool_(self, scope: Scope, depth: int) -> str:
        if not depth:
            return self.rng.choice(["True", "False"])
        inner = lambda type_: self.value(scope, type_, depth - 1)  # noqa: E731
        return self.rng.choice([
            lambda: f"({inner('int')} {self.rng.choice(['<', '<=', '==', '!=', '>'])} {inner('int')})",
            lambda: f"({inner('str')} == {inner('str')})", lambda: f"({inner('str')} in {inner('list[str]')})",
            lambda: f"(not {inner('bool')})", lambda: f"({inner('bool')} {self.rng.choice(['and', 'or'])} {inner('bool')})",
            lambda: f'({inner("str")} == "{self.rng.choice(LABELS)}")',
        ])()

    def strings(self, scope: Scope, depth: int) -> str:
        if not depth:
            return "[" + ", ".join(json.dumps(w, ensure_ascii=False) for w in self.rng.sample(WORDS, self.rng.randint(1, 3))) + "]"
        inner = lambda type_: self.value(scope, type_, depth - 1)  # noqa: E731
        return self.rng.choice([
            lambda: f"[{inner('str')}, {inner('str')}]", lambda: f"{inner('str')}.split()", lambda: f"({inner('list[str]')})[1:]",
            lambda: f"sorted({inner('list[str]')})", lambda: self.comprehension(scope, "str", depth),
            lambda: self.comprehension(scope, "str", depth),
        ])()

    def ints(self, scope: Scope, depth: int) -> str:
        if not depth:
            return f"[{self.rng.randint(0, 5)}, {self.rng.randint(0, 5)}]"
        return self.rng.choice([
            lambda: f"range({self.rng.randint(0, 3)})", lambda: f"[{self.value(scope, 'int', depth - 1)}]",
            lambda: self.comprehension(scope, "int", depth),
        ])()

    def comprehension(self, scope: Scope, element: str, depth: int) -> str:
        """At most three elements of each list are looked at, so that calls in it are bounded."""
        inner = scope.inside()
        clauses = []
        for _ in range(2 if self.chance(0.2) else 1):
            type_ = self.rng.choice(["str", "int"])
            name = self.fresh("x")
            clauses.append(f"for {name} in ({self.value(inner, f'list[{type_}]', 0)})[:3]")
            inner.bind(type_, name)
            inner.times *= 3
        if self.chance(0.3):
            clauses.append(f"if {self.value(inner, 'bool', 1)}")
        body = self.call(inner, element, 0) if self.chance(0.6) else ""
        return f"[{body or self.value(inner, element, depth - 1)} {' '.join(clauses)}]"

    def label(self, scope: Scope, depth: int) -> str:
        return f'"{self.rng.choice(LABELS)}"'

    def note(self, scope: Scope, depth: int) -> str:
        return f'Note(score={self.rng.randint(1, 3)}, text="{self.rng.choice(["a", "b", ""])}")'

    # ---------------------------------------------------------- in texts

    def text(self, scope: Scope, depth: int = 1) -> str:
        """A string with words and holes."""
        pieces = [self.rng.choice([self.rng.choice(SENTENCES), self.hole(scope, depth), self.hole(scope, depth), "\\n"])
                  for _ in range(self.rng.randint(1, 3))]
        return '"' + "".join(pieces) + '"'

    def hole(self, scope: Scope, depth: int = 1) -> str:
        type_ = self.rng.choice(["str", "str", "int", "bool", "Label"])
        return "${" + self.value(scope, type_, depth if type_ in ("str", "int") else 0) + "}"
