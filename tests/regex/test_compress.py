"""Forced runs: no accepting state inside, every run is what the automaton does, and what is printed of them."""

from hypothesis import given, settings
from hypothesis import strategies as st

from lmc.backend.automaton_text import draw_automata, format_automata, shown_bytes
from lmc.compiler import compile_file
from lmc.regex.build import compile_regex
from lmc.regex.compress import compress
from lmc.regex.dfa import START

regexes = st.recursive(st.sampled_from(["a", "b", "ab", "é", "😀", "[ab]", "."]), lambda inner: st.one_of(
    st.tuples(inner, inner).map("".join), st.tuples(inner, inner).map(lambda p: f"(?:{p[0]}|{p[1]})"),
    inner.map(lambda r: f"(?:{r})?"), inner.map(lambda r: f"(?:{r})*")), max_leaves=8)


@settings(max_examples=150, deadline=None)
@given(regexes)
def test_runs_are_what_the_automaton_does(pattern):
    dfa = compile_regex(pattern)
    small = compress(dfa)
    rows = dfa.table[:, dfa.byte_class]
    for run in small.runs:
        state = run.start
        for byte in run.text:
            assert not dfa.accepting[state] and (rows[state] != 0).sum() == 1
            state = dfa.step(state, bytes([byte]))
        assert state == run.end
        assert dfa.accepting[state] or (rows[state] != 0).sum() != 1
    in_runs = {state for run in small.runs for state in [run.start]}
    assert all(small.forced[state] for state in in_runs)
    assert small.states <= dfa.states - START
    assert dfa.matches(small.shortest)
    assert 0 <= small.forced_bytes(small.shortest) <= len(small.shortest)


def test_an_accepting_state_ends_a_run():
    small = compress(compile_regex("ab(cd)?"))
    assert [run.text for run in small.runs] == [b"ab", b"d"]  # `c` may be left out
    assert compress(compile_regex("a*")).runs == ()


def test_a_run_may_part_a_character():
    runs = compress(compile_regex("霍格|霍栀")).runs
    # The two differ in their last byte only.
    assert [run.text for run in runs] == ["霍格".encode()[:-1]]
    assert shown_bytes(b"\xe6\xa0") == '"\\xe6\\xa0"' and shown_bytes('a"\n'.encode()) == '"a\\"\\n"'


def test_compression_in_numbers():
    small = compress(compile_regex("ab(c|d)ef"))
    assert [(run.start, run.text) for run in small.runs] == [(1, b"ab"), (4, b"ef")]
    assert (small.dfa.states - START, small.states) == (6, 4)
    assert small.forced_bytes(b"abcef") == 4


PROGRAM = '''def f() -> str:
    user: "A word."
    assistant: x = gen(regex=r"ab(c|d)ef")
    return x
'''


def test_what_is_printed(tmp_path):
    path = tmp_path / "f.lmp"
    path.write_text(PROGRAM)
    program = compile_file(str(path)).program
    assert format_automata(program) == (
        "constraint 0: of ab(c|d)ef\n  states 6, compressed 4; byte classes 6; accepting 1\n"
        "  forced 4 of 6 states (67%), 4 of 5 bytes of the shortest text (80%)\n"
        '  run 1 --"ab"--> 3\n  run 4 --"ef"--> 6\n')
    drawn = draw_automata(program)
    assert drawn.startswith("digraph constraints {") and 'c0s1 -> c0s3 [label="\\"ab\\"", penwidth=2];' in drawn
    assert 'c0s3 -> c0s4 [label="c-d"];' in drawn and "c0s6 [shape=doublecircle];" in drawn
