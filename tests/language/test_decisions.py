"""LANGUAGE.md, sentences that are about more than one construct: what a program cannot touch, seeds, the end of a context, what
branches and options share, what follows a constrained generation.  At every level where a pass could change it."""

import io
import os
import socket
import subprocess

import pytest

import lmc
from lmc.compiler import compile_file
from lmc.parser.check import check
from tests.language.programs import TOKENS, mistakes, run, value, written
from tests.language.test_running import command, lmc_run
from tests.runtime.programs import dry_session
from tests.runtime.programs import run as run_machine

LEVELS = pytest.mark.parametrize("level", [0, 1, 2])


# --------------------------------------------------------------- the outside


def test_a_program_without_extern_touches_nothing(tmp_path, monkeypatch):
    """A program without `extern` cannot touch the disk, the network or Python."""
    text = '''
    def main(x: str) -> list[str]:
        user: "${x}"
        assistant: a = gen(max_tokens=4)
        print(a)
        y = input("? ")
        return [x, y, x.format_map, json([x]), bullets(findall(r"[a-z]+", x))]
    '''
    assert [c for c, _ in mistakes(text, tmp_path)] == ["E0318"], "an attribute is a field, never Python's"
    program = compile_file(str(written(text.replace("x.format_map, ", ""), tmp_path))).program
    session = dry_session()

    def touched(*args, **options):
        raise AssertionError(f"a program reached outside: {args}")

    for module, name in ((io, "open"), (os, "open"), (os, "system"), (socket.socket, "connect"), (subprocess, "Popen")):
        monkeypatch.setattr(module, name, touched)
    monkeypatch.setattr("builtins.open", touched)
    ended = run_machine(program, session, "main", "__import__('os').system('ls') ${x} /etc/passwd", ask=lambda prompt: "http://x/")
    monkeypatch.undo()
    assert ended.error is None and ended.value[1] == "http://x/"


@pytest.mark.parametrize("name", ["open", "eval", "exec", "__import__", "getattr", "globals", "os", "read_file", "fetch"])
def test_what_reaches_outside_has_no_name(tmp_path, name):
    """… there is nothing to do it with."""
    assert mistakes(f'def main() -> str:\n    return str({name}("x"))\n', tmp_path) == [("E0201", 2)]


def test_input_in_tests_is_an_error(tmp_path):
    """`input` …; in batches, servers and tests it is an error unless the host passes a function."""
    text = 'def main() -> str:\n    return input("> ")\n\ntest "asks":\n    assert main() == "x"\n'
    done = command("test", tmp_path, text, input="x\n")
    assert done.exit_code == 4 and "E0834" in done.stdout + done.stderr
    with lmc.load(written(text, tmp_path), dry=True, input=lambda prompt: "from the host") as m:
        assert m.main.batch([{}]) == ["from the host"]


@pytest.mark.parametrize("flags", [["--max-calls", "2"], ["--max-tokens", "3"]])
def test_budgets_are_flags(tmp_path, flags):
    """Loops and recursion run under budgets (`--max-calls`, `--max-tokens`, default finite)."""
    text = 'def main() -> int:\n    for i in range(9):\n        raw: "q ${gen(max_tokens=2, min_tokens=2)}"\n    return 1\n'
    assert lmc_run(tmp_path, text).exit_code == 0
    over = lmc_run(tmp_path, text, *flags)
    assert over.exit_code != 0 and "E0838" in over.stderr and flags[0] in over.stderr and ":2:5" in over.stderr


def test_int_is_signed_64_bit(tmp_path):
    """`int` is signed 64-bit. (§8)"""
    most = 2**63 - 1
    text = f'def main(n: int) -> int:\n    return n + 1\n\ndef low() -> int:\n    return -{most} - 1\n\ndef read(s: str) -> int:\n    return int(s)\n'
    assert value(text, tmp_path, most - 1) == most and value(text, tmp_path, name="low") == -most - 1
    error = run(text, tmp_path, most).error
    assert error.kind == "value" and error.diagnostics[0].span.line == 2 and "64-bit" in str(error)
    assert run(text, tmp_path, str(most + 1), name="read").error.diagnostics[0].span.line == 8
    assert len(mistakes(f"def main() -> int:\n    return {most + 1}\n", tmp_path)) == 1


# -------------------------------------------------------------------- seeds

DRAWS = '''
def ask(q: str) -> str:
    user: "q"
    assistant: a = gen(max_tokens=8, temperature=1.0)
    return a

def main() -> list[str]:
    out = [ask("calls"), ask("calls")]
    for i in range(2):
        x = ask("rounds")
        out += [x]
    out += [ask("elements") for i in range(2)]
    fork i in range(2):
        user: "q"
        assistant: a = gen(max_tokens=8, temperature=1.0)
        b = ask("branches")
    join a, b
    out += a + b
    user: "q"
    assistant: first = gen(max_tokens=8, temperature=1.0)
    return out + [first]
'''


def test_seeds_hang_on_the_way_to_the_generation_at_every_level(tmp_path):
    """The seed is hash(program seed, call path, ordinal of the `gen` in its function, loop, branch and comprehension indexes, row id),
    fixed before any pass. (§8)"""
    drawn = [value(DRAWS, tmp_path, seed=7, level=level) for level in (0, 1, 2)]
    assert len(set(drawn)) == 1, "no pass changes a seed"
    # One prompt, eleven ways to it: each draws for itself.
    assert len(drawn[0]) == 11 and len(set(drawn[0])) == 11


def test_seeds_differ_between_rows(tmp_path):
    """… row id."""
    with lmc.load(written(DRAWS, tmp_path), dry=True, seed=3) as m:
        first = m.ask.batch([{"q": "a"}, {"q": "a"}])
        assert first[0] != first[1] and m.ask.batch([{"q": "a"}, {"q": "a"}]) == first


# ----------------------------------------------------------- the end of a context


def test_a_free_gen_stops_at_the_contexts_end_and_a_typed_one_raises(tmp_path):
    """A free `gen` stops at the context's end with finish `length`, a typed one raises. (§8)"""
    text = '''
    def main() -> str:
        raw: "q ${x := gen(max_tokens=99, min_tokens=90, heal=False)}"
        return x

    def typed() -> str:
        raw: "q ${x := gen(str(regex=r"[a-z]{90}"), max_tokens=99, heal=False)}"
        return x
    '''
    program = compile_file(str(written(text, tmp_path))).program
    ended = run_machine(program, dry_session(max_positions=24), "main")
    assert ended.error is None and 0 < ended.report.generated <= 24 and any("context" in w for w in ended.report.warnings)
    ended = run_machine(program, dry_session(max_positions=24), "typed")
    assert ended.error.kind in ("truncated", "context_length") and ended.error.diagnostics[0].span.line == 6


# ------------------------------------------------------------------ what is shared


@LEVELS
def test_branches_share_their_longest_common_token_prefix(tmp_path, level):
    """A segment may run through a fork, and then each branch tokenises its own whole segment and what the branches share is their
    longest common token prefix."""
    text = '''
    def main() -> list[str]:
        raw: "A long beginning that all of the branches have, and then the wo"
        fork end in ["rld", "men", "nder"]:
            raw:
                "${end}"
                x = gen(max_tokens=1, heal=False)
        join x as xs
        return xs
    '''
    ran = run(text, tmp_path, level=level)
    prompts = [TOKENS.encode("A long beginning that all of the branches have, and then the wo" + end) for end in ("rld", "men", "nder")]
    assert sorted(r.prompt for r in ran.requests) == sorted(map(tuple, prompts))
    common = len(os.path.commonprefix(prompts))
    assert ran.report.computed + ran.report.cached == sum(map(len, prompts))
    assert ran.report.computed <= common + sum(len(p) - common for p in prompts), "computed once"


@LEVELS
def test_options_are_scored_in_their_segment_over_one_prefix(tmp_path, level):
    """`select` scores token ids under each option's own prefix, all options in one batched pass over a shared prefix.  Each option is
    encoded together with its segment; the chosen option's tokens are committed. (§4, §8)"""
    before = "A long text before the choice, and then the wo"
    text = f'''
    def main() -> str:
        raw:
            "{before}"
            x = select(["rld", "men"])
            "|"
            y = gen(max_tokens=1, heal=False)
        return x
    '''
    ran = run(text, tmp_path, level=level)
    # The tokens of the whole, not of its two halves.
    assert ran.requests[-1].prompt == (*TOKENS.encode(before + ran.value), *TOKENS.encode("|"))
    assert ran.report.computed < 2 * len(TOKENS.encode(before)), "the prefix is computed once for both options"


# ---------------------------------------------------------- what follows a generation


@LEVELS
def test_a_constrained_gen_ends_before_what_follows_at_every_level(tmp_path, level):
    """This is the meaning at every optimisation level; template fusion only keeps one request open and never masks literals. (§8)"""
    text = '''
    def main() -> list[int]:
        raw:
            "q "
            x = gen(int, heal=False)
            ", and "
            y = gen(int, heal=False)
            "."
        return [x, y]
    '''
    comma, stop = TOKENS.encode(", ")[0], TOKENS.encode(".")[0]

    def script(ids):
        spelled = TOKENS.decode_bytes(ids)
        if spelled.endswith((b"q ", b"and ")):
            return {ord("4"): 5.0, comma: 9.0}
        return {comma: 9.0, stop: 8.0, ord("5"): 7.0}

    ran = run(text, tmp_path, script=script, level=level)
    assert ran.value == (4, 4) and ran.report.calls == 2
    assert ran.prompts[1] == "q 4, and " and ran.requests[1].prompt[-len(TOKENS.encode(", and ")):] == tuple(TOKENS.encode(", and "))


# ----------------------------------------------------------------------- warnings

QUIET = '''
type Note:
    score: 1..5
    reason: str

def main(n: int) -> str:
    user: "Judge it: give its score and your reason. Then go on."
    assistant:
        "Note: "
        note = gen(Note, max_tokens=90)
        " and ${said := gen(max_tokens=3)}"
    for i in range(n):
        print("again")
    while True:
        line = input("> ")
        if line == "":
            break
        user: "${line}"
        assistant: unread = gen(max_tokens=3)
    return note.reason
'''


@pytest.mark.parametrize("change, code", [
    (("", ""), None),
    (("give its score and your reason", "be fair"), "W104"), (("max_tokens=90)", "max_tokens=90, heal=False)"), "W101"),
    (('input("> ")', "ask()"), "W106"), (("for i in range(n)", "k = 1\n    for i in range(n)"), "W108"),
])
def test_what_is_warned_of(tmp_path, change, code):
    """Trailing space only where healing is off; field names in the text count as mentioning a schema; loop variables and names bound in
    a hole or by `gen` need not be read; a loop with `input` is bounded by its user. (§8)"""
    text = QUIET.replace(*change) if change[0] else QUIET
    if "ask()" in text:
        text += '\ndef ask() -> str:\n    raw: "q ${a := gen(max_tokens=1)}"\n    return a\n'
    found = [d.code for d in check(str(written(text, tmp_path))).diagnostics]
    assert found == ([code] if code else [])
