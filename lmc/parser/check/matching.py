"""`match`: patterns against the subject's type, what they bind, what is left over.

    match act:                    # Action = Search | Calc
        case Search(q): …         # q is Search's first field; act is a Search here
        case Calc(e): …           # nothing is left: exhaustive

A type is seen as a set of *atoms* (literals, members, None, or `_REST` for what no pattern but `_` exhausts); patterns take atoms
away.
"""

from __future__ import annotations

from lmc.parser import ast
from lmc.parser.check.body import Body
from lmc.parser.check.flow import Flow, meet
from lmc.parser.check.model import UNKNOWN, LocalKind, LocalSymbol, MatchInfo, RecordMatch
from lmc.parser.check.relations import is_bool, is_int, is_number, is_str, known, type_text
from lmc.parser.check.suggest import nearest
from lmc.parser.check.type_exprs import resolve_type
from lmc.types import ERROR, NONE, BoolT, FallibleT, LiteralT, NoneT, OptionalT, RangeT, RecordT, Type, UnionT, plain_type

#: (kind of atom, value): ("str", "A"), ("record", "lib.x.Search"), ("NoneType", None).
Atom = tuple[str, object]
_REST: Atom = ("rest", None)
_NONE: Atom = ("NoneType", None)
_ERROR: Atom = ("record", ERROR.name)


def check_match(body: Body, statement: ast.Match) -> None:
    subject = body.infer(statement.subject)
    left = _atoms(subject) if known(subject) else set()
    path = body.path(statement.subject)
    entry, ends = body.flow, []
    wild = False
    for case in statement.cases:
        body.flow = entry.copy()
        if wild:
            body.facts.warn("W109", "this case is never reached", case, "a case before it takes everything")
        taken = _check_patterns(body, case, subject, left)
        narrowed = _narrowed(case, taken, subject, left)
        if path is not None and narrowed is not None:
            body.flow.narrow({path: narrowed})
        wild = wild or any(isinstance(p, (ast.WildcardPattern, ast.BrokenPattern)) for p in case.patterns)
        left = set() if wild else left - taken
        body.block(case.body)
        ends.append(body.flow)
    exhaustive = wild or known(subject) and not left
    # Where a missing case is reported, what follows is checked as if it were there.
    told = not exhaustive and known(subject) and _report_missing(body, statement, subject, left)
    body.facts.matches[statement] = MatchInfo(subject, exhaustive)
    body.flow = _after(entry, ends, exhaustive or told or not known(subject))


def _after(entry: Flow, ends: list[Flow], exhaustive: bool) -> Flow:
    return meet(ends) if exhaustive and ends else meet([entry, *ends])


# ------------------------------------------------------------------------ atoms


def _atoms(type: Type) -> set[Atom]:
    match type:
        case OptionalT(inner):
            return _atoms(inner) | {_NONE}
        case FallibleT(inner):
            return _atoms(inner) | {_ERROR}
        case NoneT():
            return {_NONE}
        case LiteralT(values):
            return {(v.__class__.__name__, v) for v in values}
        case BoolT():
            return {("bool", True), ("bool", False)}
        case UnionT(members=members):
            return {("record", m.name) for m in members}
        case RecordT(name=name):
            return {("record", name)}
    return {_REST}


def _report_missing(body: Body, statement: ast.Match, subject: Type, left: set[Atom]) -> bool:
    if left == {_REST} and plain_type(subject) == subject:
        return False  # a text or number: a value that no case names falls through, as in Python
    names = sorted(_atom_text(a, subject) for a in left)
    shown = ", ".join(f"`{n}`" for n in names[:6]) + (" and others" if len(names) > 6 else "")
    body.facts.error("E0316", f"this `match` does not say what happens for {shown}", statement.subject,
                     f"this is `{type_text(subject)}`", "add the missing case, or `case _:` for all others")
    return True


def _atom_text(atom: Atom, subject: Type) -> str:
    kind, value = atom
    if atom == _REST:
        return type_text(plain_type(subject))
    if kind == "record":
        return str(value).rpartition(".")[2]
    return "None" if value is None else type_text(LiteralT((value,)))


def _narrowed(case: ast.Case, taken: set[Atom], subject: Type, left: set[Atom]) -> Type | None:
    """The type of the subject inside the case, where it is narrower."""
    atoms = left if any(isinstance(p, ast.WildcardPattern) for p in case.patterns) else taken
    if not known(subject) or not atoms:
        return None
    if atoms == {_NONE}:
        return NONE
    if atoms == {_ERROR}:
        return ERROR
    inner = plain_type(subject)
    if isinstance(inner, UnionT) and len(atoms) == 1:
        return inner.member(str(next(iter(atoms))[1]))
    narrow = subject
    if isinstance(narrow, FallibleT) and _ERROR not in atoms:
        narrow = narrow.inner
    if isinstance(narrow, OptionalT) and _NONE not in atoms:
        narrow = narrow.inner
    return narrow if narrow != subject else None


# --------------------------------------------------------------------- patterns


def _check_patterns(body: Body, case: ast.Case, subject: Type, left: set[Atom]) -> set[Atom]:
    """What the alternatives of a case take; names must be bound by all of them alike."""
    taken: set[Atom] = set()
    bound: list[set[str]] = []
    for pattern in case.patterns:
        names: set[str] = set()
        match pattern:
            case ast.LiteralPattern():
                atoms = _literal(body, pattern, subject)
            case ast.RecordPattern():
                atoms = _record(body, pattern, subject, names)
            case ast.BrokenPattern(name=name):
                body.bind(name, name.text, UNKNOWN, LocalKind.PATTERN)
                atoms = set(left)
            case _:
                atoms = set(left)
        if known(subject) and atoms and _REST not in atoms and not atoms & left and _REST not in left:
            body.facts.warn("W109", "this pattern never applies", pattern, "the cases before it take its values")
        taken |= atoms
        bound.append(names)
    if any(names != bound[0] for names in bound):
        body.facts.error("E0317", "all alternatives of a case must bind the same names",
                         case.patterns[0].span.to(case.patterns[-1].span))
    return taken


def _literal(body: Body, pattern: ast.LiteralPattern, subject: Type) -> set[Atom]:
    atom: Atom = (pattern.value.__class__.__name__, pattern.value)
    if not known(subject) or atom in _atoms(subject):
        return {atom}
    inner = plain_type(subject)
    if _may_equal(pattern.value, inner):
        return {atom}
    near = None
    if isinstance(inner, LiteralT) and isinstance(pattern.value, str):
        near = nearest(pattern.value, [v for v in inner.values if isinstance(v, str)])
    body.facts.error("E0317", f"this never matches a `{type_text(subject)}`", pattern, "not among its values",
                     f'did you mean `"{near}"`?' if near else None)
    return set()


def _may_equal(value: object, inner: Type) -> bool:
    if value is None or isinstance(inner, (LiteralT, RecordT, UnionT)):
        return False
    if isinstance(value, bool):
        return is_bool(inner)
    if isinstance(value, str):
        return is_str(inner)
    if isinstance(inner, RangeT):
        return isinstance(value, int) and inner.low <= value <= inner.high
    return is_int(inner) if isinstance(value, int) and is_int(inner) else is_number(inner)


def _record(body: Body, pattern: ast.RecordPattern, subject: Type, names: set[str]) -> set[Atom]:
    record = resolve_type(body.file, pattern.type)
    if not isinstance(record, RecordT):
        if known(record):
            body.facts.error("E0317", f"a pattern names a record type, and `{type_text(record)}` is none", pattern.type)
        _bind(body, pattern, None, names)
        return set()
    inner = plain_type(subject)
    if known(subject) and ("record", record.name) not in _atoms(subject):
        alternatives = inner.members if isinstance(inner, UnionT) else (subject,)
        members = ", ".join(f"`{type_text(m)}`" for m in alternatives)
        body.facts.error("E0317", f"`{type_text(record)}` never matches here", pattern.type, f"the subject is {members}")
    bindings = _bind(body, pattern, record, names)
    body.facts.patterns[pattern] = RecordMatch(record, bindings)
    return {("record", record.name)}


def _bind(body: Body, pattern: ast.RecordPattern, record: RecordT | None, names: set[str]) -> tuple[tuple[str, LocalSymbol], ...]:
    """Bind the targets, positional ones in the order of the fields."""
    fields = record.fields if record is not None else ()
    if record is not None and len(pattern.positional) > len(fields):
        body.facts.error("E0317", f"`{type_text(record)}` has {len(fields)} field{'s' if len(fields) != 1 else ''}, "
                         f"and the pattern takes {len(pattern.positional)}", pattern.positional[len(fields)], "one too many")
    pairs = [(fields[i].name if i < len(fields) else "", target) for i, target in enumerate(pattern.positional)]
    for name, target in pattern.named:
        if record is not None and record.field(name.text) is None:
            near = nearest(name.text, [f.name for f in fields])
            body.facts.error("E0311", f"`{type_text(record)}` has no field `{name.text}`", name, "unknown field",
                             f"did you mean `{near}`?" if near else None)
        pairs.append((name.text, target))
    bindings = []
    for name, target in pairs:
        if target.text == "_":
            continue
        field = record.field(name) if record is not None else None
        if target.text in names:
            body.facts.error("E0317", f"`{target.text}` is bound twice in one pattern", target, "duplicate")
        names.add(target.text)
        symbol = body.bind(target, target.text, field.type if field else UNKNOWN, LocalKind.PATTERN)
        bindings.append((name, symbol))
    return tuple(bindings)
