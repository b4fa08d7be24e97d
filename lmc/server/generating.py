"""Several generations of one request, side by side, as their news come.

    async for news in generated(session, gate, client, requests):
        news.place, news.text        more text of a choice
        news.result                  the choice is over

Whoever stops listening ends them all: their slots are free within two steps of the engine.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass

from lmc.runtime.answers import Answers
from lmc.runtime.request import Generated, GenerateRequest, Scored, ScoreRequest
from lmc.server.gate import Gate


@dataclass(frozen=True, slots=True)
class News:
    """place: of the request; text: more of its text, where it streams; result: once it is over"""

    place: int
    text: str = ""
    result: Generated | None = None


async def generated(session: Answers, gate: Gate, client: str, requests: Sequence[GenerateRequest],
                    note: Callable[[Generated], None] = lambda result: None) -> AsyncGenerator[News, None]:
    """Run them.  client: whose they are; note: told each result before others may ask for what follows it.

    Raises what the first one that fails raises, and ends the others.
    """
    arrived: asyncio.Queue[News | Exception] = asyncio.Queue()

    async def run(place: int, request: GenerateRequest) -> None:
        try:
            result = await session.generate(request, lambda text: arrived.put_nowait(News(place, text)))
        except Exception as error:
            arrived.put_nowait(error)
        else:
            arrived.put_nowait(News(place, result=result))

    with gate.entered(len(requests), client):
        # All begin in one step of the engine, so that a prompt they share is computed once.
        tasks = [asyncio.create_task(run(place, request)) for place, request in enumerate(requests)]
        try:
            left = len(tasks)
            while left:
                news = await arrived.get()
                if isinstance(news, Exception):
                    raise news
                if news.result is not None:
                    note(news.result)
                    left -= 1
                yield news
        finally:
            await ended(tasks)


async def results_of(news: AsyncGenerator[News, None], count: int) -> list[Generated]:
    """What each of them gave, in order."""
    results: list[Generated | None] = [None] * count
    async for one in news:
        if one.result is not None:
            results[one.place] = one.result
    assert None not in results, results
    return [result for result in results if result is not None]


async def scores_of(session: Answers, gate: Gate, client: str, prompts: Sequence[tuple[int, ...]]) -> list[tuple[float, ...]]:
    """Of each prompt the log-probabilities of its tokens from the second on."""
    longer = [ids for ids in prompts if len(ids) > 1]
    with gate.entered(len(longer), client):
        scored: list[Scored] = await session.score([ScoreRequest(ids, 1) for ids in longer]) if longer else []
    found = iter(scored)
    return [next(found).logprobs if len(ids) > 1 else () for ids in prompts]


async def ended(tasks: Sequence[asyncio.Future]) -> None:
    """Cancel what still runs, and wait for it."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
