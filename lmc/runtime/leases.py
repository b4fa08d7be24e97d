"""Which contexts of a run live, told to the engine.

    leases.keep(c, 2)          c is read again, after two more calls of the model
    leases.prefill(c)          several readers of c come
    leases.release(c)          c has no reader any more

A lease ends when the context object does.  So a context that is in a list, goes round a loop, or was handed to Python lives as long as
something holds it, and ends in any case: `end` gives up those that a run leaves behind that failed or was cancelled.  What the engine
makes of it is in `hints.py`.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

from lmc.runtime.context import Context
from lmc.runtime.hints import Keep, Pin, Prefill, Release
from lmc.runtime.request import Usage

if TYPE_CHECKING:
    from lmc.runtime.answers import Answers


class Leases:
    """The leases of one run."""

    __slots__ = ("_session", "_handles", "_ends", "_ahead")

    def __init__(self, session: Answers):
        self._session = session
        self._handles: weakref.WeakKeyDictionary[Context, int] = weakref.WeakKeyDictionary()
        self._ends: dict[int, weakref.finalize] = {}
        self._ahead: dict[tuple[int, ...], int] = {}  # prefixes computed ahead, and how many of their last tokens nobody has found yet

    @property
    def unread(self) -> int:
        """Tokens that were computed ahead of calls and that no call has found so far."""
        return sum(self._ahead.values())

    def keep(self, context: Context, next_use: int | None = None) -> None:
        """The context lives, and what is computed of it is kept before what does not."""
        self._session.hint(Keep(self._handle(context), self._session.prompter.certain(context), next_use))

    def prefill(self, context: Context) -> None:
        """Compute the context before its readers come; it lives."""
        ids = self._session.prompter.certain(context)
        if ids:
            self._session.hint(Prefill(self._handle(context), ids), lambda usage: self._note(ids, usage))

    def release(self, context: Context) -> None:
        """The context is over, unless something else holds it: its lease ends with it."""
        if context not in self._handles:
            self.keep(context)

    def pin(self, ids: tuple[int, ...]) -> None:
        """Later calls begin with `ids`."""
        self._session.hint(Pin(ids))

    def found_first(self, prompt: tuple[int, ...], cached: int) -> int:
        """How many of the `cached` tokens of a call's prompt were computed ahead for it, and found by no call before."""
        found = 0
        for ids, count in list(self._ahead.items()):
            begin = len(ids) - count
            if cached > begin and ids == prompt[: len(ids)]:
                taken = min(cached, len(ids)) - begin
                found += taken
                if taken == count:
                    del self._ahead[ids]
                else:
                    self._ahead[ids] = count - taken
        return min(found, cached)

    def end(self) -> None:
        """End all leases now."""
        for end in list(self._ends.values()):
            end()

    def _handle(self, context: Context) -> int:
        handle = self._handles.get(context)
        if handle is None:
            handle = self._handles[context] = self._session.reserve()
            self._ends[handle] = end = weakref.finalize(context, self._over, handle)
            end.atexit = False  # the engine is gone by then
        return handle

    def _over(self, handle: int) -> None:
        # It may run in any thread, wherever the collector does: both calls are safe there.
        self._ends.pop(handle, None)
        self._session.hint(Release(handle))

    def _note(self, ids: tuple[int, ...], usage: Usage) -> None:
        if usage.computed:
            self._ahead[ids] = self._ahead.get(ids, 0) + usage.computed
