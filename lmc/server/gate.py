"""How many generations are under way, of all and of each client, and when there are too many.

    with gate.entered(2, "alice"):        raises ApiError 429 with Retry-After where two more are too many
        …
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from lmc.server.errors import ApiError

#: Seconds; a place is free once any generation ends.
_COME_AGAIN = "1"


class Gate:
    """`most`: how many at a time; `each`: how many of them one client may have, None for all; `open`: how many there are."""

    __slots__ = ("most", "each", "open", "turned_away", "_by_client")

    def __init__(self, most: int, each: int | None = None):
        self.most, self.each = most, min(most, each or most)
        self.open = self.turned_away = 0
        self._by_client: Counter[str] = Counter()

    @contextmanager
    def entered(self, count: int, client: str) -> Iterator[None]:
        """Count them in and out.  Raises `ApiError` where there is no room."""
        if count > self.each:
            raise ApiError(400, f"the request asks for {count} generations, this server runs {self.each} at a time", code="E0882")
        if self.open + count > self.most:
            raise self._full(f"{self.open} generations are under way, and {self.most} is the most")
        if self._by_client[client] + count > self.each:
            raise self._full(f"{self._by_client[client]} of your generations are under way, and {self.each} is the most for one client")
        self._add(client, count)
        try:
            yield
        finally:
            self._add(client, -count)

    def _add(self, client: str, count: int) -> None:
        self.open += count
        self._by_client[client] += count

    def _full(self, message: str) -> ApiError:
        self.turned_away += 1
        return ApiError(429, f"{message}; come again", code="rate_limit_exceeded", headers={"retry-after": _COME_AGAIN})
