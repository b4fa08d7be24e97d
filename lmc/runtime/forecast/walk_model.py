"""Instructions of a walk that ask the model: each is a call in the tree, with the prompt that it will read as far as it is known.

    gen(max_tokens=80)                  writes 0 to 80 tokens
    gen(1..5)                           no more tokens than the longest text that the automaton accepts has bytes
    select(["yes", "no"])               writes the tokens of one of them

An option that is not known is taken as absent, and what it would bound is then unbounded.
"""

from __future__ import annotations

from collections.abc import Sequence

from lmc.backend.program import Instruction
from lmc.runtime.context import ContextError
from lmc.runtime.execute_select import checked_options
from lmc.runtime.failures import failure
from lmc.runtime.forecast.bounds import longest_text
from lmc.runtime.forecast.prompts import ForeseenPrompt, Written
from lmc.runtime.forecast.tree import Call
from lmc.runtime.forecast.values import Cell, Unknown, known, plain
from lmc.runtime.forecast.walk import Done, Frame, Walk
from lmc.runtime.forecast.walk_control import unknown_op
from lmc.runtime.frames import Exit
from lmc.runtime.options import PROGRAM_OPTIONS, OptionError, resolve_options
from lmc.types import STR, StrT
from lmc.values import text_of


def gen(walk: Walk, frame: Frame, instruction: Instruction, begin: int) -> Done:
    given = {name: plain(frame.operand(instruction, name).value, STR)
             for name in (*PROGRAM_OPTIONS, "seed") if name in instruction.inputs}
    try:
        options = resolve_options({k: v for k, v in given.items() if known(v)}, walk.options.overrides, walk.program.config)
    except OptionError as error:
        raise failure("E0841", str(error), instruction.span, kind="value") from None
    role = instruction.attributes["role"]
    try:
        prompt = walk.foreseer.prompt(frame.operand(instruction, "context").value, role, heal=options.heal)
    except ContextError as error:
        raise failure("E0840", str(error), instruction.span, kind="value") from None
    constraint = instruction.attributes.get("constraint")
    bounds = [] if isinstance(given.get("max_tokens"), Unknown) else [options.max_tokens]
    if constraint is not None and (longest := longest_text(walk.program.constraints[constraint])) is not None:
        bounds.append(longest)
    written = Written(0, min(bounds, default=None), instruction.span)
    _note(walk, frame, instruction, begin, prompt, written, constraint)
    cut = bool(options.stops) or isinstance(given.get("stop"), Unknown)
    context = walk.foreseer.extend(role, prompt, written, cut=cut)
    value = Unknown(instruction.types[1], instruction.span)
    frame.write(instruction, (Cell(context, False, begin + 1), Cell(value, True, begin + 1)))
    return Done(begin + 1)


def select(walk: Walk, frame: Frame, instruction: Instruction, begin: int) -> Done:
    prompt, options = _choice(walk, frame, instruction)
    sizes = prompt.options
    fewest, most = (min(sizes), max(sizes)) if sizes else (1, None)
    written = Written(fewest, most, instruction.span)
    _note(walk, frame, instruction, begin, prompt, written)
    context = walk.foreseer.extend(instruction.attributes["role"], prompt, written, cut=False)
    only = options[0] if options is not None and len(options) == 1 and isinstance(instruction.types[1], StrT) else None
    value = only if only is not None else Unknown(instruction.types[1], instruction.span)
    frame.write(instruction, (Cell(context, False, begin + 1), Cell(value, True, begin + 1)))
    return Done(begin + 1)


def score(walk: Walk, frame: Frame, instruction: Instruction, begin: int) -> Done:
    prompt, _ = _choice(walk, frame, instruction)
    _note(walk, frame, instruction, begin, prompt, Written(0, 0, instruction.span))
    frame.write(instruction, (Cell(Unknown(instruction.types[0], instruction.span), True, begin + 1),))
    return Done(begin + 1)


def template(walk: Walk, frame: Frame, instruction: Instruction, begin: int) -> Done:
    """Texts and generations in one request: the same calls, as if each was a request of its own."""
    frame.enter(instruction.blocks[0].params, (frame.operand(instruction, "context"),))
    exits, end = walk.block(frame, instruction.blocks[0], begin, instruction)
    frame.write(instruction, tuple(cell._replace(ready=end) for cell in exits[Exit.YIELD]))
    return Done(end)


def other_op(walk: Walk, frame: Frame, instruction: Instruction, begin: int) -> Done:
    """An op that this file does not know: if it is one of the model's, it is a call of which little is certain."""
    done = unknown_op(walk, frame, instruction, begin)
    if not instruction.opcode.startswith("lm."):
        walk.doubts += 1
        return done
    _note(walk, frame, instruction, begin, ForeseenPrompt((), None), Written(0, None, instruction.span))
    for register in instruction.outputs:
        frame.cells[register] = frame.cells[register]._replace(ready=begin + 1)
    return Done(begin + 1)


def _choice(walk: Walk, frame: Frame, instruction: Instruction) -> tuple[ForeseenPrompt, Sequence[str] | None]:
    found = plain(frame.operand(instruction, "options").value, STR)
    options = checked_options(tuple(text_of(o) for o in found), instruction.span) if known(found) else None
    context, role = frame.operand(instruction, "context").value, instruction.attributes["role"]
    try:
        return walk.foreseer.option_prompt(context, role, options), options
    except ContextError as error:
        raise failure("E0840", str(error), instruction.span, kind="value") from None


def _note(walk: Walk, frame: Frame, instruction: Instruction, begin: int, prompt: ForeseenPrompt, written: Written,
          constraint: int | None = None) -> None:
    kind, site = instruction.opcode.removeprefix("lm."), instruction.attributes.get("site")
    walk.note_call(Call(
        kind, instruction.span, walk.places.line(instruction.span), walk.function_of(frame, instruction),
        frame.path + site if site is not None else walk.path_of(frame, instruction),
        instruction.types[-1] if instruction.types else STR, prompt, written, walk.unsure, begin, constraint))
