"""Jump-forward on small vocabularies: what a draft may not change, where it ends, and the known faults of other engines."""

from __future__ import annotations

import itertools

import pytest

from lmc.regex.build import compile_regex
from lmc.regex.dfa import START
from lmc.runtime import drafts
from lmc.runtime.canonical import CanonicalTokens
from lmc.runtime.constraint import TokenConstraint
from lmc.runtime.drafts import Drafts
from lmc.runtime.dry import DryModel, ScriptedModel, dry_tokenizer
from lmc.runtime.engine import Engine
from lmc.runtime.generation import Generation, Place
from lmc.runtime.request import DoneEvent, FailedEvent, Finish, GenerateRequest, Sampling, ScoreRequest, TextEvent
from tests.runtime.words import Words


def prefer(words: Words, *pieces: str | bytes):
    """A script that likes the first of `pieces` best, wherever it is legal; `b""` is the end token."""
    order = [words.end if piece == b"" else words.id(piece) for piece in pieces]
    return lambda ids: {token: 50.0 - place for place, token in enumerate(order)}


def make_engine(words: Words, script, jump: str = "exact", **options) -> Engine:
    return Engine(ScriptedModel(words.size, script), words, slots=options.pop("slots", 512), jump=jump, **options)


def finish(engine: Engine, *requests) -> list:
    """The results (or errors) of the requests, submitted together."""
    tickets = [engine.submit(request) for request in requests]
    ends = {}
    while engine.busy:
        for event in engine.step():
            if isinstance(event, (DoneEvent, FailedEvent)):
                ends[event.ticket] = event.result if isinstance(event, DoneEvent) else event.error
    return [ends[ticket] for ticket in tickets]


def three_ways(words: Words, script, pattern: str, **options) -> dict:
    """The result of `off`, `exact` cold and warm, and `canonical`."""
    request = GenerateRequest((0,), options.pop("max_tokens", 40), constraint=words.constraint(pattern), **options)
    found = {jump: finish(make_engine(words, script, jump), request)[0] for jump in ("off", "exact", "canonical")}
    engine = make_engine(words, script)
    found["warm"] = [finish(engine, request)[0] for _ in range(5)][-1]
    for way in ("exact", "warm"):
        assert (found[way].ids, found[way].text, found[way].finish) == (found["off"].ids, found["off"].text, found["off"].finish), way
        assert found[way].usage.generated == found["off"].usage.generated
        assert found[way].usage.passes <= found["off"].usage.passes
    return found


# What is drafted, and what becomes of it.

def test_guesses_that_are_right_need_no_pass_of_their_own():
    words = Words([*"abcdefgh ", "abc", "def"])
    found = three_ways(words, prefer(words, "abc", "def", "g", "h"), "abcdef(g|h)")
    assert found["off"].ids == words.ids("abc", "def", "g") and found["off"].usage.passes == 3
    assert found["exact"].usage.passes == 1 and found["exact"].usage.jumped == 2 == found["exact"].usage.drafted


def test_wrong_guesses_are_cut_and_learned_from():
    words = Words([*"abcd", "ab", "abab"])
    found = three_ways(words, prefer(words, "a", "b", "c"), "(abab)c")
    assert found["off"].ids == words.ids(*"ababc"), "the model spells in its own way"
    assert found["exact"].usage.passes == 2, "`abab` was the first guess; behind `a` it is `b`, which is right, and `ab`"
    assert found["warm"].usage.passes == 1 and found["warm"].usage.jumped == 4
    assert found["canonical"].ids == words.ids("abab", "c") and found["canonical"].usage.passes == 0


def test_tokens_of_wrong_guesses_are_not_in_the_tree():
    words = Words([*"abcd", "ab", "abab"])
    engine = make_engine(words, prefer(words, "a", "b", "c"))
    (result,) = finish(engine, GenerateRequest((3, 0), 40, constraint=words.constraint("(abab)(c|d)")))
    whole, tree = (3, 0, *result.ids), engine._scheduler.tree
    assert result.usage.drafted and result.ids == words.ids(*"ababc"), "`abab` was guessed and was wrong"
    for node in tree.nodes():
        path, at = [], node
        while at is not None:
            path, at = at.key + path, at.parent
        assert tuple(path) == whole[: len(path)]
    assert engine.stats.used_slots == 0 and engine.stats.free_slots + engine.stats.cached_slots == 512


def learned(words: Words, pattern: str, pieces: str, *, times: int = 1, limit: int = 100, max_tokens: int = 20):
    """Drafts that saw `pieces` (`!` is the end token) written so many times, and a generation at the beginning."""
    memo = Drafts(words.sets(), CanonicalTokens(words, words.sets()))
    constraint = words.constraint(pattern)
    for _ in range(times):
        work = Generation(GenerateRequest((0,), 500, constraint=constraint), words.sets(), 1000)
        for piece in pieces:
            token = words.end if piece == "!" else words.id(piece)
            memo.note(work, token)
            work.accept(token)
    return memo, Generation(GenerateRequest((0,), max_tokens, constraint=constraint), words.sets(), limit)


def test_the_same_guess_is_worth_less_beside_many():
    words = Words([*"abcd"])
    memo, work = learned(words, "[abcd]{8}", "aaaaaaaa")
    alone, few, many = (len(memo.propose(work, count)) for count in (1, 8, 1000))
    assert alone > few > many == 0, "seen once, a choice of four is likely to change"
    memo, work = learned(words, "[abcd]{8}", "aaaaaaaa", times=20)
    assert len(memo.propose(work, 1000)) == 7, "the eighth ends the value: nothing is gained by computing it"


def test_what_ends_a_value_is_not_drafted():
    memo, work = learned(Words([*"ab"]), "a+b?", "a!")
    assert memo.propose(work, 1) == [0]


@pytest.mark.parametrize("options, most", [({"max_tokens": 4}, 3), ({"limit": 10, "max_tokens": 40}, 8), ({"max_tokens": 40}, 16)])
def test_no_draft_beyond_max_tokens_or_the_context(options, most):
    memo, work = learned(Words([*"ab"]), "a{30}b", "a" * 30, times=20, **options)
    assert len(memo.propose(work, 1)) == most


def test_a_memo_is_bounded_and_goes_with_its_constraint(monkeypatch):
    monkeypatch.setattr(drafts, "_KEEP", 50)
    memo, work = learned(Words([*"ab"]), "a{200}b", "a" * 190)
    assert len(memo._memos) == 1 and all(len(m.last) <= 50 for m in memo._memos.values())
    del work
    assert len(memo._memos) == 0


# Forced text in the tokenizer's own tokens.

def test_a_token_that_spans_the_end_of_forced_text_is_not_shut_out():
    words = Words(["order", "orderId", "Id", "Name", "!", *"orderINamd"])
    canonical, constraint = CanonicalTokens(words, words.sets()), words.constraint("order(Id|Name)!")
    place = Place(START, b"")
    assert canonical.forced(constraint, place) == words.ids("order")
    assert canonical.certain(constraint, place) == (), "`orderId` is one token"
    found = three_ways(words, prefer(words, "orderId", "Name", "!"), "order(Id|Name)!")
    assert found["off"].ids == found["canonical"].ids == words.ids("orderId", "!")


def test_canonical_guesses_are_kept_only_where_they_spell_the_forced_text():
    class Lower(Words):
        def encode(self, text):
            return super().encode(text.lower())

    words = Lower([*"abcABC", "abc"])
    assert CanonicalTokens(words, words.sets()).forced(words.constraint("ABC(a|b)"), Place(START, b"")) == ()
    assert three_ways(words, prefer(words, *"ABCa"), "ABC(a|b)")["canonical"].text == "ABCa"


def test_text_without_tokens_of_its_own_is_not_guessed():
    words = Words([*"ab", "霍".encode(), b"\xe9"])
    assert CanonicalTokens(words, words.sets()).forced(words.constraint("é?a"), Place(START, b"")) == ()
    other = CanonicalTokens(words, words.sets())
    assert other.forced(words.constraint("霍a(a|b)"), Place(START, b"")) == words.ids("霍", "a")


def test_reopened_bytes_are_part_of_the_forced_text():
    words = Words([*'{"na: ', '{"', ' {"', "na", '":'])
    constraint = words.constraint(r'\{"na":(a|n)')
    assert CanonicalTokens(words, words.sets()).forced(constraint, Place(START, b" ")) == words.ids(' {"', "na", '":')
    found = three_ways(words, prefer(words, ' {"', "n", "a", '"', ":"), r'\{"na":(a|n)', heal=b" ")
    assert found["off"].text == '{"na":n' and found["exact"].usage.passes < found["off"].usage.passes


# Ends.

def test_a_forced_value_needs_no_pass_and_still_streams():
    words = Words(["abc", "d"])
    engine = make_engine(words, lambda ids: {})
    ticket = engine.submit(GenerateRequest((1, 1), 40, constraint=words.constraint("abcd"), stream=True))
    events = engine.step()
    assert [type(e) for e in events] == [TextEvent, DoneEvent] and events[0].text == "abcd" and events[1].ticket == ticket
    result = events[1].result
    assert (result.finish, result.usage.passes, result.usage.generated, result.valid) == (Finish.COMPLETE, 0, 2, True)
    assert engine.stats.steps == 0 and not engine.busy


def test_the_only_token_is_still_drawn_where_its_log_probability_is_wanted_or_a_bias_forbids_it():
    words = Words(["abc", "d"])
    constraint = words.constraint("abcd")
    for jump in ("off", "exact", "canonical"):
        request = GenerateRequest((1,), 9, constraint=constraint, logprobs=1)
        (recorded,) = finish(make_engine(words, lambda ids: {}, jump), request)
        assert [r.id for r in recorded.logprobs] == [0, 1] and recorded.usage.passes >= 1
    forbid = Sampling(logit_bias=((1, float("-inf")),))
    for jump in ("off", "exact"):
        (error,) = finish(make_engine(words, lambda ids: {}, jump), GenerateRequest((1,), 9, constraint=constraint, sampling=forbid))
        assert error.diagnostics[0].code == "E0818"


def test_a_stop_inside_a_draft_takes_back_what_is_behind_it():
    words = Words([*"abcdef"])
    engine = make_engine(words, prefer(words, *"abcdef"))
    request = GenerateRequest((5,), 40, constraint=words.constraint("abcdef(a|b)"), stops=("cd",), stream=True)
    for _ in range(3):
        tickets = engine.submit(request)
        events = []
        while engine.busy:
            events += engine.step()
        result = events[-1].result
        assert events[-1].ticket == tickets and (result.text, result.finish, result.stop) == ("ab", Finish.STOP, "cd")
        assert result.ids == words.ids("a", "b") and result.usage.generated == 4
        assert "".join(e.text for e in events if isinstance(e, TextEvent)) == "ab"


def test_jumped_tokens_count_towards_max_tokens():
    words = Words([*"xyz"])
    for jump in ("off", "exact", "canonical"):
        engine = make_engine(words, prefer(words, "x", "z"), jump)
        for _ in range(3):
            (result,) = finish(engine, GenerateRequest((0,), 20, constraint=words.constraint("x(x{100}|y)z|y")))
            assert (result.finish, len(result.ids), result.usage.generated, result.valid) == (Finish.LENGTH, 20, 20, False)


# Known faults of other engines (CONSTRAINTS §7, by number).

def test_3_a_number_is_not_jumped_out_of_and_does_not_loop():
    words = Words([*"0123456789+- ", "11"])
    pattern = "[-+]?[0-9]+[ ]*"
    found = three_ways(words, prefer(words, "1", " "), pattern, max_tokens=12)
    assert found["off"].text == found["canonical"].text == "1" * 12
    found = three_ways(words, prefer(words, "-", b"", "1"), pattern)
    assert found["off"].text == found["canonical"].text == "-1" and found["exact"].finish is Finish.EOS


def test_4_a_jump_ends_in_the_middle_of_a_character_only_where_tokens_do():
    options = ("霍格沃茨特快列车", "霍比特人比尔博")
    for pieces in ([], ["霍", "格沃", "比特"], [b"\xe9\x9c", "沃茨"]):
        words = Words([bytes([b]) for b in sorted(set("".join(options).encode()))] + pieces)
        canonical, constraint = CanonicalTokens(words, words.sets()), words.constraint("|".join(options))
        forced = canonical.forced(constraint, Place(START, b""))
        # E9 9C 8D E6: all but the last byte is a whole character.
        assert b"".join(words.token_bytes[i] for i in forced) == "霍".encode()
        for first in ("格", "比"):
            order = [*pieces, *(bytes([b]) for b in first.encode()[1:]), *(bytes([b]) for b in "霍".encode())]
            found = three_ways(words, prefer(words, *order), "|".join(options))
            assert found["off"].text in options and found["canonical"].text in options


def test_5_an_empty_regex_gives_the_empty_text():
    words = Words([*"ab"])
    for jump in ("off", "exact", "canonical"):
        (result,) = finish(make_engine(words, lambda ids: {}, jump), GenerateRequest((0,), 9, constraint=words.constraint("")))
        assert (result.text, result.ids, result.finish, result.usage.passes) == ("", (), Finish.COMPLETE, 0)


def test_7_every_end_token_ends_where_the_value_may_end():
    class TwoEnds(Words):
        def __init__(self, pieces):
            super().__init__(pieces)
            self.end_ids = frozenset({self.control, self.end})

    words = TwoEnds([*"ab"])
    for end in words.end_ids:
        for jump in ("off", "exact", "canonical"):
            engine = make_engine(words, lambda ids: {end: 9.0, 1: 5.0}, jump)  # noqa: B023
            (result,) = finish(engine, GenerateRequest((0,), 9, constraint=words.constraint("ab?")))
            assert (result.text, result.finish) == ("a", Finish.EOS), "an end is no legal token before `a`"


def test_16_a_value_that_may_go_on_ends_by_the_end_token_alone():
    words = Words([*"ab"])
    assert three_ways(words, prefer(words, "b", b"", "a"), "ab?")["exact"].text == "ab"
    assert three_ways(words, prefer(words, b"", "b", "a"), "ab?")["exact"].text == "a"


def test_21_a_token_that_was_refused_leaves_no_trace():
    words = Words([*"abc", "ab"])
    constraint = words.constraint("ab(a|b)c")
    state = constraint.advance(START, b"a")
    assert constraint.advance(state, b"c") == 0 and constraint.advance(state, b"b") == constraint.advance(START, b"ab") != 0
    engine = make_engine(words, prefer(words, "a", "c", "b"))
    constraint = words.constraint("ab(a|b)c")
    for _ in range(3):
        (result,) = finish(engine, GenerateRequest((0,), 9, constraint=constraint))
        assert result.ids == words.ids(*"abac")


@pytest.mark.parametrize("text", ["a", "abq", "abQ", "abqbQ", "c", "cbQ"])
def test_25_a_choice_that_begins_another(text):
    words = Words([*"abcqQ"])

    def spell(ids):
        written = "".join(words.token_bytes[i].decode() for i in ids[1:])
        return {words.id(text[len(written)]) if len(written) < len(text) else words.end: 9.0}

    for result in three_ways(words, spell, "(a|abq|c)(bQ)?").values():
        assert result.text == text and result.valid


# Requests side by side.

def test_four_kinds_in_every_order_give_what_they_give_alone():
    """Case C-11."""
    tokenizer = dry_tokenizer()

    def engine(**options):
        return Engine(DryModel(), tokenizer, **{"slots": 2048, **options})

    index = engine().index
    json = TokenConstraint(compile_regex(r'\{"name":"[a-z ]{1,8}","alive":(true|false)\}'), index)
    date = TokenConstraint(compile_regex(r"\d{4}-\d{2}-\d{2}"), index)
    prompts = [tuple(tokenizer.encode(text)) for text in ("Give a person: ", "Give a date: ", "Tell a story:", "Give a person: no one")]
    requests = [
        GenerateRequest(prompts[0], 40, constraint=json, sampling=Sampling(temperature=0.9, seed=5), stream=True),
        GenerateRequest(prompts[1], 40, constraint=date, heal=b" "),
        GenerateRequest(prompts[2], 25, stops=(".",)),
        ScoreRequest(prompts[3], 5),
    ]

    def answer(result):
        return (result.ids, result.text, result.finish) if hasattr(result, "ids") else result.logprobs

    alone = [answer(finish(engine(jump="off"), request)[0]) for request in requests]
    retracted = 0
    for order in itertools.permutations(range(4)):
        # A pool that `max_tokens` does not fit into, so that one is retracted in every order; prompts and drafts are cut by the budget.
        small = engine(slots=30, max_batch_tokens=7)
        results = finish(small, *[requests[i] for i in order])
        assert [answer(r) for r in results] == [alone[i] for i in order]
        retracted += small.stats.retractions
        roomy = engine()
        finish(roomy, *[requests[i] for i in order])
        assert [answer(r) for r in finish(roomy, *[requests[i] for i in order])] == [alone[i] for i in order]
    assert retracted >= 24
