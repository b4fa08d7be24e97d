"""Programs as Python modules.

    import lmc

    with lmc.load("judge.lmp", externs={"search": search}) as m:
        verdict = m.judge(essay="…", dimensions=["clarity"])     # Verdict(grade='A', overall=4, summary='…')
        verdicts = m.judge.batch([{"essay": e} for e in essays])
        verdict = await m.aio.judge(essay="…")

The model is opened at the first call, its weights are read when something is first generated, and it is shared by all calls from
any thread and by modules that are loaded with the same settings.  A private thread runs the event loop, so this works in notebooks
too.  Everything heavy is imported when it is first needed.
"""

from __future__ import annotations

import builtins
import os
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace, TracebackType
from typing import TYPE_CHECKING, Any

from lmc.diagnostics import Diagnostic, LmcError, RunError, UsageError, render_all
from lmc.levels import DEFAULT_LEVEL

if TYPE_CHECKING:
    from lmc.backend.program import FunctionCode, Program
    from lmc.runtime.forecast.forecast import Forecast
    from lmc.runtime.host_types import HostTypes
    from lmc.runtime.instance import RunOptions, Sinks
    from lmc.runtime.machine import Machine
    from lmc.runtime.open_engines import Share
    from lmc.runtime.remote.settings import RemoteSettings
    from lmc.runtime.rendering import Rendering
    from lmc.runtime.report import Report


def load(path: str | os.PathLike[str], *, model: str | None = None, externs: Mapping[str, Callable[..., Any]] | None = None,
         dry: bool = False, dtype: str = "float32", kernels: str = "auto", deterministic: bool = False, pool_tokens: int | None = None,
         pool_bytes: int | str | None = None, jump: str = "exact", policy: str = "lpm", without: Iterable[str] = (),
         seed: int | None = None, sampling: Mapping[str, Any] | None = None, max_calls: int | None = None, max_tokens: int | None = None,
         print: Callable[[str], None] | None = None, stream: Callable[[str], None] | None = None,
         input: Callable[[str], str] | None = None, level: int = DEFAULT_LEVEL, cache: str | os.PathLike[str] | None = None,
         roots: Iterable[str | os.PathLike[str]] = (), backend: str = "local", base_url: str | None = None,
         key_env: str = "OPENAI_API_KEY", network: Mapping[str, Any] | None = None) -> Module:
    """Compile a `.lmp` file, or read a `.lmpc` artifact, and give its public functions as callables.

    model: a short name, a folder, a GGUF file or a hub id; above the program's `config`, which is above the default model
    externs: a Python function for each `extern` that the program declares
    dry: answer from a stand-in model that needs no files
    dtype, kernels: "float32" or "bfloat16"; "auto", "native", "native:LEVEL" or "torch" (docs/kernels.md)
    pool_tokens, pool_bytes: size of the key-value pool, one of both; bytes may be a text such as "2GiB"
    jump: how forced text is written: "exact" and "off" give the same text, "canonical" is fastest and may differ (docs/constraints.md)
    policy, without: the order in which requests start, and parts of the runtime to leave out, to measure them (docs/running.md)
    seed: the program seed; without it each call draws its own
    sampling: options for all `gen`s that do not give them, such as {"temperature": 0.7}
    max_calls, max_tokens: the budget of one call of a function: calls of the model, tokens generated
    print, stream, input: where `print` and streamed text go, and where lines come from; standard output and input by default
    level: 0 runs the program as it is written, 1 and 2 optimised as by `-O`; no token differs
    cache: where fetched models and built kernels are kept
    roots: folders that imports may reach beside the file's own
    backend, base_url: "openai", "sglang" or "vllm", and where the server is; key_env: the environment variable that holds its key
    network: how it is asked: deadline, attempts, longest_wait, repeat_billed, at_once, speculate, prices, ca_file (docs/remote.md)
    Raises `CompileError` with everything that is wrong, or `UsageError` for a wrong argument.
    """
    from lmc.runtime.ablation import Part, check_policy, check_without
    from lmc.runtime.instance import Budgets, RunOptions, Sinks
    from lmc.runtime.kernel_names import check_kernels
    from lmc.runtime.options import check_jump, check_overrides
    from lmc.runtime.pool_size import pool_size

    left_out = tuple(without)
    check_jump(jump)
    check_kernels(kernels)
    check_policy(policy)
    pool_size(pool_tokens, pool_bytes)
    check_without(left_out)
    remote = remote_of(backend, base_url, key_env, network or {})
    program = load_program(Path(path), level=level, roots=roots, target="local" if remote is None else "api")
    budgets = {k: v for k, v in (("calls", max_calls), ("tokens", max_tokens)) if v is not None}
    options = RunOptions(seed=seed, overrides=check_overrides(sampling or {}), budgets=Budgets(**budgets),
                         parallel=Part.PARALLELISM.value not in left_out)
    write = stream or _write
    sinks = Sinks(print or builtins.print, lambda path, text: write(text), input or builtins.input)
    settings = {"model": model or program.config.get("model", "default"), "dry": dry, "dtype": dtype, "kernels": kernels,
                "deterministic": deterministic, "pool_tokens": pool_tokens, "pool_bytes": pool_bytes, "jump": jump, "policy": policy,
                "without": left_out, "cache": Path(cache) if cache is not None else cache_folder(), "remote": remote}
    return Module(program, externs or {}, options, sinks, asks=input is not None, settings=settings)


def load_program(path: Path, *, level: int = DEFAULT_LEVEL, roots: Iterable[str | os.PathLike[str]] = (),
                 tell_moved: Callable[[str], None] | None = None, target: str = "local") -> Program:
    """The program of a `.lmp` source, compiled, or of a `.lmpc` artifact.  Where `tell_moved` is given, lines of prompts are put into
    an order in which more is shared, and it is called with what was moved.  `target` is `api` for a model over the network.

    Raises `CompileError` or `UsageError`.
    """
    if not path.is_file():
        what = "is a folder" if path.is_dir() else "does not exist"
        raise UsageError(Diagnostic("E0853", f"`{path}` {what}, expected a `.lmp` or `.lmpc` file", None, help=_similar(path)))
    if path.suffix == ".lmpc":
        from lmc.backend.serialize import read_program

        return read_program(path.read_bytes(), str(path))
    from lmc.compiler import compile_file

    folders = tuple(map(os.fspath, roots))
    for folder in folders:
        if not os.path.isdir(folder):
            raise UsageError(Diagnostic("E0853", f"the root `{folder}` is no folder", None, help="give a folder that exists"))
    compiled = compile_file(str(path), level=level, target=target, roots=folders, reordered=tell_moved is not None)
    if compiled.moved:
        tell_moved(render_all(compiled.moved, compiled.checked.sources))
    return compiled.program


def function_schema(code: FunctionCode) -> dict[str, Any]:
    """The signature as JSON Schema; raises `UsageError` where it holds a context."""
    from lmc.json_schema import NoSchema, signature_schema

    try:
        return signature_schema(((p.name, p.type, p.default) for p in code.params), code.result, code.doc)
    except NoSchema as error:
        raise UsageError(Diagnostic("E0851", f"`{code.name}` has no JSON schema: {error}", code.span)) from None


def remote_of(backend: str, base_url: str | None, key_env: str, network: Mapping[str, Any]) -> RemoteSettings | None:
    """How a server is asked; None for a model in this process.  Raises `UsageError`."""
    from lmc.runtime.remote.settings import remote_settings

    return remote_settings(backend, base_url, os.environ.get(key_env) or None, network)


def cache_folder() -> Path:
    """Where fetched models are kept: `$LMC_CACHE`, else `lmc` in the user's cache folder."""
    given = os.environ.get("LMC_CACHE")
    if given:
        return Path(given).expanduser()
    user = os.environ.get("XDG_CACHE_HOME")
    return (Path(user) if user else Path.home() / ".cache") / "lmc"


class Module:
    """The public functions of a program, as attributes.  Use it as a context manager, or `close` it, to free the model.

    aio: the same functions as coroutine functions
    types: the dataclasses of the program's records
    """

    def __init__(self, program: Program, externs: Mapping[str, Callable[..., Any]], options: RunOptions, sinks: Sinks, *,
                 asks: bool, settings: Mapping[str, Any]):
        from lmc.runtime.host import bind_externs
        from lmc.runtime.report import Report

        self._program = program
        self._externs = bind_externs(program, externs, strict=True)
        self._options, self._sinks, self._asks, self._settings = options, sinks, asks, settings
        self._lock = threading.Lock()
        self._engine: _Engine | None = None
        self._closed = False
        self._report = Report()
        self._functions = {name: Function(self, program.functions[name]) for name in program.entries}
        self.aio = SimpleNamespace(**{name: f.start for name, f in self._functions.items()})
        self.types = SimpleNamespace(**{t.name.rpartition(".")[2]: made for t in program.types
                                        if (made := self._externs.types.class_of(t.name)) is not None})

    @property
    def report(self) -> Report:
        """The numbers of all calls so far."""
        return self._report

    def close(self) -> None:
        """Cancel what runs, and free the model.  Twice is harmless."""
        with self._lock:
            self._closed, engine, self._engine = True, self._engine, None
        if engine is not None:
            engine.share.close()

    def __getattr__(self, name: str) -> Function:
        functions = self.__dict__.get("_functions", {})
        if name in functions:
            return functions[name]
        listed = ", ".join(functions) or "none"
        raise AttributeError(f"the program has no public function `{name}`; it has: {listed}")

    def __dir__(self) -> list[str]:
        return [*self._functions, "aio", "types", "report", "close"]

    def __enter__(self) -> Module:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<lmc module {self._program.name!r}: {', '.join(self._functions)}>"

    def _opened(self) -> _Engine:
        with self._lock:
            if self._closed:
                raise UsageError(Diagnostic("E0851", "the module is closed", None, help="load it again"))
            if self._engine is None:
                self._engine = _Engine(self._program, self._externs, self._settings)
            return self._engine

    def _render(self, code: FunctionCode, args: tuple[Any, ...]) -> Rendering:
        from lmc.runtime.open_tokenizer import open_tokenizer
        from lmc.runtime.render import ShownRequests, render_calls

        settings = self._settings
        if settings["remote"] is not None:
            message = "the prompts of a model over the network are made by its server"
            raise UsageError(Diagnostic("E0851", message, None, help="load the program without `backend` to see its turns"))
        tokenizer, template = open_tokenizer(settings["model"], settings["cache"], dry=settings["dry"])
        shown = ShownRequests(tokenizer, template, "the stand-in model" if settings["dry"] else settings["model"])
        return render_calls(self._program, shown, self._externs.for_another_loop(), code.name, args, self._options, self._sinks)

    def _plan(self, code: FunctionCode, args: tuple[Any, ...]) -> Forecast:
        from lmc.runtime.forecast.forecast import foresee
        from lmc.runtime.forecast.opening import open_remote_target, open_target

        remote = self._settings["remote"]
        if remote is not None:
            foreseer, target = open_remote_target(self._program, remote, self._settings["model"])
            return foresee(self._program, foreseer, code.name, args, self._options, target)
        names = ("model", "cache", "dry", "dtype", "pool_tokens", "pool_bytes")
        foreseer, target = open_target(**{name: self._settings[name] for name in names})
        return foresee(self._program, foreseer, code.name, args, self._options, target)

    async def _run(self, engine: _Engine, code: FunctionCode, args: tuple[Any, ...]) -> Any:
        run = engine.machine.start(self._options, self._sinks)
        try:
            value = await run.call(code.name, args)
        finally:
            self._note(run.report)
        return self._externs.types.to_host(value)

    def _note(self, report: Report) -> None:
        # Called in the loop's thread alone, so nothing is lost between reading and writing.
        self._report = self._report.beside(report)


class Function:
    """A public function of a program: call it.  `batch` runs many rows, `start` is the form for coroutines."""

    def __init__(self, module: Module, code: FunctionCode):
        from lmc.runtime.arguments import signature_text

        self._module, self._code = module, code
        self.__name__ = code.name
        self.__doc__ = f"{signature_text(code)}\n\n{code.doc}".strip()
        self.__signature__ = _signature(code, module._externs.types)

    def __call__(self, /, *args: Any, **keywords: Any) -> Any:
        """Run it and wait.  Raises `UsageError` for wrong arguments, `RunError` where the program stops."""
        from concurrent.futures import CancelledError

        values = self._bind(args, keywords)
        engine = self._module._opened()
        try:
            return engine.share.run(self._module._run(engine, self._code, values))
        except CancelledError:
            message = f"the module was closed while `{self.__name__}` ran"
            raise RunError(Diagnostic("E0839", message, None), kind="cancelled") from None

    async def start(self, /, *args: Any, **keywords: Any) -> Any:
        """Run it, from any event loop.  Cancelling cancels its requests."""
        import asyncio

        values = self._bind(args, keywords)
        engine = await asyncio.to_thread(self._module._opened)
        return await asyncio.wrap_future(engine.share.start(self._module._run(engine, self._code, values)))

    def render(self, /, *args: Any, **keywords: Any) -> Rendering:
        """The prompts up to where the function needs the model; no weights are loaded.  `print` of it is the text of `lmc render`.

        Externs that it calls before that run.  Raises `UsageError` for wrong arguments; where the program fails, `error` says so.
        """
        from concurrent.futures import ThreadPoolExecutor

        module, values = self._module, self._bind(args, keywords)
        # A thread without an event loop: the caller may have one, as notebooks do.
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(module._render, self._code, values).result()

    def plan(self, /, *args: Any, **keywords: Any) -> Forecast:
        """The calls of the model that it will make, found out before anything runs; no weights are loaded and no extern is called.

        `print` of it is the text of `lmc plan`.  Raises `UsageError` for wrong arguments; where it certainly fails, `error` says so.
        """
        return self._module._plan(self._code, self._bind(args, keywords))

    def batch(self, rows: Iterable[Mapping[str, Any] | tuple[Any, ...]], *, errors: str = "raise") -> list[Any]:
        """Run it once for each row, side by side; results in order.

        errors: "raise" the first row's error after all have run, or "return" errors in their rows' places.
        """
        if errors not in ("raise", "return"):
            raise UsageError(Diagnostic("E0851", f"`errors` is {errors!r}, expected \"raise\" or \"return\"", None))
        engine = self._module._opened()
        results = engine.share.run(self._batch(engine, [dict(r) if isinstance(r, Mapping) else tuple(r) for r in rows]))
        if errors == "raise":
            for result in results:
                if isinstance(result, LmcError):
                    raise result
        return results

    @property
    def schema(self) -> dict[str, Any]:
        """The signature as JSON Schema: `parameters`, `returns` and, where the function has a docstring, `description`.

        Raises `UsageError` where a parameter or the result holds a context.
        """
        return function_schema(self._code)

    def __repr__(self) -> str:
        return f"<lmc function {self.__doc__.splitlines()[0]}>"

    def _bind(self, args: tuple[Any, ...], keywords: Mapping[str, Any]) -> tuple[Any, ...]:
        from lmc.runtime.arguments import bind_arguments

        return bind_arguments(self._code, args, keywords, self._module._externs.types)

    async def _batch(self, engine: _Engine, rows: list[Any]) -> list[Any]:
        from dataclasses import replace

        from lmc.runtime.rows import run_rows

        module = self._module
        # Nobody can say which row a question comes from, so only a function that was given is asked.
        sinks = module._sinks if module._asks else replace(module._sinks, input=None)
        results = []
        async for row in run_rows(engine.machine, self._code, rows, module._options, sinks):
            module._note(row.report)
            results.append(row.error if row.error is not None else module._externs.types.to_host(row.value))
        return results


class _Engine:
    """A program on its model, which modules with the same settings share."""

    def __init__(self, program: Program, externs: Any, settings: Mapping[str, Any]):
        from lmc.runtime.machine import Machine
        from lmc.runtime.open_engines import shared_engines

        self.share: Share = shared_engines().take(settings)
        try:
            self.machine: Machine = Machine(program, self.share.session, externs)
        except BaseException:
            self.share.close()
            raise


def _signature(code: FunctionCode, types: HostTypes) -> Any:
    import inspect
    import json

    with suppress(ValueError):  # a parameter may be called what Python does not allow
        return inspect.Signature([
            inspect.Parameter(p.name, inspect.Parameter.POSITIONAL_OR_KEYWORD,
                              default=inspect.Parameter.empty if p.default is None else json.loads(p.default),
                              annotation=types.annotation(p.type))
            for p in code.params
        ], return_annotation=types.annotation(code.result))
    return None


def _similar(path: Path) -> str | None:
    import difflib

    if not path.parent.is_dir():
        return None
    close = difflib.get_close_matches(path.name, [p.name for p in path.parent.iterdir() if p.suffix in (".lmp", ".lmpc")], 1)
    return f"did you mean `{path.parent / close[0]}`?" if close else None


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
