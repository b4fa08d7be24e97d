"""Failures of the field with constrained text (cases C-01, C-02, C-06, C-08, C-10), with jump-forward and without."""

import json
import re

import pytest

from lmc.diagnostics import LmcError
from lmc.runtime.dry import ScriptedModel
from lmc.runtime.engine import Engine
from lmc.runtime.request import Finish, GenerateRequest
from lmc.values import to_data
from tests.runtime.programs import TOKENS, dry_session, program_of, run, scripted_session
from tests.runtime.test_jump import finish
from tests.runtime.words import Words

JUMPS = ("off", "exact", "canonical")
END = min(TOKENS.end_ids)


def likes(*pieces: bytes):
    """A script that likes every token made of these characters, whatever comes before."""
    wanted = {i: 9.0 for i, data in enumerate(TOKENS.token_bytes) if data and not data.strip(b"".join(pieces))}
    return lambda ids: wanted


@pytest.mark.parametrize("jump", JUMPS)
def test_c01_a_model_that_likes_white_space_still_completes_the_value(jump, tmp_path):
    program = program_of('''
    type Pair:
        first: str(max_len=12)
        second: str(max_len=12)

    def main() -> Pair:
        user: "Write."
        assistant: pair = gen(Pair, max_tokens=200)
        return pair
    ''', tmp_path)
    session = scripted_session(likes(b" ", b"\n", b"\t"), jump=jump)
    ran = run(program, session, "main")
    text = json.dumps(to_data(ran.value, program.functions["main"].result))
    assert re.fullmatch(r'\{"first": " {0,12}", "second": " {0,12}"\}', text), text
    assert ran.report.generated < 60


@pytest.mark.parametrize("jump", JUMPS)
def test_c02_half_a_value_is_an_error_that_can_be_caught_and_one_that_never_fits_is_not_begun(jump, tmp_path):
    source = '''
    type Person:
        age: int
        name: str

    def cut(n: int) -> Person:
        user: "Who?"
        assistant: p = gen(Person, max_tokens=n)
        return p

    def caught(n: int) -> str:
        try:
            p = cut(n)
            return p.name
        except Error as e:
            return e.kind
    '''
    program = program_of(source, tmp_path)
    ran = run(program, scripted_session(likes(b"abc", b"7"), jump=jump), "cut", 24)
    assert ran.value is None and ran.error.kind == "truncated" and ran.error.raw.startswith('{"age":7')
    assert ran.error.diagnostics[0].span is not None
    assert run(program, scripted_session(likes(b"abc", b"7"), jump=jump), "caught", 24).value == "truncated"
    ran = run(program, scripted_session(likes(b"abc"), jump=jump), "cut", 3)
    assert ran.error.kind == "truncated" and ran.report.generated == 0 and ran.error.diagnostics[0].code == "E0641"
    with pytest.raises(LmcError) as caught:
        run(program_of(source.replace("max_tokens=n", "max_tokens=3"), tmp_path), scripted_session(likes(b"abc"), jump=jump), "cut", 0)
    (fault,) = caught.value.diagnostics
    assert (fault.code, fault.span.line) == ("E0641", 7), "refused when it is bound, where the number is written"


EMOJI = Words([bytes([b]) for b in sorted(set("😀😨a霍比特人x".encode()))] + ["😀", "人"])


@pytest.mark.parametrize("pattern, text", [
    ("[😀-😿]+", "😨😨"), ("😨a", "😨a"), ("[一-龥]{2,4}", "霍比特人"), (".{3}", "😨霍a"), ("[^x]{1,2}", "😨霍"),
])
def test_c06_characters_of_several_tokens_are_written_whole(pattern, text):
    """The model prefers the character that is no single token; counts are of characters."""
    def spell(ids):
        written = b"".join(EMOJI.token_bytes[i] for i in ids[1:])
        rest = text.encode()[len(written):]
        return {EMOJI.id(rest[:1]) if rest else EMOJI.end: 9.0}

    for jump in JUMPS:
        engine = Engine(ScriptedModel(EMOJI.size, spell), EMOJI, slots=256, jump=jump)
        for _ in range(3):
            (result,) = finish(engine, GenerateRequest((0,), 40, constraint=EMOJI.constraint(pattern), stream=True))
            assert result.text == text and result.valid and re.fullmatch(pattern, result.text)


DIGITS = Words([*"0123456789.ax", "11", "111"])


def regex(pattern: str, script, jump: str, **options):
    engine = Engine(ScriptedModel(DIGITS.size, script), DIGITS, slots=256, jump=jump)
    constraint = DIGITS.constraint(pattern)
    return [finish(engine, GenerateRequest((10,), options.get("max_tokens", 40), constraint=constraint))[0] for _ in range(3)]


@pytest.mark.parametrize("jump", JUMPS)
def test_c08_a_regex_ends_where_nothing_more_is_legal(jump):
    ones = {DIGITS.id("1"): 9.0, DIGITS.id("."): 5.0, DIGITS.end: 1.0}
    for result in regex(r"([0-9]{1,3}\.){3}[0-9]{1,3}", lambda ids: ones, jump):
        assert (result.text, result.finish) == ("111.111.111.111", Finish.COMPLETE)
        assert result.usage.passes <= result.usage.generated == 15, "the last digit is not waited for"
    for result in regex("[0-9]{4}", lambda ids: ones, jump):
        assert (result.text, result.finish, result.valid) == ("1111", Finish.COMPLETE, True)
        assert result.usage.passes <= 4
    for result in regex("[0-9]*", lambda ids: {DIGITS.end: 9.0}, jump):
        assert (result.text, result.finish, result.valid) == ("", Finish.EOS, True)
    then_a_letter = lambda ids: {DIGITS.id("1"): 9.0, DIGITS.end: 5.0} if len(ids) < 4 else {DIGITS.id("a"): 9.0, DIGITS.end: 5.0}  # noqa: E731
    for result in regex("[0-9]*", then_a_letter, jump):
        assert (result.text, result.finish, result.valid) == ("111", Finish.EOS, True)
    for result in regex("[0-9]{2,}x", lambda ids: ones, jump, max_tokens=7):
        assert (result.text, result.finish, result.valid) == ("1" * 7, Finish.LENGTH, False)


C10 = '''
type Person:
    name: str(max_len=9)
    house: "Gryffindor" | "Slytherin" | "Slow"
    born: str(regex=r"\\d{4}-\\d{2}-\\d{2}")
    alive: bool

def alone(question: str) -> Person:
    user: "${question}"
    assistant: p = gen(Person)
    return p

def streamed(question: str) -> Person:
    user: "${question}"
    assistant: p = gen(Person, stream=True)
    return p

def forked(question: str) -> list[Person]:
    fork q in [question, question, "Another: ${question}"]:
        user: "${q}"
        assistant: p = gen(Person)
    join p as all
    return all
'''


def test_c10_the_same_text_with_jumps_in_a_stream_and_in_a_fork(tmp_path):
    """The stand-in's every token depends on all tokens before it, so text forced in other tokens would change what follows."""
    program = program_of(C10, tmp_path)
    steps = {}
    for question in ("Who is it?", "And who is that?", '{"name":'):
        session = dry_session(jump="off")
        plain = run(program, session, "alone", question)
        steps[question, "off"] = session.stats.steps
        for name in ("alone", "streamed", "forked"):
            session = dry_session(jump="exact")
            ran = run(program, session, name, question)
            steps[question, name] = session.stats.steps
            assert all(person == plain.value for person in (ran.value[:2] if name == "forked" else [ran.value]))
            if name == "streamed":
                assert json.loads("".join(text for _, text in ran.streamed)) == to_data(plain.value, program.functions["alone"].result)
        assert steps[question, "alone"] == steps[question, "streamed"] < steps[question, "off"]
