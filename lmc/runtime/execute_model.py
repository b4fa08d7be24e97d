"""`lm.gen`: from a context and options to a request, and from what came back to a typed value and the next context.

    r5, r6 = lm.gen(r4, max_tokens = 20)[role = assistant, constraint = 0, site = "0"]

A typed value is valid or an error; no part of one is ever handed on.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from lmc.backend.program import Instruction
from lmc.diagnostics import RunError
from lmc.runtime.context import ContextError, Prompt
from lmc.runtime.failures import failure, located
from lmc.runtime.frames import Frame
from lmc.runtime.options import GenOptions, OptionError, resolve_options
from lmc.runtime.plan import Step
from lmc.runtime.report import Recorded, TokenChoice
from lmc.runtime.request import Finish, Generated, GenerateRequest, Origin
from lmc.types import spell_type
from lmc.values import ValueMismatch, from_text

#: The operands of a `gen` that are options.
_OPTIONS = ("stop", "max_tokens", "min_tokens", "temperature", "top_p", "top_k", "min_p", "seed", "frequency_penalty",
            "presence_penalty", "repetition_penalty", "logit_bias", "logprobs", "heal", "ignore_eos", "stream")


async def gen(frame: Frame, step: Step) -> None:
    instruction, instance = step.instruction, frame.instance
    where = frame.function(instruction)
    options = _options(frame, instruction)
    context, role = frame.operand(instruction, "context"), instruction.attributes["role"]
    prompter = instance.bound.session.prompter
    try:
        prompt = prompter.prompt(context, role, heal=options.heal)
    except ContextError as error:
        raise failure("E0840", str(error), instruction.span, kind="value") from None
    call = instance.count_call(where, instruction.span)
    request = _request(frame, instruction, prompt, options, instance.tokens_left(where, instruction.span))
    generated = await _generate(frame, step, request)
    instance.note_usage(call, request.origin, len(prompt.ids), context.written, generated.usage)
    if options.logprobs:
        instance.recorded[call] = _recorded(frame, instruction, generated)
    if request.max_tokens < options.max_tokens and generated.finish is Finish.LENGTH:
        raise instance.out_of_tokens(where, instruction.span)
    value = _value(frame, instruction, request, generated)
    frame.write(instruction, (prompter.extend(context, role, prompt, generated.ids, generated.carry), value))


def _options(frame: Frame, instruction: Instruction) -> GenOptions:
    given = {name: frame.operand(instruction, name) for name in _OPTIONS if name in instruction.inputs}
    instance = frame.instance
    try:
        return resolve_options(given, instance.options.overrides, instance.bound.program.config)
    except OptionError as error:
        raise failure("E0841", str(error), instruction.span, kind="value") from None


def _request(frame: Frame, instruction: Instruction, prompt: Prompt, options: GenOptions, tokens_left: int) -> GenerateRequest:
    bound, attributes = frame.instance.bound, instruction.attributes
    seed = options.seed
    if seed is None:
        seed = frame.instance.derived_seed(frame.path, attributes["site"])
    return GenerateRequest(
        prompt=prompt.ids,
        max_tokens=min(options.max_tokens, tokens_left),
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
    )


async def _generate(frame: Frame, step: Step, request: GenerateRequest) -> Generated:
    stream, path = frame.instance.sinks.stream, frame.path_of(step)
    try:
        return await frame.instance.bound.session.generate(request, lambda text: stream(path, text))
    except RunError as error:
        raise located(error, step.instruction.span) from None


def _recorded(frame: Frame, instruction: Instruction, generated: Generated) -> Recorded:
    tokenizer = frame.instance.bound.session.tokenizer

    def text(token: int) -> str:
        return tokenizer.decode_bytes([token]).decode(errors="replace")

    tokens = (TokenChoice(text(t.id), t.logprob, tuple((text(i), p) for i, p in t.top)) for t in generated.logprobs)
    return Recorded(str(instruction.span), generated.text, tuple(tokens))


def _value(frame: Frame, instruction: Instruction, request: GenerateRequest, generated: Generated) -> Any:
    """The value of the second result's type.  Raises `RunError` where it was cut."""
    if request.constraint is not None and not generated.valid:
        raise _cut(frame, instruction, request, generated)
    clipped = frame.instance.bound.session.limit - len(request.prompt) < request.max_tokens
    if clipped and generated.finish is Finish.LENGTH:
        frame.instance.warnings.append(f"{instruction.span}: the text ends where the model's context ends")
    try:
        return from_text(generated.text, instruction.types[1])
    except ValueMismatch as error:
        raise failure("E0836", f"the generated value is not of its type: {error}", instruction.span, kind="invalid",
                      raw=generated.text) from None


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
