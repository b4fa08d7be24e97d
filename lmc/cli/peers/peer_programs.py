"""The small workloads as programs in a peer's own language: what `lmc programs` is held against.

    peer_contestants(peers, tokenizer)      [vllm by ids, sglang by ids, sglang's programs, …]

A peer gets the texts that the token ids spell, as `examples/peers` does, and asks for what its language asks for, in its own order.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lmc.cli.peers.contestants import PeerContestant
from lmc.cli.peers.process import Peer
from lmc.cli.peers.small_programs import PROGRAMS
from lmc.cli.peers.small_run import Contestant, Run
from lmc.cli.peers.small_workloads import SmallWorkload

if TYPE_CHECKING:
    from lmc.runtime.tokenizer import Tokenizer


@dataclass(slots=True)
class PeerPrograms:
    """`peer`: opened; whoever made it closes it.  tokenizer: spells the ids"""

    peer: Peer
    tokenizer: Tokenizer
    #: A program asks as it is written: there is one kind of client.
    sequential: bool = False

    @property
    def name(self) -> str:
        return f"{self.peer.name} programs" if self.peer.ready.takes_requests else self.peer.name

    @property
    def precision(self) -> str:
        return self.peer.ready.precision

    def cannot(self, workload: SmallWorkload) -> str | None:
        if workload.name not in PROGRAMS:
            return "there is no program of it"
        missing = workload.needs - self.peer.ready.can
        return f"its programs have no {', '.join(sorted(missing))}" if missing else None

    def run(self, workload: SmallWorkload, data: Mapping[str, Any], *, parallel: bool) -> Run:
        return asyncio.run(self._run(workload, data))

    def pause(self) -> None:
        self.peer.pause()

    def resume(self) -> None:
        self.peer.resume()

    async def _run(self, workload: SmallWorkload, data: Mapping[str, Any]) -> Run:
        program, rows = PROGRAMS[workload.name]
        made = list(rows(data, lambda ids: self.tokenizer.decode_bytes(ids).decode()))
        # The same prompts may have come as ids just now.
        await self.peer.reset()
        self.peer.reset_peak()
        started = time.perf_counter()
        ran = await self.peer.program(program, made)
        seconds = time.perf_counter() - started
        return Run(seconds, len(ran.texts), ran.prompt, sum(ran.lengths), ran.computed, None, self.peer.peak_bytes() or None,
                   tuple(sorted(ran.texts)), ran.lengths)


def peer_contestants(peers: Iterable[Peer], tokenizer: Tokenizer) -> list[Contestant]:
    """What each opened peer takes part with: requests, programs, or both, one after the other."""
    found: list[Contestant] = []
    for peer in peers:
        found += [PeerContestant(peer)] * peer.ready.takes_requests + [PeerPrograms(peer, tokenizer)] * ("programs" in peer.ready.can)
    return found
