"""Clients that stream from a server on this machine, over plain sockets, so that they cost little beside it.

    tally = Tally()
    await asyncio.gather(*(client(address, number, until, tally) for number in range(64)))

    python -m benchmarks.stream_clients HOST PORT CLIENTS SECONDS        a process of clients, to be killed by whoever wants that
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

#: One request in so many is given up in the middle of its answer, as people do.
GIVES_UP = 16
_SYSTEM = "You answer in one short sentence, plainly, and you never speak of yourself. " * 4
_SCHEMA = {"type": "object", "properties": {"sure": {"type": "boolean"}, "count": {"type": "integer", "minimum": 0, "maximum": 99}},
           "required": ["sure", "count"], "additionalProperties": False}


@dataclass
class Tally:
    """answers, given_up: requests by how they ended; errors: what else happened, in words; first: seconds to the first event of an
    answer; gaps: between two events of one"""

    answers: int = 0
    given_up: int = 0
    events: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    first: list[float] = field(default_factory=list)
    gaps: list[float] = field(default_factory=list)


async def client(address: tuple[str, int], number: int, go_on: Callable[[], bool], tally: Tally) -> None:
    """Asks one request after the other while `go_on()`."""
    choose = random.Random(number)
    while go_on():
        try:
            await stream(address, a_request(choose), tally, leaves_after=choose.randrange(1, 8) if not choose.randrange(GIVES_UP) else None)
        except (OSError, asyncio.IncompleteReadError) as error:
            tally.errors[f"{type(error).__name__}: {error}"] += 1


def a_request(choose: random.Random) -> dict[str, Any]:
    """Of some kind: a shared beginning and an end of its own, long and short answers, one in four a JSON value."""
    body: dict[str, Any] = {
        "model": "default", "stream": True, "stream_options": {"include_usage": True}, "max_tokens": choose.choice((8, 24, 64)),
        "temperature": choose.choice((0.0, 0.8)), "seed": choose.randrange(2**31),
        "messages": [{"role": "system", "content": _SYSTEM}, {"role": "user", "content": f"What of number {choose.randrange(10**6)}?"}],
    }
    if not choose.randrange(4):
        body |= {"max_tokens": 64,
                 "response_format": {"type": "json_schema", "json_schema": {"name": "value", "strict": True, "schema": _SCHEMA}}}
    return body


async def stream(address: tuple[str, int], body: dict[str, Any], tally: Tally, *, leaves_after: int | None = None) -> list[dict[str, Any]]:
    """The events of one answer.  leaves_after: events, after which the connection is closed without a word."""
    reader, writer = await asyncio.open_connection(*address)
    try:
        data = json.dumps(body).encode()
        writer.write(f"POST /v1/chat/completions HTTP/1.1\r\nhost: {address[0]}:{address[1]}\r\ncontent-type: application/json\r\n"
                     f"content-length: {len(data)}\r\nconnection: close\r\n\r\n".encode() + data)
        asked = last = time.perf_counter()
        status = (await reader.readline()).split()[1:2]
        events: list[dict[str, Any]] = []
        # What frames the chunks are lines of their own, and no event begins like them.
        async for line in reader:
            if not line.startswith(b"data: "):
                if status != [b"200"] and line.startswith(b"{"):
                    tally.errors[f"status {b''.join(status).decode()}: {line.decode()[:200]}"] += 1
                continue
            now = time.perf_counter()
            if line.startswith(b"data: [DONE]"):
                tally.answers += 1
                return events
            (tally.gaps if events else tally.first).append(now - (last if events else asked))
            last = now
            events.append(json.loads(line[6:]))
            tally.events += 1
            if "error" in events[-1]:
                tally.errors[f"in the stream: {events[-1]['error']}"[:200]] += 1
                return events
            if len(events) == leaves_after:
                tally.given_up += 1
                return events
        if status == [b"200"]:
            tally.errors["an answer without an end"] += 1
        elif not tally.errors:
            tally.errors[f"status {b''.join(status).decode()}"] += 1
        return events
    finally:
        writer.close()


async def _main(host: str, port: int, clients: int, seconds: float) -> None:
    end, tally = time.monotonic() + seconds, Tally()
    print("begun", flush=True)
    await asyncio.gather(*(client((host, port), number, lambda: time.monotonic() < end, tally) for number in range(clients)))
    print(json.dumps({"answers": tally.answers, "given_up": tally.given_up, "errors": tally.errors}))


if __name__ == "__main__":
    asyncio.run(_main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])))
