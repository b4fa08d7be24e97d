"""Random programs that check and run: `random_program(seed)` is the text of one, with `main` as its entry.

    type Note: …   extern def log(text: str) -> str   def f1(…)   part p2(…)   def main(topic: str, items: list[str]) -> str

Every program ends, most come to their end without an error, and what `main` returns shows what its names were worth.  About one in
four may fail anywhere.
"""

from __future__ import annotations

import random

from tests.differential.conversation import Conversation
from tests.differential.scope import Callee, Scope

HEAD = '''\
type Label = "yes" | "no" | "maybe"

type Note:
    score: 1..3
    text: str(max_len=4)

type Ask:
    query: str(max_len=3)

type Done:
    value: 1..9

type Act = Ask | Done

ITEMS = ["tea", "rain", "one two"]

extern def log(text: str) -> str

extern def measure(n: int) -> int

pure extern def price(name: str) -> int

pure extern def clean(text: str) -> str
'''
PARAMS = ("str", "str", "int", "list[str]", "bool", "Note")
#: Model calls of one run: enough for loops in forks, few enough for a tenth of a second.
MOST_CALLS = 24


def random_program(seed: int) -> str:
    return _Program(random.Random(seed)).source()


class _Program(Conversation):
    def source(self) -> str:
        self.risky_program = self.chance(0.25)
        self.lines = HEAD.split("\n")
        if self.chance(0.3):
            self.lines += ["config:", f"    temperature = {self.rng.choice([0.0, 0.6])}", ""]
        for _ in range(self.rng.randint(1, 3)):
            self.rng.choice([self.function, self.function, self.function, self.part_item])()
        self.main()
        return "\n".join(self.lines) + "\n"

    def function(self) -> None:
        """A `def` with a small conversation, or none; some go on from a context that they are given."""
        talks = self.rng.choice(["chat", "chat", "raw", ""])
        params = [self.rng.choice(PARAMS) for _ in range(self.rng.randint(0, 3))]
        if talks and self.chance(0.2):
            params.insert(0, "context")
        result = self.rng.choice(["str", "str", "str", "int", "list[str]", "bool"])
        self.item("def", talks, tuple(params), result)

    def part_item(self) -> None:
        kind = self.rng.choice(["turns", "text", "generating text"])
        talks = self.rng.choice(["chat", "raw"]) if kind == "turns" else ""
        params = tuple(self.rng.choice(PARAMS) for _ in range(self.rng.randint(0, 2)))
        self.item(kind, talks, params, self.rng.choice(["str", "int", ""]))

    def item(self, kind: str, talks: str, params: tuple[str, ...], result: str) -> None:
        name = self.fresh("f" if kind == "def" else "p")
        role = {"text": "user", "generating text": "raw"}.get(kind, "")
        scope = Scope(talks or role, None if kind != "def" else result, role=role, risky=self.risky_program and self.chance(0.5),
                      effects=self.chance(0.4), prints=self.chance(0.2))
        named = [(self.fresh("a"), p) for p in params]
        for param, type_ in named:
            scope.bind(type_, param)
        # Calls in it are within what one more call of it costs.
        self.spent, self.cap, self.used = 0, self.rng.choice([1, 2, 4]), set()
        head = f"{'def' if kind == 'def' else 'part'} {name}({', '.join(f'{n}: {t}' for n, t in named)})"
        self.line("", head + (f" -> {result}:" if result else ":"))
        start = len(self.lines)
        self.opening(scope, kind, params, named)
        self.body("    ", scope, self.rng.randint(1, 3))
        if result:
            self.line("    ", f"return {self.value(scope, result, 1)}")
        body = "\n".join(self.lines[start:])
        self.line("", "")
        effects = "log(" in body or "measure(" in body or any(c.effects for c in self.used)
        prints = "print(" in body or any(c.prints for c in self.used)
        self.callees.append(Callee(name, kind, params, result, self.spent, talks, effects, prints,
                                   scope.risky or any(c.risky for c in self.used)))

    def opening(self, scope: Scope, kind: str, params: tuple[str, ...], named: list[tuple[str, str]]) -> None:
        if "context" in params:
            self.line("    ", f"resume {named[params.index('context')][0]}")
        elif kind == "def" and scope.talks == "chat" and self.chance(0.6):
            self.line("    ", f"system: {self.text(scope)}")
        if kind in ("def", "turns") and scope.talks:
            self.turn("    ", scope)
        elif kind != "def":
            self.line("    ", self.text(scope))
            if kind == "generating text":
                self.generate("    ", scope)

    def main(self) -> None:
        scope = Scope(self.rng.choice(["chat", "chat", "raw"]), "str", risky=self.risky_program)
        scope.bind("str", "topic")
        scope.bind("list[str]", "items")
        scope.bind("list[str]", "ITEMS")
        self.spent, self.cap = 0, MOST_CALLS
        self.line("", "def main(topic: str, items: list[str]) -> str:")
        if scope.talks == "chat" and self.chance(0.5):
            self.line("    ", f"system: {self.text(scope)}")
        self.turn("    ", scope)
        self.body("    ", scope, self.rng.randint(2, 6))
        self.cap += 1
        self.turn("    ", scope)
        shown = [*(f"${{{n}}}" for t in ("str", "int", "bool", "Label") for n in scope.having(t)),
                 *(f"${{json({n})}}" for t in ("Note", "Act", "list[str]", "list[int]") for n in scope.having(t))]
        self.line("    ", f'return "{"|".join(shown)}"')
