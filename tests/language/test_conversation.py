"""LANGUAGE.md §3, sentence by sentence: contexts, turns, parts, `here` and `resume`, segments."""

import pytest

from tests.language.programs import TOKENS, mistakes, prompt, run, said, value

U, A, END = "<|im_start|>user\n", "<|im_start|>assistant\n", "<|im_end|>\n"


def test_each_call_starts_an_empty_context_that_is_gone_at_return(tmp_path):
    """Each call of a `def` starts an empty context; role blocks append to it; it is gone at return."""
    ran = run('''
    def ask(q: str) -> str:
        user: "Q ${q}"
        assistant: a = gen(max_tokens=1, stop="z")
        return a

    def main() -> str:
        user: "Outer."
        a = ask("one")
        b = ask("two ${len(a)}")
        assistant: c = gen(max_tokens=1)
        return b + c
    ''', tmp_path)
    assert sorted(ran.prompts) == sorted([f"{U}Outer.{END}{A}", f"{U}Q one{END}{A}", ran.prompts[-1]])
    assert ran.prompts[-1].startswith(f"{U}Q two")


def test_a_def_without_roles_is_an_ordinary_function(tmp_path):
    """A `def` that never opens a role block is an ordinary function."""
    ran = run("def double(x: int) -> int:\n    return x * 2\n\ndef main() -> int:\n    return double(double(3))\n", tmp_path)
    assert ran.value == 12 and ran.requests == []


def test_roles_hold_chat_turns_and_raw_plain_text(tmp_path):
    """`system:` `user:` `assistant:` hold chat turns, `raw:` holds plain text with no template. `user: "…"` is the one-line form."""
    chat = 'def main():\n    system: "S"\n    user: "U"\n    assistant: "A"\n    user: "V"\n    assistant: gen()\n'
    assert prompt(chat, tmp_path) == f"<|im_start|>system\nS{END}{U}U{END}{A}A{END}{U}V{END}{A}"
    assert prompt('def main():\n    raw:\n        "plain"\n        gen(heal=False)\n', tmp_path) == "plain"


@pytest.mark.parametrize("body", ['"text"', 'if 1 < 2:\n        "text"', "gen()", 'x = gen()\n    "${x}"'])
def test_text_and_generation_are_legal_only_inside_a_block(tmp_path, body):
    """A string standing alone as a statement is text, and is legal only inside one of these blocks."""
    assert mistakes(f"def main():\n    pass\n    {body}\n", tmp_path) != []


def test_neighbouring_blocks_of_a_role_are_one_turn(tmp_path):
    """Neighbouring blocks of the same role are one turn; nothing is put between them."""
    assert prompt('def main():\n    user: "a"\n    user: "b"\n    user:\n        "c"\n    assistant: gen()\n', tmp_path) == f"{U}abc{END}{A}"
    ran = run('def main() -> str:\n    user: "a"\n    assistant: "x"\n    assistant: y = gen(max_tokens=1, heal=False)\n    return y\n', tmp_path)
    assert ran.prompts == [f"{U}a{END}{A}x"]


def test_a_turn_is_closed_only_when_another_role_begins(tmp_path):
    """Return, `fork`, `join`, `here` and `resume` close nothing, and `here` captures an open turn."""
    text = '''
    part more():
        user: "b"
        return

    def main() -> str:
        user: "a"
        more()
        fork i in [1]:
            user: "(${i})"
        join here as states
        open = here
        user: "lost"
        resume open
        user: "c"
        resume states[0]
        user: "d"
        assistant: x = gen(max_tokens=1)
        return x
    '''
    assert prompt(text, tmp_path) == f"{U}ab(1)d{END}{A}"


def test_a_part_is_inlined_and_may_return_a_value(tmp_path):
    """`part name(args):` is a fragment inlined into the caller's context (no recursion; it may `return` a value)."""
    text = '''
    part shot(q: str, a: str) -> int:
        "Q: ${q}\\nA: ${a}\\n"
        return len(q)

    part ask(q: str) -> str:
        user: "${q}"
        assistant: a = gen(stop="!")
        return a

    def main() -> str:
        user:
            "Examples.\\n"
            n = shot("one", "1")
            n += shot("three", "3")
            "(${n})"
        first = ask("?")
        second = ask("And ${first}?")
        return second
    '''
    ran = run(text, tmp_path, answer=lambda before: "yes!" if before.endswith("assistant\n") else "")
    assert ran.value == "yes"
    shown = f"{U}Examples.\nQ: one\nA: 1\nQ: three\nA: 3\n(8)?{END}{A}"
    assert ran.prompts == [shown, f"{shown}yes{END}{U}And yes?{END}{A}"]


def test_a_part_cannot_call_itself(tmp_path):
    """… (no recursion …)."""
    assert [c for c, _ in mistakes('part a():\n    user: "x"\n    b()\n\npart b():\n    a()\n\ndef main():\n    a()\n    assistant: gen()\n',
                                   tmp_path)] == ["E0409"]


def test_a_text_part_writes_into_the_role_it_is_called_in(tmp_path):
    """A part is either a turn part (has role blocks) or a text part (called inside a block). (§8)"""
    text = '''
    part name():
        "N"

    def main() -> str:
        system: name()
        user: name()
        assistant:
            name()
            x = gen(max_tokens=1, heal=False)
        return x
    '''
    assert prompt(text, tmp_path) == f"<|im_start|>system\nN{END}{U}N{END}{A}N"
    assert mistakes('part name():\n    "N"\n\ndef main():\n    name()\n', tmp_path) == [("E0408", 5)]
    assert mistakes('part turn():\n    user: "N"\n\ndef main():\n    user: turn()\n', tmp_path) == [("E0408", 5)]


STATES = '''
def pick(cs: list[context], i: int) -> context:
    return cs[i]

def grow(c: context, text: str) -> context:
    resume c
    user: "${text}"
    return here

def main(i: int) -> str:
    user: "start"
    states = [here]
    user: " a"
    states += [here]
    states += [grow(states[0], " b")]
    table = {"last": states[-1]}
    resume pick(states, i)
    same = states[0] == states[0] and states[0] != states[1] and table["last"] == states[2] and states[1] in states
    user: " ${same}"
    assistant: x = gen(max_tokens=1)
    return x
'''


@pytest.mark.parametrize("i, text", [(0, "start true"), (1, "start a true"), (2, "start b true")])
def test_contexts_are_values(tmp_path, i, text):
    """`here` is the current context as a value; `resume ctx` continues from it. Contexts can be kept in lists, passed and returned."""
    assert prompt(STATES, tmp_path, i) == f"{U}{text}{END}{A}"


def test_contexts_compare_by_identity(tmp_path):
    """Contexts compare by identity."""
    text = '''
    def main() -> list[bool]:
        user: "x"
        a = here
        b = here
        resume a
        user: "y"
        c = here
        resume a
        user: "y"
        d = here
        return [a == b, a != b, c == d, a == c]
    '''
    for level in (0, 1):
        assert value(text, tmp_path, level=level) == (True, False, False, False)


@pytest.mark.parametrize("show", ['user: "${here}"', "print(here)", "x = json(here)", "x = str(here)", "x = bullets([here])"])
def test_contexts_cannot_be_printed(tmp_path, show):
    """… and cannot be printed."""
    assert [line for _, line in mistakes(f'def main():\n    user: "x"\n    {show}\n', tmp_path)] == [3]


@pytest.mark.parametrize("spelling", [
    '"Hello wor"\n        "ld and more"', '"Hello world and more"', '"Hello ${word}"\n        " and more"',
    'for w in ["Hel", "lo world", " and more"]:\n            "${w}"', '"Hello w"\n        if word != "":\n            "orld"\n        " and more"',
])
@pytest.mark.parametrize("level", [0, 2])
def test_a_segment_is_tokenised_as_a_whole(tmp_path, spelling, level):
    """All ordinary text between two control tokens or generated pieces is one segment and is tokenised as a whole."""
    text = f'def main() -> str:\n    word = "world"\n    user:\n        {spelling}\n    assistant: x = gen(max_tokens=1)\n    return x\n'
    ran = run(text, tmp_path, level=level)
    expected = TOKENS.encode("user\nHello world and more")
    assert ran.requests[0].prompt[1:len(expected) + 1] == tuple(expected)


def test_a_segment_runs_through_a_fork(tmp_path):
    """A segment may run through a fork, and then each branch tokenises its own whole segment."""
    text = '''
    def main() -> list[str]:
        raw: "The wo"
        fork end in ["rld", "men", ""]:
            raw:
                "${end}"
                x = gen(max_tokens=1, heal=False)
        join x as xs
        return xs
    '''
    ran = run(text, tmp_path)
    assert [r.prompt for r in ran.requests] == [tuple(TOKENS.encode("The wo" + end)) for end in ("rld", "men", "")]


def test_generated_tokens_stay_as_they_were_generated(tmp_path):
    """Tokens that were generated stay as they were generated. Control tokens come only from the template."""
    text = 'def main() -> str:\n    raw:\n        "a "\n        x = gen(stop="!")\n        "end"\n        y = gen(max_tokens=1, heal=False)\n    return x\n'
    # Byte by byte, though the tokenizer has a piece for `there`.
    ran = run(text, tmp_path, answer=lambda before: "there!" if before == "a " else "")
    assert ran.requests[1].prompt[2:7] == tuple(b"there") and ran.value == "there"


def test_end_tokens_are_never_committed(tmp_path):
    """End-of-turn and end-of-text tokens that the model emits are never committed; the template closes the turn."""
    text = 'def main():\n    user: "a"\n    assistant: gen()\n    user: "b"\n    assistant: gen()\n'
    ran = run(text, tmp_path, answer=lambda before: "ok" if before.endswith("assistant\n") else "")
    assert ran.prompts[1] == f"{U}a{END}{A}ok{END}{U}b{END}{A}"


def test_a_stop_that_ends_inside_a_token(tmp_path):
    """If a stop string ends inside a token, the whole tokens before it stay, and the kept bytes of the cut token begin the next segment."""
    token = TOKENS.encode(". ")[0]
    assert TOKENS.token_bytes[token] == b". "
    text = 'def main() -> str:\n    raw:\n        "q"\n        x = gen(stop=" ")\n        " next"\n        y = gen(max_tokens=1, heal=False)\n    return x\n'
    ran = run(text, tmp_path, script=lambda ids: {token: 9.0})
    assert ran.value == "." and ran.prompts[1] == "q. next"


def test_raw_and_chat_do_not_mix_and_system_is_first(tmp_path):
    """`raw:` and chat turns do not mix in one context; `system:` comes first."""
    assert [c for c, _ in mistakes('def main():\n    user: "a"\n    raw: "b"\n', tmp_path)] == ["E0405"]
    assert [c for c, _ in mistakes('def main():\n    raw: "b"\n    user: "a"\n', tmp_path)] == ["E0405"]
    assert [c for c, _ in mistakes('def main():\n    user: "b"\n    system: "a"\n', tmp_path)] == ["E0406"]
    late = 'def main(c: context):\n    resume c\n    system: "a"\n    assistant: gen()\n\ndef start() -> context:\n    user: "b"\n    return here\n'
    both = late + "\ndef both():\n    main(start())\n"
    assert run(both, tmp_path, name="both").error.diagnostics[0].code == "E0840", "what only the run can know"


def test_a_block_without_text_changes_nothing(tmp_path):
    """Any statement but another role block may stand in a role block. (§8)"""
    text = '''
    def main(n: int) -> str:
        user:
            k = 0
            while k < n:
                k += 1
                if k == 2:
                    continue
                "${k} "
            for x in ["a", "b"]:
                "${x}"
            match k:
                case 0:
                    pass
                case _:
                    "."
            try:
                fail("no")
            except Error as e:
                "(${e.message})"
        assistant: x = gen(max_tokens=1)
        return x
    '''
    assert prompt(text, tmp_path, 3) == f"{U}1 3 ab.(no){END}{A}"
    assert prompt(text, tmp_path, 0) == f"{U}ab(no){END}{A}"
    assert "E0404" in [c for c, _ in mistakes('def main():\n    user:\n        assistant: "a"\n', tmp_path)]


def test_part_and_role_of_a_generation(tmp_path):
    """`gen` is legal in `assistant:` and `raw:`, through parts too. (§4)"""
    text = 'part draw() -> str:\n    x = gen(max_tokens=2)\n    return x\n\ndef main() -> str:\n    {}:\n        "x "\n        y = draw()\n    return y\n'
    assert run(text.format("raw"), tmp_path).error is None
    assert [c for c, _ in mistakes(text.format("user"), tmp_path)] == ["E0402"] and "`draw` generates" in said(text.format("user"), tmp_path)
