"""Text and generation inside a role block.

    "Label: ${label := select(Label)}\\n"     context.append "Label: ", lm.select, context.append "\\n"

One text is one `append` of its pieces, split where a hole generates.  `follow` of a generation is the first character of literal
text that comes directly after it in the same block: the rest of the same text, or a text that is the next statement.
"""

from __future__ import annotations

from lmc.diagnostics import Span
from lmc.ir.builder import literal
from lmc.ir.core import Literal, Operand, Value
from lmc.ir.ops import ContextAppend, ContextImage, Gen, ListMake, PureCall, Score, Select, SelectMethod, TextConcat
from lmc.parser import ast
from lmc.parser.check import model
from lmc.parser.lower.expressions import expression
from lmc.parser.lower.frame import Frame
from lmc.types import BOOL, CONTEXT, NONE, SCORED, STR, ListT, StrT, Type
from lmc.values import text_of

Generating = model.GenCall | model.SelectCall | model.ScoreCall | model.ImageCall

#: Options of `gen` that are operands of `lm.gen`; `regex` and `schema` are attributes.
_OPERANDS = (
    "stop", "max_tokens", "min_tokens", "temperature", "top_p", "top_k", "min_p", "seed", "frequency_penalty", "presence_penalty",
    "repetition_penalty", "logit_bias", "logprobs", "heal", "ignore_eos", "stream",
)


def generating(frame: Frame, expr: ast.Expr) -> Generating | None:
    """What the expression does to the conversation, if it is a call of `gen`, `select`, `score` or `image`."""
    info = frame.checked.calls.get(expr) if isinstance(expr, ast.Call) else None
    return info if isinstance(info, Generating) else None


def first_character(statement: ast.Stmt | None) -> str | None:
    """The literal character that a statement begins with, where it is text."""
    if isinstance(statement, ast.ExprStmt) and isinstance(statement.value, ast.Text):
        return _first(statement.value.parts)
    return None


def _first(parts: tuple[ast.TextPiece | ast.Hole, ...]) -> str | None:
    return parts[0].text[:1] or None if parts and isinstance(parts[0], ast.TextPiece) else None


def append_text(frame: Frame, text: ast.Text, follow: str | None) -> None:
    """A text that stands as a statement; `follow` is what comes after it."""
    pieces: list[Operand] = []
    for i, part in enumerate(text.parts):
        if isinstance(part, ast.TextPiece):
            pieces.append(literal(part.text))
            continue
        if generating(frame, part.value) is None:
            value = expression(frame, part.value, part.name.text if part.name else "")
        else:
            _append(frame, text.span, pieces)
            pieces = []
            rest = text.parts[i + 1:]
            value = generate(frame, part.value, _first(rest) if rest else follow, part.name.text if part.name else "")
        if part.name is not None:
            frame.names[frame.checked.symbols[part.name]] = value
        if generating(frame, part.value) is None:
            pieces.append(value)
    _append(frame, text.span, pieces)


def _append(frame: Frame, span: Span, pieces: list[Operand]) -> None:
    pieces = [p for p in pieces if not (isinstance(p, Literal) and p.value == "")]
    if not pieces:
        return
    if len(pieces) == 1 and isinstance(pieces[0].type, StrT):
        text = pieces[0]
    else:
        text = frame.value(TextConcat, span, STR, "text", pieces=tuple(pieces))
    frame.context = frame.value(ContextAppend, span, CONTEXT, "c", context=frame.context, text=text, role=frame.role)


def generate(frame: Frame, expr: ast.Call, follow: str | None, hint: str = "") -> Operand:
    """A `gen`, `select`, `score` or `image`, whose value is given."""
    info = generating(frame, expr)
    match info:
        case model.GenCall():
            return _gen(frame, expr, info, follow, hint)
        case model.SelectCall():
            return _select(frame, expr, info, hint)
        case model.ScoreCall():
            options = _options(frame, expr, info)
            return frame.value(Score, expr.span, ListT(SCORED), hint, context=frame.context, options=options, role=frame.role)
        case model.ImageCall(value):
            image = expression(frame, value, "image")
            frame.context = frame.value(ContextImage, expr.span, CONTEXT, "c", context=frame.context, image=image, role=frame.role)
            return Literal(None, NONE)
    raise AssertionError(expr)


def _gen(frame: Frame, expr: ast.Call, info: model.GenCall, follow: str | None, hint: str) -> Operand:
    own = {name: expression(frame, option) for name, option in info.options.items() if name in _OPERANDS}
    unknown = set(info.options) - set(own) - {"regex", "schema", "grammar"}
    if unknown:
        frame.refuse(expr.span, f"the option `{min(unknown)}` of `gen`")
    results = (Value(CONTEXT, "c"), Value(info.type, hint))
    frame.add(Gen, expr.span, results, context=frame.context, role=frame.role, site=frame.site(), regex=info.regex,
              schema=_constant(frame, info, "schema"), grammar=_constant(frame, info, "grammar"), follow=follow, **{**frame.options, **own})
    frame.context = results[0]
    return results[1]


def _constant(frame: Frame, info: model.GenCall, name: str) -> str | None:
    option = info.options.get(name)
    if option is None:
        return None
    value = expression(frame, option)
    if isinstance(value, Literal) and isinstance(value.value, str):
        return value.value
    frame.refuse(option.span, f"a {name} not known at compile time", 'write it as `r"""…"""` or name a constant of the file')


def _select(frame: Frame, expr: ast.Call, info: model.SelectCall, hint: str) -> Operand:
    options = _options(frame, expr, info)
    kinds = {type(choice) for choice in info.choices or ("",)}
    chosen: Type = info.type if kinds == {str} else STR
    results = (Value(CONTEXT, "c"), Value(chosen, hint))
    method = SelectMethod(info.method)
    frame.add(Select, expr.span, results, context=frame.context, options=options, role=frame.role, method=method)
    frame.context = results[0]
    return results[1] if kinds == {str} else _read_choice(frame, expr, info, kinds, results[1])


def _read_choice(frame: Frame, expr: ast.Call, info: model.SelectCall, kinds: set[type], chosen: Value) -> Operand:
    """The choice is text; where the literal type holds numbers or booleans, its value is read from it."""
    if kinds == {int}:
        return frame.value(PureCall, expr.span, info.type, chosen.name, args=(chosen,), function="int")
    if kinds == {bool}:
        return frame.value(PureCall, expr.span, BOOL, chosen.name, args=(chosen, literal("true")), function="eq")
    frame.refuse(expr.span, "`select` among values of several kinds", "make all of them strings")


def _options(frame: Frame, expr: ast.Call, info: model.SelectCall | model.ScoreCall) -> Operand:
    if info.choices is None:
        return expression(frame, info.options, "options")
    elements = tuple(literal(text_of(choice)) for choice in info.choices)
    return frame.value(ListMake, expr.span, ListT(STR), "options", elements=elements)


def default_options(frame: Frame, options: dict[str, ast.Expr]) -> dict[str, Operand]:
    """The options of a `fork … with`, computed once before the branches."""
    for name, option in options.items():
        if name not in _OPERANDS:
            frame.refuse(option.span, f"`with {name}=`", f"give `{name}` to each `gen`")
    return {name: expression(frame, option, name) for name, option in options.items()}
