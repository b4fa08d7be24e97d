"""What the tests of the machine share: programs from text, on the stand-in model or a scripted one, with everything watched."""

from __future__ import annotations

import asyncio
import textwrap
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from lmc.compiler import compile_file
from lmc.levels import DEFAULT_LEVEL
from lmc.runtime.arguments import bind_arguments
from lmc.runtime.dry import DryModel, ScriptedModel, dry_tokenizer
from lmc.runtime.host import bind_externs
from lmc.runtime.instance import Budgets, RunOptions, Sinks
from lmc.runtime.machine import Machine
from lmc.runtime.report import Report
from lmc.runtime.session import Session
from lmc.runtime.template import dry_template

TOKENS = dry_tokenizer()


class WatchedSession(Session):
    """A session that knows what was asked of it, piece by piece, and how many generations were under way at once."""

    def __init__(self, *args: Any, **options: Any):
        super().__init__(*args, **options)
        self.requests: list[Any] = []
        self.under_way = self.peak = 0

    async def generate(self, request, on_text=None, on_piece=None):
        self.under_way += 1
        self.peak = max(self.peak, self.under_way)
        try:
            return await super().generate(self._watched(request), on_text, on_piece)
        finally:
            self.under_way -= 1

    def _watched(self, request):
        self.requests.append(request)

        def then(result):
            following = request.then(result)
            return following if following is None else self._watched(following)

        return request if request.then is None else replace(request, then=then)

    def wait_until_idle(self) -> None:
        """Fails where the engine still holds something after five seconds."""
        for _ in range(500):
            stats = self.stats
            if stats.running == stats.waiting == stats.used_slots == 0:
                return
            time.sleep(0.01)
        raise AssertionError(f"the engine is not empty: {self.stats}")


def dry_session(*, slots: int = 1 << 16, max_positions: int = 8192, template: bool = True, jump: str = "exact") -> WatchedSession:
    return WatchedSession(DryModel(TOKENS, max_positions=max_positions), TOKENS, dry_template(TOKENS) if template else None, slots=slots,
                          jump=jump)


def scripted_session(script: Callable[[tuple[int, ...]], Mapping[int, float]], *, slots: int = 4096,
                     jump: str = "exact") -> WatchedSession:
    return WatchedSession(ScriptedModel(TOKENS.size, script), TOKENS, dry_template(TOKENS), slots=slots, jump=jump)


def writes(answer: Callable[[str], str]) -> Callable[[tuple[int, ...]], Mapping[int, float]]:
    """A script that goes on from a prompt by `answer(text before it)`, byte by byte, and then ends the turn.

    What the model wrote already is found by trying: the text is split at the first place where what follows begins the answer to what
    is before.
    """
    end = min(TOKENS.end_ids)

    def script(ids: tuple[int, ...]) -> Mapping[int, float]:
        text = TOKENS.decode_bytes(ids).decode(errors="replace")
        for cut in range(len(text) + 1):
            whole = answer(text[:cut])
            if whole and whole.startswith(text[cut:]):
                rest = whole[len(text) - cut:].encode()
                return {rest[0] if rest else end: 20.0}
        return {end: 20.0}

    return script


def program_of(text: str, tmp_path: Path, *, level: int = DEFAULT_LEVEL, passes: tuple[str, ...] | None = None):
    path = tmp_path / "program.lmp"
    path.write_text(textwrap.dedent(text).lstrip("\n"), encoding="utf-8")
    return compile_file(str(path), level=level, passes=passes).program


@dataclass
class Ended:
    """What a run gave: `value` or `error`, its report, and what it printed and streamed."""

    value: Any = None
    error: Any = None
    report: Report = Report()
    printed: list[str] = field(default_factory=list)
    streamed: list[tuple[str, str]] = field(default_factory=list)


def run(program: Any, session: Session, name: str, *args: Any, externs: Mapping[str, Any] | None = None, seed: int | None = 1,
        row: str = "", overrides: Mapping[str, Any] | None = None, budgets: Budgets = Budgets(), ask: Callable[[str], str] | None = None,
        cancel_after: float | None = None) -> Ended:
    """Run a function and close the session.  A `RunError` is in the result; anything else is raised."""
    from lmc.diagnostics import RunError

    ended = Ended()

    async def main() -> None:
        machine = Machine(program, session, bind_externs(program, externs or {}))
        options = RunOptions(seed=seed, row=row, overrides=overrides or {}, budgets=budgets)
        sinks = Sinks(ended.printed.append, lambda path, text: ended.streamed.append((path, text)), ask)
        one = machine.start(options, sinks)
        values = bind_arguments(program.functions[name], args, {}, machine.bound.externs.types)
        try:
            ended.value = await asyncio.wait_for(one.call(name, values), cancel_after or 60)
        except RunError as error:
            ended.error = error
        finally:
            ended.report = one.report

    try:
        asyncio.run(main())
    except TimeoutError:
        ended.error = "cancelled"
        assert cancel_after is not None, "the run took more than a minute"
    if isinstance(session, WatchedSession):
        session.wait_until_idle()
    session.close()
    return ended
