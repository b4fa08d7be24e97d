"""A session as one of several clients sees it: what others have left in the cache is not found.

    alice, bob = TenantSession(session, 1), TenantSession(session, 2)
    await alice.generate(request)        computed
    await bob.generate(request)          computed again

Everything that names tokens in the cache carries the client's number; see `salt.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lmc.runtime.constraint_cache import ConstraintCache
from lmc.runtime.hints import Hint, Release
from lmc.runtime.salt import salted

if TYPE_CHECKING:
    from lmc.regex.dfa import ByteDfa
    from lmc.regex.grammar import Grammar
    from lmc.runtime.request import Generated, GenerateRequest, Scored, ScoreRequest, Usage
    from lmc.runtime.session import Session


#: Constraints of one client's programs that nobody uses just now, with their masks.
_MOST_BYTES = 64 << 20


class TenantSession:
    """`Answers` for the machine and for routes.  `tenant`: above 0, which is everybody's."""

    def __init__(self, session: Session, tenant: int):
        assert tenant > 0, tenant
        self._session, self.tenant = session, tenant
        self.name, self.limit = session.name, session.limit
        self.tokenizer, self.prompter, self.has_template = session.tokenizer, session.prompter, session.has_template
        self.remote = None
        self._constraints = ConstraintCache(session.new_constraint, most_bytes=_MOST_BYTES)

    @property
    def begin_id(self) -> int:
        return self._session.begin_id

    def constraint(self, dfa: ByteDfa | Grammar) -> Any:
        """As that of `Session`.  A client has its own: they remember what was written under them."""
        return self._constraints.get(dfa)

    async def generate(self, request: GenerateRequest, on_text: Callable[[str], None] | None = None,
                       on_piece: Callable[[Generated], None] | None = None) -> Generated:
        return await self._session.generate(replace(request, tenant=self.tenant), on_text, on_piece)

    async def score(self, requests: Sequence[ScoreRequest]) -> list[Scored]:
        return await self._session.score([replace(request, tenant=self.tenant) for request in requests])

    def reserve(self) -> int:
        return self._session.reserve()

    def hint(self, hint: Hint, on_usage: Callable[[Usage], None] | None = None) -> None:
        own = hint if isinstance(hint, Release) else replace(hint, ids=tuple(salted(hint.ids, self.tenant)))
        self._session.hint(own, on_usage)
