"""Constraints that requests bring (case L-05): compiled in processes that can be killed, with limits, remembered, never in the way.

Every wait has a limit, so that a hang is a failure."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from lmc.diagnostics import Diagnostic, LmcError, UsageError
from lmc.regex.dfa import START
from lmc.runtime.request import GenerateRequest
from lmc.server.constraint_compiler import LONGEST, CompilerBusy, ConstraintCompiler
from lmc.server.constraint_process import _read_answer
from lmc.server.settings import CompileLimits
from tests.runtime.programs import TOKENS, dry_session

#: Takes all the processor time that building an automaton may take, whatever the machine.
HOSTILE = "(.*a){60}.{25}b(.*c.{20}){3}"
#: What nobody should need more than this for.
LIMIT = 120


def compiling(use: Callable[[ConstraintCompiler], Awaitable[object]], **limits) -> object:
    """What `use` gives with a compiler on the stand-in model; at its end no process is left."""

    async def run():
        session = dry_session()
        compiler = ConstraintCompiler(session, CompileLimits(**limits))
        await compiler.start()
        try:
            async with asyncio.timeout(LIMIT):
                return await use(compiler)
        finally:
            pids = compiler.pids
            await compiler.close()
            session.close()
            assert not any(map(alive, pids))

    return asyncio.run(run())


def alive(pid: int) -> bool:
    """Whether it runs; one that nobody has waited for yet does not."""
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    except ProcessLookupError:
        return False
    except FileNotFoundError:
        return not Path("/proc/self").exists()  # it ended just now, or the system has no such files


async def refusal(compiler: ConstraintCompiler, kind: str, source: str) -> str:
    with pytest.raises(UsageError) as refused:
        await compiler.constraint(kind, source)
    assert not isinstance(refused.value, CompilerBusy)
    first = refused.value.diagnostics[0]
    return f"{first.code}: {first.message}"


def test_each_kind_gives_a_constraint_of_the_session():
    async def use(compiler):
        regex = await compiler.constraint("regex", "yes|no")
        schema = await compiler.constraint("schema", '{"enum": ["yes", 3]}')
        assert [TOKENS.token_bytes[i] for i in regex.allowed(START).tolist()] == [b"n", b"y", b"no"]
        assert regex.accepting(regex.advance(START, b"no"))
        assert schema.accepting(schema.advance(START, b'"yes"')) and schema.accepting(schema.advance(START, b"3"))
        assert compiler.compilations == 2

    compiling(use)


def test_a_grammar_compiles():
    pytest.importorskip("llguidance")

    async def use(compiler):
        found = await compiler.constraint("grammar", 'start: "(" start ")" | "x"')
        assert found.accepting(found.advance(START, b"((x))")) and not found.accepting(found.advance(START, b"((x)"))

    compiling(use)


def nested_one_of(depth: int) -> dict:
    inner: dict = {"type": "integer"}
    for level in range(depth):
        inner = {"oneOf": [{"type": "object", "properties": {f"a{level}": inner}}, {"type": "array", "items": inner}]}
    return inner


def deep(depth: int) -> str:
    return '{"items":' * depth + "true" + "}" * depth


@pytest.mark.parametrize("kind, source, wanted", [
    ("regex", "a(b", "E0601: this regex cannot be used"),
    ("regex", "(?=a)b", "E0601: this regex cannot be used: look-around"),
    ("regex", "((x{1,999}){1,999}){1,999}", "E0601: this regex cannot be used: the automaton"),
    ("regex", "a" * (LONGEST["regex"] + 1), "E0610: this regex has 200,001 characters"),
    ("schema", "{", "E0605: this schema cannot be used: not JSON"),
    ("schema", '{"typ": "string"}', "E0605: this schema cannot be used: at `typ`"),
    ("schema", '{"type": "strin"}', "E0605: this schema cannot be used: "),
    ("schema", deep(5_000), "E0605: this schema cannot be used: the schema is nested too deeply"),
    ("schema", '{"type": "integer", "minimum": 5, "maximum": 3}', "E0605: this schema cannot be used: no value fulfils it"),
    ("schema", '{"x": "' + "y" * LONGEST["schema"] + '"}', "E0610: this schema has 4,000,009 characters"),
], ids=["syntax", "dialect", "nested-counts", "long-regex", "json", "keyword", "type", "deep", "empty", "long-schema"])
def test_each_bad_one_gets_its_own_error(kind, source, wanted):
    assert compiling(lambda compiler: refusal(compiler, kind, source), seconds=2).startswith(wanted)


def test_a_costly_schema_is_held_or_refused_within_the_limits():
    async def use(compiler):
        try:
            return (await compiler.constraint("schema", '{"type": "string", "maxLength": 1000000}')).held_bytes
        except UsageError as error:
            assert error.diagnostics[0].code in ("E0605", "E0610")

    compiling(use, seconds=1)


def test_an_enum_of_8000_compiles_and_gives_only_what_is_listed():
    names = [f"item-{number:04}-{number * 7919 % 8000:04}" for number in range(8_000)]

    async def use(compiler):
        found = await compiler.constraint("schema", json.dumps({"enum": names}))
        for name in names[::97]:
            assert found.complete(found.advance(START, json.dumps(name).encode()))
            assert not found.accepting(found.advance(START, json.dumps(name[:-1] + "x").encode()))

    compiling(use)


def test_over_its_processor_time_it_ends_and_the_next_one_compiles():
    async def use(compiler):
        text = await refusal(compiler, "regex", HOSTILE)
        assert text.startswith("E0610: compiling this regex takes more than the 0.5 s of processor time")
        assert (await compiler.constraint("regex", "a")).accepting

    compiling(use, seconds=0.5)


def test_over_its_memory_it_ends_and_the_next_one_compiles():
    async def use(compiler):
        text = await refusal(compiler, "regex", HOSTILE)
        assert text.startswith("E0610: ") and "memory" in text or "MiB" in text, text
        assert (await compiler.constraint("regex", "a")).accepting

    compiling(use, seconds=60, memory=8 << 20)


def test_an_automaton_larger_than_allowed_is_refused():
    async def use(compiler):
        assert "a request may use 1,000" in await refusal(compiler, "regex", "[a-z]{300}")

    compiling(use, table=1_000)


def test_what_was_refused_is_refused_again_without_compiling():
    async def use(compiler):
        for _ in range(100):
            assert "0.3 s of processor time" in await refusal(compiler, "regex", HOSTILE)
        assert compiler.compilations == 1

    compiling(use, seconds=0.3)


def test_what_compiled_is_kept():
    async def use(compiler):
        first = await compiler.constraint("regex", "a+")
        assert await compiler.constraint("regex", "a+") is first and compiler.compilations == 1
        # A client does not see by the time it takes what another one has asked for.
        other = await compiler.constraint("regex", "a+", "somebody else")
        assert other is not first and compiler.compilations == 2

    compiling(use)


def test_what_is_kept_has_a_bound_and_what_runs_stays():
    async def use(compiler):
        first = await compiler.constraint("regex", "[a-m]{90}")
        await compiler.constraint("regex", "[n-z]{90}")
        assert await compiler.constraint("regex", "[a-m]{90}") is not first and compiler.compilations == 3
        assert first.min_tokens() >= 1, "a request that has it goes on"

    compiling(use, kept=1)


async def started(compiler: ConstraintCompiler, count: int) -> None:
    while compiler.compilations < count:
        await asyncio.sleep(0.01)


def test_a_client_that_goes_away_ends_the_process():
    async def use(compiler):
        asking = asyncio.create_task(compiler.constraint("regex", HOSTILE))
        await started(compiler, 1)
        (pid,) = compiler.pids
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        async with asyncio.timeout(1):
            while alive(pid):
                await asyncio.sleep(0.01)
        assert (await compiler.constraint("regex", "a")).accepting

    compiling(use, seconds=60)


def test_equal_requests_share_a_compilation_which_ends_with_the_last():
    async def use(compiler):
        asking = [asyncio.create_task(compiler.constraint("regex", HOSTILE)) for _ in range(5)]
        await started(compiler, 1)
        (pid,) = compiler.pids
        for task in asking[:-1]:
            task.cancel()
        await asyncio.gather(*asking[:-1], return_exceptions=True)
        assert alive(pid) and not asking[-1].done() and compiler.compilations == 1
        asking[-1].cancel()
        async with asyncio.timeout(1):
            while alive(pid):
                await asyncio.sleep(0.01)

    compiling(use, seconds=60)


def test_more_than_may_wait_are_told_to_come_again():
    async def use(compiler):
        asking = [asyncio.create_task(compiler.constraint("regex", f"{n}{HOSTILE}")) for n in range(2)]
        await started(compiler, 1)
        with pytest.raises(CompilerBusy, match="1 constraints wait"):
            await compiler.constraint("regex", "a")
        for task in asking:
            task.cancel()
        await asyncio.gather(*asking, return_exceptions=True)
        assert (await compiler.constraint("regex", "a")).accepting, "a busy server remembers no refusal"

    compiling(use, seconds=60, workers=1, waiting=1)


def test_one_client_does_not_hold_all_processes():
    async def use(compiler):
        asking = [asyncio.create_task(compiler.constraint("regex", f"{n}{HOSTILE}", "alice")) for n in range(4)]
        await started(compiler, 1)
        assert (await compiler.constraint("regex", "a", "bob")).accepting
        assert compiler.compilations == 2 and not any(task.done() for task in asking)
        for task in asking:
            task.cancel()
        await asyncio.gather(*asking, return_exceptions=True)

    compiling(use, seconds=60)


def test_a_process_that_was_killed_from_outside_says_nothing_of_its_constraint():
    async def use(compiler):
        asking = asyncio.create_task(compiler.constraint("regex", HOSTILE))
        await started(compiler, 1)
        os.kill(compiler.pids[0], signal.SIGKILL)
        with pytest.raises(CompilerBusy, match="was killed"):
            await asking
        assert "0.5 s of processor time" in await refusal(compiler, "regex", HOSTILE)
        assert compiler.compilations == 2

    compiling(use, seconds=0.5)


def test_what_no_token_spells_is_refused_and_remembered(monkeypatch):
    async def use(compiler):
        def new_constraint(built):
            raise LmcError(Diagnostic("E0642", "the model's tokens cannot spell it", None))

        monkeypatch.setattr(compiler._session, "new_constraint", new_constraint)
        for _ in range(3):
            with pytest.raises(LmcError, match="cannot spell"):
                await compiler.constraint("regex", "a")
        assert compiler.compilations == 1

    compiling(use)


def test_closing_ends_what_compiles_and_starts_nothing():
    async def use(compiler):
        asking = [asyncio.create_task(compiler.constraint("regex", f"{n}{HOSTILE}", str(n))) for n in range(3)]
        await started(compiler, 2)
        started_ones = []
        new_process = compiler._new_process
        compiler._new_process = lambda: started_ones.append(1) or new_process()
        await compiler.close()
        await asyncio.gather(*asking, return_exceptions=True)
        assert compiler.pids == [] and not started_ones and not compiler._tasks

    compiling(use, seconds=60)


def test_others_generate_while_a_hostile_one_compiles():
    async def use(compiler):
        asking = asyncio.create_task(compiler.constraint("regex", HOSTILE))
        await started(compiler, 1)
        session = compiler._session
        before = session.stats.steps
        prompt = tuple(TOKENS.encode("the sun"))
        results = await asyncio.gather(*(session.generate(GenerateRequest(prompt, 100, ignore_eos=True)) for _ in range(4)))
        assert [len(result.ids) for result in results] == [100] * 4 and session.stats.steps >= before + 100
        small = await compiler.constraint("regex", "[0-9]{3}")
        answer = await session.generate(GenerateRequest(prompt, 10, constraint=small))
        assert answer.valid and answer.text.isdigit()
        assert not asking.done(), "all that while it compiled"
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        assert not session.ended

    compiling(use, seconds=60)


def test_an_answer_that_is_no_automaton_is_an_error():
    for answer in (b"", b"[]", b'{"constraint": {"source": "a"}}', b'{"code": "E0601"}', b"\xff"):
        with pytest.raises(UsageError, match="gave no automaton"):
            _read_answer(answer, "regex")
