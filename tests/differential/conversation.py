"""Random conversations: turns, generations, choices, forks, contexts that are kept and gone on from."""

from __future__ import annotations

from tests.differential.scope import Scope
from tests.differential.statements import MAX_DEPTH, Statements, Write

#: Of a type: what `gen` is given, `max_tokens` that are enough for every value of it, and such that are enough for some.
TYPED = {
    "int": ("int", 24, 2), "bool": ("bool", 8, 5), "Label": ("Label", 8, 4), "Note": ("Note", 60, 18), "Act": ("Act", 60, 22),
    "list[str]": ("list[str(max_len=3)](max_items=2)", 40, 4), "list[int]": ("list[0..9](max_items=3)", 24, 3),
    "str": ('regex=r"[a-c]{1,4}"', 8, 2),
}
#: Options that change what is drawn, with and without a seed of their own.
SAMPLED = ("temperature=0.9", "temperature=0.7, seed=7", "temperature=1.0, top_k=5", "temperature=0.8, top_p=0.9, seed=3",
           "temperature=0.0", "frequency_penalty=0.5", "temperature=1.2, min_p=0.05")


class Conversation(Statements):
    def choices(self, scope: Scope) -> list[Write]:
        choices = super().choices(scope)
        if scope.role:
            return [*choices, *[self.say] * 4, *([self.generate] * 12 if scope.role in ("assistant", "raw") else []), self.text_part]
        if not scope.talks:
            return choices
        choices += [self.turn_part, self.keep]
        if scope.depth < MAX_DEPTH:
            choices += [self.turn] * 10 + [self.fork] * 4 + [self.arms]
        return choices

    # -------------------------------------------------------------- turns

    def turn(self, indent: str, scope: Scope) -> None:
        """A block of one role; often a question and its answer."""
        if scope.talks == "raw":
            inner = self.turn_scope(scope, "raw")
            self.block(indent, "raw:", inner, self.rng.randint(0, 3), self.text(scope))
            self.generate(indent + "    ", inner)
            return
        self.line(indent, f"user: {self.text(scope)}")
        if self.chance(0.8):
            self.line(indent, "assistant:")
            before, inner = len(self.lines), self.turn_scope(scope, "assistant")
            self.generate(indent + "    ", inner)
            self.body(indent + "    ", inner, self.rng.randint(0, 2))
            if len(self.lines) == before:
                self.line(indent + "    ", self.text(scope))

    def turn_scope(self, scope: Scope, role: str) -> Scope:
        """Names that are bound in a turn are the function's."""
        inner = scope.inside(role=role, loop=False)
        inner.names, inner.own = scope.names, scope.own
        return inner

    def say(self, indent: str, scope: Scope) -> None:
        self.line(indent, self.text(scope))

    def generate(self, indent: str, scope: Scope) -> None:
        if not self.pay(scope.times):
            return
        self.rng.choice([self.gen, self.gen, self.gen, self.gen_in_hole, self.gen_in_hole, self.select, self.score])(indent, scope)

    def gen(self, indent: str, scope: Scope) -> None:
        name, type_, call = self.fresh("g"), *self.gen_call(scope)
        if self.chance(0.1):
            self.line(indent, call)
            return
        self.line(indent, f"{name} = {call}")
        scope.bind(type_, name)

    def gen_in_hole(self, indent: str, scope: Scope) -> None:
        name, type_, call = self.fresh("g"), *self.gen_call(scope)
        after = self.rng.choice(["", "\\n", ". ", " and ${" + self.value(scope, "int", 0) + "}", ", then "])
        self.line(indent, f'"{self.rng.choice(["It is ", "value: ", "- "])}${{{name} := {call}}}{after}"')
        scope.bind(type_, name)

    def gen_call(self, scope: Scope) -> tuple[str, str]:
        options = [self.rng.choice(SAMPLED)] if self.chance(0.4) else []
        if self.chance(0.5):
            type_ = self.rng.choice(list(TYPED))
            first, enough, some = TYPED[type_]
            most = some if scope.risky and self.chance(0.4) else enough
            return type_, f"gen({', '.join([first, *options, f'max_tokens={most}'])})"
        if self.chance(0.3):
            options.append(self.rng.choice(['stop="e"', 'stop=["\\n", ". "]', "min_tokens=2", "heal=False", "ignore_eos=True"]))
        return "str", f"gen({', '.join([*options, f'max_tokens={self.rng.randint(1, 7)}'])})"

    def select(self, indent: str, scope: Scope) -> None:
        name = self.fresh("s")
        method = self.rng.choice(["", "", ', method="greedy_token"', ', method="unconditional_likelihood_normalized"'])
        if self.chance(0.5):
            self.line(indent, f"{name} = select(Label{method})")
            scope.bind("Label", name)
            return
        names = scope.having("list[str]")
        options = self.rng.choice(names) if scope.risky and names and self.chance(0.5) else '["tea", "rain", " a"]'
        self.line(indent, f"{name} = select({options}{method})")
        scope.bind("str", name)

    def score(self, indent: str, scope: Scope) -> None:
        name = self.fresh("s")
        self.line(indent, f'{name} = score(["tea", "rain"])')
        best = self.fresh()
        self.line(indent, f"{best}: str = top([x.option for x in {name}], [x.logprob for x in {name}], 1)[0]")
        scope.bind("str", best)

    # -------------------------------------------------------------- parts

    def text_part(self, indent: str, scope: Scope) -> None:
        self.part(indent, scope, "text")
        if scope.role in ("assistant", "raw"):
            self.part(indent, scope, "generating text")

    def turn_part(self, indent: str, scope: Scope) -> None:
        self.part(indent, scope, "turns")

    def part(self, indent: str, scope: Scope, kind: str) -> None:
        fitting = [c for c in self.callees if c.kind == kind and (kind != "turns" or c.talks == scope.talks) and self.fits(c, scope)]
        if not fitting:
            return
        callee = self.rng.choice(fitting)
        if not self.pay(callee.cost * scope.times):
            return
        self.used.add(callee)
        call = f"{callee.name}({', '.join(self.value(scope, p, 1) for p in callee.params)})"
        if callee.result and self.chance(0.7):
            name = self.fresh()
            self.line(indent, f"{name}: {callee.result} = {call}")
            scope.bind(callee.result, name)
        else:
            self.line(indent, call)

    # ----------------------------------------------------------- contexts

    def keep(self, indent: str, scope: Scope) -> None:
        """Remember this conversation, or go on from one that was remembered."""
        kept = scope.having("context")
        if kept and self.chance(0.5):
            self.line(indent, f"resume {self.rng.choice(kept)}")
            return
        name = self.fresh("c")
        self.line(indent, f"{name} = here")
        scope.bind("context", name)

    def fork(self, indent: str, scope: Scope) -> None:
        type_, name = self.rng.choice([("str", self.fresh("x")), ("int", self.fresh("i"))])
        width = self.rng.randint(1, 3)
        some = self.chance(0.3) or type_ == "str"
        items = f"({self.value(scope, f'list[{type_}]', 1)})[:{width}]" if some else f"range({width})"
        collect = self.trying and self.chance(0.4)
        inner = scope.branch(width, risky=scope.risky or collect, effects=scope.effects and not collect)
        inner.bind(type_, name)
        options = [*(["temperature=0.7"] if self.chance(0.3) else []), *(['errors="collect"'] if collect else [])]
        self.block(indent, f"fork {name} in {items}{' with ' if options else ''}{', '.join(options)}:", inner, self.rng.randint(1, 3))
        result = self.rng.choice(["str", "str", "int"])
        column, joined, ends = self.fresh(), self.fresh(), self.fresh("c")
        self.line(indent + "    ", f"{column}: {result} = {self.value(inner, result, 1)}")
        if collect:
            self.line(indent, f"join {column} as {joined}")
            self.collected(indent, scope, joined, result)
        elif self.chance(0.4) and not some:
            self.line(indent, f"join {column} as {joined}, here as {ends}")
            scope.bind(f"list[{result}]", joined)
            self.line(indent, f"resume {ends}[{self.rng.randint(0, width - 1)}]")
        else:
            self.line(indent, f"join {column} as {joined}" if self.chance(0.9) else "join")
            if self.lines[-1].strip() != "join":
                scope.bind(f"list[{result}]", joined)

    def collected(self, indent: str, scope: Scope, joined: str, result: str) -> None:
        """Make a text of values and errors."""
        told, one, why = self.fresh(), self.fresh("x"), self.fresh("e")
        self.line(indent, f'{told}: str = ""')
        for depth, text in enumerate([f"for {one} in {joined}:", f"match {one}:"]):
            self.line(indent + "    " * depth, text)
        for head, added in ((f"case Error(message={why}):", why), ("case _:", '"${' + one + '}"')):
            self.line(indent + "        ", head)
            self.line(indent + "            ", f"{told} += {added}")
        scope.bind("str", told, own=True)

    def arms(self, indent: str, scope: Scope) -> None:
        columns = []
        self.line(indent, "fork:")
        for arm in self.rng.sample(["pros", "cons", "both"], self.rng.randint(1, 2)):
            inner, column = scope.branch(1), self.fresh()
            self.block(indent + "    ", f"branch {arm}:", inner, self.rng.randint(1, 2))
            self.line(indent + "        ", f"{column}: str = {self.value(inner, 'str', 1)}")
            columns.append((arm, column, self.fresh()))
        self.line(indent, "join " + ", ".join(f"{arm}.{column} as {joined}" for arm, column, joined in columns))
        for _, _, joined in columns:
            scope.bind("str", joined)
