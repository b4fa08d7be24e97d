"""Peers for `lmc bench workloads`: started once, warmed up, and paused until their turn.

    spelling, folder = read_spelling("default", cache)
    with opened_peers(("vllm", "llama"), installed, PeerSetting(str(folder)), spelling, tell) as peers:
        contenders = [PeerContender(peer, client, programs, spelling) for peer in peers for client in Client]
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from lmc.cli.peers.exchange import PeerAsk, PeerError, PeerSetting
from lmc.cli.peers.known import Installed, close_all, start_peer
from lmc.cli.peers.process import Peer
from lmc.cli.warm_up import WARM_UP_TOKENS, warm_up_prompt
from lmc.cli.workloads.peer_contender import Spelling

#: What is written in the warm-up where it must be held to something.
_WORDS = "[a-z ]{1,40}"


@contextmanager
def opened_peers(names: Sequence[str], installed: Installed, setting: PeerSetting, spelling: Spelling,
                 tell: Callable[[str], None]) -> Iterator[list[Peer]]:
    """tell: gets a line for each peer, what runs or why it does not"""
    peers: list[Peer] = []
    try:
        for name in names:
            started = time.perf_counter()
            try:
                peer = start_peer(name, installed)
                peers.append(peer)
                asyncio.run(_open(peer, setting, spelling))
            except PeerError as error:
                tell(f"{name}: left out: {error.diagnostics[0].message}")
                continue
            peer.pause()
            ready = peer.ready
            notes = "".join(f"; {note}" for note in ready.notes)
            tell(f"{name}: {ready.engine}, {ready.precision}, ready after {time.perf_counter() - started:.0f} s{notes}")
        yield [peer for peer in peers if peer.ready is not None and not peer.ended]
    finally:
        close_all(peers)


def read_spelling(model: str, cache: Path) -> tuple[Spelling, Path]:
    """How prompts are made for the model, and the folder that holds its files.

    Raises `UsageError` or `LmcError` naming what is missing.
    """
    from lmc.runtime.model.folder import read_json
    from lmc.runtime.open_tokenizer import model_folder, open_tokenizer

    folder = model_folder(model, cache)
    tokenizer, template = open_tokenizer(model, cache)
    return Spelling(tokenizer, template, read_json(folder / "config.json")["max_position_embeddings"]), folder


async def _open(peer: Peer, setting: PeerSetting, spelling: Spelling) -> None:
    from lmc.runtime.context import Prompter

    ready = await peer.open(setting)
    if not ready.takes_requests:
        return
    await _warm_up(peer, warm_up_prompt(Prompter(spelling.tokenizer, spelling.template)))


async def _warm_up(peer: Peer, prompt: tuple[int, ...]) -> None:
    """Some cannot go on behind an end token, or write nothing that is not held to a regex."""
    try:
        await peer.generate(PeerAsk(prompt, WARM_UP_TOKENS, ignore_eos=True))
    except PeerError:
        if peer.ended or "regex" not in peer.ready.can:
            raise
        await peer.generate(PeerAsk(prompt, WARM_UP_TOKENS, regex=_WORDS))
