"""The options of `gen`, of `fork … with` and of `config`: which exist, of what type, within which bounds.

    gen(temprature=0.7)      error: unknown option; did you mean `temperature`?
    gen(top_p=0)             error: above 0 and at most 1

The list here is the language's; `tests/parser/check/test_options.py` compares it with the op's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lmc.parser import ast
from lmc.parser.check.body import Body
from lmc.parser.check.suggest import did_you_mean
from lmc.types import BOOL, FLOAT, INT, STR, DictT, ListT, Type


@dataclass(frozen=True, slots=True)
class Option:
    """`fits` is asked of a number known at compile time; `bounds` says in words what it wants."""

    type: Type
    bounds: str = ""
    fits: Callable[[float], bool] = lambda value: True


_AT_LEAST_0 = ("at least 0", lambda v: v >= 0)
_PENALTY = ("from -2 to 2", lambda v: -2 <= v <= 2)

#: What decides how a token is drawn and when a generation ends; also allowed in `config` and `fork … with`.
SAMPLING: dict[str, Option] = {
    "max_tokens": Option(INT, "at least 1", lambda v: v >= 1),
    "min_tokens": Option(INT, *_AT_LEAST_0),
    "stop": Option(ListT(STR)),
    "temperature": Option(FLOAT, *_AT_LEAST_0),
    "top_p": Option(FLOAT, "above 0 and at most 1", lambda v: 0 < v <= 1),
    "top_k": Option(INT, "at least 0 (0 is off)", lambda v: v >= 0),
    "min_p": Option(FLOAT, "from 0 to 1", lambda v: 0 <= v <= 1),
    "seed": Option(INT, *_AT_LEAST_0),
    "frequency_penalty": Option(FLOAT, *_PENALTY),
    "presence_penalty": Option(FLOAT, *_PENALTY),
    "repetition_penalty": Option(FLOAT, "above 0", lambda v: v > 0),
    "logit_bias": Option(DictT(INT, FLOAT)),
    "logprobs": Option(INT, *_AT_LEAST_0),
    "heal": Option(BOOL),
    "ignore_eos": Option(BOOL),
    "stream": Option(BOOL),
}
#: Constraints: legal on a `gen` only.
CONSTRAINTS: dict[str, Option] = {"regex": Option(STR), "schema": Option(STR), "grammar": Option(STR)}
GEN: dict[str, Option] = {**SAMPLING, **CONSTRAINTS}
CONFIG: dict[str, Option] = {"model": Option(STR), **SAMPLING}
FORK: dict[str, Option] = {"errors": Option(STR), **SAMPLING}


def check_options(body: Body, what: str, given: tuple[ast.Keyword, ...], known: dict[str, Option]) -> dict[str, ast.Expr]:
    """The options by name, each known, given once and of its type; `what` is `gen`, `fork` or `config`."""
    options: dict[str, ast.Expr] = {}
    for keyword in given:
        name = keyword.name.text
        if name not in known:
            body.infer(keyword.value)
            body.facts.error("E0407", f"`{what}` has no option `{name}`", keyword.name, "unknown option",
                             did_you_mean(name, known))
        elif name in options:
            body.facts.error("E0304", f"`{name}` is given twice", keyword.name, "duplicate option", "remove one of them")
        else:
            options[name] = keyword.value
            _check(body, name, keyword.value, known[name])
    return options


def _check(body: Body, name: str, value: ast.Expr, option: Option) -> None:
    if name == "stop":
        _check_stop(body, value)
        return
    body.expect(value, option.type, f"`{name}`")
    number = constant_number(value)
    if number is not None and not option.fits(number):
        body.facts.error("E0411", f"`{name}` must be {option.bounds}, found {number}", value, "",
                         "leave it out for the default, or give a number within the bounds")


def _check_stop(body: Body, value: ast.Expr) -> None:
    """One string or a list; an empty stop would end every generation before it begins."""
    if isinstance(value, (ast.ListExpr, ast.Comprehension)):
        body.expect(value, ListT(STR), "`stop`")
        texts = value.elements if isinstance(value, ast.ListExpr) else ()
    else:
        found = body.infer(value)
        if not isinstance(found, ListT):
            body.expect(value, STR, "`stop`")
        else:
            body.expect(value, ListT(STR), "`stop`")
        texts = (value,)
    for text in texts:
        if isinstance(text, ast.Text) and text.plain == "":
            body.facts.error("E0411", "an empty `stop` would end the text before it begins", text, "",
                             "leave `stop` out, or name the text that ends it")


def constant_number(expr: ast.Expr) -> int | float | None:
    """The number written, with its sign."""
    match expr:
        case ast.Constant(value=bool()):
            return None
        case ast.Constant(value=int() | float() as value):
            return value
        case ast.Unary(op="-", operand=ast.Constant(value=int() | float() as value)):
            return -value
    return None
