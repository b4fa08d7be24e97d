"""Clients with different keys, one cache: what one has left in it, another does not find, unless that was allowed."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from lmc.compiler import compile_file
from lmc.regex.build import compile_regex
from lmc.runtime.dry import DryModel, dry_tokenizer
from lmc.runtime.engine import Engine
from lmc.runtime.host import bind_externs
from lmc.runtime.instance import RunOptions, Sinks
from lmc.runtime.machine import Machine
from lmc.runtime.request import DoneEvent, GenerateRequest, ScoreRequest
from lmc.runtime.salt import plain, salted
from lmc.runtime.tenant import TenantSession

from tests.runtime.programs import dry_session
from tests.server.running import keyed, running

QUESTION = [{"role": "user", "content": "A question that is the same for everybody: how warm is the sea today?"}]


def ask(served, who: str):
    return served.client(who).chat.completions.create(model="dry", messages=QUESTION, max_tokens=20, temperature=0)


@pytest.mark.parametrize("share", [False, True])
def test_prefixes_of_others_are_not_found(share):
    with running(**keyed("alice", "bob"), share_cache=share) as served:
        first, again, other = ask(served, "alice"), ask(served, "alice"), ask(served, "bob")
        assert first.choices == again.choices == other.choices
        assert again.usage.prompt_tokens_details.cached_tokens >= first.usage.prompt_tokens - 1
        cached = other.usage.prompt_tokens_details.cached_tokens
        assert cached >= first.usage.prompt_tokens - 1 if share else cached == 0
        assert ask(served, "bob").usage.prompt_tokens_details.cached_tokens >= first.usage.prompt_tokens - 1


def test_scores_are_not_found_either():
    with running(**keyed("alice", "bob")) as served:
        body = {"model": "dry", "prompt": "how warm is the sea", "max_tokens": 0, "echo": True, "logprobs": 0}
        answers = [served.client(who).completions.create(**body) for who in ("alice", "bob", "bob")]
        assert answers[0].choices == answers[1].choices == answers[2].choices


def test_salt():
    assert salted((5, 6), 0) == [5, 6] and plain(salted((5, 6), 3)) == [5, 6]
    assert salted((5, 6), 3)[0] != salted((5, 6), 2)[0] and salted((), 3) == []


def test_the_engine_keeps_clients_apart_and_gives_all_the_same():
    """Requests of three clients at random, each with prefixes of the others; every answer is that of an engine of its own."""
    tokenizer, lots = dry_tokenizer(), random.Random(5)
    engine = Engine(DryModel(tokenizer), tokenizer, slots=400)
    texts = ["the cat", "the cat and the dog", "the cat and the dog and the big man", "we know"]
    wanted = []
    for number in range(40):
        ids = tuple(tokenizer.encode(lots.choice(texts)))
        request = ScoreRequest(ids, 1, tenant=number % 3) if number % 5 == 0 and len(ids) > 1 else \
            GenerateRequest(ids, 1 + number % 9, ignore_eos=True, tenant=number % 3)
        wanted.append((engine.submit(request), request))
    done = {}
    for _ in range(2000):
        done |= {e.ticket: e.result for e in engine.step() if isinstance(e, DoneEvent)}
        stats = engine.stats
        assert stats.free_slots + stats.cached_slots + stats.used_slots == 400
        if not engine.busy:
            break
    assert len(done) == 40
    for ticket, request in wanted:
        alone = Engine(DryModel(tokenizer), tokenizer, slots=400)
        alone.submit(request)
        result = next(e.result for _ in range(100) for e in alone.step() if isinstance(e, DoneEvent))
        found = done[ticket]
        assert (found.logprobs == result.logprobs) if isinstance(request, ScoreRequest) else (found.ids, found.text) == (result.ids, result.text)


def test_pieces_of_one_request_stay_with_their_client():
    tokenizer = dry_tokenizer()
    engine = Engine(DryModel(tokenizer), tokenizer, slots=200)
    prompt = tuple(tokenizer.encode("the cat and the dog"))

    def then(result):
        return GenerateRequest((*prompt, *result.ids, *tokenizer.encode(" and")), 4, ignore_eos=True)

    engine.submit(GenerateRequest(prompt, 4, ignore_eos=True, tenant=2, then=then))
    result = next(e.result for _ in range(100) for e in engine.step() if isinstance(e, DoneEvent))
    whole = (*prompt, *tokenizer.encode(" and"))
    for tenant, finds in ((1, False), (0, False), (2, True)):
        engine.submit(GenerateRequest((*prompt, *result.ids), 2, ignore_eos=True, tenant=tenant))
        found = next(e.result for _ in range(100) for e in engine.step() if isinstance(e, DoneEvent))
        assert (found.usage.cached >= len(prompt)) == finds, (tenant, whole)


def test_programs_of_clients_have_caches_of_their_own():
    """Forks, hints, pins and fused pieces included: what a client gets, and what of it was in the cache, is as if it was alone."""
    program = compile_file(str(Path(__file__).parents[2] / "examples" / "judge.lmp")).program
    essay = "Libraries are warm, and open to all. " * 4

    async def main():
        session = dry_session(slots=2000)
        runs = []
        for tenant in (1, 2, 1, 0):
            machine = Machine(program, TenantSession(session, tenant) if tenant else session, bind_externs(program, {}))
            run = machine.start(RunOptions(seed=1), Sinks(print, lambda path, text: None))
            value = await run.call("judge", (essay, ("clarity", "originality", "evidence")))
            runs.append((value, run.report))
        session.wait_until_idle()
        stats = session.stats
        assert stats.free_slots + stats.cached_slots == 2000
        session.close()
        return runs

    (first, one), (second, other), (third, again), (fourth, anybody) = asyncio.run(main())
    assert first == second == third == fourth
    assert (one.cached, one.computed) == (other.cached, other.computed) == (anybody.cached, anybody.computed)
    assert again.computed < one.computed / 2 and again.cached > one.cached


def test_what_was_written_under_a_constraint_is_remembered_by_client():
    async def main():
        session = dry_session(slots=200)
        one, two = TenantSession(session, 1), TenantSession(session, 2)
        dfa = compile_regex("[ab]+")
        assert one.constraint(dfa) is one.constraint(compile_regex("[ab]+")) is not two.constraint(dfa)
        session.close()

    asyncio.run(main())
