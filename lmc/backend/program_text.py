"""A Program as text, for `lmc compile --emit=program`.

    def judge(r0: str, r1: list<str>) -> @Verdict        19 registers
      0  r2 = context.new()
      1  r3 = context.append(r2, "You are a judge.")[role = system]
      …
      4  r9, r10 = lm.fork(r5, r1)[site = "0"]           after 1
         block(r6, r7)
           0  …

One line for each instruction: its number in the block, outputs, inputs, attributes, and what it waits for beside its inputs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from lmc.backend.program import CodeBlock, FunctionCode, Input, Instruction, Program, Register
from lmc.regex.dfa import ByteDfa
from lmc.regex.grammar import Grammar

_INDENT = "     "


def format_program(program: Program) -> str:
    """The whole program; ends with a newline."""
    lines = [f"program {program.name}", f"entries {', '.join(program.entries) or '(none)'}"]
    lines += [f"constraint {i}: {_size(c)}, of {_short(c.source)}" for i, c in enumerate(program.constraints)]
    for extern in program.externs.values():
        params = ", ".join(f"{p.name}: {p.type}" for p in extern.params)
        lines.append(f"{'pure ' if extern.pure else ''}extern {extern.name}({params}) -> {extern.result}")
    for function in program.functions.values():
        lines += ["", *_function(function)]
    return "\n".join(lines) + "\n"


def _size(constraint: ByteDfa | Grammar) -> str:
    if isinstance(constraint, Grammar):
        return f"a grammar ({constraint.kind})"
    return f"{constraint.states} states, {constraint.table.shape[1]} byte classes"


def _function(f: FunctionCode) -> Iterator[str]:
    types = (["context"] if f.kind == "part" else []) + [str(p.type) for p in f.params]
    params = ", ".join(f"r{r}: {t}" for r, t in zip(f.body.params, types))
    effects = ", effects on the host" if f.host_effects else ""
    yield f"{f.kind} {f.name}({params}) -> {f.result}  # {f.registers} registers{effects}"
    yield from _block(f.body, "  ")


def _block(block: CodeBlock, indent: str) -> Iterator[str]:
    for index, instruction in enumerate(block.instructions):
        yield f"{indent}{index:<3}{_instruction(instruction)}"
        for inner in instruction.blocks:
            yield f"{indent}   block({', '.join(f'r{r}' for r in inner.params)})"
            yield from _block(inner, indent + _INDENT)


def _instruction(i: Instruction) -> str:
    outputs = ", ".join(f"r{r}" for r in i.outputs)
    inputs = ", ".join(_inputs(name, value) for name, value in i.inputs.items() if value != ())
    attributes = ", ".join(f"{name} = {_short(v)}" for name, v in i.attributes.items() if v is not None and v is not False)
    text = f"{outputs} = " if outputs else ""
    text += f"{i.opcode}({inputs})" + (f"[{attributes}]" if attributes else "")
    return text + (f"  after {', '.join(map(str, i.after))}" if i.after else "")


def _inputs(name: str, value: Input | tuple[Input, ...]) -> str:
    if isinstance(value, tuple):
        return f"{name} = [{', '.join(map(_input, value))}]"
    return f"{name} = {_input(value)}"


def _input(value: Input) -> str:
    return f"r{value.index}" if isinstance(value, Register) else _short(value)


def _short(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else f"{text[:60]}… ({len(text)} characters)"
