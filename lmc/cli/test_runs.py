"""Running tests one after the other: on a model, on a model while cassettes fill, or from cassettes.

    run_tests        one machine for all tests
    record_tests     one session; a machine for each test, whose requests and externs go into the test's cassette
    replay_tests     no session; a machine for each test, which its cassette answers

Each test is shown as it ends.  A test whose cassette is missing or damaged fails, and the others go on.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lmc.cli.opening import extern_functions, opened_machine, opened_session, run_options
from lmc.diagnostics import Diagnostic, LmcError, Span

if TYPE_CHECKING:
    from lmc.backend.program import Program
    from lmc.runtime.cassette import Cassette
    from lmc.runtime.idle_loop import IdleSelector
    from lmc.runtime.instance import RunOptions
    from lmc.runtime.machine import Machine
    from lmc.runtime.report import Report


@dataclass(frozen=True, slots=True)
class TestResult:
    """title: the test's name; printed: what it printed and streamed; error: None where it passed."""

    title: str
    span: Span | None
    report: Report
    printed: str
    error: LmcError | None


async def run_tests(program: Program, names: list[str], given: dict[str, Any]) -> list[TestResult]:
    """Ask the model."""
    options = run_options(given)
    async with opened_machine(program, given) as machine:
        return [_shown(await _run(program, name, lambda: machine, options)) for name in names]


async def record_tests(program: Program, names: list[str], folder: Path, given: dict[str, Any]) -> list[TestResult]:
    """Ask the model, and write a cassette for each test, also for one that fails.

    Raises `LmcError` where one cannot be written.
    """
    from lmc.runtime.cassette import Cassette, write_cassette
    from lmc.runtime.cassette_externs import RecordingExterns
    from lmc.runtime.cassette_sessions import RecordingSession
    from lmc.runtime.host import bind_externs
    from lmc.runtime.instance import program_seed
    from lmc.runtime.machine import Machine

    externs = bind_externs(program, extern_functions(given))
    results = []
    async with opened_session(program, given) as session:
        for name in names:
            options = run_options(given)
            # Drawn here, so that the cassette has it.
            options = replace(options, seed=program_seed(options, program))
            cassette = Cassette(_title(name), program.name, options.seed, dict(options.overrides), {})
            machine = Machine(program, RecordingSession(session, cassette), RecordingExterns(program, externs, cassette))
            results.append(_shown(await _run(program, name, lambda: machine, options)))
            write_cassette(cassette, folder / cassette_name(name))
    return results


async def replay_tests(program: Program, names: list[str], folder: Path, given: dict[str, Any],
                       selector: IdleSelector) -> list[TestResult]:
    """Answer from the cassettes.  `selector` is that of the running loop."""
    return [_shown(await _replay(program, name, folder / cassette_name(name), given, selector)) for name in names]


def cassette_name(name: str) -> str:
    """`test:two plus two` -> `two-plus-two-1f2e3d4c.json`: readable, and not the same for two tests on any file system."""
    title = _title(name)
    words = "-".join(re.findall(r"[a-z0-9]+", title.lower()))[:60].rstrip("-")
    return f"{words or 'test'}-{hashlib.sha256(title.encode()).hexdigest()[:8]}.json"


async def _replay(program: Program, name: str, path: Path, given: dict[str, Any], selector: IdleSelector) -> TestResult:
    from lmc.runtime.cassette import read_cassette
    from lmc.runtime.cassette_externs import ReplayingExterns
    from lmc.runtime.cassette_sessions import ReplayingSession
    from lmc.runtime.machine import Machine

    options = run_options(given)
    span = program.functions[name].span
    if not path.is_file():
        missing = Diagnostic("E0861", f"the test has no cassette: there is no file `{path}`", span,
                             help="record it: `lmc test FILE --record`")
        return _failed(name, span, LmcError(missing, program.sources), options)
    try:
        cassette = read_cassette(path)
        session = ReplayingSession(cassette)
    except LmcError as error:
        return _failed(name, span, error, options)
    selector.on_idle = session.given_up.end

    def machine() -> Machine:
        return Machine(program, session, ReplayingExterns(program, cassette, session.given_up))

    return await _run(program, name, machine, _as_recorded(options, cassette))


def _as_recorded(options: RunOptions, cassette: Cassette) -> RunOptions:
    """The seed and the options that were given then, where none are given now."""
    seed = cassette.seed if options.seed is None else options.seed
    return replace(options, seed=seed, overrides={**cassette.overrides, **options.overrides})


async def _run(program: Program, name: str, machine: Callable[[], Machine], options: RunOptions) -> TestResult:
    """Run a test; what is wrong with it is in the result."""
    from lmc.cli.terminal import Terminal
    from lmc.runtime.instance import Sinks

    printed: list[str] = []
    terminal = Terminal(sys.stderr)

    def show(text: str) -> None:
        printed.append(text + "\n")
        terminal.print(text)

    def stream(path: str, text: str) -> None:
        printed.append(text)
        terminal.stream(path, text)

    span = program.functions[name].span
    try:
        run = machine().start(options, Sinks(show, stream))
    except LmcError as error:
        return _failed(name, span, error, options)
    failure = None
    try:
        await run.call(name, ())
    except LmcError as error:
        failure = error
    finally:
        terminal.end_line()
    return TestResult(_title(name), span, run.report, "".join(printed), failure)


def _failed(name: str, span: Span | None, error: LmcError, options: RunOptions) -> TestResult:
    """The result of a test that did not begin."""
    from lmc.runtime.report import Report

    return TestResult(_title(name), span, Report(seed=options.seed or 0), "", error)


def _shown(result: TestResult) -> TestResult:
    report = result.report
    if result.error is None:
        click.echo(f"ok    {result.title}   ({report.calls} calls, {report.seconds:.1f} s)")
        return result
    click.echo(f"FAIL  {result.title}   ({result.span}, seed {report.seed})")
    click.echo("\n".join("      " + line if line else "" for line in str(result.error).splitlines()))
    return result


def _title(name: str) -> str:
    return name.removeprefix("test:")
