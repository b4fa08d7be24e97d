"""`lm.gen`: from a context and options to a request, and from what came back to a typed value and the next context.

    r5, r6 = lm.gen(r4, max_tokens = 20)[role = assistant, constraint = 0, site = "0"]

A typed value is valid or an error; no part of one is ever handed on.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

from lmc.backend.program import Instruction, Register
from lmc.diagnostics import RunError
from lmc.runtime.context import Context, ContextError, Prompt
from lmc.runtime.failures import failure, located
from lmc.runtime.frames import Frame
from lmc.runtime.options import GenOptions, OptionError, resolve_options
from lmc.runtime.plan import Step
from lmc.runtime.report import Recorded, TokenChoice
from lmc.runtime.request import Finish, Generated, GenerateRequest, Origin
from lmc.types import spell_type
from lmc.values import ValueMismatch, from_text

#: The operands of a `gen` that are options.
GEN_OPTIONS = ("stop", "max_tokens", "min_tokens", "temperature", "top_p", "top_k", "min_p", "seed", "frequency_penalty",
               "presence_penalty", "repetition_penalty", "logit_bias", "logprobs", "heal", "ignore_eos", "stream")


@dataclass(frozen=True, slots=True)
class Asked:
    """A generation on its way: the step that it belongs to, the context that it goes on from, and the request made of both."""

    step: Step
    context: Context
    prompt: Prompt
    options: GenOptions
    request: GenerateRequest


async def gen(frame: Frame, step: Step) -> None:
    instance = frame.instance
    asked = ask(frame, step, frame.operand(step.instruction, "context"), instance.usage.generated)
    call = instance.count_call(frame.function(step.instruction), step.instruction.span)
    generated = await _generate(frame, step, asked.request)
    value = take(frame, asked, call, generated)
    frame.write(step.instruction, (context_after(frame, asked, generated), value))


def ask(frame: Frame, step: Step, context: Context, written: int) -> Asked:
    """What a `gen` asks of the model; `written`: the tokens that the run has generated so far.

    Nothing is changed by it.  Raises `RunError` where an option or the context is not right, or no tokens are left.
    """
    instruction, instance = step.instruction, frame.instance
    options = _options(frame, step)
    try:
        prompt = instance.bound.session.prompter.prompt(context, instruction.attributes["role"], heal=options.heal)
    except ContextError as error:
        raise failure("E0840", str(error), instruction.span, kind="value") from None
    left = instance.tokens_left(frame.function(instruction), instruction.span, written)
    return Asked(step, context, prompt, options, _request(frame, instruction, prompt, options, left))


def take(frame: Frame, asked: Asked, call: int, generated: Generated) -> Any:
    """The value of what was generated, which goes into the run's numbers as call `call`.  Raises as `read_value` does."""
    instance, instruction, request = frame.instance, asked.step.instruction, asked.request
    instance.note_usage(call, request.origin, request.prompt, asked.context.written, generated.usage)
    if asked.options.logprobs:
        instance.recorded[call] = _recorded(frame, instruction, generated)
    value = read_value(frame, asked, generated)
    if generated.finish is Finish.LENGTH and instance.bound.session.limit - len(request.prompt) < request.max_tokens:
        instance.warnings.append(f"{instruction.span}: the text ends where the model's context ends")
    return value


def read_value(frame: Frame, asked: Asked, generated: Generated) -> Any:
    """The value of the second result's type.  Nothing is changed by it.  Raises `RunError` where the value was cut."""
    instruction, request = asked.step.instruction, asked.request
    if generated.finish is Finish.LENGTH and request.max_tokens < asked.options.max_tokens:
        raise frame.instance.out_of_tokens(frame.function(instruction), instruction.span)
    if request.constraint is not None and not generated.valid:
        raise _cut(frame, instruction, request, generated)
    try:
        return from_text(generated.text, instruction.types[1])
    except ValueMismatch as error:
        raise failure("E0836", f"the generated value is not of its type: {error}", instruction.span, kind="invalid",
                      raw=generated.text) from None


def context_after(frame: Frame, asked: Asked, generated: Generated) -> Context:
    role = asked.step.instruction.attributes["role"]
    return frame.instance.bound.session.prompter.extend(asked.context, role, asked.prompt, generated.ids, generated.carry)


def _options(frame: Frame, step: Step) -> GenOptions:
    instruction, instance = step.instruction, frame.instance
    known = None if instance.options.overrides else instance.bound.options.get(step)
    if known is not None:
        return known
    names = [name for name in GEN_OPTIONS if name in instruction.inputs]
    try:
        found = resolve_options({name: frame.operand(instruction, name) for name in names}, instance.options.overrides,
                                instance.bound.program.config)
    except OptionError as error:
        raise failure("E0841", str(error), instruction.span, kind="value") from None
    if not instance.options.overrides and not any(type(instruction.inputs[name]) is Register for name in names):
        instance.bound.options[step] = found
    return found


def _request(frame: Frame, instruction: Instruction, prompt: Prompt, options: GenOptions, tokens_left: int) -> GenerateRequest:
    bound, attributes = frame.instance.bound, instruction.attributes
    seed = options.seed
    if seed is None:
        seed = frame.instance.derived_seed(frame.path, attributes["site"])
    max_tokens = min(options.max_tokens, tokens_left)
    return GenerateRequest(
        prompt=prompt.ids,
        max_tokens=max_tokens,
        heal=prompt.heal,
        constraint=bound.constraints[attributes["constraint"]] if "constraint" in attributes else None,
        follow=(attributes.get("follow") or "").encode()[:1],
        stops=options.stops,
        min_tokens=min(options.min_tokens, tokens_left),
        ignore_eos=options.ignore_eos,
        sampling=replace(options.sampling, seed=seed % 2**64),
        logprobs=options.logprobs,
        stream=options.stream,
        origin=Origin("gen", frame.function(instruction), frame.path + attributes["site"], instruction.span, instruction.types[1]),
        priority=max_tokens + frame.chain_of(instruction),
        told=frame.instance.attempts.append,
    )


async def _generate(frame: Frame, step: Step, request: GenerateRequest) -> Generated:
    show, path, span = frame.instance.show, frame.path_of(step), step.instruction.span
    try:
        async with frame.instance.turn:
            return await frame.instance.bound.session.generate(request, lambda text: show(path, text, span))
    except RunError as error:
        raise located(error, step.instruction.span) from None


def _recorded(frame: Frame, instruction: Instruction, generated: Generated) -> Recorded:
    tokenizer = frame.instance.bound.session.tokenizer

    def text(token: int) -> str:
        return tokenizer.decode_bytes([token]).decode(errors="replace")

    tokens = (TokenChoice(text(t.id), t.logprob, tuple((text(i), p) for i, p in t.top)) for t in generated.logprobs)
    return Recorded(str(instruction.span), generated.text, tuple(tokens))


def _cut(frame: Frame, instruction: Instruction, request: GenerateRequest, generated: Generated) -> RunError:
    room = frame.instance.bound.session.limit - len(request.prompt)
    if generated.finish is Finish.STOP:
        what = f"the stop text {json.dumps(generated.stop, ensure_ascii=False)}"
        help = "leave `stop` out: the type ends the value"
    elif room < request.max_tokens:
        what, help = f"the end of the model's context, {room} tokens after the prompt", "shorten the prompt"
    else:
        what = f"`max_tokens`, which is {request.max_tokens}"
        help = "raise `max_tokens`, or bound the type (`max_len`, `max_items`)"
    return failure("E0835", f"a value of type `{spell_type(instruction.types[1])}` was cut by {what}", instruction.span, kind="truncated",
                   help=f"{help}\nwritten up to there: {_short(generated.text)}", raw=generated.text)


def _short(text: str) -> str:
    shown = json.dumps(text, ensure_ascii=False)
    return shown if len(shown) <= 100 else shown[:97] + "…"
