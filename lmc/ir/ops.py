"""Every op, once.

A program as IR (`lmc compile --emit-ir`):

    func @ask(%topic: str) -> str {
      %c0: context = context.new()
      %t: str = text.concat("Tell me about ", %topic)
      %c1: context = context.append(%c0, %t)[role = user]
      %c2: context, %answer: str = lm.gen(%c1, max_tokens = 20)[role = assistant, site = "0"]
      control.return(%answer)
    }

`site` names a place in its function (an ordinal, prefixed by the call's site where a callee was inlined).  With the sites of the
calls, loops and branches around and their indexes it is a path, which keys the random numbers, so that no pass may change a path.
Attributes of a role hold a `Role`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from lmc.ir.core import Block, Effect, Op, Operand


class Role(Enum):
    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    RAW = "raw"


class SelectMethod(Enum):
    TOKEN_LENGTH_NORMALIZED = "token_length_normalized"
    GREEDY_TOKEN = "greedy_token"
    UNCONDITIONAL_LIKELIHOOD_NORMALIZED = "unconditional_likelihood_normalized"


#: mnemonic -> class, filled by `op`.
OPS: dict[str, type[Op]] = {}


def op(mnemonic: str, effect: Effect = Effect.PURE, *, terminator: bool = False):
    """Declare an op class."""

    def declare(cls: type[Op]) -> type[Op]:
        cls = dataclass(frozen=True, eq=False)(cls)
        cls.mnemonic, cls.effect, cls.terminator = mnemonic, effect, terminator
        assert mnemonic not in OPS, mnemonic
        OPS[mnemonic] = cls
        return cls

    return declare


# ------------------------------------------------------------------- contexts


@op("context.new")
class ContextNew(Op):
    """An empty context."""


@op("context.append", Effect.FAIL)
class ContextAppend(Op):
    """The context with text added to the open turn of `role`, which is opened first where another role (or none) is open.

    With `deferred` a failure is kept in the result: whatever goes on from it raises it.  So an append may be moved to where it runs
    more often than its readers.
    """

    context: Operand
    text: Operand
    role: Role
    deferred: bool = False


@op("context.image", Effect.FAIL)
class ContextImage(Op):
    """The context with a picture in the turn of `role`; `image` is a path or a data URL."""

    context: Operand
    image: Operand
    role: Role


# ----------------------------------------------------------------- generation


@op("lm.gen", Effect.MODEL | Effect.FAIL)
class Gen(Op):
    """Generate after `context` in a turn of `role`; gives the new context and the value.

    The constraint is the type of the second result, or `regex`, `schema` (JSON text) or `grammar` (Lark) where given.  `follow` is the first
    character of the literal text that the program puts after this piece in the same turn, fixed before any pass: a constrained
    generation may end before it (LANGUAGE §8).  Options not given here take the program's `config`, then the built-in default.
    `automaton` is the number of the constraint's automaton in the module, once it is built.  `chain`: the tokens of the longest chain of
    generations that wait for this one, as `schedule` counts them.
    """

    context: Operand
    role: Role
    site: str
    regex: str | None = None
    schema: str | None = None
    grammar: str | None = None
    follow: str | None = None
    automaton: int | None = None
    chain: int = 0
    stop: Operand | None = None
    max_tokens: Operand | None = None
    min_tokens: Operand | None = None
    temperature: Operand | None = None
    top_p: Operand | None = None
    top_k: Operand | None = None
    min_p: Operand | None = None
    seed: Operand | None = None
    frequency_penalty: Operand | None = None
    presence_penalty: Operand | None = None
    repetition_penalty: Operand | None = None
    logit_bias: Operand | None = None
    logprobs: Operand | None = None
    heal: Operand | None = None
    ignore_eos: Operand | None = None
    stream: Operand | None = None


@op("lm.select", Effect.MODEL | Effect.FAIL)
class Select(Op):
    """Choose among `options` (a list of strings) by log-probability; gives the new context and the chosen option.  `chain` as in `Gen`."""

    context: Operand
    options: Operand
    role: Role
    method: SelectMethod = SelectMethod.TOKEN_LENGTH_NORMALIZED
    chain: int = 0


@op("lm.score", Effect.MODEL | Effect.FAIL)
class Score(Op):
    """Log-probability sums of `options` after `context`, as a list of `Scored`.  `chain` as in `Gen`."""

    context: Operand
    options: Operand
    role: Role
    chain: int = 0


@op("lm.template")
class Template(Op):
    """Texts and generations of one turn, in one request: the ops of `body(context)`, one after the other.

    `body` has only texts, appends and generations of one role, each on the context before it, from a generation to a generation, and
    none reads what another gives; its yield gives the last context and each generation's value, in order.
    """

    context: Operand
    body: Block


@op("lm.speculate")
class Speculate(Op):
    """A `Template` for a model behind an interface: what it writes past a generation's end is held against the texts that follow, and
    what agrees is taken as theirs."""

    context: Operand
    body: Block


@op("lm.fork")
class Fork(Op):
    """Run `body(context, element)` for each element of `items`, side by side; each result is a list in the order of `items`.

    Each branch reads `context`; the results are what its `yield` gives, column by column.  With `collect` a branch that fails with a
    catchable error gives that error in every column, and the others go on.
    """

    context: Operand
    items: Operand
    site: str
    body: Block
    collect: bool = False


@op("lm.branches")
class Branches(Op):
    """Run the arms, each with its own copy of `context`, side by side; the results are those of the arms' yields, in order.

    `counts` says how many results are each arm's.  `collect` as in `Fork`.
    """

    context: Operand
    site: str
    names: tuple[str, ...]
    counts: tuple[int, ...]
    arms: tuple[Block, ...]
    collect: bool = False


@op("lm.map")
class Map(Op):
    """A comprehension: `body(element)` for each element of `items`; each result is the list of what it yields, column by column.

    Iterations run side by side, but those that reach a `HOST` effect run in order.  With `loop` it was written as a loop, and its errors
    are told as a loop's.
    """

    items: Operand
    site: str
    body: Block
    loop: bool = False


# -------------------------------------------------------------------- control


@op("control.if")
class If(Op):
    """The results are what the block taken yields."""

    condition: Operand
    then: Block
    otherwise: Block


@op("control.for", Effect.FAIL)
class For(Op):
    """`body(element, *carried)` for each element in turn; yields and `continue` give the next carried values, `break` the results."""

    items: Operand
    initial: tuple[Operand, ...]
    site: str
    body: Block


@op("control.while", Effect.FAIL)
class While(Op):
    """`test(*carried)` yields a bool and the carried values that `body(*carried)` (or, on false, the results) then get."""

    initial: tuple[Operand, ...]
    site: str
    test: Block
    body: Block


@op("control.try")
class Try(Op):
    """Run `body()`; where it fails with a catchable error run `handler(error)` instead.  The results are what either yields."""

    body: Block
    handler: Block


@op("control.yield", terminator=True)
class Yield(Op):
    """The values of this block, to the op around it."""

    values: tuple[Operand, ...]


@op("control.break", Effect.EXIT, terminator=True)
class Break(Op):
    """Leave the nearest loop with these carried values."""

    values: tuple[Operand, ...]


@op("control.continue", Effect.EXIT, terminator=True)
class Continue(Op):
    """Go on with the nearest loop's next round."""

    values: tuple[Operand, ...]


@op("control.return", Effect.EXIT, terminator=True)
class Return(Op):
    """Leave the function with its results: the value, and before it the context where the function is a part."""

    values: tuple[Operand, ...]


@op("control.fail", Effect.FAIL | Effect.EXIT, terminator=True)
class Fail(Op):
    """Stop with an error of kind `fail`."""

    message: Operand


@op("control.assert", Effect.FAIL)
class Assert(Op):
    """Stop with an error of kind `assert` where the condition is false.  `left` and `right` are the sides of a comparison, shown."""

    condition: Operand
    message: Operand | None = None
    left: Operand | None = None
    right: Operand | None = None


# ---------------------------------------------------------------------- calls


@op("call", Effect.FAIL)
class Call(Op):
    """Call a `def`, or a `part` (first operand and first result: the context).  Its effects are the callee's.

    `chain`: of the generations that wait for its end, as in `Gen`.
    """

    args: tuple[Operand, ...]
    callee: str
    site: str
    chain: int = 0


@op("extern.call", Effect.HOST | Effect.FAIL)
class ExternCall(Op):
    """Call a function of the host.  Of a `pure extern`, order does not matter."""

    args: tuple[Operand, ...]
    name: str
    pure: bool = False


#: Ops whose regions have a path of their own, by site and index.
ROUNDS = (Fork, Branches, Map, For, While)


# --------------------------------------------------------------------- values


@op("const")
class Const(Op):
    """A list, dict or record known at compile time; `value` is its JSON text, read by the result's type."""

    value: str


@op("text.concat")
class TextConcat(Op):
    """The pieces one after another, each as `lmc.values.text_of` writes it."""

    pieces: tuple[Operand, ...]


@op("record.make")
class RecordMake(Op):
    """A record of the result's type; one operand for each field, in order."""

    values: tuple[Operand, ...]


@op("record.get")
class RecordGet(Op):
    """A field of a record, or of a union member that an `union.is` has established."""

    record: Operand
    field: str


@op("union.is")
class UnionIs(Op):
    """Whether the value is of the record type named `member`."""

    value: Operand
    member: str


@op("list.make")
class ListMake(Op):
    elements: tuple[Operand, ...]


@op("tuple.get")
class TupleGet(Op):
    """An element of a tuple, by position."""

    value: Operand
    index: int


@op("dict.make")
class DictMake(Op):
    """Keys and values in turn: `key0, value0, key1, value1`."""

    entries: tuple[Operand, ...]


@op("pure.call", Effect.FAIL)
class PureCall(Op):
    """An operator or builtin without effect, by its name in `lmc/pure.py`.  It may fail (a bad index, `int("x")`)."""

    args: tuple[Operand, ...]
    function: str


@op("io.print", Effect.HOST)
class Print(Op):
    values: tuple[Operand, ...]


@op("io.input", Effect.HOST | Effect.FAIL)
class Input(Op):
    """A line from the host without its newline; at end of file the empty string."""

    prompt: Operand


# ---------------------------------------------------------------------- hints


@op("hint.prefill")
class HintPrefill(Op):
    """Put the tokens that are certain of `context` into the cache, once, before its readers run.

    `readers`: a list with an element for each of them; nothing is done where it has fewer than two.
    """

    context: Operand
    readers: Operand | None = None


@op("hint.keep")
class HintKeep(Op):
    """`context` is read again.  `next_use`: so many calls of the model lie before, and nothing that waits for the world outside."""

    context: Operand
    next_use: int | None = None


@op("hint.release")
class HintRelease(Op):
    """`context`, a context or a list of them, has no reader after this."""

    context: Operand


@op("hint.pin")
class HintPin(Op):
    """Keep `context`'s prefix in the cache while it can be kept (soft)."""

    context: Operand
