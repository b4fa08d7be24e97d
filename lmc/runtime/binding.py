"""A program bound to a model: what depends on both, made once.

    program     constraint 0: the automaton of `"yes" | "no"`        gen at ask.lmp:7:22
    session     tokens "yes", "no", "n", "o", …
    bound       constraint 0: its masks over these tokens

Binding also checks that the model can do what the program asks: turns need a chat template, pictures need eyes (which no model of
this version has), a value's shortest form must fit into the `max_tokens` that its `gen` names, and a model over the network must know
the options.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from lmc.backend.program import Instruction, Program
from lmc.diagnostics import Diagnostic, LmcError
from lmc.runtime.answers import Answers
from lmc.runtime.constraint import TokenConstraint, too_few_tokens
from lmc.runtime.host import Externs
from lmc.runtime.instructions import instructions, program_instructions
from lmc.runtime.options import GenOptions
from lmc.runtime.plan import Opcode, Plan, Step, plan_program
from lmc.runtime.remote.fitting import remote_faults


@dataclass(frozen=True, slots=True, eq=False)
class Bound:
    """`plans`: of each function's body; `constraints`: by the program's indexes; `named`: the program's named types; `pinned`: the ids
    of the contexts that were pinned, by the step that does it; `options`: of generations whose options are all literals, by their steps,
    as long as a run gives none."""

    program: Program
    session: Answers
    externs: Externs
    plans: Mapping[str, Plan]
    constraints: tuple[Any, ...]
    named: Mapping[str, object]
    pinned: dict[Step, tuple[int, ...]] = field(default_factory=dict)
    options: dict[Step, GenOptions] = field(default_factory=dict)


def bind(program: Program, session: Answers, externs: Externs, opcodes: Mapping[str, Opcode]) -> Bound:
    """Bind the program.  Raises `LmcError` with the places of all that this model cannot do."""
    faults = model_faults(program, session.name, has_template=session.has_template)
    if session.remote is not None:
        faults += remote_faults(program, session.remote)
    constraints = []
    users = _constraint_users(program)
    for index, dfa in enumerate(program.constraints):
        try:
            constraints.append(session.constraint(dfa))
        except LmcError as error:
            span = users[index].span if index in users else None
            faults += [replace(d, span=d.span or span) for d in error.diagnostics]
    if not faults:
        faults = _values_that_never_fit(program, constraints)
    if faults:
        # Once each: a function that was inlined stands in several places.
        raise LmcError(dict.fromkeys(faults), program.sources)
    named = {t.name: t for t in program.types}
    return Bound(program, session, externs, plan_program(program, opcodes), tuple(constraints), named)


def model_faults(program: Program, name: str, *, has_template: bool) -> list[Diagnostic]:
    """What the program asks for that the model of this name does not have."""
    faults = [] if has_template else _turns_without_template(program, name)
    return faults + _images(program, name)


def _turns_without_template(program: Program, model: str) -> list[Diagnostic]:
    """One diagnostic for each function that opens a turn, at the first."""
    faults = []
    for code in program.functions.values():
        roles = (i for i in instructions(code.body) if i.attributes.get("role", "raw") != "raw")
        first = next(roles, None)
        if first is not None:
            message = f"`{first.attributes['role']}:` needs a chat template, and {model} has none"
            help = "take an instruction-tuned model, put a `chat_template.jinja` into its folder, or write the prompt in `raw:`"
            faults.append(Diagnostic("E0808", message, first.span, help=help))
    return faults


def _images(program: Program, model: str) -> list[Diagnostic]:
    places = [i.span for i in program_instructions(program) if i.opcode == "context.image"]
    help = "describe the picture in text"
    return [Diagnostic("E0809", f"`image` needs a model that has eyes, and {model} has none", span, help=help) for span in places]


def _values_that_never_fit(program: Program, constraints: list[Any]) -> list[Diagnostic]:
    """Where `max_tokens` is written as a number; else the engine sees it, before the first token."""
    faults = []
    for instruction in program_instructions(program):
        most, number = instruction.inputs.get("max_tokens"), instruction.attributes.get("constraint")
        # A cassette's stand-in for a constraint knows no lengths.
        if isinstance(most, int) and number is not None and isinstance(constraints[number], TokenConstraint):
            # The first token may spell reopened text and the beginning of the value together: the engine knows, one less may do.
            fewest = constraints[number].min_tokens(enough=most + 1)
            if fewest > most + 1:
                faults.append(too_few_tokens(fewest, most, instruction.span))
    return faults


def _constraint_users(program: Program) -> dict[int, Instruction]:
    users: dict[int, Instruction] = {}
    for instruction in program_instructions(program):
        if "constraint" in instruction.attributes:
            users.setdefault(instruction.attributes["constraint"], instruction)
    return users
