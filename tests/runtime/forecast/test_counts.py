"""What is counted of a plan: tokens that the cache will find, memory, bounds of automata, and where sharing ends."""

import pytest

from lmc.diagnostics import LmcError, Span
from lmc.regex.build import compile_regex
from lmc.runtime.forecast.bounds import forced_share, longest_text
from lmc.runtime.forecast.forecast import Foreseer, foresee
from lmc.runtime.forecast.places import Places
from lmc.runtime.forecast.sharing import PromptTree, sharing_end
from lmc.runtime.instance import RunOptions
from tests.runtime.forecast.runs import TARGET, TOKENS, dry_template, foreseen, session_on, unknown_arguments
from tests.runtime.programs import program_of, run

FAN = '''
def fan(text: str, n: int = 5) -> list[str]:
    user: "Read this: ${text}"
    fork i in range(n):
        user: " Then answer number ${i}."
        assistant: a = gen(max_tokens=7)
    join a as all
    return all

def choose(texts: list[str]) -> list[str]:
    return [pick(t) for t in texts]

def pick(text: str) -> str:
    raw: "One of three. ${text} is ${k := select(["red", "green", "blue"])}"
    return k
'''


@pytest.mark.parametrize("name, args", [("fan", ("a long text", 5)), ("fan", ("x", 1)), ("choose", (["a", "a b", "a"],))])
def test_saved_tokens_are_those_that_the_cache_finds(tmp_path, name, args):
    program = program_of(FAN, tmp_path, level=0)
    forecast = foreseen(program, name, *args)
    report = run(program, session_on(TOKENS, dry_template(TOKENS)), name, *args).report
    assert all(call.exact for call in forecast.calls)
    assert (forecast.saved_tokens, forecast.prompt_tokens) == (report.cached, report.cached + report.computed)


def test_memory_is_the_prefix_once_and_each_branch(tmp_path):
    forecast = foreseen(program_of(FAN, tmp_path), "fan", "a long text", 5)
    first, second = forecast.calls[:2]
    shared = second.shared
    assert 0 < shared < second.tokens and forecast.peak.at_once == 5 and forecast.in_sequence == 1 and not forecast.peak.open
    assert forecast.peak.tokens == shared + sum(c.tokens - shared + 7 for c in forecast.calls)
    assert first.shared == 0 and {c.shared for c in forecast.calls[1:]} == {shared}


def test_sharing_ends_at_the_hole_that_differs(tmp_path):
    program = program_of(FAN, tmp_path)
    (fork,) = foreseen(program, "fan", "text").root.members
    end = sharing_end(fork)
    assert end.source == "${i}" and (end.span.line, end.span.column) == (4, 36) and not end.open
    assert sharing_end(foreseen(program, "fan", "text", 1).root.members[0]) is None
    (fork,) = unknown_arguments(program, "fan").root.members
    assert fork.twin is not None and sharing_end(fork).source == "${i}" and sharing_end(fork).open


def test_a_tree_of_prompts_tells_what_was_there():
    tree = PromptTree()
    assert [tree.insert(list(text.encode())) for text in ("abcde", "abxy", "abcde", "abc", "abcdef", "b", "abxyz")] == [
        0, 2, 5, 3, 5, 0, 4]


@pytest.mark.parametrize("regex, longest, forced", [
    ("yes|no", 3, 0.5), ("[1-5]", 1, 0.0), ("ab*", None, 1.0), ('\\{"a": [1-5]\\}', 8, 7 / 8), ("a?", 1, 0.0)])
def test_bounds_of_automata(regex, longest, forced):
    automaton = compile_regex(regex)
    assert longest_text(automaton) == longest and forced_share(automaton) == pytest.approx(forced)


def test_names_in_strings_are_found_only_where_their_number_is_right():
    places = Places({"f.lmp": 'user: "a ${x} b ${gen(stop="c")}\n${ y }"  # ${z}\nfork d in ds:  # each'})
    string = Span("f.lmp", 1, 7, 2, 8)
    assert [(str(span), text) for span, text in places.names(string, 2)] == [("f.lmp:1:10", "${x}"), ("f.lmp:2:1", "${ y }")]
    assert places.names(string, 3) is None and places.names(None, 0) is None
    assert places.head(Span("f.lmp", 3, 1, 3, 14)) == "fork d in ds" and places.text(Span("gone.lmp", 1, 1, 1, 2)) == ""


def test_a_model_without_a_template_is_refused_as_by_a_run(tmp_path):
    program = program_of(FAN, tmp_path)
    with pytest.raises(LmcError) as refused:
        foresee(program, Foreseer(TOKENS, None), "fan", ("x", 2), RunOptions(), TARGET)
    assert [d.code for d in refused.value.diagnostics] == ["E0808"]
