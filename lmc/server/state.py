"""What routes need: the model at work, the programs, the settings, and how much is under way.

    state = ServerState(settings, session, programs={"judge": ServedProgram("judge", program, externs)})
    with state.gate.entered(3, tenant):
        await state.session_of(tenant).generate(request)
    await state.close()

It belongs to one event loop, that of the session, which whoever opened it closes.
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from lmc.backend.program import Program
from lmc.runtime.answers import Answers
from lmc.runtime.host import Externs
from lmc.runtime.session import Session
from lmc.runtime.tenant import TenantSession
from lmc.server.constraint_compiler import ConstraintCompiler
from lmc.server.gate import Gate
from lmc.server.known_turns import KnownTurns
from lmc.server.metrics import Metrics
from lmc.server.settings import ServerSettings


@dataclass(frozen=True, slots=True)
class ServedProgram:
    """name: of its routes, the stem of its file; externs: what is bound to its host functions"""

    name: str
    program: Program
    externs: Externs


class ServerState:
    """session: the model; programs: by name; compiler: of constraints that requests bring; gate: counts what is under way;
    started: seconds since 1970; ending: set when requests that still run are to be given up."""

    def __init__(self, settings: ServerSettings, session: Session, *, programs: Mapping[str, ServedProgram] | None = None,
                 compiler: ConstraintCompiler | None = None):
        self.settings = settings
        self.session = session
        self.programs = dict(programs or {})
        self.compiler = compiler or ConstraintCompiler(session, settings.compile)
        self.gate = Gate(settings.max_open, settings.max_open_each)
        self.metrics = Metrics(session, self.gate)
        self.started = int(time.time())
        self.ending = asyncio.Event()
        self._turns: defaultdict[str, KnownTurns] = defaultdict(KnownTurns)
        # The whole cache is for those without a key, who are one client.
        names = [] if settings.share_cache else [key.name for key in settings.keys]
        self._tenants: dict[str, Answers] = {name: TenantSession(session, number) for number, name in enumerate(names, 1)}

    def session_of(self, tenant: str) -> Answers:
        """The model as one client sees it: what others have left in the cache is not found, unless clients share it."""
        return self._tenants.get(tenant, self.session)

    def turns_of(self, tenant: str) -> KnownTurns | None:
        """What the assistant has said to a client; None where that does not matter."""
        return self._turns[tenant] if self.settings.exact_turns else None

    async def close(self) -> None:
        """End what belongs to the server; requests must have ended."""
        await self.compiler.close()
