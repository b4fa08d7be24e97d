"""Random programs that parse: every kind of node, comments everywhere, odd spacing.

    @given(programs())
    def test_…(source: str): …

A program is made from a seed and a size, so hypothesis shrinks to small ones.  Names and types mean nothing: it parses, it does not
check.  Each comment has a number of its own, so that a lost one shows.
"""

import random

from hypothesis import strategies as st

NAMES = ("a", "bb", "longer_name", "x1", "_private", "Über")
TYPES = ("str", "Note", "int", "Label")
WORDS = ("if", "from", "type", "match", "config", "value", "not", "user")
"""What may name a field, an attribute or an argument."""

BINARY = ("+", "-", "*", "/", "//", "%", "**")
COMPARISONS = (["=="], ["!="], ["<"], ["<="], [">"], [">="], ["in"], ["not", "in"], ["is"], ["is", "not"])


def programs(max_size: int = 12) -> st.SearchStrategy[str]:
    """Sources of up to `max_size` items."""
    return st.builds(random_program, st.integers(0, 2**32), st.integers(1, max_size))


def random_program(seed: int, size: int) -> str:
    """The program of `seed`, with `size` items."""
    return _Program(random.Random(seed)).source(size)


class _Program:
    def __init__(self, rng: random.Random):
        self.rng = rng
        self.comments = 0
        self.lines: list[str] = []
        self.expressions = _Expressions(rng, self)

    def source(self, size: int) -> str:
        for _ in range(size):
            self.between("")
            self.pick(self.imports, self.constant, self.alias, self.record, self.function, self.extern, self.test, self.config)()
        self.between("")
        return "\n".join(self.lines) + self.rng.choice(["", "\n", "\n\n  \n"])

    # ---------------------------------------------------------- writing

    def pick(self, *choices):
        return self.rng.choice(choices)

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    def name(self) -> str:
        return self.rng.choice(NAMES)

    def comment(self) -> str:
        self.comments += 1
        return self.pick("# ", "#", "#  ", "## ") + f"comment {self.comments}" + self.pick("", "  ", " \"quoted", " (open", " ${x}")

    def line(self, indent: str, tokens: list[str]) -> None:
        """Write a logical line, perhaps with a comment at its end."""
        text = indent + spell(tokens, self.rng, self.comment)
        if self.chance(0.15):
            text += self.pick("", " ", "     ") + self.comment()
        self.lines += (text + self.pick("", "", " ")).split("\n")

    def between(self, indent: str) -> None:
        """Blank lines and comments on lines of their own, at any column."""
        while self.chance(0.3):
            self.lines.append(self.pick("", "", "   ", self.pick(indent, "", indent + "  ", "       ") + self.comment()))

    def block(self, indent: str, head: list[str], fill) -> None:
        """A header and what `fill` writes below it, one level deeper."""
        self.line(indent, [*head, ":"])
        inner = indent + " " * self.rng.randint(1, 5)
        self.between(inner)
        fill(inner)

    # ------------------------------------------------------------ items

    def imports(self) -> None:
        names = [*self.imported(), *(t for _ in range(self.rng.randint(0, 3)) for t in [",", *self.imported()])]
        self.line("", self.pick(["import", '"lib/x.lmp"', "as", self.name()],
                                ["from", '"../y.lmp"', "import", *names],
                                ["from", '"y.lmp"', "import", "(", *names, *self.pick([], [","]), ")"]))

    def imported(self) -> list[str]:
        return [self.name(), *self.pick([], ["as", self.name()])]

    def constant(self) -> None:
        self.line("", ["LIMIT", *self.pick([], [":", *self.type()]), "=", *self.value()])

    def alias(self) -> None:
        self.line("", ["type", "Label", "=", *self.type()])

    def record(self) -> None:
        def fields(indent: str) -> None:
            if self.chance(0.3):
                self.line(indent, [self.pick('"A record."', f'"""\n{indent}Two\n\n{indent}lines\n{indent}"""')])
            for _ in range(self.rng.randint(0, 3)):
                self.line(indent, [self.pick(*WORDS, self.name()), ":", *self.type(), *self.pick([], ["=", *self.value()])])
                self.between(indent)
            self.line(indent, ["last", ":", *self.type()])

        if self.chance(0.1):
            self.block("", ["type", "Empty"], lambda indent: self.line(indent, ["pass"]))
        else:
            self.block("", ["type", "Note"], fields)

    def params(self) -> list[str]:
        tokens = ["("]
        for _ in range(self.rng.randint(0, 3)):
            tokens += [self.name(), *self.pick([], [":", *self.type()]), *self.pick([], ["=", *self.value()]), ","]
        return tokens[:-1] + self.pick([")"], [",", ")"]) if len(tokens) > 1 else ["(", ")"]

    def result(self) -> list[str]:
        return self.pick([], ["->", *self.type()])

    def function(self) -> None:
        self.suite("", [self.pick("def", "part"), self.name(), *self.params(), *self.result()])

    def extern(self) -> None:
        head = [*self.pick([], ["pure"]), "extern", "def", self.name(), *self.params(), *self.result()]
        if self.chance(0.5):
            self.line("", [*head, *self.pick([], [":", '"Does it."'])])
        else:
            self.block("", head, lambda indent: self.line(indent, ['"""What it does."""']))

    def test(self) -> None:
        self.suite("", ["test", '"a name"'])

    def config(self) -> None:
        def entries(indent: str) -> None:
            for _ in range(self.rng.randint(1, 3)):
                self.line(indent, [self.pick("model", "temperature", "stop"), "=", *self.value()])
                self.between(indent)

        self.block("", ["config"], entries)

    # ------------------------------------------------------- statements

    def suite(self, indent: str, head: list[str], depth: int = 3) -> None:
        """A header with its body, on its line or below."""
        if self.chance(0.2):
            self.line(indent, [*head, ":", *self.simple()])
        else:
            self.block(indent, head, lambda inner: self.body(inner, depth - 1))

    def body(self, indent: str, depth: int) -> None:
        for _ in range(self.rng.randint(1, 3)):
            if depth > 0 and self.chance(0.5):
                self.compound(indent, depth)
            else:
                self.line(indent, self.simple())
            self.between(indent)

    def simple(self) -> list[str]:
        target = [self.name(), *self.pick([], ["[", *self.value(), "]"], [".", self.pick(*WORDS)])]
        return self.pick(
            lambda: self.value(), lambda: self.value(), lambda: [self.name(), ":", *self.type(), "=", *self.value()],
            lambda: [*target, "=", *self.value()],
            lambda: [*target, self.pick("+=", "-=", "*=", "/=", "//=", "%=", "**="), *self.value()],
            lambda: ["return", *self.pick([], self.value())], lambda: ["break"], lambda: ["continue"], lambda: ["pass"],
            lambda: ["assert", *self.value(), *self.pick([], [",", *self.value()])], lambda: ["resume", *self.value()],
        )()

    def compound(self, indent: str, depth: int) -> None:
        self.pick(self.if_, self.loop, self.match, self.try_, self.role, self.role, self.fork, self.arms)(indent, depth)

    def if_(self, indent: str, depth: int) -> None:
        self.suite(indent, ["if", *self.value()], depth)
        while self.chance(0.4):
            self.between(indent)
            self.suite(indent, ["elif", *self.value()], depth)
        if self.chance(0.5):
            self.between(indent)
            self.suite(indent, ["else"], depth)

    def targets(self) -> list[str]:
        return [self.name(), *self.pick([], [",", self.name()])]

    def loop(self, indent: str, depth: int) -> None:
        self.suite(indent, self.pick(["while", *self.value()], ["for", *self.targets(), "in", *self.value()]), depth)

    def match(self, indent: str, depth: int) -> None:
        def cases(inner: str) -> None:
            for _ in range(self.rng.randint(1, 3)):
                alternatives = [t for _ in range(self.rng.randint(1, 3)) for t in ["|", *self.pattern()]][1:]
                self.suite(inner, ["case", *alternatives], depth - 1)
                self.between(inner)

        self.block(indent, ["match", *self.value()], cases)

    def pattern(self) -> list[str]:
        return self.pick(['"text"'], ["-", "1"], ["2.5"], ["None"], ["True"], ["_"], ["_"], ["_"], ["Note", "(", ")"],
                         ["lib", ".", "Note", "(", self.name(), ",", "if", "=", self.name(), *self.pick([], [","]), ")"])

    def try_(self, indent: str, depth: int) -> None:
        self.suite(indent, ["try"], depth)
        self.between(indent)
        self.suite(indent, ["except", "Error", *self.pick([], ["as", self.name()])], depth)

    def role(self, indent: str, depth: int) -> None:
        self.suite(indent, [self.pick("system", "user", "assistant", "raw")], depth)

    def options(self) -> list[str]:
        return self.pick([], ["with", "temperature", "=", *self.value()], ["with", "a", "=", *self.value(), ",", "b", "=", "1"])

    def fork(self, indent: str, depth: int) -> None:
        self.suite(indent, ["fork", *self.targets(), "in", *self.value(), *self.options()], depth)
        self.join(indent)

    def arms(self, indent: str, depth: int) -> None:
        def branches(inner: str) -> None:
            for _ in range(self.rng.randint(1, 2)):
                self.suite(inner, ["branch", self.name()], depth - 1)
                self.between(inner)

        self.block(indent, ["fork", *self.options()], branches)
        self.join(indent)

    def join(self, indent: str) -> None:
        self.between(indent)
        self.line(indent, ["join", *self.pick([], [self.name()], ["here", "as", "ends", ",", self.name(), ".", "if", "as", "b"])])

    # ------------------------------------------------------ expressions

    def value(self) -> list[str]:
        return self.expressions.value(3)

    def type(self) -> list[str]:
        return self.expressions.type(2)


class _Expressions:
    def __init__(self, rng: random.Random, program: _Program):
        self.rng = rng
        self.pick = program.pick
        self.name = program.name
        self.comment = program.comment

    def value(self, depth: int) -> list[str]:
        if depth and self.rng.random() < 0.1:
            return [*self.logic(depth - 1), "if", *self.logic(depth - 1), "else", *self.value(depth - 1)]
        return self.logic(depth)

    def logic(self, depth: int) -> list[str]:
        tokens = self.comparison(depth)
        while depth and self.rng.random() < 0.2:
            tokens += [self.pick("and", "or"), *self.comparison(depth - 1)]
        return tokens

    def comparison(self, depth: int) -> list[str]:
        negated = ["not"] if self.rng.random() < 0.05 else []
        tokens = self.sum(depth)
        while depth and self.rng.random() < 0.15:
            tokens += [*self.pick(*COMPARISONS), *self.sum(depth - 1)]
        return negated + tokens

    def sum(self, depth: int) -> list[str]:
        tokens = self.signed(depth)
        while depth and self.rng.random() < 0.25:
            tokens += [self.pick(*BINARY), *self.signed(depth - 1)]
        return tokens

    def signed(self, depth: int) -> list[str]:
        return [*self.pick([], [], [], [], ["-"], ["+"]), *self.postfix(depth)]

    def postfix(self, depth: int) -> list[str]:
        tokens = self.atom(depth)
        if tokens[0][0].isdigit():
            return tokens
        while depth and self.rng.random() < 0.3:
            tokens += self.pick(
                lambda: [".", self.pick(*WORDS)], lambda: ["[", *self.value(depth - 1), "]"], lambda: self.call(depth),
                lambda: ["[", *self.maybe(depth), ":", *self.maybe(depth), *self.pick([], [":", *self.maybe(depth)]), "]"],
            )()
        return tokens

    def maybe(self, depth: int) -> list[str]:
        return self.pick([], self.value(depth - 1))

    def call(self, depth: int) -> list[str]:
        values = [self.value(depth - 1) for _ in range(self.rng.randint(0, 3))]
        words = self.rng.sample(WORDS, self.rng.randint(0, 2))
        return ["(", *self.listed([*values, *([word, "=", *self.value(depth - 1)] for word in words)]), ")"]

    def listed(self, elements: list[list[str]]) -> list[str]:
        tokens = [t for element in elements for t in [",", *element]][1:]
        return [*tokens, *self.pick([], [], [","])] if tokens else []

    def atom(self, depth: int) -> list[str]:
        simple = [lambda: [self.name()], lambda: [self.pick("1", "2_000", "0.5", "1e3", "True", "None", "here")],
                  lambda: [self.text(depth)]]
        if not depth:
            return self.pick(*simple)()
        return self.pick(*simple, *simple, lambda: ["(", *self.value(depth - 1), ")"], lambda: self.list_(depth),
                         lambda: self.braces(depth), lambda: self.comprehension(depth))()

    def list_(self, depth: int) -> list[str]:
        return ["[", *self.listed([self.value(depth - 1) for _ in range(self.rng.randint(0, 4))]), "]"]

    def braces(self, depth: int) -> list[str]:
        keys = self.pick(self.rng.sample(WORDS, 2), ['"k"', '"${a}"'], [])
        return ["{", *self.listed([[key, ":", *self.value(depth - 1)] for key in keys]), "}"]

    def comprehension(self, depth: int) -> list[str]:
        tokens = ["[", *self.value(depth - 1)]
        for _ in range(self.rng.randint(1, 2)):
            tokens += ["for", self.name(), "in", *self.logic(depth - 1)]
            tokens += self.pick([], ["if", *self.logic(depth - 1)])
        return [*tokens, "]"]

    def type(self, depth: int) -> list[str]:
        simple = ([self.pick(*TYPES)], ['"label"'], ["1", "..", "5"], ["-", "1", "..", "+", "2.5"], ["lib", ".", "Note"],
                  ["str", "(", "regex", "=", 'r"\\d+"', ",", "max_len", "=", "3", *self.pick([], [","]), ")"])
        if not depth:
            return list(self.pick(*simple))
        return self.pick(
            lambda: list(self.pick(*simple)), lambda: ["list", "[", *self.type(depth - 1), "]"],
            lambda: ["dict", "[", "str", ",", *self.type(depth - 1), *self.pick([], [","]), "]"],
            lambda: [*self.type(0), "|", *self.type(0), *self.pick([], ["|", "None"])],
        )()

    # -------------------------------------------------------------- text

    def text(self, depth: int) -> str:
        kind = self.rng.randint(0, 9)
        if kind == 0:
            return self.pick('r"\\d${x}#"', 'r"""a"b"""', '""', '"""one "line" ${a}"""')
        if kind == 1:
            return self.block(depth)
        return '"' + "".join(self.piece(depth) for _ in range(self.rng.randint(0, 3))) + '"'

    def piece(self, depth: int) -> str:
        plain = self.pick("words  of text", "# no comment", "\\n", "\\\"", "\\u{e9}", "{a}", " $5 ", "\\${x}", "'", "  ")
        return self.pick(plain, plain, self.hole(depth))

    def hole(self, depth: int) -> str:
        value = self.value(depth - 1) if depth else ["a"]
        inside = self.pick(["a"], ["name", ":=", *value], value)
        code = " ".join(inside)
        if "\n" in code:
            code = "a"
        return self.pick("${# note, not code }", "${" + self.pick("", "  ") + code + self.pick("", " ") + "}")

    def block(self, depth: int) -> str:
        indent, raw = " " * self.rng.randint(0, 9), self.pick("", "r")
        lines = []
        for _ in range(self.rng.randint(0, 4)):
            text = "".join(self.piece(depth) for _ in range(self.rng.randint(0, 2)))
            if raw:
                # Three quotes in a hole would end it.
                text = self.pick("words ${x", "\\d", '"one"', "")
            text = self.pick(text, text, "    deeper", "two" if raw else "${f(a,\n b) }", "def f(x: int):", "# text")
            lines.append(self.pick(indent + text, indent + "  " + text, "", indent[:2], indent + "   "))
        return raw + '"""\n' + "".join(f"{line}\n" for line in lines) + indent + '"""'


# ---------------------------------------------------------------- spelling


def spell(tokens: list[str], rng: random.Random, comment) -> str:
    """The tokens with random space between them; inside brackets also line breaks and comments."""
    text, depth = "", 0
    for index, token in enumerate(tokens):
        if index:
            text += _gap(tokens[index - 1], token, depth, rng, comment)
        text += token
        depth += (token in "([{") - (token in ")]}") if len(token) == 1 else 0
    return text


def _gap(before: str, after: str, depth: int, rng: random.Random, comment) -> str:
    chance = rng.random()
    if depth and chance < 0.06:
        # Column 1 would begin a new item.
        return rng.choice(["", " ", "   "]) + rng.choice(["", comment()]) + "\n" + " " * rng.randint(1, 9)
    if depth and chance < 0.08:
        return f"\n  {comment()}\n\n    {comment()}\n" + " " * rng.randint(1, 9)
    if chance < 0.1:
        return " \\\n" + " " * rng.randint(0, 6)
    joined = (before[-1].isalnum() or before[-1] in '_"') and (after[0].isalnum() or after[0] in '_"')
    return rng.choice([" ", "  "]) if joined else rng.choice(["", " ", "  "])
