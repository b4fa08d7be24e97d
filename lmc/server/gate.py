"""How many generations are under way, and when there are too many.

    with gate.entered(2):        raises ApiError 429 with Retry-After where two more are too many
        …
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from lmc.server.errors import ApiError

#: Seconds; a place is free once any generation ends.
_COME_AGAIN = "1"


class Gate:
    """`most`: how many at a time; `open`: how many there are."""

    __slots__ = ("most", "open", "turned_away")

    def __init__(self, most: int):
        self.most, self.open, self.turned_away = most, 0, 0

    @contextmanager
    def entered(self, count: int) -> Iterator[None]:
        """Count them in and out.  Raises `ApiError` where there is no room."""
        if count > self.most:
            raise ApiError(400, f"the request asks for {count} generations, this server runs {self.most} at a time", code="E0882")
        if self.open + count > self.most:
            self.turned_away += 1
            raise ApiError(429, f"{self.open} generations are under way, and {self.most} is the most; come again", code="rate_limit_exceeded",
                           headers={"retry-after": _COME_AGAIN})
        self.open += count
        try:
            yield
        finally:
            self.open -= count
