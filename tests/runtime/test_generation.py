"""Healing, stops, constraints, streaming and the ends of one generation, token by token."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

from lmc.runtime.generation import Generation, _merged
from lmc.runtime.request import Finish, GenerateRequest, Sampling, TokenLogprob
from tests.runtime.words import Words


def generation(words: Words, *, limit: int = 1000, prompt=(0,), max_tokens: int = 50, width=None, **options) -> Generation:
    return Generation(GenerateRequest(prompt, max_tokens, **options), words.sets(width), limit)


def feed(gen: Generation, tokens) -> list[str]:
    """Accept tokens until the generation is over; returns what streams.  Each token must be allowed."""
    chunks = []
    for token in tokens:
        assert gen.finish is None, "more tokens than the generation wanted"
        allowed, banned = gen.allowed_ids()
        assert allowed is None or token in allowed, f"{token} is not in {allowed}"
        assert token not in banned
        gen.accept(token)
        chunks.append(gen.take_text())
    return chunks


def outcome(gen: Generation):
    return gen.result(0, 1, 1)


ALPHABET = Words([*"abcdefghijklmnop", "ABC", "DEF", "G", "HI", "JKL", "xDEFGHIJy", "DEFG"])


def test_a_stop_string_over_several_tokens_is_cut_from_value_context_and_stream():
    gen = generation(ALPHABET, stops=("DEFGHIJ",))
    chunks = feed(gen, ALPHABET.ids("ABC", "DEF", "G", "HI", "JKL"))
    result = outcome(gen)
    assert (result.text, result.finish, result.stop, result.carry) == ("ABC", Finish.STOP, "DEFGHIJ", "")
    assert result.ids == ALPHABET.ids("ABC") and result.usage.generated == 5
    assert "".join(chunks) == "ABC" and not any(set(chunk) & set("DEFGHIJKL") for chunk in chunks)


def test_a_stop_inside_one_token_leaves_the_kept_bytes_as_carry():
    gen = generation(ALPHABET, stops=("DEFGHIJ",))
    chunks = feed(gen, ALPHABET.ids("a", "xDEFGHIJy"))
    result = outcome(gen)
    assert (result.text, result.ids, result.carry, result.stop) == ("ax", ALPHABET.ids("a"), "x", "DEFGHIJ")
    assert "".join(chunks) == "ax"


def test_of_two_stops_the_one_that_completes_first_wins():
    gen = generation(ALPHABET, stops=("DEFGHIJ", "DEF"))
    feed(gen, ALPHABET.ids("ABC", "DEFG"))
    assert (outcome(gen).text, outcome(gen).stop) == ("ABC", "DEF")


def test_of_two_stops_that_complete_together_nothing_is_left_in_the_value():
    gen = generation(ALPHABET, stops=("EF", "DEF"))
    feed(gen, ALPHABET.ids("ABC", "DEF"))
    assert (outcome(gen).text, outcome(gen).stop) == ("ABC", "DEF")


def splits(text: str):
    for cuts in itertools.product([False, True], repeat=len(text) - 1):
        piece, pieces = text[0], []
        for char, cut in zip(text[1:], cuts):
            if cut:
                pieces.append(piece)
                piece = ""
            piece += char
        yield [*pieces, piece]


@pytest.mark.parametrize("stops", [("cab", "abc"), ("bb", "abca"), ("ab", "a"), ("cc", "xyz")])
def test_a_stop_does_not_depend_on_how_the_text_falls_into_tokens(stops):
    text = "acabbcabca"
    expected = min(((text.find(s) + len(s), text.find(s), s) for s in stops if s in text), default=None)
    for pieces in splits(text):
        words = Words(sorted(set(pieces)))
        gen = generation(words, stops=stops)
        chunks = []
        for piece in pieces:
            if gen.finish is None:
                chunks += feed(gen, words.ids(piece))
        if expected is None:
            assert gen.finish is None and text.startswith("".join(chunks))
            continue
        result = outcome(gen)
        assert (result.text, result.stop) == (text[: expected[1]], expected[2])
        assert "".join(chunks) == result.text
        kept = b"".join(words.token_bytes[i] for i in result.ids).decode() + result.carry
        assert kept == result.text


def test_text_that_may_begin_a_stop_is_held_back_until_it_cannot():
    gen = generation(ALPHABET, stops=("DEFGHIJ",))
    assert feed(gen, ALPHABET.ids("ABC", "DEF", "G", "a")) == ["ABC", "", "", "DEFGa"]


def test_the_end_token_ends_and_is_not_part_of_anything():
    gen = generation(ALPHABET, stops=("DEFGHIJ",))
    chunks = feed(gen, [*ALPHABET.ids("ABC", "DEF"), ALPHABET.end])
    result = outcome(gen)
    assert (result.text, result.ids, result.finish) == ("ABCDEF", ALPHABET.ids("ABC", "DEF"), Finish.EOS)
    assert "".join(chunks) == "ABCDEF", "what was held back comes at the end"


EMOJI = Words(["a", b"\xf0\x9f", b"\x98", b"\x80", b"\xe6\x97", b"\xa5", " b", b"\x80!", b"\xff"])


def test_characters_over_several_tokens_stream_whole():
    gen = generation(EMOJI)
    chunks = feed(gen, [*EMOJI.ids(b"\xf0\x9f", b"\x98", b"\x80", " b", b"\xe6\x97", b"\xa5", " b"), EMOJI.end])
    assert chunks == ["", "", "😀", " b", "", "日", " b", ""]
    assert outcome(gen).text == "😀 b日 b"


def test_an_incomplete_character_at_the_end_is_dropped_from_value_and_context():
    gen = generation(EMOJI, max_tokens=3)
    chunks = feed(gen, EMOJI.ids("a", b"\xf0\x9f", b"\x98"))
    result = outcome(gen)
    assert (result.text, result.ids, result.carry, result.finish) == ("a", EMOJI.ids("a"), "", Finish.LENGTH)
    assert "".join(chunks) == "a"


def test_a_stop_right_behind_a_character_takes_its_tokens_back_into_the_carry():
    gen = generation(EMOJI, stops=("!",))
    feed(gen, EMOJI.ids("a", b"\xf0\x9f", b"\x98", b"\x80!"))
    result = outcome(gen)
    assert (result.text, result.ids, result.carry) == ("a😀", EMOJI.ids("a"), "😀")


def test_bytes_that_are_no_text_count_as_one_replacement_each_and_stops_still_cut_right():
    gen = generation(EMOJI, stops=("b",))
    feed(gen, EMOJI.ids(b"\xff", "a", b"\xff", " b"))
    result = outcome(gen)
    assert (result.text, result.ids, result.carry) == ("\ufffda\ufffd ", EMOJI.ids(b"\xff", "a", b"\xff"), " ")


HEALING = Words(["t", "h", "e", " ", " t", " the", "the", " th", "x", "://", ":", "/", "e.", "."])


def test_the_first_tokens_spell_what_was_reopened():
    gen = generation(HEALING, heal=b" t")
    allowed, _ = gen.allowed_ids()
    assert sorted(allowed) == sorted(HEALING.ids(" ", " t", " the", " th"))
    feed(gen, HEALING.ids(" "))
    assert sorted(gen.allowed_ids()[0]) == sorted(HEALING.ids("t", "the"))
    chunks = feed(gen, [*HEALING.ids("the", "x"), HEALING.end])
    result = outcome(gen)
    assert (result.text, result.ids) == ("hex", HEALING.ids(" ", "the", "x")) and "".join(chunks) == "hex"


def test_tokens_that_only_spell_what_was_reopened_do_not_count():
    gen = generation(HEALING, heal=b" t", max_tokens=1)
    feed(gen, HEALING.ids(" ", "t", "x"))
    assert (outcome(gen).text, outcome(gen).finish) == ("x", Finish.LENGTH)


def test_a_token_that_spells_part_of_the_value_counts():
    gen = generation(HEALING, heal=b" t", max_tokens=1)
    feed(gen, HEALING.ids(" the"))
    assert outcome(gen).text == "he"


def test_no_end_while_bytes_are_to_be_spelled_and_max_tokens_of_none_still_heals():
    gen = generation(HEALING, heal=b" t", max_tokens=0)
    assert HEALING.end not in gen.allowed_ids()[0]
    feed(gen, HEALING.ids(" t"))
    assert (outcome(gen).text, outcome(gen).ids, outcome(gen).finish) == ("", HEALING.ids(" t"), Finish.LENGTH)


def test_reopened_bytes_never_count_towards_a_stop():
    gen = generation(HEALING, heal=b" t", stops=("th",))
    feed(gen, HEALING.ids(" th", "x"))
    assert gen.finish is None
    feed(gen, HEALING.ids("the"))
    assert outcome(gen).text == "hx"


def test_a_stop_in_the_token_that_heals_puts_the_reopened_bytes_into_the_carry():
    gen = generation(HEALING, heal=b" t", stops=("e",))
    feed(gen, HEALING.ids(" the"))
    result = outcome(gen)
    assert (result.text, result.ids, result.carry) == ("h", (), " th")


def test_healing_that_the_limit_cuts_keeps_the_context_whole():
    gen = generation(HEALING, heal=b" t", limit=2)
    feed(gen, HEALING.ids(" "))
    result = outcome(gen)
    assert (result.text, result.ids, result.carry, result.finish) == ("", HEALING.ids(" "), "t", Finish.LENGTH)


def test_a_seam_inside_a_longer_token_is_healed():
    gen = generation(HEALING, heal=b":")
    feed(gen, [*HEALING.ids("://", "x"), HEALING.end])
    assert outcome(gen).text == "//x"


DIGITS = Words([*"0123456789", "12", "ab", "a", ",", ", ", "1,", ".", "yes", "no", "y", "es"])


def test_a_free_generation_is_not_masked_but_draws_no_control_token_nor_padding():
    gen = generation(DIGITS, width=DIGITS.size + 3)
    allowed, banned = gen.allowed_ids()
    assert allowed is None
    assert sorted(banned) == [DIGITS.control, DIGITS.size, DIGITS.size + 1, DIGITS.size + 2]


def test_a_constraint_that_is_complete_ends_without_another_token():
    gen = generation(DIGITS, constraint=DIGITS.constraint("[0-9]{4}"))
    assert DIGITS.end not in gen.allowed_ids()[0]
    feed(gen, DIGITS.ids("12", "3", "4"))
    assert (outcome(gen).text, outcome(gen).finish, outcome(gen).valid) == ("1234", Finish.COMPLETE, True)


def test_in_an_accepting_state_the_end_token_may_come():
    gen = generation(DIGITS, constraint=DIGITS.constraint("[0-9]*"))
    assert DIGITS.end in gen.allowed_ids()[0] and DIGITS.id("a") not in gen.allowed_ids()[0]
    feed(gen, [DIGITS.end])
    assert (outcome(gen).text, outcome(gen).finish, outcome(gen).valid) == ("", Finish.EOS, True)


def test_what_follows_ends_a_value_and_is_discarded():
    gen = generation(DIGITS, constraint=DIGITS.constraint("[0-9]+"), follow=b",")
    assert DIGITS.id(",") not in gen.allowed_ids()[0], "not before the value is whole"
    feed(gen, DIGITS.ids("12"))
    assert DIGITS.id("1,") not in gen.allowed_ids()[0], "a token that begins otherwise is no end"
    feed(gen, DIGITS.ids(", "))
    result = outcome(gen)
    assert (result.text, result.ids, result.carry, result.finish) == ("12", DIGITS.ids("12"), "", Finish.EOS)


def test_a_token_that_goes_on_is_no_end_though_it_begins_like_what_follows():
    gen = generation(DIGITS, constraint=DIGITS.constraint("[0-9]+(,[0-9]+)?"), follow=b",")
    feed(gen, DIGITS.ids("1", ",", "2"))
    assert gen.finish is None
    feed(gen, DIGITS.ids(","))
    assert (outcome(gen).text, outcome(gen).finish) == ("1,2", Finish.EOS)


def test_masks_are_merged_as_sets_are():
    rng = np.random.default_rng(0)
    for _ in range(200):
        one, two = (np.unique(rng.integers(0, 12, rng.integers(0, 9))) for _ in range(2))
        assert _merged(one, two).tolist() == np.union1d(one, two).tolist()


def test_a_value_that_is_cut_is_not_valid():
    gen = generation(DIGITS, constraint=DIGITS.constraint("[0-9]{4}"), max_tokens=2)
    feed(gen, DIGITS.ids("1", "2"))
    assert (outcome(gen).text, outcome(gen).finish, outcome(gen).valid) == ("12", Finish.LENGTH, False)


def test_a_value_that_is_whole_at_its_last_token_is_valid():
    gen = generation(DIGITS, constraint=DIGITS.constraint("[0-9]*"), max_tokens=2)
    feed(gen, DIGITS.ids("1", "2"))
    assert (outcome(gen).finish, outcome(gen).valid) == (Finish.LENGTH, True)


def test_a_stop_in_a_constrained_value_leaves_it_valid_only_if_what_stays_is():
    for pattern, valid in (("[0-9]+,[0-9]+", False), ("[0-9]+(,[0-9]+)?", True)):
        gen = generation(DIGITS, constraint=DIGITS.constraint(pattern), stops=(",",))
        feed(gen, DIGITS.ids("1", ","))
        assert (outcome(gen).text, outcome(gen).valid) == ("1", valid)


def test_a_constrained_value_behind_reopened_bytes():
    words = Words([" ", " yes", " no", "yes", "no", " nope", "n", "o"])
    gen = generation(words, constraint=words.constraint("yes|no"), heal=b" ")
    assert sorted(gen.allowed_ids()[0]) == sorted(words.ids(" ", " yes", " no"))
    feed(gen, words.ids(" no"))
    assert (outcome(gen).text, outcome(gen).ids, outcome(gen).finish) == ("no", words.ids(" no"), Finish.COMPLETE)


def test_the_empty_value_needs_no_token():
    gen = generation(DIGITS, constraint=DIGITS.constraint(""))
    assert (gen.finish, outcome(gen).text, outcome(gen).valid) == (Finish.COMPLETE, "", True)
    assert generation(DIGITS, max_tokens=0).finish is Finish.LENGTH


def test_neither_end_nor_stop_before_min_tokens():
    gen = generation(DIGITS, min_tokens=2, stops=("1",))
    assert DIGITS.end in gen.allowed_ids()[1]
    feed(gen, DIGITS.ids("1"))
    assert gen.finish is None and DIGITS.end in gen.allowed_ids()[1]
    feed(gen, DIGITS.ids("2"))
    assert DIGITS.end not in gen.allowed_ids()[1]
    feed(gen, DIGITS.ids("12"))
    assert (outcome(gen).text, outcome(gen).finish) == ("12", Finish.STOP)
    constrained = generation(DIGITS, min_tokens=1, constraint=DIGITS.constraint("[0-9]*"), follow=b",")
    assert not {DIGITS.end, *DIGITS.ids(",")} & set(constrained.allowed_ids()[0])


def test_ignore_eos_masks_the_end_token():
    assert DIGITS.end in generation(DIGITS, ignore_eos=True).allowed_ids()[1]
    assert DIGITS.end not in generation(DIGITS, ignore_eos=True, constraint=DIGITS.constraint("[0-9]*")).allowed_ids()[0]


def test_the_limit_of_the_context_ends_with_length():
    gen = generation(DIGITS, prompt=DIGITS.ids("1", "2"), limit=4)
    feed(gen, DIGITS.ids("1", "2"))
    assert outcome(gen).finish is Finish.LENGTH


def test_the_choice_says_what_was_generated_and_which_draw_it_is():
    sampling = Sampling(temperature=1.0, repetition_penalty=2.0)
    gen = generation(DIGITS, prompt=DIGITS.ids("1"), sampling=sampling, logprobs=3)
    feed(gen, DIGITS.ids("2", "2", "3"))
    choice = gen.choice()
    assert dict(choice.counts) == {DIGITS.id("2"): 2, DIGITS.id("3"): 1}
    assert (choice.k, choice.prompt_ids, choice.sampling, choice.logprobs) == (3, DIGITS.ids("1"), sampling, 3)


def test_logprobs_belong_to_the_tokens_that_stay():
    gen = generation(ALPHABET, stops=("DEF",))
    for n, token in enumerate(ALPHABET.ids("a", "b", "DEF")):
        gen.accept(token, TokenLogprob(token, -float(n), ()))
    assert [r.logprob for r in outcome(gen).logprobs] == [0.0, -1.0] and len(outcome(gen).ids) == 2


@pytest.mark.parametrize("seed", range(30))
def test_at_random_stream_value_and_context_agree(seed):
    rng = random.Random(seed)
    words = Words([bytes([b]) for b in b"ab\xc3\xa9\xf0\x9f\x98\x80"] + ["ab", "éa", b"\x80b", b"a\xf0\x9f"])
    heal = rng.choice([b"", b"a", b"ab"])
    gen = generation(words, heal=heal, stops=rng.choice([(), ("ba",), ("éa", "b")]), max_tokens=12)
    chunks = []
    while gen.finish is None:
        allowed, banned = gen.allowed_ids()
        ids = [int(i) for i in allowed] if allowed is not None else [i for i in range(words.size) if i not in banned]
        chunks += feed(gen, [rng.choice(ids)])
    result = outcome(gen)
    assert "".join(chunks) == result.text
    kept = b"".join(words.token_bytes[i] for i in result.ids)
    assert kept.decode("utf-8", "replace") + result.carry == heal.decode() + result.text
    assert not any(stop in result.text for stop in gen.request.stops)
