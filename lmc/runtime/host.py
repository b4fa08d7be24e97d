"""Functions of the host that a program declares as `extern`: found in Python files, checked, bound and called.

    externs = bind_externs(program, {"search": search, **load_extern_file(Path("tools.py"))})
    await externs.call("search", ("Paris",))

Blocking functions run in threads, a bounded number at a time, coroutine functions in the event loop.  What they raise is a
located error of the program, and what they return is checked against the declared type.
"""

from __future__ import annotations

import asyncio
import difflib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from lmc.backend.program import ExternInfo, Program
from lmc.diagnostics import Diagnostic, RunError, Span, UsageError
from lmc.runtime.daemon_call import call_in_daemon
from lmc.runtime.failures import failure
from lmc.runtime.host_types import HostTypes
from lmc.values import ValueMismatch

#: Blocking externs that run at a time, over all calls; they mostly wait for a network.
_THREADS = 16


class Externs:
    """The bound functions of one program."""

    __slots__ = ("types", "_infos", "_functions", "_threads")

    def __init__(self, infos: Mapping[str, ExternInfo], functions: Mapping[str, Callable[..., Any]], types: HostTypes):
        self.types = types
        self._infos = infos
        self._functions = functions
        self._threads = asyncio.Semaphore(_THREADS)

    def for_another_loop(self) -> Externs:
        """The same functions with a bound on threads of their own: that bound belongs to one event loop."""
        return Externs(self._infos, self._functions, self.types)

    def has(self, name: str) -> bool:
        """Whether a function is bound to the extern."""
        return name in self._functions

    async def call(self, name: str, args: tuple[Any, ...], at: str = "", span: Span | None = None) -> Any:
        """Call once.  `at` and `span` say who calls: the path of calls and rounds in the run, and the place.

        Raises `RunError` of kind `extern` without a place.
        """
        info = self._infos[name]
        short = _short(name)
        plain = [self.types.to_host(a) for a in args]
        try:
            found = await self._run(self._functions[name], plain)
        except Exception as error:
            message = f"the extern `{short}` raised {type(error).__name__}: {error}"
            raise failure("E0713", message, None, kind="extern", help=_raised_at(error)) from error
        try:
            return self.types.from_host(found, info.result)
        except ValueMismatch as error:
            message = f"the extern `{short}` must return `{info.result}`: {error}"
            raise failure("E0714", message, None, kind="extern", help=f"declared at {info.span}") from None

    async def _run(self, function: Callable[..., Any], args: list[Any]) -> Any:
        if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None)):
            return await function(*args)
        await self._threads.acquire()
        # A cancelled call's thread goes on, and counts until it ends.
        found = await call_in_daemon(function, *args, on_end=self._threads.release)
        return await found if inspect.isawaitable(found) else found


def bind_externs(program: Program, functions: Mapping[str, Callable[..., Any]], *, strict: bool = False) -> Externs:
    """Bind every extern that the program declares, by its name or, of an imported file, its last part.

    strict: a function that the program does not declare is an error too.
    Raises `UsageError` with the place of each declaration that has no fitting function.
    """
    bound = _given(program, functions)
    faults = [_unbound(info, functions) for name, info in program.externs.items() if name not in bound]
    faults += _unfitting_ones(program, bound)
    if strict:
        known = {n for name in program.externs for n in (name, _short(name))}
        faults += [_undeclared(name, program) for name in functions if name not in known]
    if faults:
        raise UsageError(faults, program.sources)
    return Externs(program.externs, bound, HostTypes(program.types))


def bind_given_externs(program: Program, functions: Mapping[str, Callable[..., Any]]) -> Externs:
    """The same, where a program need not have all its externs: `Externs.has` says which are there."""
    bound = _given(program, functions)
    if faults := _unfitting_ones(program, bound):
        raise UsageError(faults, program.sources)
    return Externs(program.externs, bound, HostTypes(program.types))


def load_extern_file(path: Path) -> dict[str, Callable[..., Any]]:
    """The callables at the top of a Python file, without those whose name begins with an underscore.

    The file runs: it is the host's own, named on the command line, never by a program.  Raises `UsageError`.
    """
    if not path.is_file():
        message = f"there is no file `{path}`"
        raise UsageError(Diagnostic("E0715", message, None, help="give the Python file that defines the externs"))
    spec = importlib.util.spec_from_file_location(f"lmc_externs_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise UsageError(Diagnostic("E0715", f"`{path}` is no Python file", None, help="its name must end in `.py`"))
    module = importlib.util.module_from_spec(spec)
    # Dataclasses look their module up, and the file may import what lies beside it.
    sys.modules[spec.name] = module
    sys.path.insert(0, str(path.resolve().parent))
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        message = f"`{path}` cannot be loaded: {type(error).__name__}: {error}"
        raise UsageError(Diagnostic("E0715", message, None, help=_raised_at(error))) from error
    finally:
        sys.path.remove(str(path.resolve().parent))
    return {name: value for name, value in vars(module).items() if callable(value) and not name.startswith("_")}


def _given(program: Program, functions: Mapping[str, Any]) -> dict[str, Any]:
    """By the externs' whole names; `functions` may have the last part of one."""
    found = {name: functions.get(name, functions.get(_short(name))) for name in program.externs}
    return {name: function for name, function in found.items() if function is not None}


def _unfitting_ones(program: Program, bound: Mapping[str, Any]) -> list[Diagnostic]:
    faults = (_unfitting(program.externs[name], function) for name, function in bound.items())
    return [fault for fault in faults if fault is not None]


def _unbound(info: ExternInfo, functions: Mapping[str, Any]) -> Diagnostic:
    short = _short(info.name)
    close = difflib.get_close_matches(short, functions, 1)
    help = f"did you mean `{close[0]}`, which is given?" if close else \
        f"define `{short}` in a Python file and pass it: `--extern tools.py`, or `lmc.load(…, externs={{\"{short}\": …}})`"
    return Diagnostic("E0711", f"nothing is bound to the extern `{short}`", info.span, label="declared here", help=help)


def _unfitting(info: ExternInfo, function: Any) -> Diagnostic | None:
    short, names = _short(info.name), [p.name for p in info.params]
    if not callable(function):
        return Diagnostic("E0712", f"what is bound to the extern `{short}` cannot be called: {function!r}", info.span)
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return None  # some built-in functions do not say what they take
    try:
        signature.bind(*names)
    except TypeError:
        message = f"the function bound to the extern `{short}` takes {signature}, the program passes ({', '.join(names)})"
        return Diagnostic("E0712", message, info.span, label="declared here", help="make the two the same")
    return None


def _undeclared(name: str, program: Program) -> Diagnostic:
    close = difflib.get_close_matches(name, [_short(n) for n in program.externs], 1)
    help = f"did you mean `{close[0]}`?" if close else f"declare it: `extern def {name}(…) -> …`"
    return Diagnostic("E0711", f"the program declares no extern `{name}`", None, help=help)


def _raised_at(error: BaseException) -> str | None:
    """Where the host's own code raised it."""
    frames = inspect.getinnerframes(error.__traceback__) if error.__traceback__ else []
    return f"raised at {frames[-1].filename}:{frames[-1].lineno}" if frames else None


def _short(name: str) -> str:
    return name.rpartition(".")[2]
