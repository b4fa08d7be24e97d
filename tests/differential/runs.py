"""One program, compiled in many ways, run and watched: what may differ between two runs and what may not.

    text ── lowered once ──► passes, emit ──► run on the stand-in model ──► Observed
                             -O0, -O1, -O2,                                    |
                             one pass left out                          differences(a, b) == []

Generations are told apart by their path in the run, which no pass may change; externs are kept in order branch by branch.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from lmc.backend.emit import emit
from lmc.backend.program import CodeBlock, Instruction, Program
from lmc.compiler import lower_program
from lmc.diagnostics import CompileError, LmcError
from lmc.ir.core import Module
from lmc.parser.check import check
from lmc.passes import run_passes
from lmc.runtime.arguments import bind_arguments
from lmc.runtime.dry import DryModel, dry_tokenizer
from lmc.runtime.host import Externs, bind_externs
from lmc.runtime.instance import Budgets, RunOptions, Sinks
from lmc.runtime.machine import Machine
from lmc.runtime.session import Session
from lmc.runtime.template import dry_template

TOKENS = dry_tokenizer()
TEMPLATE = dry_template(TOKENS)
#: An endless loop ends soon; nothing else comes near.
BUDGETS = Budgets(iterations=2_000)
#: Of one run; the real model takes a minute for the longest.
_MOST_SECONDS = 600
ARGUMENTS = ("12", ("tea", "one two", "3"))


@dataclass(frozen=True)
class Case:
    """function, arguments: what is called; externs: the functions of the host; lines: what `input` reads"""

    function: str
    arguments: tuple[Any, ...]
    externs: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    lines: tuple[str, ...] = ()


@dataclass
class Observed:
    """What a run showed.  `effects` and `generated` by branch and by path; `pure` are the calls of pure externs, in any order."""

    value: Any = None
    error: tuple[Any, ...] = ()
    printed: list[str] = field(default_factory=list)
    effects: dict[str, list[Any]] = field(default_factory=lambda: defaultdict(list))
    pure: set[Any] = field(default_factory=set)
    generated: dict[Any, list[Any]] = field(default_factory=lambda: defaultdict(list))


class WatchedSession(Session):
    """Writes down what the engine answered, by who asked."""

    seen: Observed

    async def generate(self, request, on_text=None, on_piece=None):
        asked, given = [request], []

        def watched(one):
            """The request, which tells what it goes on to where it is one of several pieces."""
            def then(generated):
                following = one.then(generated)
                if following is None:
                    return None
                asked.append(following)
                return watched(following)

            return one if one.then is None else replace(one, then=then)

        def piece(generated):
            given.append(generated)
            on_piece(generated)

        last = await super().generate(watched(request), on_text, piece)
        for one, result in zip(asked, [*given, last]):
            self.seen.generated[("gen", one.origin.path)].append(
                (one.prompt, one.heal, result.ids, result.text, result.finish, result.stop, result.carry, result.valid))
        return last

    async def score(self, requests):
        results = await super().score(requests)
        origin = requests[0].origin
        self.seen.generated[(origin.kind, origin.path, str(origin.span))].append(
            tuple((r.ids, r.start, s.logprobs) for r, s in zip(requests, results)))
        return results


def new_session(*, slots: int = 1 << 15, max_positions: int = 4096, cache: bool = True) -> WatchedSession:
    return WatchedSession(DryModel(TOKENS, max_positions=max_positions), TOKENS, TEMPLATE, slots=slots, cache=cache)


class WatchedExterns(Externs):
    __slots__ = ("seen", "forks", "pure")

    async def call(self, name, args, at="", span=None):
        if name in self.pure:
            self.seen.pure.add((name, args))
        else:
            self.seen.effects[self.forks.branch(at)].append((name, args))
        return await super().call(name, args, at, span)


class Forks:
    """Which branch of a program a path of calls and rounds lies in: the path up to its last fork."""

    def __init__(self, program: Program, function: str = "main"):
        self.function = function
        # What a site of a function is: the function called there, "" for a fork.  Loops and comprehensions are not in it.
        self.sites: dict[tuple[str, str], str] = {}
        for name, code in program.functions.items():
            for instruction in _instructions(code.body):
                if instruction.opcode == "call":
                    self.sites[name, instruction.attributes["site"]] = instruction.attributes["callee"]
                elif instruction.opcode in ("lm.fork", "lm.branches"):
                    self.sites[name, instruction.attributes["site"]] = ""

    def branch(self, path: str) -> str:
        function, end, parts = self.function, 0, path.split("/")
        for number, part in enumerate(parts[:-1], 1):
            site, _, index = part.partition(":")
            callee = self.sites.get((function, site))
            if callee == "" and index:
                end = number
            elif callee:
                function = callee
        return "/".join(parts[:end])


def _instructions(block: CodeBlock) -> Iterator[Instruction]:
    for instruction in block.instructions:
        yield instruction
        for inner in instruction.blocks:
            yield from _instructions(inner)


async def log(text: str) -> str:
    await asyncio.sleep(0)
    return text[::-1][:5]


async def measure(n: int) -> int:
    if n == 4:
        raise ValueError("four is too many")
    return (n * 7 + 3) % 11


def price(name: str) -> int:
    return len(name) % 4


def clean(text: str) -> str:
    return text.strip().lower()[:8]


EXTERNS = {"log": log, "measure": measure, "price": price, "clean": clean}
#: How a random program is run.
RANDOM = Case("main", ARGUMENTS, EXTERNS)


def lowered(text: str) -> Module:
    """The IR of a program before any pass.  Raises `CompileError`."""
    checked = check("random.lmp", read=lambda path: text)
    if checked.errors:
        raise CompileError(checked.errors, checked.sources)
    return lower_program(checked)


def compiled(module: Module, passes: tuple[str, ...]) -> Program:
    return emit(run_passes(module, passes))


async def observe(program: Program, forks: Forks, session: WatchedSession, case: Case = RANDOM) -> Observed:
    """Run the case.  `forks` is made of the unoptimised program."""
    seen, lines = Observed(), iter(case.lines)
    bound = bind_externs(program, case.externs)
    externs = WatchedExterns(program.externs, case.externs, bound.types)
    externs.seen, externs.forks, session.seen = seen, forks, seen
    externs.pure = {name for name, info in program.externs.items() if info.pure}
    try:
        machine = Machine(program, session, externs)
        sinks = Sinks(seen.printed.append, lambda path, text: None, lambda prompt: next(lines))
        run = machine.start(RunOptions(seed=5, budgets=BUDGETS), sinks)
        arguments = bind_arguments(program.functions[case.function], case.arguments, {}, bound.types)
        seen.value = repr(await asyncio.wait_for(run.call(case.function, arguments), _MOST_SECONDS))
    except LmcError as error:
        # Of the run, or of binding the program to the model.
        told = [(d.code, d.message, str(d.span), d.help, d.notes) for d in error.diagnostics]
        seen.error = (getattr(error, "kind", ""), getattr(error, "raw", None), *told)
    return seen


def differences(one: Observed, other: Observed, *, strict: bool) -> list[str]:
    """What differs of what must not.  Not `strict`: a failure beside other work cancels it, and how far that had come is chance."""
    found = []
    for name in ("value", "error"):
        mine, theirs = getattr(one, name), getattr(other, name)
        if mine != theirs:
            found.append(f"{name}: {mine} {theirs}")
    ended = not one.error
    if ended and one.printed != other.printed or not _agree(one.printed, other.printed):
        found.append("printed")
    for branch in one.effects.keys() | other.effects.keys():
        mine, theirs = one.effects.get(branch, []), other.effects.get(branch, [])
        if ended and mine != theirs or not _agree(mine, theirs):
            found.append(f"externs of branch {branch!r}: {mine} {theirs}")
    for key in one.generated.keys() | other.generated.keys():
        mine, theirs = sorted(one.generated.get(key, []), key=repr), sorted(other.generated.get(key, []), key=repr)
        if mine != theirs and (strict and ended or mine and theirs and len(mine) == len(theirs)):
            found.append(f"{key}: {mine} {theirs}")
    if strict and ended and one.pure != other.pure:
        found.append(f"pure externs: {one.pure ^ other.pure}")
    return found


def _agree(one: list[Any], other: list[Any]) -> bool:
    """Whether one is how the other begins."""
    return all(a == b for a, b in zip(one, other))
