"""Renders a model's chat template, which is code from elsewhere, without letting it do anything but make text.

    render("{% for m in messages %}{{ m['role'] }}{% endfor %}", {"messages": […]})   -> "user"

Jinja's immutable sandbox, and on top of it: attributes and filters of a fixed list only, and one budget of work.  Every loop
round, literal, printed value, concatenation, product, method call and filter pays for the characters or elements it makes, so
that neither 10^9 rounds nor 10 GB of text happen; the template fails with `TemplateError` instead.  It knows nothing of roles or
models.
"""

from __future__ import annotations

import datetime
import functools
import json
from typing import Any

import jinja2
import jinja2.ext
from jinja2 import nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment

# Characters and elements that one rendering may make; real templates need some thousands.  A round costs as much as twenty of
# them, which ends an endless template in about half a second.
BUDGET = 5_000_000
_ROUND = 20
_MAX_SOURCE = 1_000_000

_STR_METHODS = frozenset(
    "strip lstrip rstrip split rsplit splitlines startswith endswith lower upper title capitalize replace join find rfind index "
    "count isdigit isalpha isspace removeprefix removesuffix".split()
)
_DICT_METHODS = frozenset("items keys values get".split())
_FILTERS = frozenset(
    "tojson trim length count join list first last map select selectattr reject rejectattr default d string int float lower "
    "upper capitalize title replace items dictsort unique sort reverse safe min max sum abs round".split()
)


class TemplateError(Exception):
    """The template cannot be used; the message says why."""


def render(source: str, variables: dict[str, Any]) -> str:
    """The template's text.  Raises TemplateError for what is wrong with the template or forbidden, and for what it raises
    itself."""
    if len(source) > _MAX_SOURCE:
        raise TemplateError(f"it has {len(source):,} characters, at most {_MAX_SOURCE:,} are read")
    environment = _Sandbox()
    try:
        tree = environment.parse(source)
        _meter_loops(tree)
        return environment.from_string(tree).render(**variables)
    except RecursionError as error:
        raise TemplateError("it calls itself without end") from error
    except (jinja2.TemplateError, ArithmeticError, ValueError, TypeError, LookupError, AttributeError, MemoryError) as error:
        raise TemplateError(str(error) or error.__class__.__name__) from error


class _Budget:
    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = BUDGET

    def pay(self, amount: int) -> str:
        self.left -= amount
        if self.left < 0:
            raise TemplateError("it loops for too long or makes too much text")
        # Paid from within the template as a printed value, which must print nothing.
        return ""


class _Generation(jinja2.ext.Extension):
    """`{% generation %}…{% endgeneration %}`, which only marks text for training, prints its body."""

    tags = {"generation"}

    def parse(self, parser: Any) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


class _Sandbox(ImmutableSandboxedEnvironment):
    intercepted_binops = frozenset(["+", "*", "**", "%", "//", "/", "-"])

    def __init__(self) -> None:
        self.budget = _Budget()
        super().__init__(
            trim_blocks=True, lstrip_blocks=True, finalize=self._printed, extensions=["jinja2.ext.loopcontrols", _Generation]
        )
        self.filters = {name: self._metered(self.filters[name]) for name in _FILTERS if name in self.filters}
        self.filters |= {"tojson": self._tojson, "replace": self._replace, "join": self._join, "string": self._string}
        self.globals = {
            "range": self._range, "namespace": jinja2.utils.Namespace, "dict": dict, "raise_exception": _raise,
            "strftime_now": _strftime_now, "lmc_pay": self.budget.pay, "lmc_concat": self._concat,
            "lmc_paid": self._paid,
        }

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        if isinstance(obj, str):
            return attr in _STR_METHODS
        if isinstance(obj, dict):
            return attr in _DICT_METHODS
        return isinstance(obj, (jinja2.runtime.LoopContext, jinja2.utils.Namespace)) and not attr.startswith("_")

    def wrap_str_format(self, value: Any) -> None:
        # `str.format` is no exception to the list above: its widths make text of any length.
        return None

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        if operator in ("**", "%") and not (_small(left) and _small(right)):
            raise TemplateError(f"`{operator}` is for small numbers")
        if operator == "*":
            self.budget.pay(max(_repeated(left, right), _repeated(right, left)))
        result = super().call_binop(context, operator, left, right)
        self.budget.pay(_size(result))
        return result

    def call(self, context: Any, callee: Any, *args: Any, **kwargs: Any) -> Any:
        owner, name = getattr(callee, "__self__", None), getattr(callee, "__name__", "")
        if isinstance(owner, str):
            # What Jinja adds for its own callables.
            kwargs = {key: value for key, value in kwargs.items() if not key.startswith("_")}
        if isinstance(owner, str) and name == "replace":
            return self._replace(owner, *args, **kwargs)
        if isinstance(owner, str) and name == "join":
            return self._join(*args, owner)
        result = super().call(context, callee, *args, **kwargs)
        self.budget.pay(1 + _size(result))
        return result

    def _printed(self, value: Any) -> Any:
        self._pay_text(value)
        return value

    def _pay_text(self, value: Any) -> None:
        # A list that holds one list many times is small until it is written out: each part is paid for before that.
        parts = [value]
        while parts:
            part = parts.pop()
            self.budget.pay(1 + _size(part))
            if isinstance(part, (list, tuple)):
                parts += part
            elif isinstance(part, dict):
                parts += part.keys()
                parts += part.values()

    def _metered(self, filter: Any) -> Any:
        # Jinja marks the filters that want the context or environment by attributes of the function: `wraps` keeps them.
        @functools.wraps(filter)
        def run(*args: Any, **kwargs: Any) -> Any:
            for argument in args:
                self._paid(argument)
            result = filter(*args, **kwargs)
            self.budget.pay(1 + _size(result))
            return result

        return run

    def _paid(self, value: Any) -> Any:
        # What sorts or compares lists looks at all that is in them.
        if isinstance(value, (list, tuple, dict)):
            self._pay_text(value)
        return value

    def _range(self, *args: int) -> range:
        numbers = range(*args)
        self.budget.pay(len(numbers))
        return numbers

    def _concat(self, *parts: Any) -> str:
        return "".join(map(self._string, parts))

    def _string(self, value: Any) -> str:
        self._pay_text(value)
        return str(value)

    def _replace(self, text: Any, old: str, new: str, count: int | None = None) -> str:
        text, old, new = self._string(text), self._string(old), self._string(new)
        times = text.count(old) if count is None else min(count, text.count(old))
        self.budget.pay(len(text) + max(times, 0) * len(new))
        return text.replace(old, new, -1 if count is None else count)

    def _join(self, items: Any, separator: str = "", attribute: str | None = None) -> str:
        parts = [self._string(item if attribute is None else self.getitem(item, attribute)) for item in items]
        self.budget.pay(len(parts) * len(separator))
        return separator.join(parts)

    def _tojson(self, value: Any, ensure_ascii: bool = False, indent: int | None = None, separators: Any = None,
                sort_keys: bool = False) -> str:
        # As transformers writes it: no escapes for HTML, and characters as they are.
        self._pay_text(value)
        text = json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)
        self.budget.pay(len(text))
        return text


def _meter_loops(tree: nodes.Template) -> None:
    # Each round of a loop and each call of a macro pays for the literal text it can print.
    for body in list(tree.find_all((nodes.For, nodes.Macro))):
        literal = sum(len(data.data) for data in body.find_all(nodes.TemplateData))
        payment = _global_call("lmc_pay", [nodes.Const(_ROUND + literal)], body.lineno)
        body.body.insert(0, nodes.Output([payment], lineno=body.lineno))
    _meter_operators(tree)


def _meter_operators(node: nodes.Node) -> None:
    # `a ~ b` becomes a metered call, and what is compared is paid for first.
    for name, value in list(node.iter_fields()):
        if isinstance(value, list):
            setattr(node, name, [_metered_operator(item) for item in value])
        else:
            setattr(node, name, _metered_operator(value))
    for child in node.iter_child_nodes():
        _meter_operators(child)


def _metered_operator(value: Any) -> Any:
    if isinstance(value, nodes.Concat):
        return _global_call("lmc_concat", value.nodes, value.lineno)
    if isinstance(value, nodes.Compare):
        return nodes.Compare(_global_call("lmc_paid", [value.expr], value.lineno), value.ops, lineno=value.lineno)
    return value


def _global_call(name: str, args: list[nodes.Expr], line: int) -> nodes.Call:
    return nodes.Call(nodes.Name(name, "load", lineno=line), args, [], None, None, lineno=line)


def _small(value: Any) -> bool:
    return isinstance(value, (int, float)) and abs(value) <= 1000


def _repeated(sequence: Any, times: Any) -> int:
    return len(sequence) * max(times, 0) if isinstance(sequence, (str, list, tuple)) and isinstance(times, int) else 0


def _size(value: Any) -> int:
    if isinstance(value, (str, list, tuple, dict)):
        return len(value)
    return value.bit_length() // 8 if isinstance(value, int) else 1


def _raise(message: str) -> None:
    raise jinja2.TemplateError(message)


def _strftime_now(format: str) -> str:
    return datetime.datetime.now().strftime(format)
