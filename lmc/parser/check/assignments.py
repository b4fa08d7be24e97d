"""Assignment: a name, an annotated name, `op=`, an element.

    x = 1            the name gets its type here, for the whole function
    xs: list[str] = []
    d[k] = v         a new value for `d`

A record's field cannot be assigned: records are values.
"""

from __future__ import annotations

from lmc.parser import ast
from lmc.parser.check.body import Body
from lmc.parser.check.model import UNKNOWN, LocalKind
from lmc.parser.check.operators import binary_type
from lmc.parser.check.relations import assignable, known, needs_conversion, type_text
from lmc.parser.check.type_exprs import resolve_type
from lmc.types import INT, NONE, DictT, ListT, NeverT, Type


def check_assign(body: Body, statement: ast.Assign) -> None:
    if isinstance(statement.value, ast.Call):
        # A text on the right side is a value: its holes do not generate.
        body.placed.add(statement.value)
    match statement.target:
        case ast.Name() if statement.annotation is not None:
            _annotated(body, statement, statement.target)
        case ast.Name() if statement.op is not None:
            _updated(body, statement, statement.target)
        case ast.Name():
            _assigned(body, statement, statement.target)
        case ast.Index():
            _element(body, statement, statement.target)
        case ast.Attribute():
            body.infer(statement.target.value)
            body.infer(statement.value)
            body.facts.error("E0323", "a field cannot be assigned: records are values and never change", statement.target, "",
                             "make a new record with the fields you want: `Name(field=…)`")
        case _:
            # The parser has reported that nothing else can stand there.
            body.infer(statement.value)


def _annotated(body: Body, statement: ast.Assign, target: ast.Name) -> None:
    assert statement.annotation is not None
    type = resolve_type(body.file, statement.annotation)
    found = body.expect(statement.value, type, f"`{target.text}`")
    if _shadows(body, target):
        return
    before = body.find(target.text)
    body.annotated.add(target.text)
    if before is not None and known(type) and known(before.type) and before.type != type and before not in body.retyped:
        body.facts.error("E0307", f"`{target.text}` is `{type_text(before.type)}`, and here it is declared `{type_text(type)}`",
                         statement.annotation, "", "a name keeps one type in a function; use another name",
                         (f"it got its type at {before.span}",))
        body.retyped.add(before)
    symbol = body.bind(target, target.text, type if before is None else before.type, LocalKind.VARIABLE)
    body.narrow_on_assignment(symbol, found)


def _assigned(body: Body, statement: ast.Assign, target: ast.Name) -> None:
    symbol = body.find(target.text)
    wanted = symbol.type if symbol is not None and known(symbol.type) and symbol not in body.retyped else body.widened.get(target.text)
    found = body.infer(statement.value, wanted)
    if wanted is not None and needs_conversion(found, wanted):
        body.convert(statement.value)
    elif symbol is None and not _has_type(body, statement, target, found):
        found = UNKNOWN
    if _shadows(body, target):
        return
    body.bind(target, target.text, found, LocalKind.VARIABLE)
    if isinstance(found, NeverT):
        body.flow.live = False


def _has_type(body: Body, statement: ast.Assign, target: ast.Name, found: Type) -> bool:
    """Whether the value says which type the name has."""
    match found:
        case ListT(element=NeverT()):
            body.facts.error("E0312", "an empty list needs a type", statement.value, "a list of what?",
                             f"annotate the name: `{target.text}: list[str] = []`")
            return False
        case DictT(key=NeverT()):
            body.facts.error("E0312", "an empty dict needs a type", statement.value, "a dict of what?",
                             f"annotate the name: `{target.text}: dict[str, int] = {{}}`")
            return False
    if found == NONE and isinstance(statement.value, ast.Call):
        body.facts.error("E0301", "this call gives no value", statement.value, "nothing to assign",
                         "a function that gives a value declares it: `-> T`")
        return False
    return True


def _updated(body: Body, statement: ast.Assign, target: ast.Name) -> None:
    assert statement.op is not None
    left = body.infer(target)
    hint = left if isinstance(left, ListT) and statement.op == "+" else None
    right = body.infer(statement.value, hint)
    if _shadows(body, target):
        return
    found = binary_type(body, statement, statement.op, left, right, target, statement.value)
    if body.find(target.text) is not None:
        body.bind(target, target.text, found, LocalKind.VARIABLE)


def _shadows(body: Body, target: ast.Name) -> bool:
    """A name of the file that this function has already read cannot become its variable: Python would fail at that read."""
    shadows = body.find(target.text) is None and target.text in body.outer_names
    if shadows:
        body.facts.error("E0210", f"`{target.text}` is a name of the file, used as such in this function", target, "",
                         "constants and functions do not change; use another name for the variable")
    return shadows


# ---------------------------------------------------------------------- elements


def _element(body: Body, statement: ast.Assign, target: ast.Index) -> None:
    container = _container(body, target.value)
    wanted: Type = UNKNOWN
    match container:
        case ListT(element):
            body.expect(target.index, INT, "an index")
            wanted = element
        case DictT(key, value):
            body.expect(target.index, key, "the key")
            wanted = value
        case _:
            body.infer(target.index)
            if known(container):
                body.facts.error("E0319", f"an element of a `{type_text(container)}` cannot be set", target.value,
                                 f"this is `{type_text(container)}`", "only elements of lists and dicts can")
    body.facts.expr_types[target] = wanted
    if statement.op is not None:
        right = body.infer(statement.value, wanted if isinstance(wanted, ListT) and statement.op == "+" else None)
        found = binary_type(body, statement, statement.op, wanted, right, target, statement.value)
        if not assignable(found, wanted):
            body.facts.error("E0301", f"the element is `{type_text(wanted)}`, and here it would become `{type_text(found)}`",
                             statement)
    else:
        body.expect(statement.value, wanted, "the element")


def _container(body: Body, expr: ast.Expr) -> Type:
    """The type of what holds the element; at its root there must be a local name, which gets the new value."""
    root = expr
    while isinstance(root, ast.Index):
        root = root.value
    found = body.infer(expr)
    if isinstance(root, ast.Name):
        symbol = body.find(root.text)
        if symbol is not None:
            body.flow.forget(symbol)
        elif known(found):
            body.facts.error("E0210", f"`{root.text}` is a constant of the file and does not change", root, "",
                             f"copy it first: `xs = {root.text}`")
    elif known(found):
        code = "E0323" if isinstance(root, ast.Attribute) else "E0210"
        body.facts.error(code, "only an element of a name can be set", root, "",
                         "assign it to a name first: `xs = …`, then set the element of that name")
    return found
