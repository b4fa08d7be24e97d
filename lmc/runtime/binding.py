"""A program bound to a model: what depends on both, made once.

    program     constraint 0: the automaton of `"yes" | "no"`        gen at ask.lmp:7:22
    session     tokens "yes", "no", "n", "o", …
    bound       constraint 0: its masks over these tokens

Binding also checks that the model can do what the program asks: turns need a chat template, pictures need eyes (which no model of
this version has).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from lmc.backend.program import CodeBlock, Instruction, Program
from lmc.diagnostics import Diagnostic, LmcError
from lmc.runtime.answers import Answers
from lmc.runtime.host import Externs
from lmc.runtime.plan import Opcode, Plan, plan_program


@dataclass(frozen=True, slots=True, eq=False)
class Bound:
    """`plans`: of each function's body; `constraints`: by the program's indexes; `named`: the program's named types."""

    program: Program
    session: Answers
    externs: Externs
    plans: Mapping[str, Plan]
    constraints: tuple[Any, ...]
    named: Mapping[str, object]


def bind(program: Program, session: Answers, externs: Externs, opcodes: Mapping[str, Opcode]) -> Bound:
    """Bind the program.  Raises `LmcError` with the places of all that this model cannot do."""
    faults = []
    if not session.has_template:
        faults += _turns_without_template(program, session.name)
    faults += _images(program, session.name)
    constraints = []
    users = _constraint_users(program)
    for index, dfa in enumerate(program.constraints):
        try:
            constraints.append(session.constraint(dfa))
        except LmcError as error:
            span = users[index].span if index in users else None
            faults += [replace(d, span=d.span or span) for d in error.diagnostics]
    if faults:
        raise LmcError(faults, program.sources)
    named = {t.name: t for t in program.types}
    return Bound(program, session, externs, plan_program(program, opcodes), tuple(constraints), named)


def instructions(block: CodeBlock) -> Iterator[Instruction]:
    """All instructions of a block and of those inside, in program order."""
    for instruction in block.instructions:
        yield instruction
        for inner in instruction.blocks:
            yield from instructions(inner)


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
    places = [i.span for code in program.functions.values() for i in instructions(code.body) if i.opcode == "context.image"]
    help = "describe the picture in text"
    return [Diagnostic("E0809", f"`image` needs a model that has eyes, and {model} has none", span, help=help) for span in places]


def _constraint_users(program: Program) -> dict[int, Instruction]:
    users: dict[int, Instruction] = {}
    for code in program.functions.values():
        for instruction in instructions(code.body):
            if "constraint" in instruction.attributes:
                users.setdefault(instruction.attributes["constraint"], instruction)
    return users
