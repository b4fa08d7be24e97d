"""The table of instructions of a walk: which function goes through which."""

from __future__ import annotations

from lmc.runtime.forecast import walk_branches, walk_control, walk_model, walk_values
from lmc.runtime.forecast.walk import Opcode
from lmc.runtime.frames import Exit

#: By opcode; `?` is any other.
WALK_OPCODES: dict[str, Opcode] = {
    "context.new": walk_values.context_new,
    "context.append": walk_values.context_append,
    "lm.gen": walk_model.gen,
    "lm.template": walk_model.template,
    "lm.speculate": walk_model.template,
    "lm.select": walk_model.select,
    "lm.score": walk_model.score,
    "lm.fork": walk_branches.fork,
    "lm.branches": walk_branches.branches,
    "lm.map": walk_branches.comprehension,
    "control.if": walk_control.control_if,
    "control.try": walk_control.control_try,
    "control.for": walk_control.control_for,
    "control.while": walk_control.control_while,
    "control.yield": walk_values.leave(Exit.YIELD),
    "control.break": walk_values.leave(Exit.BREAK),
    "control.continue": walk_values.leave(Exit.CONTINUE),
    "control.return": walk_values.leave(Exit.RETURN),
    "control.fail": walk_values.fail,
    "control.assert": walk_values.assertion,
    "call": walk_control.call,
    "extern.call": walk_values.extern_call,
    "io.print": walk_values.nothing,
    "io.input": walk_values.read_input,
    "const": walk_values.const,
    "text.concat": walk_values.text_concat,
    "record.make": walk_values.record_make,
    "record.get": walk_values.record_get,
    "union.is": walk_values.union_is,
    "list.make": walk_values.list_make,
    "tuple.get": walk_values.tuple_get,
    "dict.make": walk_values.dict_make,
    "pure.call": walk_values.pure_call,
    "hint.prefill": walk_values.nothing,
    "hint.keep": walk_values.nothing,
    "hint.release": walk_values.nothing,
    "hint.pin": walk_values.nothing,
    "?": walk_model.other_op,
}
