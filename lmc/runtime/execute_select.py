"""`lm.select` and `lm.score`: options by the log-probability of their tokens, all scored side by side.

    prompt    … Label:                       ids up to `start`, the same for all options
    options   [" positive"] [" negative"] [" neut", "ral"]
    means     -0.2           -1.9          -2.4            -> "positive"

The three methods are those of LANGUAGE §8; on a tie the first option wins.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lmc.backend.program import Instruction
from lmc.diagnostics import RunError, Span
from lmc.runtime.context import ContextError, OptionPrompts, Prompt
from lmc.runtime.failures import failure, located
from lmc.runtime.frames import Frame
from lmc.runtime.plan import Step
from lmc.runtime.request import Origin, Scored, ScoreRequest, Usage
from lmc.types import SCORED
from lmc.values import Record, from_text, text_of


async def select(frame: Frame, step: Step) -> None:
    instruction, instance = step.instruction, frame.instance
    options = _options(frame, instruction)
    prompts = _prompts(frame, step, options)
    call = instance.count_call(frame.function(instruction), instruction.span)
    instance.tokens_left(frame.function(instruction), instruction.span)
    logprobs, usage = await _logprobs(frame, step, prompts.options, prompts.start)
    method = instruction.attributes.get("method", "token_length_normalized")
    if method == "greedy_token":
        best = greedy_choice([ids[prompts.start:] for ids in prompts.options], logprobs)
    elif method == "unconditional_likelihood_normalized":
        begin = instance.bound.session.begin_id
        alone = [(begin, *ids[prompts.start:]) for ids in prompts.options]
        unconditional, more = await _logprobs(frame, step, alone, 1)
        usage += more
        best = best_option([_mean(c) - _mean(u) for c, u in zip(logprobs, unconditional)])
    else:
        best = best_option([_mean(row) for row in logprobs])
    chosen = prompts.options[best][prompts.start:]
    context = frame.operand(instruction, "context")
    if instance.bound.session.remote is None:
        # A server counts for itself.
        usage += Usage(generated=len(chosen))
    instance.note_usage(call, _origin(frame, step), prompts.prefix, context.written, usage)
    after = instance.bound.session.prompter.extend(context, instruction.attributes["role"], Prompt(prompts.prefix, b""), chosen, "")
    frame.write(instruction, (after, from_text(options[best], instruction.types[1])))


async def score(frame: Frame, step: Step) -> None:
    instruction = step.instruction
    options = _options(frame, instruction)
    prompts = _prompts(frame, step, options)
    call = frame.instance.count_call(frame.function(instruction), instruction.span)
    logprobs, usage = await _logprobs(frame, step, prompts.options, prompts.start)
    written = frame.operand(instruction, "context").written
    frame.instance.note_usage(call, _origin(frame, step), prompts.prefix, written, usage)
    scored = tuple(Record(SCORED, (option, sum(row))) for option, row in zip(options, logprobs))
    frame.write(instruction, (scored,))


def best_option(scores: Sequence[float]) -> int:
    """The index of the highest score; the first of equal ones."""
    return max(range(len(scores)), key=lambda i: scores[i])


def greedy_choice(ids: Sequence[Sequence[int]], logprobs: Sequence[Sequence[float]]) -> int:
    """Walk token by token and keep the options with the likeliest next token, until one is left.

    Options that are left share all tokens so far, so their next tokens are comparable.  Where one of them ends there (it begins
    the others), nothing says whether the model would end: the highest mean log-probability decides between all that are left.
    """
    left = list(range(len(ids)))
    place = 0
    while len(left) > 1:
        if any(len(ids[i]) <= place for i in left):
            return left[best_option([_mean(logprobs[i]) for i in left])]
        token = ids[max(left, key=lambda i: logprobs[i][place])][place]
        left = [i for i in left if ids[i][place] == token]
        place += 1
    return left[0]


def _mean(row: Sequence[float]) -> float:
    return sum(row) / len(row)


def _options(frame: Frame, instruction: Instruction) -> tuple[str, ...]:
    return checked_options(tuple(text_of(o) for o in frame.operand(instruction, "options")), instruction.span)


def checked_options(options: tuple[str, ...], span: Span | None) -> tuple[str, ...]:
    """The options of a choice.  Raises `RunError` where there is nothing to choose from."""
    fault = None
    if not options:
        fault = "there are no options to choose from"
    elif "" in options:
        fault = f"option {options.index('')} is empty"
    elif len(set(options)) < len(options):
        twice = next(o for i, o in enumerate(options) if o in options[:i])
        fault = f"the option `{twice}` is there more than once"
    if fault:
        raise failure("E0842", fault, span, kind="value", help="give at least one option, each once and none empty")
    return options


def _prompts(frame: Frame, step: Step, options: tuple[str, ...]) -> OptionPrompts:
    instruction = step.instruction
    try:
        return frame.instance.bound.session.prompter.option_prompts(
            frame.operand(instruction, "context"), instruction.attributes["role"], list(options), heal=True)
    except ContextError as error:
        raise failure("E0840", str(error), instruction.span, kind="value") from None


async def _logprobs(frame: Frame, step: Step, rows: Sequence[tuple[int, ...]],
                    start: int) -> tuple[list[tuple[float, ...]], Usage]:
    """Of each row's ids from `start` on.  A row that begins with what is scored gets the begin token before it."""
    if start == 0:
        rows, start = [(frame.instance.bound.session.begin_id, *ids) for ids in rows], 1
    origin = _origin(frame, step)
    try:
        chain, told = frame.chain_of(step.instruction), frame.instance.attempts.append
        requests = [ScoreRequest(tuple(ids), start, origin, chain, told) for ids in rows]
        async with frame.instance.turn:
            scored: list[Scored] = await frame.instance.bound.session.score(requests)
    except RunError as error:
        raise located(error, step.instruction.span) from None
    return [one.logprobs for one in scored], sum((one.usage for one in scored), Usage())


def _origin(frame: Frame, step: Step) -> Origin:
    instruction = step.instruction
    kind = instruction.opcode.removeprefix("lm.")
    return Origin(kind, frame.function(instruction), frame.path_of(step), instruction.span, instruction.types[-1])
