"""All instructions of a compiled program, those of nested blocks included: for what looks at a program before it runs."""

from __future__ import annotations

from collections.abc import Iterator

from lmc.backend.program import CodeBlock, Instruction, Program


def instructions(block: CodeBlock) -> Iterator[Instruction]:
    """Those of a block and of the blocks inside, in program order."""
    for instruction in block.instructions:
        yield instruction
        for inner in instruction.blocks:
            yield from instructions(inner)


def program_instructions(program: Program) -> Iterator[Instruction]:
    """Those of all functions."""
    for code in program.functions.values():
        yield from instructions(code.body)
