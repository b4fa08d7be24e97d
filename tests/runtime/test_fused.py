"""Templates: generations of one turn in one request give what they give as requests of their own, also where they fail."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from lmc.levels import DEFAULT_LEVEL
from lmc.runtime.cassette import Cassette
from lmc.runtime.cassette_sessions import RecordingSession, ReplayingSession
from lmc.runtime.dry import DryModel
from lmc.runtime.instance import Budgets
from lmc.runtime.template import dry_template
from tests.runtime.programs import TOKENS, WatchedSession, program_of, run, scripted_session, writes


class Pieces(WatchedSession):
    """A session that knows what each piece gave, too."""

    def __init__(self, model=None, tokenizer=TOKENS, template=None, *, slots: int = 1 << 14, max_positions: int = 8192, **options):
        super().__init__(model or DryModel(TOKENS, max_positions=max_positions), tokenizer, template or dry_template(TOKENS), slots=slots,
                         **options)
        self.given = []

    @property
    def asked(self):
        """The requests; masks are objects of their session."""
        return [replace(request, constraint=None) for request in self.requests]

    async def generate(self, request, on_text=None, on_piece=None):
        def took(result):
            self.given.append(result)
            on_piece(result)

        result = await super().generate(request, on_text, took)
        self.given.append(result)
        return result


def both(text: str, tmp_path, *args, session=Pieces, **options):
    """The run as written and with templates, and their sessions."""
    ended, sessions = [], []
    for level in (0, DEFAULT_LEVEL):
        sessions.append(session())
        ended.append(run(program_of(text, tmp_path, level=level), sessions[-1], "f", *args, **options))
    return ended, sessions


def numbers(report):
    return replace(report, seconds=0.0)


def reused(report):
    """Without what the cache decides."""
    return replace(numbers(report), cached=0, computed=0, by_call=())


def assert_same(plain, fused):
    assert str(fused.error) == str(plain.error)
    assert fused.value == plain.value
    assert numbers(fused.report) == numbers(plain.report)
    assert fused.printed == plain.printed and fused.streamed == plain.streamed


LITERALS = ["\\nage: ", " and ", "http", ".", "\\n\\n", " ", "é", "{\"a\": ", "the answer is "]
GENS = [
    "gen(max_tokens={n})", 'gen(stop=".", max_tokens={n})', 'gen(stop=[" ", "e"], max_tokens={n})', "gen(int)", "gen(1..50)",
    "gen(bool)", 'gen(str(regex="[a-z]{{2,9}}"))', 'gen("yes" | "yesterday" | "no")', "gen(str(max_len=6))",
    "gen(temperature=0.9, max_tokens={n})", 'gen(temperature=1.2, seed=7, max_tokens={n}, stop="\\n")',
    "gen(int, temperature=0.8)",
    "gen(max_tokens={n}, heal=False)", "gen(max_tokens={n}, logprobs=2)", 'gen(min_tokens=3, max_tokens=9, stop="a")',
    "gen(max_tokens={n}, frequency_penalty=0.5)", 'gen(max_tokens={n}, stream=True, stop=",")', "gen(list[int](max_items=3))",
    'select(["one", "two", "three"])',
]


def random_program(seed: int) -> str:
    draw = random.Random(seed)
    lines, names = ["def f(n: int) -> list[str]:", '    user: "Tell me."', "    assistant:"], []
    for at in range(draw.randint(2, 7)):
        if draw.random() < 0.85:
            lines.append(f'        "{draw.choice(LITERALS)}"'.replace('{"a": ', '{\\"a\\": '))
        gen = draw.choice(GENS).format(n=draw.choice(["1", "4", "12", "n"]))
        names.append(f"v{at}")
        lines.append(f"        v{at} = {gen}")
        if draw.random() < 0.2:
            lines.append(f"        w{at} = [v{at}]")
    texts = ", ".join(f"json({name})" for name in names)
    return "\n".join([*lines, f"    return [{texts}]"]) + "\n"


@pytest.mark.parametrize("seed", range(40))
def test_random_templates_give_what_their_pieces_give(seed, tmp_path):
    (plain, fused), (alone, together) = both(random_program(seed), tmp_path, 6, seed=seed)
    assert_same(plain, fused)
    assert together.asked == alone.asked
    assert [replace(g, usage=None) for g in together.given] == [replace(g, usage=None) for g in alone.given]


TEMPLATE = '''
def f(k: int = 30) -> str:
    user: "Who?"
    assistant:
        "name: ${name := gen(str(regex="[A-Z][a-z]{2,8}"), max_tokens=30)}\\nage: ${age := gen(int, max_tokens=k)}"
        "\\nsays: ${s := gen(max_tokens=8, stop=".")}."
    return "${name} ${age} ${s}"
'''


@pytest.mark.parametrize("jump", ["exact", "off", "canonical"])
@pytest.mark.parametrize("cache", [True, False])
def test_it_is_one_request(tmp_path, jump, cache):
    (plain, fused), (alone, together) = both(TEMPLATE, tmp_path, session=lambda: Pieces(jump=jump, cache=cache))
    assert fused.error is None and fused.value == plain.value
    assert reused(fused.report) == reused(plain.report)
    assert (alone.stats.requests, together.stats.requests) == (3, 1)
    assert together.stats.steps <= alone.stats.steps


def test_without_a_cache_a_request_still_computes_nothing_twice(tmp_path):
    (plain, fused), _ = both(TEMPLATE, tmp_path, session=lambda: Pieces(cache=False))
    prompt = fused.report.by_call[-1].prompt
    assert plain.report.computed > fused.report.computed and fused.report.computed <= prompt


CUT = '''
def f(now: str = "ab") -> str:
    user: "?"
    assistant:
        "a: ${a := gen(max_tokens=3)}, b: ${b := %s}, c: ${c := gen(max_tokens=3)}"
    return c
'''


@pytest.mark.parametrize("middle, code", [
    ('gen(str(regex="[a-z ]{200,}"), max_tokens=210, stop="e")', "E0835"),
    # Not known before it runs: a number would be refused when the program is bound.
    ('gen(str(regex="[a-z]{90}"), max_tokens=len(now))', "E0641"),
    ("gen(max_tokens=len(\"\"))", "E0841"),
    ("gen(max_tokens=3, logit_bias={99999999: 1.0})", "E0841"),
])
def test_a_failing_piece_gives_the_same_located_error(tmp_path, middle, code):
    (plain, fused), _ = both(CUT % middle, tmp_path)
    assert fused.error.diagnostics[0].code == code and fused.error.diagnostics[0].span.line == 4
    assert_same(plain, fused)


@pytest.mark.parametrize("budgets", [Budgets(calls=2), Budgets(tokens=5), Budgets(tokens=6), Budgets(tokens=7)])
def test_budgets_end_it_at_the_same_piece(tmp_path, budgets):
    (plain, fused), _ = both(CUT % "gen(max_tokens=3)", tmp_path, budgets=budgets)
    assert fused.error.kind == "budget"
    assert_same(plain, fused)


def test_the_end_of_the_models_context_is_met_at_the_same_place(tmp_path):
    (plain, fused), _ = both(CUT % "gen(max_tokens=99)", tmp_path, session=lambda: Pieces(max_positions=30))
    assert fused.error is not None and fused.error.diagnostics[0].code == "E0837"
    assert_same(plain, fused)


def test_what_is_between_keeps_its_order(tmp_path):
    program = '''
    extern def note(text: str) -> None
    def f(most: int = 2) -> str:
        user: "?"
        try:
            assistant:
                "a: "
                a = gen(max_tokens=2)
                " b: "
                b = gen(str(regex="[a-z]{90}"), max_tokens=most)
                note("seen")
                "."
                c = gen(max_tokens=2)
        except Error as e:
            return e.message
        return c
    '''
    notes = []
    for level in (0, DEFAULT_LEVEL):
        notes.append([])
        ended = run(program_of(program, tmp_path, level=level), Pieces(), "f", externs={"note": notes[-1].append})
        assert ended.error is None and "shortest" in ended.value
    assert notes[0] == notes[1]


def test_a_stop_inside_a_token_opens_the_next_segment(tmp_path):
    """The kept bytes of a cut token and the text behind it are one segment."""
    text = '''
    def f() -> str:
        user: "?"
        assistant: "a ${a := gen(stop="th", max_tokens=40)}at ${b := gen(stop="o", max_tokens=40)}"
        return "${a}|${b}"
    '''
    (plain, fused), (alone, together) = both(text, tmp_path)
    assert_same(plain, fused)
    assert together.asked == alone.asked and together.stats.requests == 1


MANY = '''
def f(n: int) -> list[str]:
    user: "Many."
    fork i in range(n):
        user: " Number ${i}."
        assistant: "x: ${x := gen(max_tokens=9, temperature=1.0)}; y: ${y := gen(int)}; z: ${z := gen(max_tokens=9)}"
    join x as xs, z as zs
    return xs + zs
'''


def test_many_at_once_in_a_pool_that_is_too_small(tmp_path):
    (plain, fused), _ = both(MANY, tmp_path, 24)
    small = Pieces(slots=96)
    pressed = run(program_of(MANY, tmp_path), small, "f", 24)
    assert small.stats.retractions > 0 and pressed.error is None
    assert plain.value == fused.value == pressed.value and small.stats.requests == 24
    assert plain.report.generated == fused.report.generated == pressed.report.generated


def test_cancelling_leaves_nothing_in_the_engine(tmp_path):
    session = scripted_session(writes(lambda text: "b" * 3000))
    text = '''
    def f() -> str:
        user: "?"
        assistant: "a ${gen(max_tokens=2)} ${x := gen(max_tokens=3000)} ${gen(max_tokens=2)}"
        return x
    '''
    ended = run(program_of(text, tmp_path), session, "f", cancel_after=0.3)
    assert ended.error == "cancelled"


class Recorder(RecordingSession):
    def close(self):
        self._session.close()


class Player(ReplayingSession):
    def close(self):
        pass


def test_a_cassette_serves_both(tmp_path):
    cassette = Cassette("it", "program.lmp", 1, {}, {})
    recorded = run(program_of(TEMPLATE, tmp_path, level=DEFAULT_LEVEL), Recorder(Pieces(), cassette), "f")
    assert recorded.error is None and len(cassette.calls) == 3
    for level in (0, DEFAULT_LEVEL):
        again = run(program_of(TEMPLATE, tmp_path, level=level), Player(cassette), "f")
        assert again.error is None and again.value == recorded.value
