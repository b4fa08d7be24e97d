"""Programs on the fake server, with what it was asked."""

from __future__ import annotations

import asyncio
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lmc.compiler import compile_file
from lmc.diagnostics import RunError
from lmc.runtime.arguments import bind_arguments
from lmc.runtime.host import bind_externs
from lmc.runtime.instance import RunOptions, Sinks
from lmc.runtime.machine import Machine
from lmc.runtime.remote.session import RemoteSession
from lmc.runtime.remote.settings import Patience, RemoteSettings
from lmc.runtime.report import Report

from tests.runtime.remote.fake_server import Asked, FakeServer, Script

#: No test waits for long.
HASTY = Patience(deadline=5, first_wait=0.01)
KEY = "sk-very-secret"


@dataclass
class RemoteRun:
    """What a run gave, and what the server was asked for it."""

    value: Any = None
    error: RunError | None = None
    report: Report = Report()
    requests: list[Asked] = field(default_factory=list)
    streamed: list[str] = field(default_factory=list)
    connections: int = 0
    most_at_once: int = 0

    @property
    def outcomes(self) -> list[str]:
        return [attempt.outcome for attempt in self.report.attempts]


def program_at(text: str, folder: Path, *, target: str = "api"):
    path = folder / "program.lmp"
    path.write_text(textwrap.dedent(text).lstrip("\n"), encoding="utf-8")
    return compile_file(str(path), target=target).program


def run_remote(program: Any, script: Script, *args: Any, backend: str = "openai", name: str = "f", patience: Patience = HASTY,
               externs: Mapping[str, Callable[..., Any]] | None = None, overrides: Mapping[str, Any] | None = None,
               cancel_after: float | None = None, **settings: Any) -> RemoteRun:
    """Run a function on a fake server with this script.  A `RunError` is in the result; anything else is raised."""
    ended = RemoteRun()

    async def main() -> None:
        async with FakeServer(script) as server:
            session = RemoteSession(RemoteSettings(backend, server.url, KEY, patience=patience, **settings), "m")
            try:
                machine = Machine(program, session, bind_externs(program, externs or {}))
                one = machine.start(RunOptions(seed=1, overrides=overrides or {}), Sinks(print, lambda path, t: ended.streamed.append(t)))
                values = bind_arguments(program.functions[name], args, {}, machine.bound.externs.types)
                try:
                    ended.value = await asyncio.wait_for(one.call(name, values), cancel_after or 30)
                except RunError as error:
                    ended.error = error
                finally:
                    ended.report = one.report
            finally:
                await session.disconnect()
            ended.requests, ended.connections, ended.most_at_once = server.requests, server.connections, server.most_at_once

    asyncio.run(main())
    return ended
