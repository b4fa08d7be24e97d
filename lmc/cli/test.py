"""`lmc test f.lmp`: run the `test` blocks of a program.

    ok    the votes give one of the answers   (12 calls, 3.1 s)
    FAIL  two plus two   (vote.lmp:20:1, seed 7)
          error[E0832]: assertion failed …
    1 passed, 1 failed

    --record [FOLDER]    ask the model, and keep what it answers: a cassette for each test
    --replay [FOLDER]    answer from the cassettes; neither a model nor externs are needed
    --junit out.xml      the results for a build server

Tests run one after the other, so that what they print stands together.  Exit 4 if one fails.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lmc.cli.exits import OK, TEST_FAILED
from lmc.cli.opening import model_options
from lmc.cli.remote_options import target_of
from lmc.cli.roots import root_option
from lmc.cli.signals import run_until_interrupted
from lmc.diagnostics import Diagnostic, UsageError

if TYPE_CHECKING:
    from lmc.backend.program import Program
    from lmc.cli.test_runs import TestResult

#: What `--record` and `--replay` mean without a folder: the one beside the program.
_BESIDE = "\0beside"


def _folder_option(name: str, help: str) -> click.Option:
    return click.Option([name], is_flag=False, flag_value=_BESIDE, metavar="[FOLDER]", help=help)


@click.command("test", params=[
    click.Argument(["file"], type=click.Path()), root_option(), *model_options(),
    click.Option(["-k", "--only", "pattern"], metavar="TEXT", help="Only the tests with this in their name, in any case."),
    _folder_option("--record", "Keep what the model and the externs answer.  Default folder: NAME.cassettes beside the program."),
    _folder_option("--replay", "Answer from what --record kept, without a model."),
    click.Option(["--junit"], type=click.Path(dir_okay=False), metavar="OUT.xml", help="Write the results as JUnit XML."),
])
def test(file: str, pattern: str | None, record: str | None, replay: str | None, junit: str | None, **given: Any) -> int:
    """Run the tests of a program; exit 4 if one fails.

    Put FILE before --record or --replay where these have no folder of their own.
    """
    from lmc.cli.junit import write_junit
    from lmc.embed import load_program

    if record is not None and replay is not None:
        raise UsageError(Diagnostic("E0851", "`--record` and `--replay` exclude each other", None, help="give one of them"))
    program = load_program(Path(file), level=int(given["level"]), target=target_of((given["backend"],)), roots=given["roots"])
    names = _chosen(program, pattern)
    results = _run(program, names, _folder(file, record), _folder(file, replay), given) if names else []
    if junit is not None:
        write_junit(Path(junit), program, results)
    failed = sum(r.error is not None for r in results)
    if names:
        click.echo(f"{len(names) - failed} passed, {failed} failed")
    return TEST_FAILED if failed else OK


def _chosen(program: Program, pattern: str | None) -> list[str]:
    """The tests to run; where there are none, says so.  Raises `UsageError` for a pattern that fits none of several."""
    names = list(program.tests)
    if not names:
        click.echo(f"`{program.name}` has no tests; write one: `test \"it adds\":` with `assert` inside", err=True)
        return []
    chosen = [n for n in names if pattern is None or pattern.casefold() in n.removeprefix("test:").casefold()]
    if not chosen:
        listed = "\n".join(n.removeprefix("test:") for n in names)
        raise UsageError(Diagnostic("E0851", f"no test has {pattern!r} in its name", None, help=f"the tests are\n{listed}"))
    return chosen


def _folder(file: str, given: str | None) -> Path | None:
    return Path(file).with_suffix(".cassettes") if given == _BESIDE else None if given is None else Path(given)


def _run(program: Program, names: list[str], record: Path | None, replay: Path | None, given: dict[str, Any]) -> list[TestResult]:
    from lmc.cli.test_runs import record_tests, replay_tests, run_tests
    from lmc.runtime.idle_loop import idle_runner

    if replay is None:
        tests = run_tests(program, names, given) if record is None else record_tests(program, names, record, given)
        return run_until_interrupted(tests)
    with idle_runner() as (runner, selector):
        return run_until_interrupted(replay_tests(program, names, replay, given, selector), runner)
