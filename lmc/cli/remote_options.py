"""Options of commands that say where a model over the network is and how it is asked.

    --backend vllm --base-url http://localhost:8000 --model m --deadline 60 --prices 0.15:0.60

The key comes from the environment; it is never an argument, where others could see it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from lmc.diagnostics import Diagnostic, UsageError

if TYPE_CHECKING:
    from lmc.backend.program import Program
    from lmc.runtime.remote.settings import RemoteSettings

_BACKENDS = ("local", "openai", "sglang", "vllm")
_NETWORK = ("deadline", "attempts", "longest_wait", "repeat_billed", "at_once", "speculate", "prices", "ca_file")
#: The names of these options.
REMOTE = ("backend", "base_url", "key_env", *_NETWORK)


def remote_options() -> list[click.Parameter]:
    """Fresh options."""
    seconds = {"type": click.FloatRange(0, min_open=True), "metavar": "SECONDS"}
    return [
        click.Option(["--backend"], type=click.Choice(_BACKENDS), default="local",
                     help="Where the model is: in this process, or behind a server with this interface. Default: local."),
        click.Option(["--base-url"], metavar="URL", help="The server's address, as http://localhost:8000/v1."),
        click.Option(["--key-env"], default="OPENAI_API_KEY", metavar="NAME",
                     help="The environment variable that holds the server's key. Default: OPENAI_API_KEY."),
        click.Option(["--ca-file"], type=click.Path(exists=True, dir_okay=False), metavar="FILE",
                     help="Certificates in PEM that must vouch for the server. Default: those that come with httpx."),
        click.Option(["--deadline"], **seconds, help="For each answer of the server. Default: 600."),
        click.Option(["--attempts"], type=click.IntRange(1), metavar="N", help="Of each request at most. Default: 4."),
        click.Option(["--longest-wait"], **seconds, help="A server that asks for a longer wait is not waited for. Default: 60."),
        click.Option(["--repeat-billed"], is_flag=True, help="Send a request again that may have been billed."),
        click.Option(["--at-once"], type=click.IntRange(1), metavar="N", help="Requests under way at a time. Default: 32."),
        click.Option(["--speculate"], type=click.IntRange(0), metavar="N",
                     help="Ask for up to N tokens past a stop, for several generations at once. Default: 0."),
        click.Option(["--prices"], metavar="IN:OUT", help="For a million tokens read and written; the run's cost is shown."),
    ]


def target_of(backends: Sequence[str]) -> str:
    """Whose passes a program gets, by the values of `--backend`."""
    return "api" if backends and backends[-1] in _BACKENDS[1:] else "local"


def server_of(program: Program, given: Mapping[str, Any]) -> RemoteSettings | None:
    """What the options say; None for a model in this process.  Raises `UsageError`."""
    from lmc.embed import remote_of

    network = {name: given[name] for name in _NETWORK if given[name]}
    if "prices" in network:
        network["prices"] = _prices(network["prices"])
    settings = remote_of(given["backend"], given["base_url"], given["key_env"], network)
    if settings is not None and not given["model"] and "model" not in program.config:
        message = f"which model of {settings.base_url} is not said"
        raise UsageError(Diagnostic("E0851", message, None, help="say `--model NAME`, as the server names it"))
    return settings


def _prices(text: str) -> tuple[float, float]:
    try:
        prompt, generated = map(float, text.split(":"))
    except ValueError:
        raise UsageError(Diagnostic("E0851", f"the prices are {text!r}, expected two numbers as in 0.15:0.60", None)) from None
    return prompt, generated
