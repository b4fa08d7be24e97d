"""A forecast beside a run of the same program: what was foreseen of each call against what was asked and reported."""

from __future__ import annotations

from typing import Any

from lmc.runtime.arguments import bind_arguments
from lmc.runtime.dry import DryModel
from lmc.runtime.forecast.counts import ForeseenCall, Target
from lmc.runtime.forecast.forecast import Forecast, foresee
from lmc.runtime.forecast.prompts import Foreseer, Segment, Written
from lmc.runtime.host_types import HostTypes
from lmc.runtime.instance import RunOptions
from lmc.runtime.report import CallCount
from tests.runtime.programs import TOKENS, WatchedSession, dry_template, run

TARGET = Target("the stand-in model", 16, 8192)


def foreseen(program: Any, name: str, *args: Any, tokenizer: Any = TOKENS, template: Any = None, options: RunOptions = RunOptions(),
             **given: Any) -> Forecast:
    """The forecast of a function with these arguments."""
    values = bind_arguments(program.functions[name], args, given, HostTypes(program.types))
    return foresee(program, Foreseer(tokenizer, template or dry_template(TOKENS)), name, values, options, TARGET)


def unknown_arguments(program: Any, name: str) -> Forecast:
    return foresee(program, Foreseer(TOKENS, dry_template(TOKENS)), name, None, RunOptions(), TARGET)


class AskedSession(WatchedSession):
    """Keeps what choices ask too."""

    async def score(self, requests):
        self.requests.append(requests[0])
        return await super().score(requests)


def session_on(tokenizer: Any, template: Any) -> AskedSession:
    """The stand-in model behind any tokenizer."""
    return AskedSession(DryModel(tokenizer), tokenizer, template, slots=1 << 16)


def check_against_run(program: Any, name: str, *args: Any, tokenizer: Any = TOKENS, template: Any = None, externs: Any = None,
                      ask: Any = None, least: int = 1) -> Forecast:
    """Run it, and compare each call of the run with what was foreseen of it.  Gives the forecast."""
    template = template or dry_template(TOKENS)
    forecast = foreseen(program, name, *args, tokenizer=tokenizer, template=template)
    session = session_on(tokenizer, template)
    ended = run(program, session, name, *args, externs=externs, ask=ask)
    assert ended.error is None, ended.error
    prompts = prompts_of(session)
    calls = {(c.call.kind, c.call.path, str(c.call.span)): c for c in forecast.all_calls}
    assert len(ended.report.by_call) >= least
    for count in ended.report.by_call:
        key = (count.kind, count.path, count.where)
        assert key in calls, f"{key} was not foreseen, but {sorted(calls)}"
        check_call(calls[key], count, prompts.get(key))
    asked = {(c.kind, c.path, c.where) for c in ended.report.by_call}
    missing = [key for key, c in calls.items() if c.call.sure and key not in asked]
    assert not missing, f"foreseen and not asked: {missing}"
    return forecast


def prompts_of(session: AskedSession) -> dict[tuple[str, str, str], tuple[int, ...]]:
    """What was asked, by kind, path and place; of a choice that asks twice, the first."""
    found: dict[tuple[str, str, str], tuple[int, ...]] = {}
    for request in session.requests:
        origin = request.origin
        found.setdefault((origin.kind, origin.path, str(origin.span)), request.prompt if hasattr(request, "prompt") else request.ids)
    return found


def check_call(call: ForeseenCall, count: CallCount, ids: tuple[int, ...] | None) -> None:
    """Without `ids`, of a piece of a larger request, only the counts are compared."""
    gaps = [index for index, stretch in enumerate(call.text) if stretch.unknown]
    # Where a context is one of several, what is not known may have generations in it: then only what stands before is told apart.
    alike = len(call.text) == len(count.text)
    assert alike or gaps, (call.call.source, call.text, count)
    assert sum(s.known for s in call.text) <= sum(count.text)
    place = 0
    stretches = list(zip(call.text, count.text, _stretches(call), [*count.written, 0]))
    for stretch, tokens, parts, written in stretches if alike else stretches[: gaps[0]]:
        if stretch.unknown == 0 and stretch.about == 0:
            assert stretch.known == tokens, (call.call.source, stretch, count)
        else:
            assert stretch.known <= tokens, (call.call.source, stretch, count)
        if ids is not None:
            _check_ids(parts, ids[place : place + tokens])
        place += tokens + written
    assert place == count.prompt or not alike


def _stretches(call: ForeseenCall) -> list[list[Segment]]:
    found: list[list[Segment]] = [[]]
    for part in call.call.prompt.parts:
        if isinstance(part, Written):
            found.append([])
        else:
            found[-1].append(part)
    return found


def _check_ids(parts: list[Segment], ids: tuple[int, ...]) -> None:
    """Known segments stand in the run's prompt token for token: those before the first unknown one, and those after the last."""
    inexact = [index for index, part in enumerate(parts) if not part.exact]
    first = inexact[0] if inexact else len(parts)
    before = [unit for part in parts[:first] for unit in part.units]
    assert list(ids[: len(before)]) == before
    if inexact:
        after = [unit for part in parts[inexact[-1] + 1 :] for unit in part.units]
        assert not after or list(ids[-len(after) :]) == after
