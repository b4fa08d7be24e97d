"""`lmc serve [FILES.lmp]`: a model and programs for others to ask, over HTTP.

    lmc serve --model default                          OpenAI's interface at http://127.0.0.1:8000/v1
    lmc serve judge.lmp --extern tools.py              and POST /programs/judge/judge
    lmc serve --host 0.0.0.0 --keys keys.txt           for other machines: with keys

Keys come from a file or from the environment; they are never arguments, where others could see them.
"""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lmc.cli.exits import OK
from lmc.cli.opening import extern_functions, model_options, opened_model
from lmc.cli.roots import root_option
from lmc.cli.signals import run_until_interrupted
from lmc.diagnostics import Diagnostic, UsageError

if TYPE_CHECKING:
    import socket

    from lmc.server.settings import Key, ServerSettings
    from lmc.server.state import ServedProgram

#: Of the options that commands share, those that a server has.
_SHARED = ("model", "dtype", "kernels", "dry", "deterministic", "pool_tokens", "pool_bytes", "jump", "policy", "without", "extern",
           "max_calls", "max_tokens", "level", "quiet")


def _options() -> list[click.Parameter]:
    number = {"type": click.IntRange(1), "metavar": "N"}
    size = {"metavar": "SIZE"}
    return [
        click.Argument(["files"], nargs=-1, type=click.Path(path_type=Path)),
        click.Option(["--host"], default="127.0.0.1", show_default=True, metavar="ADDRESS", help="Where it listens."),
        click.Option(["--port"], type=click.IntRange(0, 65535), default=8000, show_default=True, metavar="N", help="0: any free one."),
        click.Option(["--key-env"], metavar="NAME", help="The environment variable that holds the key that clients need."),
        click.Option(["--keys"], type=click.Path(path_type=Path), metavar="FILE", help="A file of keys, one a line: a name and a key."),
        click.Option(["--no-key"], is_flag=True, help="Let anybody ask, also where other machines can reach it."),
        click.Option(["--allow-origin"], multiple=True, metavar="URL", help="A site whose pages may ask; may be repeated."),
        click.Option(["--allow-host"], multiple=True, metavar="NAME", help="A further name that clients call it by; may be repeated."),
        click.Option(["--name"], metavar="NAME", help="What clients call the model. Default: the name that --model says."),
        click.Option(["--max-open"], **number, default=256, show_default=True,
                     help="Generations under way at a time; beyond, clients are told to come again."),
        click.Option(["--max-open-each"], **number, help="The same for one client. Default: half, where there are several keys."),
        click.Option(["--max-answer"], **number, help="Generated tokens of one answer. Default: what the model's context holds."),
        click.Option(["--max-body"], **size, default="4MiB", show_default=True, help="The longest request."),
        click.Option(["--max-prompt"], **size, default="1MiB", show_default=True, help="The longest text that the model reads."),
        click.Option(["--max-seconds"], type=click.FloatRange(0, min_open=True), default=600.0, show_default=True, metavar="SECONDS",
                     help="What one run of a program may take."),
        click.Option(["--constraint-seconds"], type=click.FloatRange(0, min_open=True), default=5.0, show_default=True, metavar="SECONDS",
                     help="Processor time to compile a regex or schema of a request."),
        click.Option(["--constraint-memory"], **size, default="512MiB", show_default=True, help="Memory for the same."),
        click.Option(["--exact-turns"], is_flag=True,
                     help="Read what the assistant has said here in the tokens that it said it in, when it is sent back."),
        click.Option(["--share-cache"], is_flag=True, help="Let clients with different keys find one another's prefixes in the cache."),
        click.Option(["--drain"], type=click.FloatRange(0, 3600), default=10.0, show_default=True, metavar="SECONDS",
                     help="How long requests may go on once it is to end."),
        root_option(),
        *(option for option in model_options() if option.name in _SHARED),
    ]


def _serve(**given: Any) -> int:
    """Serve a model, and programs on it, over HTTP."""
    if importlib.util.find_spec("fastapi") is None or importlib.util.find_spec("uvicorn") is None:
        raise click.UsageError("`lmc serve` needs fastapi and uvicorn: pip install 'lmc[serve]'")
    from lmc.server.serving import bound_socket

    keys = _keys(given)
    _check_reach(given, keys)
    programs = _programs(given)
    model = given["model"] or _model_of(programs)
    settings = _settings(given, keys, model)
    with bound_socket(settings.host, settings.port) as bound:
        return run_until_interrupted(_run(settings, programs, model, given, bound))


serve = click.Command("serve", params=_options(), callback=_serve, help=_serve.__doc__, short_help="Serve a model over HTTP.")


async def _run(settings: ServerSettings, programs: dict[str, ServedProgram], model: str, given: dict[str, Any],
               bound: socket.socket) -> int:
    from lmc.server.serving import serve_until_told
    from lmc.server.state import ServerState

    async with opened_model(model, given) as session:
        state = ServerState(settings, session, programs=programs)
        await serve_until_told(state, bound, say=lambda text: None if given["quiet"] else click.echo(text, err=True))
    return OK


def _keys(given: dict[str, Any]) -> tuple[Key, ...]:
    from lmc.server.keys import key_of, read_keys

    if given["no_key"] and (given["keys"] or given["key_env"]):
        raise UsageError(Diagnostic("E0851", "`--no-key` lets anybody ask, and keys are given too", None, help="leave one out"))
    if given["keys"] and given["key_env"]:
        raise UsageError(Diagnostic("E0851", "`--keys` and `--key-env` both say who may ask", None, help="put all keys into the file"))
    if given["keys"]:
        return read_keys(given["keys"])
    name = given["key_env"]
    if not name:
        return ()
    if not os.environ.get(name):
        raise UsageError(Diagnostic("E0851", f"the environment variable `{name}` holds no key", None, help=f"export {name}=…"))
    return (key_of(name, os.environ[name], f"in `{name}`"),)


def _check_reach(given: dict[str, Any], keys: tuple[Key, ...]) -> None:
    from lmc.server.settings import is_loopback

    if not keys and not given["no_key"] and not is_loopback(given["host"]):
        message = f"other machines may reach {given['host']}, and no key is asked for"
        help = "give keys: `--keys FILE` or `--key-env NAME`; or let anybody ask: `--no-key`"
        raise UsageError(Diagnostic("E0851", message, None, help=help))


def _programs(given: dict[str, Any]) -> dict[str, ServedProgram]:
    if not given["files"]:
        if given["extern"]:
            raise UsageError(Diagnostic("E0851", "`--extern` is for programs, and none is given", None,
                                        help="lmc serve FILE.lmp --extern tools.py"))
        return {}
    from lmc.server.program_files import load_programs

    return load_programs(given["files"], extern_functions(given), level=int(given["level"]), roots=map(Path, given["roots"]))


def _model_of(programs: dict[str, ServedProgram]) -> str:
    """The one that all programs want."""
    wanted = {served.program.config["model"]: name for name, served in programs.items() if "model" in served.program.config}
    if len(wanted) > 1:
        listed = ", ".join(f"`{name}` wants {model}" for model, name in wanted.items())
        raise UsageError(Diagnostic("E0851", f"the programs want different models: {listed}", None, help="say which: `--model NAME`"))
    return next(iter(wanted), "default")


def _name_of(model: str) -> str:
    """As clients say it: of a folder or file, whose whole path is nobody's business, the last part."""
    path = Path(model)
    return path.resolve().name if path.is_dir() else path.stem if path.is_file() else model


def _share(most: int, keys: tuple[Key, ...]) -> int:
    return max(1, most // 2) if len(keys) > 1 else most


def _settings(given: dict[str, Any], keys: tuple[Key, ...], model: str) -> ServerSettings:
    from lmc.runtime.pool_size import read_bytes
    from lmc.server.settings import CompileLimits, RunLimits, ServerSettings

    return ServerSettings(
        given["name"] or ("dry" if given["dry"] and not given["model"] else _name_of(model)),
        given["host"], given["port"], keys, tuple(given["allow_origin"]), tuple(given["allow_host"]),
        max_body_bytes=read_bytes(given["max_body"], "--max-body"), max_prompt_bytes=read_bytes(given["max_prompt"], "--max-prompt"),
        max_open=given["max_open"], max_open_each=given["max_open_each"] or _share(given["max_open"], keys),
        max_tokens=given["max_answer"], exact_turns=given["exact_turns"], share_cache=given["share_cache"], drain_seconds=given["drain"],
        run=RunLimits(given["max_calls"] or RunLimits().calls, given["max_tokens"] or RunLimits().tokens, given["max_seconds"]),
        compile=CompileLimits(given["constraint_seconds"], read_bytes(given["constraint_memory"], "--constraint-memory")))
