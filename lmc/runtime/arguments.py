"""Arguments for a function of a program, from Python or JSON, checked against its signature.

    bind_arguments(judge, (), {"essay": "…", "dimension": ["a"]}, types)
    error[E0851]: `judge` has no parameter `dimension`
     = help: did you mean `dimensions`?
             judge(essay: str, dimensions: list<str> = ["clarity"])
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from lmc.backend.program import FunctionCode, ParameterInfo, Program
from lmc.diagnostics import Diagnostic, UsageError
from lmc.runtime.host_types import HostTypes
from lmc.types import spell_type
from lmc.values import ValueMismatch, from_data


def find_entry(program: Program, name: str | None) -> FunctionCode:
    """The function to run: the one named, else `main`, else the only public one.  Raises `UsageError` with the list."""
    entries = program.entries
    if name is None:
        if "main" in entries:
            return program.functions["main"]
        if len(entries) == 1:
            return program.functions[entries[0]]
    elif name in entries:
        return program.functions[name]
    listed = "\n".join(signature_text(program.functions[e]) for e in entries)
    if not entries:
        message, help = f"`{program.name}` has no function to run", "define one: `def main(): …`"
    elif name is None:
        message, help = f"`{program.name}` has several functions and no `main`: say which", f"{program.name}:NAME, of\n{listed}"
    else:
        close = difflib.get_close_matches(name, entries, 1)
        message = f"`{program.name}` has no public function `{name}`"
        help = (f"did you mean `{close[0]}`?\n" if close else "it has\n") + listed
    raise UsageError(Diagnostic("E0852", message, None, help=help))


class WrongArguments(UsageError):
    """Arguments that do not fit.  `places`: of each diagnostic, where in the arguments: `essay`, `wand.length`, `dimensions[2]`, or
    nothing where there are too many."""

    def __init__(self, faults: Sequence[tuple[str, Diagnostic]]):
        super().__init__([diagnostic for _, diagnostic in faults])
        self.places = tuple(place for place, _ in faults)


def bind_arguments(code: FunctionCode, args: Sequence[Any], keywords: Mapping[str, Any], types: HostTypes) -> tuple[Any, ...]:
    """The values of the parameters, in order, defaults filled in.  Raises `WrongArguments` with everything that is wrong."""
    faults = []
    given = dict(keywords)
    if len(args) > len(code.params):
        faults.append(("", _fault(code, f"`{code.name}` takes {_count(len(code.params))}, found {len(args)}", None)))
    for parameter, value in zip(code.params, args):
        if parameter.name in given:
            faults.append((parameter.name, _fault(code, f"`{code.name}` got the argument `{parameter.name}` twice", None)))
        given[parameter.name] = value
    names = [p.name for p in code.params]
    faults += [(name, _unknown(code, name, names)) for name in given if name not in names]
    values = []
    for parameter in code.params:
        try:
            values.append(_value(code, parameter, given, types))
        except WrongArguments as error:
            faults += zip(error.places, error.diagnostics)
    if faults:
        raise WrongArguments(faults)
    return tuple(values)


def signature_text(code: FunctionCode) -> str:
    """`judge(essay: str, n: int = 3) -> @Verdict`, for people."""
    params = ", ".join(f"{p.name}: {_type(p)}" + ("" if p.default is None else f" = {p.default}") for p in code.params)
    return f"{code.name}({params}) -> {spell_type(code.result)}"


def _value(code: FunctionCode, parameter: ParameterInfo, given: Mapping[str, Any], types: HostTypes) -> Any:
    if parameter.name not in given:
        if parameter.default is None:
            message = f"`{code.name}` needs the argument `{parameter.name}`: {_type(parameter)}"
            raise WrongArguments([(parameter.name, _fault(code, message, None))])
        return from_data(json.loads(parameter.default), parameter.type)
    try:
        return types.from_host(given[parameter.name], parameter.type)
    except ValueMismatch as error:
        message = f"the argument `{parameter.name}` of `{code.name}`: {error}"
        raise WrongArguments([(parameter.name + error.path, _fault(code, message, None))]) from None


def _unknown(code: FunctionCode, name: str, names: list[str]) -> Diagnostic:
    close = difflib.get_close_matches(name, names, 1)
    return _fault(code, f"`{code.name}` has no parameter `{name}`", f"did you mean `{close[0]}`?" if close else None)


def _fault(code: FunctionCode, message: str, hint: str | None) -> Diagnostic:
    return Diagnostic("E0851", message, None, help=(hint + "\n" if hint else "") + signature_text(code))


def _type(parameter: ParameterInfo) -> str:
    return spell_type(parameter.type)


def _count(number: int) -> str:
    return "no arguments" if number == 0 else "1 argument" if number == 1 else f"{number} arguments"
