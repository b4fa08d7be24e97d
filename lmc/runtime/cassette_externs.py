"""Externs of a test: run and recorded, or replayed without running.

    RecordingExterns(externs, cassette)       each call's arguments and result are kept, in the order of the calls
    ReplayingExterns(program, cassette)       the same results for the same arguments, in the same order

Under replay no extern runs, so none need be bound.
"""

from __future__ import annotations

import asyncio
from typing import Any

from lmc.backend.program import ExternInfo, Program
from lmc.runtime.cassette import Cassette, Entries, Entry, canonical
from lmc.runtime.cassette_asks import short_place
from lmc.runtime.cassette_sessions import RECORD, GivenUp, answer_of, recorded_failure
from lmc.runtime.failures import failure
from lmc.runtime.host import Externs
from lmc.runtime.host_types import HostTypes
from lmc.values import ValueMismatch, from_data, to_data


class RecordingExterns:
    """`externs`, and what they are asked and answer goes into the cassette."""

    def __init__(self, program: Program, externs: Externs, cassette: Cassette):
        self.types = externs.types
        self._infos, self._externs, self._cassette = program.externs, externs, cassette

    async def call(self, name: str, args: tuple[Any, ...], at: str = "", span: Any = None) -> Any:
        info = self._infos[name]
        entry = Entry(at, short_place(span), _ask(info, args))
        self._cassette.externs.append(entry)
        with recorded_failure(entry):
            value = await self._externs.call(name, args, at, span)
        entry.answer = {"result": to_data(value, info.result)}
        return value


class ReplayingExterns:
    """Results from the cassette; a call that it does not hold is a `RunError` of kind `cassette`."""

    def __init__(self, program: Program, cassette: Cassette, given_up: GivenUp):
        self.types = HostTypes(program.types)
        self._infos, self._given_up = program.externs, given_up
        self._entries = Entries(cassette.externs, again=False)

    async def call(self, name: str, args: tuple[Any, ...], at: str = "", span: Any = None) -> Any:
        info = self._infos[name]
        ask = _ask(info, args)
        entry = self._entries.take(at, ask)
        if entry is None:
            difference = _difference(self._entries.nearest(at, short_place(span), ask), ask)
            raise failure("E0861", f"the cassette does not hold this call of the extern `{ask['name']}`: re-record", None,
                          kind="cassette", help=f"{difference}\n{RECORD}")
        await asyncio.sleep(0)
        answer = await answer_of(entry, self._given_up)
        try:
            return from_data(answer["result"], info.result)
        except ValueMismatch as error:
            raise failure("E0861", f"the recorded result of the extern `{ask['name']}` is not of its type: {error}", None,
                          kind="cassette", help=RECORD) from None


def _ask(info: ExternInfo, args: tuple[Any, ...]) -> dict[str, Any]:
    return {"name": info.name.rpartition(".")[2], "args": [to_data(a, p.type) for a, p in zip(args, info.params)]}


def _difference(nearest: Entry | None, ask: dict[str, Any]) -> str:
    if nearest is None:
        return "the recorded run called no extern"
    if nearest.ask == ask:
        return "the recorded run called it less often"
    return f"recorded: {_call(nearest.ask)}\nnow:      {_call(ask)}"


def _call(ask: dict[str, Any]) -> str:
    return f"{ask['name']}({', '.join(map(canonical, ask['args']))})"
