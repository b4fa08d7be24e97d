"""The table of opcodes: which function does the work of which, and whether it may have to wait."""

from __future__ import annotations

from lmc.runtime import (
    execute_branches, execute_control, execute_hints, execute_host, execute_model, execute_select, execute_template, execute_values,
)
from lmc.runtime.plan import Opcode

#: Every opcode of a Program.  One that is not here makes binding fail.
OPCODES: dict[str, Opcode] = {
    "context.new": Opcode(execute_values.context_new),
    "context.append": Opcode(execute_values.context_append),
    "lm.gen": Opcode(execute_model.gen, waits=True),
    "lm.template": Opcode(execute_template.template, waits=True),
    "lm.speculate": Opcode(execute_template.template, waits=True),
    "lm.select": Opcode(execute_select.select, waits=True),
    "lm.score": Opcode(execute_select.score, waits=True),
    "lm.fork": Opcode(execute_branches.fork, waits=True),
    "lm.branches": Opcode(execute_branches.branches, waits=True),
    "lm.map": Opcode(execute_branches.comprehension, waits=True),
    "control.if": Opcode(execute_control.control_if, waits=True, transparent=True),
    "control.try": Opcode(execute_control.control_try, waits=True, transparent=True),
    "control.for": Opcode(execute_control.control_for, waits=True),
    "control.while": Opcode(execute_control.control_while, waits=True),
    "control.yield": Opcode(execute_values.end_yield),
    "control.break": Opcode(execute_values.end_break),
    "control.continue": Opcode(execute_values.end_continue),
    "control.return": Opcode(execute_values.end_return),
    "control.fail": Opcode(execute_values.fail),
    "control.assert": Opcode(execute_values.assertion),
    "call": Opcode(execute_control.call, waits=True),
    "extern.call": Opcode(execute_host.extern_call, waits=True),
    "io.print": Opcode(execute_host.print_values),
    "io.input": Opcode(execute_host.read_input, waits=True),
    "const": Opcode(execute_values.const),
    "text.concat": Opcode(execute_values.text_concat),
    "record.make": Opcode(execute_values.record_make),
    "record.get": Opcode(execute_values.record_get),
    "union.is": Opcode(execute_values.union_is),
    "list.make": Opcode(execute_values.list_make),
    "tuple.get": Opcode(execute_values.tuple_get),
    "dict.make": Opcode(execute_values.dict_make),
    "pure.call": Opcode(execute_values.pure_call),
    "hint.prefill": Opcode(execute_hints.prefill),
    "hint.keep": Opcode(execute_hints.keep),
    "hint.release": Opcode(execute_hints.release),
    "hint.pin": Opcode(execute_hints.pin),
}
