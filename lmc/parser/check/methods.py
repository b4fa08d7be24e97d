"""Methods of strings and dicts, and what people write out of habit from Python.

    xs.append(x)       error: lists are values; help: `xs += [x]`
    json.dumps(x)      error; help: `json(x)`
"""

from __future__ import annotations

from lmc.parser import ast
from lmc.parser.check.arguments import infer_all, match_arguments
from lmc.parser.check.body import Body
from lmc.parser.check.builtins import DICT_METHODS, STR_METHODS
from lmc.parser.check.model import UNKNOWN, MethodCall
from lmc.parser.check.relations import is_str, join, known, type_text
from lmc.parser.check.suggest import nearest
from lmc.types import BOOL, INT, STR, DictT, ListT, NeverT, OptionalT, RecordT, TupleT, Type

_LIST_HABITS = {
    "append": "write `{x} += [value]`", "push": "write `{x} += [value]`", "add": "write `{x} += [value]`",
    "extend": "write `{x} += other`", "insert": "write `{x} = {x}[:i] + [value] + {x}[i:]`",
    "pop": "read `{x}[-1]`, then write `{x} = {x}[:-1]`", "remove": "write `{x} = [x for x in {x} if x != value]`",
    "sort": "write `{x} = sorted({x})`", "reverse": "write `{x} = {x}[::-1]`",
    "copy": "a list is a value already; just assign it",
    "clear": "write `{x} = []`", "index": "use a loop over `enumerate({x})`",
    "count": "write `len([x for x in {x} if x == value])`",
    "join": "the text between comes first: `\", \".join({x})`",
}
_ASKED = {"contains": "write `value in {x}`", "includes": "write `value in {x}`", "has": "write `value in {x}`",
          "has_key": "write `key in {x}`", "map": "write `[f(y) for y in {x}]`", "filter": "write `[y for y in {x} if condition]`",
          "forEach": "write `for y in {x}:`", "isEmpty": "write `len({x}) == 0`"}
"""What other languages ask of lists, dicts and texts."""
_DICT_HABITS = {"update": "set the keys one by one: `{x}[key] = value`", "pop": "read it with `{x}[key]`",
                "setdefault": "read it with `{x}.get(key, value)`", "copy": "a dict is a value already; just assign it"}
_STR_HABITS = {"format": "put the value into the text: `\"Hello ${name}\"`", "encode": "text needs no encoding here",
               "isdigit": "write `matches(r\"\\d+\", {x})`", "index": "use `find`, which gives -1 where there is none",
               "capitalize": "use `title`, or `upper` and `lower`"}
_MODULES = {("json", "dumps"): "write `json(x)`", ("json", "loads"): "write `parse_json(s, T)`",
            ("re", "findall"): "write `findall(regex, s)`", ("re", "match"): "write `matches(regex, s)`",
            ("re", "fullmatch"): "write `matches(regex, s)`", ("re", "search"): "write `len(findall(regex, s)) > 0`"}


def python_module_call(body: Body, call: ast.Call, module: str, name: str) -> bool:
    """Report `json.dumps(x)` and the like; False where it is none of them."""
    help = _MODULES.get((module, name))
    if help is None:
        return False
    body.facts.error("E0322", f"`{module}.{name}` is Python's; it is built in here", call.function, "", help)
    return True


def infer_method(body: Body, call: ast.Call, function: ast.Attribute, hint: Type | None) -> Type:
    receiver = body.infer(function.value)
    name = function.name.text
    if not known(receiver):
        infer_all(body, call)
        return UNKNOWN
    table = STR_METHODS if is_str(receiver) else DICT_METHODS if isinstance(receiver, DictT) else {}
    if name not in table:
        infer_all(body, call)
        return _no_method(body, function, receiver, list(table))
    signature = table[name]
    args = match_arguments(body, call, f".{name}", signature.names, signature.names[: signature.required])
    if args is None:
        infer_all(body, call)
        return UNKNOWN
    before = body.facts.mark()
    found = _dict_method(body, name, receiver, args) if isinstance(receiver, DictT) else _str_method(body, name, args)
    if not body.facts.failed_since(before):
        body.facts.calls[call] = MethodCall(name, function.value, args)
    return found


def _no_method(body: Body, function: ast.Attribute, receiver: Type, methods: list[str]) -> Type:
    name, shown = function.name.text, function.value.text if isinstance(function.value, ast.Name) else "xs"
    habits = _LIST_HABITS if isinstance(receiver, ListT) else _DICT_HABITS if isinstance(receiver, DictT) else _STR_HABITS
    if name in habits and not isinstance(receiver, RecordT):
        what = "lists are values and never change" if isinstance(receiver, ListT) else f"there is no method `.{name}`"
        message = f"there is no `.{name}`: {what}" if isinstance(receiver, ListT) else what
        body.facts.error("E0322", message, function.name, "", habits[name].replace("{x}", shown))
        return UNKNOWN
    near = nearest(name, methods)
    help = f"did you mean `.{near}`?" if near else None
    if isinstance(receiver, OptionalT):
        help = "it may be None: test it first, `if x is not None:`"
    elif isinstance(receiver, RecordT) and receiver.field(name) is not None:
        help = f"`{name}` is a field: write it without `(…)`"
    elif name in ("len", "length", "size"):
        help = f"write `len({shown})`"
    elif name in _ASKED and not isinstance(receiver, RecordT):
        help = _ASKED[name].replace("{x}", shown)
    elif isinstance(receiver, ListT):
        help = "lists have no methods: builtins take them, as in `len(xs)`, and comprehensions go through them"
    body.facts.error("E0318", f"`{type_text(receiver)}` has no method `.{name}`", function.name, "unknown method", help)
    return UNKNOWN


_STR_RESULTS: dict[str, Type] = {
    "split": ListT(STR), "splitlines": ListT(STR), "startswith": BOOL, "endswith": BOOL, "find": INT, "count": INT,
}


def _str_method(body: Body, name: str, args: tuple[ast.Expr | None, ...]) -> Type:
    if name == "join":
        assert args[0] is not None
        found = body.infer(args[0], ListT(STR))
        texts = isinstance(found, ListT) and (is_str(found.element) or isinstance(found.element, NeverT))
        if known(found) and not texts:
            body.facts.error("E0301", f"`.join` takes a list of texts, found `{type_text(found)}`", args[0], "",
                             "write `[str(x) for x in xs]`" if isinstance(found, ListT) else None)
        return STR
    for position, arg in enumerate(args):
        if arg is not None:
            wanted = INT if name == "split" and position == 1 else STR
            body.expect(arg, wanted, f"argument {position + 1} of `.{name}`")
    return _STR_RESULTS.get(name, STR)


def _dict_method(body: Body, name: str, receiver: DictT, args: tuple[ast.Expr | None, ...]) -> Type:
    if name == "keys":
        return ListT(receiver.key)
    if name == "values":
        return ListT(receiver.value)
    if name == "items":
        return ListT(TupleT((receiver.key, receiver.value)))
    key, default = args
    assert key is not None
    body.expect(key, receiver.key, "the key")
    if default is None:
        return receiver.value if isinstance(receiver.value, OptionalT) else OptionalT(receiver.value)
    found = join(receiver.value, body.infer(default, receiver.value))
    if found is None:
        body.facts.error("E0301", f"the default must be `{type_text(receiver.value)}`", default)
        return UNKNOWN
    return found
