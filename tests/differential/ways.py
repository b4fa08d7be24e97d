"""The ways in which a program is compiled and run, and the check that all of them show the same.

    faults(text, ALL)        [] or ["-O2 without fold: value: 'a' 'b'", …]
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lmc.diagnostics import LmcError
from lmc.ir.core import Module
from lmc.passes import passes_of
from tests.differential.runs import (RANDOM, Case, Forks, Observed, WatchedSession, compiled, differences, lowered, new_session,
                                     observe)

#: Of the model's context and of the small pool: a program's longest prompts nearly fill it, and some do not fit.
POSITIONS = 1024


@dataclass(frozen=True)
class Way:
    """level: of `-O`; without: a pass that is left out; target: whose pipeline; cache: whether the engine has one; warm: whether the
    plain run's tokens are in it; tight: whether the pool is as small as one request may be"""

    level: int
    without: str = ""
    target: str = "local"
    cache: bool = True
    warm: bool = False
    tight: bool = False

    def __str__(self) -> str:
        words = [f"-O{self.level}", f"without {self.without}" * bool(self.without), "for an API" * (self.target == "api"), "without cache" * (not self.cache),
                 "warm" * self.warm, "in a small pool" * self.tight]
        return " ".join(filter(None, words))

    @property
    def passes(self) -> tuple[str, ...]:
        return tuple(name for name in passes_of(self.level, self.target) if name != self.without)

    def session(self) -> WatchedSession:
        return new_session(slots=POSITIONS if self.tight else 1 << 14, max_positions=POSITIONS, cache=self.cache)


PLAIN = Way(0)
ALL = (
    Way(1), Way(2), *(Way(2, without=name) for name in passes_of(2)), Way(0, warm=True), Way(2, warm=True), Way(0, cache=False),
    Way(2, cache=False), Way(2, tight=True), Way(1, target="api"), Way(2, target="api"),
)


async def faults(text: str, ways: tuple[Way, ...]) -> list[str]:
    """In which ways the program shows something else than as written, and what.  Raises `CompileError`."""
    # Where an error is caught inside the program, more or less may have been under way.
    return await module_faults(lowered(text), ways, strict="try:" not in text and "collect" not in text)


async def module_faults(module: Module, ways: tuple[Way, ...], *, strict: bool, case: Case = RANDOM,
                        session_of: Callable[[Way], WatchedSession] = Way.session) -> list[str]:
    """The same of any program; `session_of`: the model that a way runs on, `strict`: see `differences`."""
    written = compiled(module, ())
    forks, session = Forks(written, case.function), session_of(PLAIN)
    try:
        plain = await observe(written, forks, session, case)
        found = []
        for way in ways:
            try:
                program = compiled(module, way.passes)
            except LmcError as error:
                found.append(f"{way}: does not compile: {error}")
                continue
            # The session of the plain run has its tokens.
            used = session if way.warm else session_of(way)
            try:
                other = await observe(program, forks, used, case)
            finally:
                if used is not session:
                    used.close()
            found += [f"{way}: {d}" for d in differences(plain, other, strict=strict)]
        return found
    finally:
        session.close()


async def observed_as_written(text: str) -> Observed:
    """The plain run of a program."""
    program, session = compiled(lowered(text), ()), PLAIN.session()
    try:
        return await observe(program, Forks(program), session)
    finally:
        session.close()


def way_of(seed: int) -> Way:
    """One of all ways, so that a run of programs goes round them."""
    return ALL[seed % len(ALL)]
