"""Items of a file to symbols: constants, types, signatures.

    type Shot:                      TypeSymbol of a RecordT
        text: str
    def classify(review: str) -> Label:      FunctionSymbol; its body is checked later, by `functions.py`

`declare_items` fills a `FileScope`; each item becomes a symbol when it is first looked up.
"""

from __future__ import annotations

from lmc.parser import ast
from lmc.parser.check.body import Body, Rules
from lmc.parser.check.constants import evaluate
from lmc.parser.check.expressions import infer
from lmc.parser.check.model import (
    UNKNOWN, ConstSymbol, ExternSymbol, FunctionSymbol, ParamInfo, PartKind, Symbol, TypeSymbol,
)
from lmc.parser.check.relations import known, type_text
from lmc.parser.check.scope import BUILTIN_TYPES, BrokenSymbol, Declaration, FileScope
from lmc.parser.check.statements import block
from lmc.parser.check.type_exprs import is_data, resolve_type
from lmc.types import NONE, ContextT, DictT, Field, ListT, NeverT, RecordT, Type
from lmc.values import to_json

RULES = Rules(infer, block)


def declare_items(scope: FileScope) -> None:
    """Enter the names of all items; a name declared twice keeps its first meaning."""
    for item in scope.file.items:
        if isinstance(item, Declaration):
            for name in item.names if isinstance(item, ast.BrokenItem) else (item.name,):
                _enter(scope, item, name)


def _enter(scope: FileScope, item: Declaration, at: ast.Identifier) -> None:
    name = at.text
    if name in BUILTIN_TYPES:
        scope.facts.error("E0202", f"`{name}` is built in", at, "taken", "choose another name")
    elif name in scope.items or name in scope.imported:
        first = scope.items[name].span.line if name in scope.items else None
        where = f"it is defined at line {first}" if first else "it is imported"
        scope.facts.error("E0202", f"`{name}` is defined twice", at, where, "rename one of them")
    else:
        scope.items[name] = item


def resolve_item(scope: FileScope, item: Declaration) -> Symbol:
    """The symbol that an item declares."""
    match item:
        case ast.ConstDef():
            return _constant(scope, item)
        case ast.TypeAlias():
            type = resolve_type(scope, item.value, scope.qualify(item.name.text))
            return _type_symbol(scope, item, type)
        case ast.RecordDef():
            return _type_symbol(scope, item, _record(scope, item))
        case ast.FunctionDef():
            return _function(scope, item)
        case ast.ExternDef():
            return _extern(scope, item)
    raise AssertionError(item)


def _type_symbol(scope: FileScope, item: ast.TypeAlias | ast.RecordDef, type: Type) -> Symbol:
    if not known(type):
        return BrokenSymbol(item.name.text, item.name.span)
    symbol = TypeSymbol(item.name.text, item.name.span, type, scope.qualify(item.name.text), item)
    scope.facts.symbols[item.name] = symbol
    return symbol


def doc_text(doc: ast.Text | None) -> str:
    """A docstring as text."""
    return (doc.plain or "").strip() if doc is not None else ""


# -------------------------------------------------------------------- constants


def _constant(scope: FileScope, item: ast.ConstDef) -> Symbol:
    facts, name = scope.facts, item.name.text
    before = facts.mark()
    body = Body(facts, scope, RULES)
    if item.annotation is not None:
        type = resolve_type(scope, item.annotation)
        body.expect(item.value, type, f"`{name}`")
    else:
        type = body.infer(item.value)
        inner = type.element if isinstance(type, ListT) else type.key if isinstance(type, DictT) else None
        if isinstance(inner, NeverT):
            facts.error("E0312", "an empty list or dict needs a type", item.value, "of what?",
                        f"annotate the name: `{name}: list[str] = []`")
    if not known(type) or facts.failed_since(before):
        return BrokenSymbol(name, item.name.span)
    symbol = ConstSymbol(name, item.name.span, type, scope.qualify(name), item.value)
    value = evaluate(facts, item.value, "a constant")
    if item.value not in facts.values:
        return BrokenSymbol(name, item.name.span)
    facts.constants[symbol] = value
    facts.symbols[item.name] = symbol
    return symbol


# ------------------------------------------------------------------------ types


def _record(scope: FileScope, item: ast.RecordDef) -> Type:
    fields: list[Field] = []
    ok = True
    for definition in item.fields:
        if any(f.name == definition.name.text for f in fields):
            scope.facts.error("E0202", f"the field `{definition.name.text}` is defined twice", definition.name, "duplicate",
                              "rename or remove one of them")
            continue
        field = _field(scope, definition)
        ok = ok and field is not None
        if field is not None:
            fields.append(field)
    return RecordT(scope.qualify(item.name.text), tuple(fields), doc_text(item.doc)) if ok else UNKNOWN


def _field(scope: FileScope, definition: ast.FieldDef) -> Field | None:
    type = resolve_type(scope, definition.type)
    if isinstance(type, ContextT):
        scope.facts.error("E0313", "a context cannot be a field: it has no text form", definition.type, "",
                          "keep contexts in names and lists")
        return None
    if definition.default is None:
        return Field(definition.name.text, type) if known(type) else None
    value = constant_default(scope, definition.default, type, f"the default of `{definition.name.text}`")
    if not known(type):
        return None
    if definition.default not in scope.facts.values:
        return Field(definition.name.text, type)
    return Field(definition.name.text, type, to_json(value, type))


def constant_default(scope: FileScope, expr: ast.Expr, type: Type, what: str) -> object:
    """Check and compute a default; its value is in `facts.values` where there is one."""
    before = scope.facts.mark()
    Body(scope.facts, scope, RULES).expect(expr, type, what)
    return None if scope.facts.failed_since(before) else evaluate(scope.facts, expr, what)


# -------------------------------------------------------------------- functions


def _function(scope: FileScope, item: ast.FunctionDef) -> FunctionSymbol:
    params = _params(scope, item.params, item.name.text)
    result = resolve_type(scope, item.result) if item.result is not None else NONE
    part = _part_kind(scope, item) if item.kind == "part" else None
    symbol = FunctionSymbol(item.name.text, item.name.span, scope.qualify(item.name.text), params, result, part,
                            _uses_context(scope, item), item)
    scope.facts.symbols[item.name] = symbol
    return symbol


def _params(scope: FileScope, params: tuple[ast.Param, ...], function: str) -> tuple[ParamInfo, ...]:
    found: list[ParamInfo] = []
    for param in params:
        name = param.name.text
        if any(p.name == name for p in found):
            scope.facts.error("E0202", f"there are two parameters named `{name}`", param.name, "duplicate",
                              "rename or remove one of them")
            continue
        type: Type = UNKNOWN
        if param.annotation is None:
            scope.facts.error("E0306", f"the parameter `{name}` has no type", param.name, "a type is needed",
                              f"write `{name}: str`, for example; the signature is also the command line and the JSON schema")
        else:
            type = resolve_type(scope, param.annotation)
        if param.default is not None:
            constant_default(scope, param.default, type, f"the default of `{name}`")
        elif any(p.default is not None for p in found):
            scope.facts.error("E0324", f"`{name}` has no default and stands after a parameter that has one", param.name, "",
                              f"move it to the front, or give it a default: calls of `{function}` count by position")
        found.append(ParamInfo(name, type, param.default, param.name.span))
    return tuple(found)


def _part_kind(scope: FileScope, item: ast.FunctionDef) -> PartKind:
    """A part with a role block, or that calls one with a role block, opens turns."""
    return PartKind.TURN if _opens_turns(scope, item) else PartKind.TEXT


def _opens_turns(scope: FileScope, item: ast.FunctionDef) -> bool:
    # Each part is looked at once: in a circle of parts there are more ways through them than anyone can walk.
    seen, waiting = {item.name.text}, [item]
    while waiting:
        for node in ast.walk(waiting.pop()):
            called = _called(scope, node)
            if isinstance(node, ast.RoleBlock) or isinstance(called, FunctionSymbol) and called.part is PartKind.TURN:
                return True
            if isinstance(called, ast.FunctionDef) and called.kind == "part" and called.name.text not in seen:
                seen.add(called.name.text)
                waiting.append(called)
    return False


def _called(scope: FileScope, node: ast.Node) -> Symbol | ast.FunctionDef | None:
    """What a call calls: the symbol where it is known, else the item of this file."""
    if not isinstance(node, ast.Call):
        return None
    function = node.function
    if isinstance(function, ast.Attribute):
        module = scope.module_of(function.value)
        other = scope.files.get(module.path) if module is not None else None
        return other.own(function.name.text) if other is not None else None
    if not isinstance(function, ast.Name):
        return None
    item = scope.items.get(function.text)
    return scope.symbols.get(function.text) or (item if isinstance(item, ast.FunctionDef) else scope.imported.get(function.text))


def _uses_context(scope: FileScope, item: ast.FunctionDef) -> bool:
    return any(isinstance(node, (ast.RoleBlock, ast.Here, ast.Resume, ast.Fork)) for node in ast.walk(item)) or _opens_turns(scope, item)


def _extern(scope: FileScope, item: ast.ExternDef) -> ExternSymbol:
    params = _params(scope, item.params, item.name.text)
    result: Type = UNKNOWN
    if item.result is None:
        scope.facts.error("E0701", f"the extern `{item.name.text}` declares no result", item.name, "a result type is needed",
                          "write `-> str`, for example, or `-> None` where it gives nothing")
    else:
        result = resolve_type(scope, item.result)
    for param, info in zip(item.params, params):
        _crosses(scope, info.type, param.annotation)
    _crosses(scope, result, item.result)
    symbol = ExternSymbol(item.name.text, item.name.span, scope.qualify(item.name.text), params, result, item.pure, item)
    scope.facts.symbols[item.name] = symbol
    return symbol


def _crosses(scope: FileScope, type: Type, at: ast.Expr | None) -> None:
    """What goes to the host and back must have a form outside."""
    if at is not None and known(type) and not is_data(type):
        scope.facts.error("E0702", f"a `{type_text(type)}` cannot be passed to the host", at, "",
                          "externs take and give texts, numbers, bools, lists, dicts and records")
