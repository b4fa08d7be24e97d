"""LANGUAGE.md §4 and what §8 says of it: `gen` with every option, types, `select`, `score`, `image`."""

import json
import math

import pytest

from lmc.diagnostics import LmcError
from tests.language.programs import TOKENS, mistakes, prompt, run, value

GEN = '''
def main() -> str:
    raw:
        "Q:"
        a = gen({options})
        "|"
        b = gen(max_tokens=1, heal=False)
    return a
'''


def gen(tmp_path, options: str, answer: str | None = None, script=None, **more):
    """One `gen` with these options after `Q:`, and the prompt of a second one after it."""
    text = GEN.replace("{options}", options)
    return run(text, tmp_path, answer=None if answer is None else lambda before: answer if before == "Q:" else "", script=script, **more)


def letters(logits: dict[str, float]):
    """A script that always has these logits for single letters."""
    return lambda ids: {ord(c): v for c, v in logits.items()}


def test_gen_appends_what_it_generates_and_returns_it(tmp_path):
    """It appends what it generates and returns it as a value of type `T`."""
    ran = gen(tmp_path, "", "hello")
    assert ran.value == "hello" and ran.prompts[1] == "Q:hello|"


@pytest.mark.parametrize("place", [
    "x = len(gen())", 'return gen()', "x = [gen()]", "if gen(bool):\n            pass", 'x = "${gen()}"', "x = gen() + gen()",
    'x = "a" if select(["a"]) == "a" else "b"', 'print(score(["a"])[0].option)',
])
def test_where_generation_may_stand(tmp_path, place):
    """`gen`, `select`, `score` are a whole statement, the right side of an assignment, or a whole hole; nowhere else. (§8)"""
    assert "E0403" in [c for c, _ in mistakes(f'def main() -> str:\n    raw:\n        "q"\n        {place}\n    return ""\n', tmp_path)]


@pytest.mark.parametrize("role", ["user", "system"])
def test_roles_in_which_the_model_does_not_write(tmp_path, role):
    """`gen(T = str, …)` is legal in `assistant:` and `raw:`."""
    assert mistakes(f"def main():\n    {role}: x = gen()\n", tmp_path) == [("E0402", 2)]


# ---------------------------------------------------------------------- options


def test_max_tokens_defaults_to_256(tmp_path):
    """`max_tokens`: default 256."""
    assert gen(tmp_path, "", "x" * 300).value == "x" * 256
    assert gen(tmp_path, "max_tokens=5", "x" * 300).value == "x" * 5


def test_min_tokens(tmp_path):
    """`min_tokens`: the end does not come before."""
    end = min(TOKENS.end_ids)
    ran = gen(tmp_path, "min_tokens=4, max_tokens=9", script=lambda ids: {end: 9.0, ord("x"): 5.0})
    assert ran.value == "xxxx" and gen(tmp_path, "max_tokens=9", script=lambda ids: {end: 9.0, ord("x"): 5.0}).value == ""


@pytest.mark.parametrize("stop, found", [('stop="--"', "a, b"), ('stop=["zz", ", ", "b"]', "a"), ('stop=[x for x in ["b"]]', "a, "), ("", "a, b--c")])
def test_stop(tmp_path, stop, found):
    """One string or a list; the match that completes first, in characters, wins; it is not part of the value or the context."""
    ran = gen(tmp_path, stop, "a, b--c")
    assert ran.value == found and ran.prompts[1] == f"Q:{found}|"


def test_temperature(tmp_path):
    """`temperature` (default 0): 0 is argmax, above it draws."""
    script = letters({"a": 2.0, "b": 1.9, "c": 1.9})
    assert gen(tmp_path, "max_tokens=12", script=script).value == "a" * 12
    hot = letters({c: 12.0 for c in "abc"})
    drawn = gen(tmp_path, "max_tokens=30, temperature=1.0, heal=False", script=hot).value
    assert set(drawn) == {"a", "b", "c"}


@pytest.mark.parametrize("limit", ["top_k=2", "top_p=0.9", "min_p=0.2"])
def test_unlikely_tokens_are_left_out(tmp_path, limit):
    """`top_p`, `top_k`, `min_p`: sampling."""
    # Of the probability that is not `a` and `b`, about 0.06 is `c`'s.
    script = letters({"a": 14.0, "b": 14.0, "c": 12.0})
    assert set(gen(tmp_path, "max_tokens=200, temperature=1.0, heal=False", script=script).value) == set("abc")
    assert set(gen(tmp_path, f"max_tokens=200, temperature=1.0, heal=False, {limit}", script=script).value) == set("ab")


def test_a_seed_is_used_as_it_is(tmp_path):
    """`seed=` on a `gen` is used as it is. (§8)"""
    script = letters({c: 12.0 for c in "abcdef"})
    found = [gen(tmp_path, f"max_tokens=20, temperature=1.0, seed={s}", script=script, seed=run_seed).value
             for s, run_seed in ((1, 1), (1, 2), (2, 1))]
    assert found[0] == found[1] != found[2]


@pytest.mark.parametrize("penalty", ["frequency_penalty=1.5", "presence_penalty=1.5", "repetition_penalty=1.5"])
def test_penalties(tmp_path, penalty):
    """`frequency_penalty`, `presence_penalty`, `repetition_penalty`: as in the OpenAI API and in transformers."""
    script = letters({"a": 5.0, "b": 4.0})
    assert gen(tmp_path, "max_tokens=2", script=script).value == "aa"
    assert gen(tmp_path, f"max_tokens=2, {penalty}", script=script).value == "ab"


def test_logit_bias(tmp_path):
    """`logit_bias`: by token id."""
    script = letters({"a": 5.0, "b": 4.0})
    assert gen(tmp_path, "max_tokens=2, logit_bias={98: 3.0}", script=script).value == "bb"
    assert gen(tmp_path, "max_tokens=2, logit_bias={97: -100.0, 98: -100.0}", script=letters({"a": 5.0, "b": 4.0, "c": 3.0})).value == "cc"


def test_regex(tmp_path):
    """`regex=r"…"`: a constraint other than a type."""
    ran = gen(tmp_path, 'regex=r"[0-9]{3}-[a-c]+", max_tokens=8')
    a, b = ran.value.split("-")
    assert a.isdigit() and len(a) == 3 and b and set(b) <= set("abc")
    assert gen(tmp_path, 'regex=r"yes|no"', "nope").value == "no"


def test_schema(tmp_path):
    """`schema=…` (JSON Schema)."""
    schema = '{"type": "object", "properties": {"n": {"type": "integer", "minimum": 1, "maximum": 3}}, "required": ["n"]}'
    found = json.loads(gen(tmp_path, f"schema=r\"\"\"{schema}\"\"\"").value)
    assert found["n"] in (1, 2, 3)
    named = GEN.replace("{options}", "schema=S") + f'\nS = r"""{schema}"""\n'
    assert json.loads(value(named, tmp_path))["n"] in (1, 2, 3)


def test_grammar(tmp_path):
    """`grammar=…` (Lark syntax)."""
    grammar = 'grammar=r"""start: "(" start ")" | /[ab]/"""'
    assert gen(tmp_path, grammar, "((a))b").value == "((a))"
    found = gen(tmp_path, f"{grammar}, max_tokens=40").value
    assert found.strip("()") in ("a", "b") and found.count("(") == found.count(")") == len(found) // 2


def test_one_constraint_at_a_time(tmp_path):
    """A type, a regex or a schema: `gen` has at most one constraint."""
    assert mistakes('def main():\n    raw: x = gen(int, regex=r"a")\n', tmp_path) == [("E0603", 2)]


def test_logprobs_are_in_the_report(tmp_path):
    """`logprobs`: number of alternatives to record; they are in the report."""
    script = letters({"a": 5.0, "b": 4.0, "c": 3.0})
    ran = gen(tmp_path, "max_tokens=2, logprobs=2, heal=False", script=script)
    total = math.log(sum(map(math.exp, (5.0, 4.0, 3.0))) + TOKENS.size - 3)
    (record,) = ran.report.logprobs
    assert record.text == "aa" and record.where.endswith(":4:13") and [t.text for t in record.tokens] == ["a", "a"]
    assert record.tokens[0].logprob == pytest.approx(5.0 - total, abs=1e-4)
    healed, = gen(tmp_path, "max_tokens=2, logprobs=2", script=script).report.logprobs
    assert [t.text for t in healed.tokens] == [":", "a", "a"], "the tokens that spell what was reopened are among them"
    assert [t for t, _ in record.tokens[0].top] == ["a", "b"] and record.tokens[0].top[1][1] == pytest.approx(4.0 - total, abs=1e-4)


def test_logprobs_stand_in_program_order(tmp_path):
    """… side by side as well."""
    text = '''
    def main() -> list[str]:
        user: "go"
        fork i in range(5) with logprobs=1:
            assistant:
                "${i}"
                x = gen(max_tokens=8 - i)
        join x as xs
        return xs
    '''
    ran = run(text, tmp_path)
    assert [r.text for r in ran.report.logprobs] == list(ran.value) and len(ran.value) == 5


def test_heal(tmp_path):
    """The longest whole-token suffix of the author's segment whose bytes are a proper prefix of some token is reopened."""
    ran = gen(tmp_path, "max_tokens=2")
    assert ran.requests[0].prompt == tuple(TOKENS.encode("Q")) and ran.requests[0].heal == b":"
    off = gen(tmp_path, "max_tokens=2, heal=False")
    assert off.requests[0].prompt == tuple(TOKENS.encode("Q:")) and off.requests[0].heal == b""


def test_reopened_bytes_belong_neither_to_the_value_nor_to_max_tokens(tmp_path):
    """Reopened bytes belong neither to the value nor to `max_tokens`."""
    ran = gen(tmp_path, "max_tokens=3", "abcdef")
    assert ran.requests[0].heal == b":" and ran.value == "abc" and ran.prompts[1] == "Q:abc|"


def test_template_and_generated_tokens_are_never_reopened(tmp_path):
    """… never of template, control or generated tokens …"""
    text = 'def main() -> str:\n    user: "q"\n    assistant:\n        a = gen(stop="!")\n        b = gen(max_tokens=1)\n    return a\n'
    ran = run(text, tmp_path, answer=lambda before: "a:!" if before.endswith("assistant\n") else "")
    assert [r.heal for r in ran.requests] == [b"", b""]


def test_ignore_eos(tmp_path):
    """`ignore_eos`: goes on where the model would end."""
    end = min(TOKENS.end_ids)
    script = {end: 9.0, ord("x"): 5.0}
    assert gen(tmp_path, "max_tokens=4", script=lambda ids: script).value == ""
    assert gen(tmp_path, "max_tokens=4, ignore_eos=True", script=lambda ids: script).value == "xxxx"


def test_stream(tmp_path):
    """`stream`: shows the text as it is written."""
    assert gen(tmp_path, "", "hello").streamed == []
    assert "".join(text for _, text in gen(tmp_path, "stream=True", "hello").streamed) == "hello"


def test_precedence_of_options(tmp_path):
    """Precedence call > fork > `config` > built in; command-line flags override `config`. (§8)"""
    text = '''
    config:
        max_tokens = 3
        temperature = 0.5

    part say() -> str:
        a = gen()
        return a

    def other() -> str:
        raw: "o${a := gen(heal=False)}"
        return a

    def main() -> list[str]:
        raw: "q"
        fork i in [0] with max_tokens=5:
            raw:
                a = gen()
                b = gen(max_tokens=7)
                c = say()
            d = other()
        join a, b, c, d
        return a + b + c + d
    '''
    ran = run(text, tmp_path, overrides={"temperature": 0.25})
    asked = sorted((r.max_tokens, r.sampling.temperature) for r in ran.requests)
    assert asked == [(3, 0.25), (5, 0.25), (5, 0.25), (7, 0.25)], "parts take the fork's options, called functions do not"


# ------------------------------------------------------------------------ types


@pytest.mark.parametrize("type, written, found", [
    ("str", "any text", "any text"), ("int", "-42", -42), ("float", "2.5", 2.5), ("bool", "true", True), ('"A" | "B"', "B", "B"), ("1..5", "3", 3),
    ("1 | 2", "2", 2), ("Note", '{"n":1,"t":null}', {"n": 1, "t": None}), ("list[int]", "[1,2]", [1, 2]),
    ("Action", '{"type":"Calc","expr":"1"}', {"type": "Calc", "expr": "1"}), ("str | None", "null", None), ("int | None", "7", 7),
    ('str(regex=r"[a-z]{3}")', "abcd", "abc"), ("str(max_len=4)", "abcdefg", "abcd"), ("str(min_len=2)", "ab", "ab"),
    ("list[1..3](min_items=2, max_items=2)", "[1,2]", [1, 2]),
])
def test_types(tmp_path, type, written, found):
    """`T` is `str`, `int`, `float`, `bool`, a literal union, a range, a record, `list[T]`, a tagged union, `T | None`, `str(…)`."""
    text = f'''
    type Note:
        n: int
        t: str | None = None
    type Search:
        query: str(max_len=5)
    type Calc:
        expr: str(max_len=5)
    type Action = Search | Calc

    def main() -> {type}:
        raw: "q ${{x := gen({type}, heal=False)}}"
        return x
    '''
    ran = run(text, tmp_path, answer=lambda before: written if before == "q " else "")
    assert ran.data == found


def test_numbers_are_bounded(tmp_path):
    """`int` is generated with at most 18 digits; `float` at most 15 digits each side, no exponent. (§8)"""
    text = 'def main() -> {}:\n    raw: "q ${{x := gen({}, heal=False)}}"\n    return x\n'
    assert run(text.format("int", "int"), tmp_path, answer=lambda b: "7" * 40 if b == "q " else "").value == 777_777_777_777_777_777
    found = run(text.format("float", "float"), tmp_path, answer=lambda b: "1" * 15 + "." + "2" * 30 if b == "q " else "").value
    assert found == float("1" * 15 + "." + "2" * 15)


def test_a_typed_value_is_valid_or_an_error(tmp_path):
    """If `max_tokens` cuts it, the program gets a truncation error that carries the raw text."""
    text = '''
    type Note:
        text: str

    def note() -> Note:
        user: "q"
        assistant: x = gen(Note, max_tokens=20)
        return x

    def main() -> str:
        try:
            x = note()
            return x.text
        except Error as e:
            match e.raw:
                case None:
                    return "none"
                case _:
                    return "${e.kind} ${e.where != ""} ${e.raw}"
    '''
    found = value(text, tmp_path, answer=lambda before: '{"text":"' + "la" * 90)
    assert found == 'truncated true {"text":"lalalalalal'


def test_generated_records_hold_every_key_in_order(tmp_path):
    """Generated records hold every declared key in order, `null` for None; defaults apply to literals, arguments and `parse_json`. (§8)"""
    text = '''
    type Note:
        a: int
        b: str | None = "dflt"
        c: bool = True

    def main() -> list[str]:
        raw: "q ${x := gen(Note, heal=False)}"
        y: Note = {a: 2}
        z = parse_json("{\\"a\\": 3}", Note)
        return [json(x), json(y), json(Note(a=4, c=False)), json(z)]

    def given(x: Note) -> str:
        return json(x)
    '''
    ran = run(text, tmp_path, answer=lambda b: '{"a":1,"b":null,"c":false}' if b == "q " else "")
    assert ran.value == ('{"a":1,"b":null,"c":false}', '{"a":2,"b":"dflt","c":true}', '{"a":4,"b":"dflt","c":false}',
                         '{"a":3,"b":"dflt","c":true}')
    assert value(text, tmp_path, {"a": 5}, name="given") == '{"a":5,"b":"dflt","c":true}'


def test_a_constrained_gen_ends_before_what_follows(tmp_path):
    """In an accepting state a constrained `gen` may also end by any token that begins with the first byte of the text that follows. (§8)"""
    text = 'def main() -> int:\n    raw:\n        "q "\n        x = gen(int, heal=False)\n        ", and "\n        gen(max_tokens=1, heal=False)\n    return x\n'
    comma = TOKENS.encode(", ")[0]
    ran = run(text, tmp_path, script=lambda ids: {ord("4"): 5.0} if TOKENS.decode_bytes(ids) == b"q " else {comma: 9.0, ord("5"): 5.0})
    assert ran.value == 4 and ran.prompts[1] == "q 4, and "
    # The tokens of the text that follows are those of its own segment, not the one that the model ended with.
    assert ran.requests[1].prompt[-len(TOKENS.encode(", and ")):] == tuple(TOKENS.encode(", and "))


def test_no_value_fits(tmp_path):
    """`max_tokens` too small for any valid value is refused before the first token: before anything runs where it is written."""
    text = 'def main(n: int = 2) -> str:\n    raw: "q ${x := gen(str(regex=r"z{9}"), max_tokens=MOST)}"\n    return x\n'
    with pytest.raises(LmcError, match="the shortest value that the constraint allows has 9 tokens, 2 may be generated"):
        run(text.replace("MOST", "2"), tmp_path, 2)
    ran = run(text.replace("MOST", "n"), tmp_path, 2, answer=lambda b: "zzzzzzzzz")
    assert ran.error.kind == "truncated" and ran.report.generated == 0


# --------------------------------------------------------------- select and score

SELECT = '''
def main({params}) -> {result}:
    raw:
        "Q:"
        x = select({options})
        "|"
        y = gen(max_tokens=1, heal=False)
    return x
'''


def select(tmp_path, options, result="str", params="", script=None, *args):
    return run(SELECT.format(options=options, result=result, params=params), tmp_path, *args, script=script)


def test_select_chooses_among_strings_or_a_literal_type(tmp_path):
    """`select(options)` chooses among strings or a literal type by log-probability."""
    script = letters({"q": 5.0, "z": 6.0, "2": 4.0, "1": 3.0, "t": 2.0, "f": 7.0})
    assert select(tmp_path, '["q", "z"]', script=script).value == "z"
    assert select(tmp_path, "xs", "str", "xs: list[str]", script, ["q", "x"]).value == "q"
    assert select(tmp_path, '"q" | "x"', '"q" | "x"', script=script).value == "q"
    assert select(tmp_path, "1 | 2", "1 | 2", script=script).value == 2
    assert select(tmp_path, "1..3", "1..3", script=script).value == 2
    assert select(tmp_path, "True | False", "bool", script=script).value in (True, False)


def test_what_is_chosen_is_committed_and_counts_as_generated(tmp_path):
    """The chosen option's tokens are committed and count as generated. (§8)"""
    ran = select(tmp_path, '["qz", "x"]', script=letters({"q": 5.0, "z": 6.0}))
    assert ran.prompts[0] == "Q:qz|" and ran.report.generated == 2 + 1 and ran.report.calls == 2


@pytest.mark.parametrize("method, best", [
    ("token_length_normalized", "qqq"), ("greedy_token", "x"), ("unconditional_likelihood_normalized", "z"),
])
def test_methods(tmp_path, method, best):
    """Methods `token_length_normalized`, `greedy_token`, `unconditional_likelihood_normalized`."""
    def script(ids):
        text = TOKENS.decode_bytes(ids).decode()
        if not text.startswith("Q:"):
            return {ord("q"): 12.0, ord("x"): 12.0}  # after the begin token alone, `z` is unlikely
        return {ord("q"): 12.0} if text.endswith("q") else {ord("x"): 9.0, ord("q"): 8.5, ord("z"): 7.0}

    assert select(tmp_path, f'["x", "qqq", "z"], method="{method}"', script=script).value == best


def test_ties_take_the_first_option(tmp_path):
    """Ties: the first option. (§8)"""
    for method in ("token_length_normalized", "greedy_token", "unconditional_likelihood_normalized"):
        for first, second in ("qz", "zq"):
            assert select(tmp_path, f'["{first}", "{second}"], method="{method}"', script=lambda ids: {}).value == first


def test_score_gives_sums_and_appends_nothing(tmp_path):
    """`score(options)` returns the options with their log-probabilities and appends nothing; `score` gives sums. (§8)"""
    text = 'def main() -> list[Scored]:\n    raw:\n        "Q:"\n        s = score(["q", "qq"])\n        "|"\n        x = gen(max_tokens=1, heal=False)\n    return s\n'
    ran = run(text, tmp_path, script=letters({"q": 5.0}))
    one = 5.0 - math.log(math.exp(5.0) + TOKENS.size - 1)
    assert [s.get("option") for s in ran.value] == ["q", "qq"]
    assert [s.get("logprob") for s in ran.value] == pytest.approx([one, 2 * one], abs=1e-4)
    assert ran.prompts == ["Q:|"]


@pytest.mark.parametrize("options, code", [('["a", "a"]', "E0604"), ("[]", "E0604"), ('["a", ""]', "E0604"), ("int", "E0604")])
def test_empty_or_duplicate_options_are_errors(tmp_path, options, code):
    """Empty or duplicate options are errors. (§8)"""
    for call in ("select", "score"):
        assert (code, 2) in mistakes(f"def main():\n    raw: x = {call}({options})\n", tmp_path)


@pytest.mark.parametrize("options", [[], ["a", "a"], ["a", ""]])
def test_empty_or_duplicate_options_of_a_run(tmp_path, options):
    """… and where only the run knows them."""
    ran = select(tmp_path, "xs", "str", "xs: list[str]", None, options)
    assert ran.error.kind == "value" and ran.error.diagnostics[0].span.line == 4


# ------------------------------------------------------------------------ image


@pytest.mark.parametrize("body", ['user: "See ${image(p)}."', "user: image(p)", 'user:\n        "See"\n        image(p)'])
def test_image_is_refused_where_the_model_has_no_eyes(tmp_path, body):
    """`image(value)` in a `user:` block puts a picture there, where the model has eyes."""
    text = f"def main(p: str) -> str:\n    {body}\n    assistant: x = gen()\n    return x\n"
    assert mistakes(text, tmp_path) == []
    with pytest.raises(LmcError) as caught:
        run(text, tmp_path, "cat.png")
    (found,) = caught.value.diagnostics
    assert found.code == "E0809" and found.span.line in (2, 4) and "eyes" in found.message


@pytest.mark.parametrize("body, code", [
    ("system: image(p)", "E0402"), ("assistant: image(p)", "E0402"), ("image(p)", "E0402"), ("user: x = len([image(p)])", "E0403"),
    ("user: image(3)", "E0301"), ("user: image()", "E0305"), ('user: "${x := image(p)}"', "E0403"),
])
def test_image_elsewhere(tmp_path, body, code):
    """… in a `user:` block …"""
    assert code in [c for c, _ in mistakes(f"def main(p: str):\n    {body}\n", tmp_path)]


def test_constraints_do_not_change_what_masking_gives(tmp_path):
    """A constraint never changes what plain token masking would have produced."""
    # Where the mask leaves two tokens, the model's own order decides, not a canonical tokenisation.
    ta = TOKENS.encode("true")
    assert len(ta) == 1
    ran = run('def main() -> bool:\n    raw: "q ${x := gen(bool, heal=False)}"\n    return x\n', tmp_path,
              script=lambda ids: {ord("t"): 9.0, ta[0]: 8.0})
    assert ran.value is True and ran.report.generated == 4, "byte by byte, as the model prefers"


def test_prompt_of_the_first_generation(tmp_path):
    """A whole hole generates where it stands."""
    assert prompt('def main():\n    raw: "a${gen(max_tokens=1, heal=False)}b"\n', tmp_path) == "a"


@pytest.mark.parametrize("level", [0, 2])
def test_generations_are_never_merged_dropped_or_repeated(tmp_path, level):
    """`gen` is an effect only in that it is never merged, dropped while its context or value is used, or repeated. (§8)"""
    text = '''
    def ask(q: str) -> int:
        user: "${q}"
        assistant: x = gen(int)
        return x

    def main() -> int:
        a = ask("same")
        b = ask("same")
        user: "u"
        assistant: unread = gen(max_tokens=2)
        user: "v"
        assistant: c = gen(int)
        return a + b + c
    '''
    ran = run(text, tmp_path, level=level)
    assert ran.report.calls == 4 and [p.rsplit("user\n", 1)[1][0] for p in ran.prompts].count("s") == 2
