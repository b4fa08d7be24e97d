"""What generations must match becomes automata, each built once; texts and generations of one turn become one request.

Before:

    func @person(%c: context) -> int {
      %c_1: context, %name: str = lm.gen(%c)[role = assistant, site = "0", regex = "[A-Z][a-z]+", follow = "\\n"]
      %length: int = pure.call(%name)[function = "len"]
      %stops: list<str> = list.make(".", "!")
      %c_2: context = context.append(%c_1, "\\nage: ")[role = assistant]
      %c_3: context, %age: int = lm.gen(%c_2, stop = %stops)[role = assistant, site = "1"]
      control.return(%length)
    }

After:

    automaton regex "[A-Z][a-z]+"
    automaton type "int"

    func @person(%c: context) -> int {
      %stops: list<str> = list.make(".", "!")
      %c_3: context, %name: str, %age: int = lm.template(%c) {
      ^(%t: context):
        %c_1: context, %name_1: str = lm.gen(%t)[role = assistant, site = "0", regex = "[A-Z][a-z]+", follow = "\\n", automaton = 0]
        %c_2: context = context.append(%c_1, "\\nage: ")[role = assistant]
        %c_3_1: context, %age_1: int = lm.gen(%c_2, stop = %stops)[role = assistant, site = "1", automaton = 1]
        control.yield(%c_3_1, %name_1, %age_1)
      }
      %length: int = pure.call(%name)[function = "len"]
      control.return(%length)
    }

Near miss, which does not change: a text that repeats what the turn has given is not known when the request begins.

    func @f(%c: context) -> str {
      %c_1: context, %name: str = lm.gen(%c, stop = ".")[role = assistant, site = "0"]
      %text: str = text.concat(". Is ", %name, " the name of a king? ")
      %c_2: context = context.append(%c_1, %text)[role = assistant]
      %c_3: context, %answer: str = lm.gen(%c_2)[role = assistant, site = "1"]
      control.return(%answer)
    }

Another near miss: the second reader of a context between needs it as it is, and an extern between is called before what follows.

    extern @note(text: str) -> none

    func @f(%c: context) -> str {
      %c_1: context, %plan: str = lm.gen(%c, stop = ".")[role = assistant, site = "0"]
      %c_2: context, %a: str = lm.gen(%c_1)[role = assistant, site = "1"]
      %c_3: context, %b: str = lm.gen(%c_1)[role = assistant, site = "2"]
      %done: none = extern.call("asked")[name = "note"]
      %c_4: context, %d: str = lm.gen(%c_3)[role = assistant, site = "3"]
      control.return(%d)
    }

Nothing changes but the number of requests: the texts are committed as the tokens of their own segments, never masked, and each
generation ends, heals and draws as if it was asked for alone.
"""

from __future__ import annotations

import dataclasses

from lmc.ir.builder import rebuild
from lmc.ir.constraints import AutomatonTable
from lmc.ir.core import Module, Op
from lmc.ir.ops import Gen, Template
from lmc.passes.rewriting import Rewritten, rewrite_function, rewrite_module
from lmc.passes.turn_runs import group_runs


def fold_constraints(module: Module) -> Module:
    """The module with its automata, and with a template for each run of generations in one turn.

    Raises `CompileError` (E0610) with all constraints of which no automaton can be made.
    """
    return group_runs(_with_automata(module), Template, lambda before, after: True)


def _with_automata(module: Module) -> Module:
    table = AutomatonTable(module.automata)
    numbered = rewrite_module(module, lambda function: rewrite_function(function, lambda op: _numbered(op, table)))
    table.raise_errors(dict(module.sources))
    if numbered is module and len(table.automata) == len(module.automata):
        return module
    return dataclasses.replace(numbered, automata=tuple(table.automata))


def _numbered(op: Op, table: AutomatonTable) -> Rewritten:
    if not isinstance(op, Gen):
        return [op], {}
    number = table.index(op)
    return [op if number == op.automaton else rebuild(op, automaton=number)], {}
