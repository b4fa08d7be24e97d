"""Arguments to parameters: by position, by keyword, defaults.

    def f(a: int, b: str = "x")        f(1)  ->  (1, None)        f(b="y", a=1)  ->  (1, "y")

One mistake each: too many, an unknown keyword, a name given twice, one missing.
"""

from __future__ import annotations

from collections.abc import Sequence

from lmc.parser import ast
from lmc.parser.check.body import Body
from lmc.parser.check.model import ParamInfo
from lmc.parser.check.suggest import did_you_mean


def match_arguments(body: Body, call: ast.Call, what: str, names: Sequence[str],
                    required: Sequence[str]) -> tuple[ast.Expr | None, ...] | None:
    """One expression for each name, None where it is not given; None in all where a mistake was reported.

    `what` is the name of what is called, as the user sees it.
    """
    given: dict[str, ast.Expr] = dict(zip(names, call.args))
    ok = True
    if len(call.args) > len(names):
        body.facts.error("E0302", f"`{what}` takes {_count(len(names))}, found {len(call.args)}", call.args[len(names)],
                         "one too many" if len(call.args) == len(names) + 1 else "too many", _signature(what, names))
        ok = False
    for keyword in call.keywords:
        name = keyword.name.text
        if name not in names:
            body.facts.error("E0303", f"`{what}` has no parameter `{name}`", keyword.name, "unknown name",
                             did_you_mean(name, names))
            ok = False
        elif name in given:
            body.facts.error("E0304", f"`{name}` is given twice", keyword.name, "duplicate argument",
                             "remove one of them")
            ok = False
        else:
            given[name] = keyword.value
    missing = [name for name in required if name not in given]
    # A misspelt keyword or one argument too many is one mistake: nothing is reported as missing beside it.
    if missing and ok:
        listed = ", ".join(f"`{m}`" for m in missing)
        body.facts.error("E0305", f"`{what}` needs {listed}", call, "missing argument" + ("s" if len(missing) > 1 else ""),
                         _signature(what, names))
        ok = False
    return tuple(given.get(name) for name in names) if ok else None


def _count(number: int) -> str:
    return {0: "no arguments", 1: "1 argument"}.get(number, f"{number} arguments")


def _signature(what: str, names: Sequence[str]) -> str:
    return f"it is `{what}({', '.join(names)})`"


def check_arguments(body: Body, call: ast.Call, what: str, params: Sequence[ParamInfo]) -> tuple[ast.Expr | None, ...] | None:
    """`match_arguments`, and each argument of its parameter's type."""
    names = [p.name for p in params]
    args = match_arguments(body, call, what, names, [p.name for p in params if p.default is None])
    by_name = {p.name: p for p in params}
    for param, arg in [*zip(params, call.args), *((by_name.get(k.name.text), k.value) for k in call.keywords)]:
        if param is None:
            body.infer(arg)
        else:
            body.expect(arg, param.type, f"argument `{param.name}`")
    for arg in call.args[len(params):]:
        body.infer(arg)
    return args


def infer_all(body: Body, call: ast.Call) -> None:
    """The arguments of a call that is wrong itself: their own mistakes still count."""
    for arg in (*call.args, *(k.value for k in call.keywords)):
        body.infer(arg)
