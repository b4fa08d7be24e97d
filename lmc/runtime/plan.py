"""What the machine works out once for each block: who waits for whom, and what needs no task.

    0: r1 = context.append(r0, "…")      waits for nothing     inline
    1: r2, r3 = lm.gen(r1)               waits for 0           a task
    2: r4 = call(r5)                     waits for nothing     a task, starts beside 1
    3: control.return(r3, r4)            waits for 1 and 2     inline

An instruction waits for those that write what it reads, in this block, and for those in its `after`.  A block whose instructions
are all inline runs from first to last without the event loop.  The table of opcodes is given; this file knows no opcode.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from lmc.backend.program import CodeBlock, FunctionCode, Instruction, Program
from lmc.diagnostics import Inlined


@dataclass(frozen=True, slots=True)
class Opcode:
    """What an opcode does: `run(frame, step) -> Outcome | None`, a coroutine function where `waits`.

    `transparent` ones wait only if something in their blocks does.
    """

    run: Callable[..., Any]
    waits: bool = False
    transparent: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """An instruction, its blocks' plans, and what runs it.  `inline`: without a task; `calls`: those in whose place it stands in its
    block, outermost first."""

    instruction: Instruction
    opcode: Opcode
    blocks: tuple[Plan, ...]
    inline: bool
    calls: tuple[Inlined, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """A block.  `waits_for[i]` counts the steps that step `i` waits for, `wakes[i]` lists those that wait for it.

    `inline`: every step is.  `host_effects`: something in it reaches a non-pure extern, `print` or `input`.
    """

    params: tuple[int, ...]
    steps: tuple[Step, ...]
    waits_for: tuple[int, ...]
    wakes: tuple[tuple[int, ...], ...]
    inline: bool
    host_effects: bool


def plan_program(program: Program, opcodes: Mapping[str, Opcode]) -> dict[str, Plan]:
    """The plan of each function's body.  An opcode that is not in the table fails here, before anything runs."""
    return {name: _plan_block(code.body, (), program.functions, opcodes) for name, code in program.functions.items()}


def inlined_calls(instruction: Instruction) -> tuple[Inlined, ...]:
    """The calls in whose place the instruction stands in its function, outermost first."""
    return instruction.span.calls if instruction.span is not None else ()


def _plan_block(block: CodeBlock, around: tuple[Inlined, ...], functions: Mapping[str, FunctionCode],
                opcodes: Mapping[str, Opcode]) -> Plan:
    """`around`: the inlined calls that the block stands in."""
    steps = tuple(_plan_step(i, around, functions, opcodes) for i in block.instructions)
    waits = [_waits(index, block) for index in range(len(steps))]
    wakes: list[list[int]] = [[] for _ in steps]
    for index, earlier in enumerate(waits):
        for other in earlier:
            wakes[other].append(index)
    return Plan(
        block.params,
        steps,
        tuple(len(w) for w in waits),
        tuple(map(tuple, wakes)),
        inline=all(s.inline for s in steps),
        host_effects=any(_host_effects(s, functions) for s in steps),
    )


def _plan_step(instruction: Instruction, around: tuple[Inlined, ...], functions: Mapping[str, FunctionCode],
               opcodes: Mapping[str, Opcode]) -> Step:
    opcode, calls = opcodes[instruction.opcode], inlined_calls(instruction)
    blocks = tuple(_plan_block(b, calls, functions, opcodes) for b in instruction.blocks)
    inline = not opcode.waits or opcode.transparent and all(b.inline for b in blocks)
    shared = next((i for i, (a, b) in enumerate(zip(calls, around)) if a != b), min(len(calls), len(around)))
    return Step(instruction, opcode, blocks, inline, calls[shared:])


def _waits(index: int, block: CodeBlock) -> set[int]:
    instruction = block.instructions[index]
    # Of several writers of a register (the arms of a loop never are in one block) the last before the reader counts.
    writers = {r: i for i, other in enumerate(block.instructions[:index]) for r in other.outputs}
    waits = {writers[r] for r in instruction.reads if r in writers} | set(instruction.after)
    assert all(w < index for w in waits), (instruction.opcode, waits)
    return waits


def _host_effects(step: Step, functions: Mapping[str, FunctionCode]) -> bool:
    instruction = step.instruction
    match instruction.opcode:
        case "io.print" | "io.input":
            return True
        case "extern.call":
            return not instruction.attributes.get("pure", False)
        case "call":
            return functions[instruction.attributes["callee"]].host_effects
    return any(b.host_effects for b in step.blocks)
