"""Seven small workloads in token ids: who asks what, after which answer.

    W2    root (300 tokens) ─┬─ branch 1 ─ 48 tokens ─┬─ branch 1 ─ 48 tokens …
                             ├─ branch 2 ─ 48 tokens  └─ …
                             └─ …                             156 generations on 4 roots, 3 branches, depth 3

Each is a coroutine function of the data (one salted set of `peer_workloads.json`), of `ask`, which is any engine, and of the kind of
client: `parallel` asks all at once that is known, else each program (a root, a question, an essay) asks one thing after the other and
the programs run side by side, as the scripts of SGLang's paper do.  This file knows no engine.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from lmc.cli.peers.exchange import PeerAnswer, PeerAsk

#: Of one workload in one salted set: token ids and limits.
Data = Mapping[str, Any]
Ask = Callable[[PeerAsk], Awaitable[PeerAnswer]]

#: More than the longest object that the regex of W4 allows.
_OBJECT_TOKENS = 200
_TEMPERATURE = 0.7


@dataclass(frozen=True, slots=True)
class Stage:
    """Rows that generate side by side, so many tokens each: what an ideal engine does in `new` passes.  None: as many as came out."""

    rows: int
    new: int | None


@dataclass(frozen=True, slots=True)
class SmallWorkload:
    """name, title: as in the table and for people; key: of its data; run: asks everything; stages: what it generates, in order;
    split: whether programs ask several things at once, so that the kinds of client differ; greedy: whether texts of two engines may be
    compared; needs: what a peer must be able to do; rows_before: prompts that are brought into the cache before the clock starts, so that
    little else than decoding is measured
    """

    name: str
    title: str
    key: str
    run: Callable[[Data, Ask, bool], Coroutine[Any, Any, None]]
    stages: Callable[[Data], list[Stage]]
    split: bool = False
    greedy: bool = True
    needs: frozenset[str] = frozenset()
    rows_before: int = 0


async def _few_shot(data: Data, ask: Ask, parallel: bool) -> None:
    await asyncio.gather(*(ask(_plain([*data["prefix"], *suffix], data["new"])) for suffix in data["suffix"]))


async def _tree(data: Data, ask: Ask, parallel: bool) -> None:
    async def grow(ids: list[int], depth: int) -> None:
        if depth > 0:
            await _each((follow([*ids, *branch], depth) for branch in data["branch"]), parallel)

    async def follow(ids: list[int], depth: int) -> None:
        answer = await ask(_plain(ids, data["new"]))
        await grow([*ids, *answer.ids], depth - 1)

    await asyncio.gather(*(grow(root, data["depth"]) for root in data["roots"]))


async def _samples(data: Data, ask: Ask, parallel: bool) -> None:
    async def question(place: int, prompt: list[int]) -> None:
        seeds = range(place * data["n"], (place + 1) * data["n"])
        await _each((ask(PeerAsk(tuple(prompt), data["new"], temperature=_TEMPERATURE, seed=seed, ignore_eos=True)) for seed in seeds), parallel)

    await asyncio.gather(*(question(place, prompt) for place, prompt in enumerate(data["prompts"])))


async def _extract(data: Data, ask: Ask, parallel: bool) -> None:
    await asyncio.gather(*(ask(PeerAsk(tuple(prompt), _OBJECT_TOKENS, regex=data["regex"])) for prompt in data["prompts"]))


async def _chat(data: Data, ask: Ask, parallel: bool) -> None:
    async def session(turns: list[list[int]]) -> None:
        ids: list[int] = []
        for turn in turns:
            ids += turn
            ids += (await ask(_plain(ids, data["new"]))).ids

    await asyncio.gather(*map(session, data["turns"]))


async def _judge(data: Data, ask: Ask, parallel: bool) -> None:
    async def one(essay: list[int]) -> None:
        judged = await _each((ask(_plain([*essay, *dimension], data["new"])) for dimension in data["dims"]), parallel)
        merged = chain.from_iterable([*separator, *answer.ids] for separator, answer in zip(data["merge_sep"], judged))
        await ask(_plain([*essay, *merged, *data["merge_tail"]], data["merge_new"]))

    await asyncio.gather(*map(one, data["essays"]))


async def _prefill(data: Data, ask: Ask, parallel: bool) -> None:
    await ask(_plain(data["prompt"], 1))


def _decode(rows: int) -> Callable[[Data, Ask, bool], Coroutine[Any, Any, None]]:
    async def decode(data: Data, ask: Ask, parallel: bool) -> None:
        await asyncio.gather(*(ask(_plain(prompt, data["decode"])) for prompt in data["prompts32"][:rows]))

    return decode


async def before_run(workload: SmallWorkload, data: Data, ask: Ask) -> None:
    """What is not measured: see `rows_before`."""
    await asyncio.gather(*(ask(_plain(prompt, 1)) for prompt in data.get("prompts32", ())[:workload.rows_before]))


def _plain(ids: Sequence[int], new: int) -> PeerAsk:
    return PeerAsk(tuple(ids), new, ignore_eos=True)


async def _each(works: Iterable[Coroutine[Any, Any, Any]], parallel: bool) -> list[Any]:
    if parallel:
        return await asyncio.gather(*works)
    return [await work for work in list(works)]


def _tree_stages(data: Data) -> list[Stage]:
    return [Stage(len(data["roots"]) * len(data["branch"]) ** level, data["new"]) for level in range(1, data["depth"] + 1)]


def _judge_stages(data: Data) -> list[Stage]:
    return [Stage(len(data["essays"]) * len(data["dims"]), data["new"]), Stage(len(data["essays"]), data["merge_new"])]


def _decoding(rows: int) -> SmallWorkload:
    return SmallWorkload(f"W7 batch {rows}", f"decoding, {rows} at a time", "W7", _decode(rows), lambda data: [Stage(rows, data["decode"])],
                         rows_before=rows)


SMALL_WORKLOADS = (
    SmallWorkload("W1", "few-shot", "W1", _few_shot, lambda data: [Stage(len(data["suffix"]), data["new"])]),
    SmallWorkload("W2", "tree of thought", "W2", _tree, _tree_stages, split=True),
    SmallWorkload("W3", "self-consistency", "W3", _samples, lambda data: [Stage(len(data["prompts"]) * data["n"], data["new"])], split=True,
                  greedy=False),
    # How long an object becomes is up to the model: `None` stands for what was generated.
    SmallWorkload("W4", "JSON by regex", "W4", _extract, lambda data: [Stage(len(data["prompts"]), None)], needs=frozenset({"regex"})),
    SmallWorkload("W5", "chat", "W5", _chat, lambda data: [Stage(len(data["turns"]), data["new"])] * len(data["turns"][0])),
    SmallWorkload("W6", "judge", "W6", _judge, _judge_stages, split=True),
    SmallWorkload("W7 prefill", "one prompt", "W7", _prefill, lambda data: [Stage(1, 1)]),
    *map(_decoding, (1, 8, 32)),
)
NAMES = tuple(dict.fromkeys(workload.key for workload in SMALL_WORKLOADS))
