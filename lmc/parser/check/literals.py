"""Types of list, dict and record literals and of comprehensions.

    [1, 2.0]                     list[float]
    {text: "Fine.", label: l}    a record, of the type expected where it stands
    {"text": "Fine."}            dict[str, str]
"""

from __future__ import annotations

from lmc.parser import ast
from lmc.parser.check.body import Body
from lmc.parser.check.iteration import bind_targets, element_of
from lmc.parser.check.model import UNKNOWN, LocalKind
from lmc.parser.check.narrowing import check_condition
from lmc.parser.check.relations import is_int, is_str, join, known, type_text
from lmc.parser.check.suggest import nearest
from lmc.types import FLOAT, NEVER, DictT, ListT, RecordT, Type, UnionT, base_type, plain_type


def infer_list(body: Body, expr: ast.ListExpr, hint: Type | None) -> Type:
    """With an expected list type each element must be of its element type; without, they must have one type in common."""
    wanted = plain_type(hint) if hint is not None else None
    if isinstance(wanted, ListT) and not isinstance(wanted.element, type(NEVER)):
        return _expected_list(body, expr, wanted)
    if not expr.elements:
        return ListT(NEVER)
    element = _common(body, expr.elements, "an element")
    return ListT(element) if known(element) else UNKNOWN


def _expected_list(body: Body, expr: ast.ListExpr, wanted: ListT) -> Type:
    for element in expr.elements:
        body.expect(element, wanted.element, "an element of this list")
    count = len(expr.elements)
    for bound, wrong, word in ((wanted.min_items, count < (wanted.min_items or 0), "at least"),
                               (wanted.max_items, wanted.max_items is not None and count > wanted.max_items, "at most")):
        if wrong:
            body.facts.error("E0301", f"this list has {word} {bound} elements, found {count}", expr)
    return wanted


def _common(body: Body, elements: tuple[ast.Expr, ...], what: str) -> Type:
    """The type that holds all elements; ints are converted where there is a float among them."""
    found: Type = body.infer(elements[0])
    types = [found]
    for element in elements[1:]:
        type = body.infer(element, found if known(found) else None)
        types.append(type)
        both = join(found, type)
        if both is None:
            body.facts.error("E0301", f"{what} is `{type_text(type)}` where the first is `{type_text(found)}`", element,
                             f"this is `{type_text(type)}`", "all must have one type; use records for values that differ")
            return UNKNOWN
        found = both
    if base_type(found) == FLOAT:
        for element, type in zip(elements, types):
            if is_int(type):
                body.convert(element)
    return found


def infer_dict(body: Body, expr: ast.DictExpr, hint: Type | None) -> Type:
    wanted = plain_type(hint) if hint is not None else None
    _duplicate_keys(body, expr)
    if isinstance(wanted, DictT):
        for key, value in zip(expr.keys, expr.values):
            body.expect(key, wanted.key, "a key of this dict")
            body.expect(value, wanted.value, "a value of this dict")
        return wanted
    if isinstance(wanted, RecordT) and expr.keys:
        return _dict_for_record(body, expr, wanted)
    if not expr.keys:
        return DictT(NEVER, NEVER)
    key, value = _common(body, expr.keys, "a key"), _common(body, expr.values, "a value")
    if not (known(key) and known(value)):
        return UNKNOWN
    if not (is_str(key) or is_int(key)):
        body.facts.error("E0301", f"the keys of a dict are `str` or `int`, found `{type_text(key)}`", expr.keys[0])
        return UNKNOWN
    return DictT(base_type(key), value)


def _duplicate_keys(body: Body, expr: ast.DictExpr) -> None:
    seen: set[object] = set()
    for key in expr.keys:
        value = key.plain if isinstance(key, ast.Text) else key.value if isinstance(key, ast.Constant) else None
        if value is not None and value in seen:
            body.facts.error("E0311", "this key is given twice", key, "duplicate")
        seen.add(value)


def _dict_for_record(body: Body, expr: ast.DictExpr, wanted: RecordT) -> Type:
    for value in expr.values:
        body.infer(value)
    names = [k.plain for k in expr.keys if isinstance(k, ast.Text) and k.plain is not None]
    example = f"`{{{names[0]}: …}}`" if names else "`{name: value}`"
    body.facts.error("E0311", f"this is a dict, and a `{type_text(wanted)}` is expected", expr, "quoted keys make a dict",
                     f"write the fields without quotes: {example}")
    return UNKNOWN


# ---------------------------------------------------------------------- records


def infer_record(body: Body, expr: ast.RecordExpr, hint: Type | None) -> Type:
    wanted = plain_type(hint) if hint is not None else None
    if isinstance(wanted, RecordT):
        check_fields(body, expr, wanted, expr.fields)
        return wanted
    if not expr.fields and (wanted is None or isinstance(wanted, DictT)):
        return wanted if wanted is not None else DictT(NEVER, NEVER)
    for field in expr.fields:
        # A field's value with an expectation of its own is not checked further: its record is unknown.
        body.infer(field.value)
    if wanted is not None and not known(wanted):
        return UNKNOWN
    message, help = _no_record(expr, wanted)
    body.facts.error("E0312", message, expr, "a record of which type?", help)
    return UNKNOWN


def _no_record(expr: ast.RecordExpr, wanted: Type | None) -> tuple[str, str]:
    first = expr.fields[0].name.text if expr.fields else "name"
    if isinstance(wanted, UnionT):
        member = _member_with(wanted, {f.name.text for f in expr.fields}) or wanted.members[0]
        return (f"a `{type_text(wanted)}` may be any of its members, so this literal has no type",
                f"name the member: `{type_text(member)}({first}=…)`")
    if wanted is None:
        return ("a record literal needs an expected type, and none is known here",
                f"for a dict quote the key: `{{\"{first}\": …}}`; for a record write `Name({first}=…)` or annotate the name")
    return (f"a record literal cannot be a `{type_text(wanted)}`", f"for a dict quote the key: `{{\"{first}\": …}}`")


def _member_with(union: UnionT, names: set[str]) -> RecordT | None:
    return next((m for m in union.members if names <= {f.name for f in m.fields}), None)


def check_fields(body: Body, at: ast.Node, record: RecordT, given: tuple[ast.Keyword, ...]) -> None:
    """Each field once, of its type; those without a default must be there."""
    seen: set[str] = set()
    for keyword in given:
        name = keyword.name.text
        field = record.field(name)
        if field is None:
            body.infer(keyword.value)
            near = nearest(name, [f.name for f in record.fields])
            body.facts.error("E0311", f"`{type_text(record)}` has no field `{name}`", keyword.name, "unknown field",
                             f"did you mean `{near}`?" if near else _field_names(record))
            continue
        if name in seen:
            body.facts.error("E0311", f"the field `{name}` is given twice", keyword.name, "duplicate")
        seen.add(name)
        body.expect(keyword.value, field.type, f"the field `{name}`")
    missing = [f.name for f in record.fields if f.default is None and f.name not in seen]
    unknown = any(record.field(k.name.text) is None for k in given)
    # A misspelt field is one mistake: it is not missing as well.
    if missing and not unknown:
        plural = "s" if len(missing) > 1 else ""
        body.facts.error("E0311", f"`{type_text(record)}` needs the field{plural} " + ", ".join(f"`{m}`" for m in missing), at,
                         f"missing field{plural}", "give it a value, or a default in the `type`")


def _field_names(record: RecordT) -> str | None:
    return "its fields: " + ", ".join(f"`{f.name}`" for f in record.fields) if record.fields else None


# --------------------------------------------------------------- comprehensions


def infer_comprehension(body: Body, expr: ast.Comprehension, hint: Type | None) -> Type:
    wanted = plain_type(hint) if hint is not None else None
    before = dict(body.flow.narrowed)
    with body.scope():
        for clause in expr.clauses:
            element = element_of(body, clause.iterable)
            bind_targets(body, clause.targets, element, LocalKind.LOOP, clause.iterable, fresh=True)
            for condition in clause.conditions:
                when_true, _ = check_condition(body, condition)
                body.flow.narrow(when_true)
        if isinstance(wanted, ListT) and known(wanted):
            found = body.expect(expr.element, wanted.element, "an element of this list")
            found = wanted.element if known(found) else UNKNOWN
        else:
            found = body.infer(expr.element)
    body.flow.narrowed = before
    return ListT(found) if known(found) else UNKNOWN
