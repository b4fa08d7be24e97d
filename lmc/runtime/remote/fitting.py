"""What a target over the network cannot do of a program: refused with its place when that is bound, or emulated and listed.

    judge.lmp:9:5   `score` needs the log-probabilities of a prompt, which openai does not give          refused
    judge.lmp:7:5   stop texts beyond 4, where there are more: the answer is cut here                     emulated

An option that a flag gives for a whole program is seen only when a generation asks for it.
"""

from __future__ import annotations

from collections.abc import Iterator

from lmc.backend.program import Instruction, Program, Register
from lmc.diagnostics import Diagnostic
from lmc.runtime.instructions import program_instructions
from lmc.runtime.remote.capabilities import Capabilities
from lmc.runtime.request import GenerateRequest

_NEUTRAL = {"top_k": 0, "min_p": 0.0, "repetition_penalty": 1.0, "min_tokens": 0, "ignore_eos": False, "logit_bias": ()}


def option_faults(request: GenerateRequest, target: Capabilities) -> Iterator[str]:
    """Of one generation, in words."""
    for name, neutral in _NEUTRAL.items():
        given = getattr(request.sampling, name) if hasattr(request.sampling, name) else getattr(request, name)
        if name not in target.options and given != neutral:
            yield f"`{name}` is not known to {target.name}"


def remote_faults(program: Program, target: Capabilities) -> list[Diagnostic]:
    """What the target cannot do, each with its place."""
    faults = []
    for instruction in program_instructions(program):
        for message, help in _faults(instruction, target):
            faults.append(Diagnostic("E0871", message, instruction.span, help=help))
    return faults


def emulations(program: Program, target: Capabilities, *, attempts: int, ahead: int = 0) -> tuple[str, ...]:
    """What is done here in the target's place, in words.

    attempts: how often a value is asked for; ahead: as in `RemoteSettings`
    """
    found = ["counting tokens before a run: bytes of UTF-8 are counted in their place"]
    begun = False
    for instruction in program_instructions(program):
        begun = begun or _goes_on(instruction)
        found += (f"{what} ({instruction.span})" for what in _emulated(instruction, target, attempts))
        if ahead and instruction.opcode == "lm.speculate":
            found.append(_speculated(instruction, ahead))
    if begun and not target.continues:
        found.append("going on with a turn of the assistant that has begun: it is sent as it stands, and what an answer repeats "
                     "of it is cut off")
    return tuple(dict.fromkeys(found))


def _faults(instruction: Instruction, target: Capabilities) -> Iterator[tuple[str, str]]:
    opcode, attributes = instruction.opcode, instruction.attributes
    if opcode not in ("lm.gen", "lm.select", "lm.score"):
        return
    for name in _NEUTRAL:
        if name in instruction.inputs and name not in target.options and not _is_neutral(instruction.inputs[name], name):
            yield f"`{name}` is not known to {target.name}", "leave the option out, or use a local model"
    scores = _kind(instruction) in target.scores
    if opcode == "lm.score" and not scores:
        yield (f"`score` needs the log-probabilities of a prompt, which {target.name} does not give here",
               "use `select`, vLLM, or a local model")
    if opcode == "lm.select" and not scores and not _told(instruction, target):
        yield (f"`select` in raw text needs log-probabilities or constrained answers, and {target.name} has neither there",
               "put it into turns, or use vLLM, SGLang or a local model")
    method = attributes.get("method", "token_length_normalized")
    if opcode == "lm.select" and method != "token_length_normalized":
        yield (f"the method `{method}` needs the model's tokens, which are not known here",
               "leave `method` out, or use a local model")


def _emulated(instruction: Instruction, target: Capabilities, attempts: int) -> Iterator[str]:
    kind = _kind(instruction)
    if instruction.opcode == "lm.gen" and "constraint" in instruction.attributes:
        how = "the server is told, and every answer is checked" if _told(instruction, target) else "every answer is checked"
        yield f"keeping values to what they must match: {how}, up to {attempts} times before that is an error"
    if instruction.opcode == "lm.select" and kind not in target.scores:
        yield f"`select` by log-probabilities: the model is asked to write one of the options, up to {attempts} times"
    # A list of stop texts is a value of the program: how many there are is known when it runs.
    if target.stops is not None and isinstance(instruction.inputs.get("stop"), Register):
        yield f"stop texts beyond {target.stops}, where there are more: the answer is cut here"


def _speculated(instruction: Instruction, ahead: int) -> str:
    gens = [inner for inner in instruction.blocks[0].instructions if inner.opcode == "lm.gen"]
    return (f"several generations in one request: {len(gens)} may be 1, where each of the others has a limit of {ahead} tokens or "
            f"less ({gens[0].span})")


def _kind(instruction: Instruction) -> str:
    return "raw" if instruction.attributes.get("role") == "raw" else "chat"


def _told(instruction: Instruction, target: Capabilities) -> bool:
    """Whether the server can be told what an answer must match."""
    kind = _kind(instruction)
    return kind in target.schemas or kind in target.regexes


def _goes_on(instruction: Instruction) -> bool:
    return instruction.opcode == "context.append" and instruction.attributes["role"] == "assistant"


def _is_neutral(given: object, name: str) -> bool:
    return isinstance(given, (int, float)) and given == _NEUTRAL[name]
