"""The text of an answer as it comes: cut at stop texts, without what it repeats, and handed on as soon as it is certain.

    asked  assistant: "Label: "     stops ["\\n"]
    comes  "Label: po" "sitive\\n" "Be"
    text   "positive"               the begun turn that the model repeats is not part of it; the rest is not waited for

Servers know stop texts, but some take only four; and a chat interface without continuation begins a turn anew now and then.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

from lmc.runtime.remote.faults import DROPPED, Again, Fault
from lmc.runtime.remote.protocol import Answer, Interface
from lmc.runtime.speculation import first_stop

#: Reasons of an end that leave a text to go on with.
_ENDS = frozenset({"stop", "length"})


class Reading:
    """Reads the events of one answer.

    begun: the text of the turn that the model may repeat; stops: cut here, wherever they come from
    on_text: gets text that can no longer change
    """

    __slots__ = ("interface", "begun", "stops", "on_text", "answer", "shown")

    def __init__(self, interface: Interface, begun: str = "", stops: tuple[str, ...] = (),
                 on_text: Callable[[str], None] | None = None):
        self.interface, self.begun, self.stops, self.on_text = interface, begun, stops, on_text
        self.answer = Answer()
        self.shown = 0

    def begin(self) -> None:
        """Before an attempt: one that failed may have left a part."""
        self.answer = Answer()

    async def read(self, events: AsyncIterator[dict[str, Any]]) -> Answer:
        """The whole answer.  Raises `Fault` where there is none, or only a part of one."""
        try:
            async for event in events:
                self._add(event)
                if self._stopped():
                    return self.answer
        except Fault as fault:
            if fault.outcome == DROPPED and self.answer.finish is not None:
                return self._whole()  # only the count of tokens may be missing
            raise
        return self._whole()

    def _add(self, event: dict[str, Any]) -> None:
        try:
            self.interface.add(self.answer, event)
        except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
            raise Fault(f"the server's answer has another form than its interface ({type(error).__name__}: {error})",
                        outcome="broken answer", again=Again.NEVER, broken=True) from None
        self._show()

    def _stopped(self) -> bool:
        """Whether a stop text has come, and the answer is cut there."""
        found = first_stop(self._text(), self.stops)
        if found is None:
            return False
        start, stop = found
        self.answer.text, self.answer.finish, self.answer.stop = self._text()[:start], "stop", stop
        self.begun = ""
        return True

    def _whole(self) -> Answer:
        answer = self.answer
        if answer.finish is None:
            what = "ends before the answer does" if answer.text else "sends no answer"
            raise Fault(f"the server {what}", outcome="cut off" if answer.text else "empty", again=Again.BILLED, broken=True)
        if answer.finish not in _ENDS:
            raise Fault(f"the server ended the answer: {answer.finish}", outcome=answer.finish[:40], again=Again.NEVER,
                        broken=True)
        answer.text = self._text()
        self._show(to_the_end=True)
        return answer

    def _text(self) -> str:
        """What belongs to the value, without the repeated beginning."""
        text = self.answer.text
        return text[len(self.begun):] if self.begun and text.startswith(self.begun) else text

    def _show(self, *, to_the_end: bool = False) -> None:
        if self.on_text is None:
            return
        if not to_the_end and self.begun and self.begun.startswith(self.answer.text):
            return  # it may become a repetition
        text = self.answer.text if to_the_end else self._text()
        found = first_stop(text, self.stops)
        end = found[0] if found is not None else len(text) - (0 if to_the_end else _held_back(text, self.stops))
        if end > self.shown:
            self.on_text(text[self.shown:end])
            self.shown = end


def _held_back(text: str, stops: tuple[str, ...]) -> int:
    """How many characters at the end may be the beginning of a stop text."""
    return max((n for stop in stops for n in range(1, len(stop)) if text.endswith(stop[:n])), default=0)
