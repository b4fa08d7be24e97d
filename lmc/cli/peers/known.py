"""Which peers there are: the name, the virtual environment that `make bench-peers` makes for it, and its adapter.

    start_peer("vllm", Installed(Path(".bench-peers"), Path("benchmarks/peers")))    ->    a Peer, not yet opened
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from lmc.cli.peers.exchange import PeerError
from lmc.cli.peers.process import PATIENCE, Peer
from lmc.diagnostics import Diagnostic, UsageError

#: In the order in which they are run.
PEERS = ("vllm", "llama", "sglang", "sglang_frontend", "transformers", "outlines", "guidance", "lmql")


@dataclass(frozen=True, slots=True)
class Installed:
    """environments: the folder of `make bench-peers`, one virtual environment each; adapters: where their scripts lie"""

    environments: Path
    adapters: Path

    def command(self, name: str) -> list[str]:
        # Without the user's own packages, and with output that is not held back.
        return [str(self.environments / name / "bin" / "python"), "-s", "-u", str(self.adapters / f"{name}_peer.py")]

    def has(self, name: str) -> bool:
        return (self.environments / name / ".ready").exists()

    def names(self) -> tuple[str, ...]:
        """Those that are installed."""
        return tuple(name for name in PEERS if self.has(name))


def chosen_peers(text: str | None, installed: Installed) -> tuple[str, ...]:
    """From `--peers a,b` to names; all that are installed where nothing is said.  Raises `UsageError`."""
    if text is None:
        return installed.names()
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    for name in names:
        if name not in PEERS:
            raise UsageError(Diagnostic("E0851", f"there is no peer `{name}`", None, help=f"one of {', '.join(PEERS)}"))
    return tuple(dict.fromkeys(names))


def start_peer(name: str, installed: Installed, *, patience: float = PATIENCE) -> Peer:
    """Raises `PeerError` where it is not installed or cannot be started."""
    if not installed.has(name):
        raise PeerError(f"the peer `{name}` is not installed in {installed.environments}", help=f"make bench-peers PEERS={name}")
    return Peer(name, installed.command(name), patience=patience)


def close_all(peers: Iterable[Peer]) -> None:
    for peer in peers:
        peer.close()
