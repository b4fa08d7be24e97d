"""Grammars: masks, states one can go back to, healing, schemas that are recursive, what is refused."""

import json

import pytest

from lmc.backend.serialize import read_program, write_program
from lmc.compiler import compile_file
from lmc.diagnostics import CompileError, LmcError
from lmc.regex import grammar as grammar_file
from lmc.regex.dfa import DEAD, START
from lmc.regex.grammar import LARK, SCHEMA, Grammar, GrammarError, check_grammar
from lmc.regex.schema import schema_constraint
from lmc.regex.schema_keywords import SchemaError
from lmc.runtime.dry import DryModel
from lmc.runtime.engine import Engine
from lmc.runtime.grammar import GrammarConstraint
from lmc.runtime.request import GenerateRequest, Sampling
from tests.runtime.test_jump import finish
from tests.runtime.words import Words

TOKENS = [b"", b"(", b"((", b"x", b")", b"))", b"x)", b"y", b" (", b" "]
NESTED = Grammar(LARK, 'start: "(" start ")" | "x"')


def test_masks_hold_every_token_that_fits():
    constraint = GrammarConstraint(NESTED, TOKENS)
    assert constraint.allowed(START).tolist() == [1, 2, 3]
    state = constraint.advance(START, b"((")
    assert constraint.allowed(state).tolist() == [1, 2, 3, 6] and not constraint.accepting(state)
    inner = constraint.advance(state, b"x")
    assert constraint.allowed(inner).tolist() == [4, 5]
    end = constraint.advance(inner, b"))")
    assert constraint.complete(end) and constraint.min_tokens(end) == 0
    assert constraint.advance(state, b"y") == DEAD and not len(constraint.allowed(DEAD))
    assert constraint.allowed(state).tolist() == [1, 2, 3, 6]  # a wrong step breaks nothing


def test_text_may_fall_into_tokens_in_any_way():
    constraint = GrammarConstraint(NESTED, TOKENS)
    one = constraint.advance(START, b"((x")
    state = START
    for byte in b"((x":
        state = constraint.advance(state, bytes([byte]))
    assert state == one


def test_many_states_are_found_again(monkeypatch):
    monkeypatch.setattr("lmc.runtime.grammar._KEEP_MATCHERS", 3)
    constraint = GrammarConstraint(NESTED, TOKENS)
    states = [START]
    for _ in range(20):
        states.append(constraint.advance(states[-1], b"("))
    for depth, state in enumerate(states):
        assert constraint.accepting(constraint.advance(state, b"x" + b")" * depth))


def test_reopened_bytes():
    constraint = GrammarConstraint(NESTED, TOKENS)
    assert constraint.allowed(START, b" ").tolist() == [8, 9]


RECURSIVE = {"type": "object", "properties": {"v": {"type": "integer"}, "next": {"$ref": "#"}}, "required": ["v"],
    "additionalProperties": False}


def test_a_recursive_schema():
    found = schema_constraint(json.dumps(RECURSIVE))
    assert found == Grammar(SCHEMA, json.dumps(RECURSIVE))
    constraint = GrammarConstraint(found, [bytes([b]) for b in range(256)])
    for text, fits in (('{"v":1}', True), ('{"v":1,"next":{"v":2,"next":{"v":3}}}', True), ('{"v": 1}', False), ('{"next":{}}', False)):
        assert constraint.accepting(constraint.advance(START, text.encode())) == fits


def test_a_vocabulary_that_cannot_spell_it():
    with pytest.raises(LmcError, match="E0642"):
        GrammarConstraint(NESTED, [b"", b"y"])


def test_without_the_extra(monkeypatch, tmp_path):
    monkeypatch.setattr(grammar_file, "installed", lambda: False)
    monkeypatch.setattr("lmc.regex.schema.installed", lambda: False)
    with pytest.raises(GrammarError, match="pip install 'lmc\\[grammar\\]'"):
        check_grammar(NESTED)
    with pytest.raises(LmcError, match="E0646"):
        GrammarConstraint(NESTED, TOKENS)
    with pytest.raises(SchemaError, match="contains itself.*pip install"):
        schema_constraint(json.dumps(RECURSIVE))
    with pytest.raises(CompileError) as caught:
        compile_file(written(tmp_path))
    [diagnostic] = caught.value.diagnostics
    assert diagnostic.code == "E0606" and diagnostic.span.line == 3


def test_what_no_grammar_holds_names_the_keyword():
    with pytest.raises(SchemaError, match="uniqueItems.*nor does a grammar") as caught:
        schema_constraint(json.dumps({"type": "array", "items": {"type": "string"}, "uniqueItems": True}))
    assert caught.value.path == "uniqueItems"
    with pytest.raises(SchemaError) as caught:
        schema_constraint(json.dumps(RECURSIVE | {"properties": RECURSIVE["properties"] | {"d": {"format": "date"}}}))
    assert caught.value.path == "properties.d.format"
    with pytest.raises(GrammarError, match="line 1, column"):
        check_grammar(Grammar(LARK, "start: ("))


PROGRAM = '''def f() -> str:
    user: "Brackets."
    assistant: x = gen(grammar=r"""start: "(" start ")" | "x" """, max_tokens=12)
    return x
'''


def written(tmp_path):
    path = tmp_path / "f.lmp"
    path.write_text(PROGRAM)
    return str(path)


def test_an_artifact_holds_the_text(tmp_path):
    program = read_program(write_program(compile_file(written(tmp_path)).program), "f.lmpc")
    assert program.constraints == (Grammar(LARK, 'start: "(" start ")" | "x" '),)


def test_forced_text_of_a_grammar_is_drafted_and_nothing_changes():
    words = Words([*'{}[]":,namelist12 ', '{"', "name", "list", '":', "],"])
    grammar = Grammar(LARK, '''
    start: "{\\"name\\":" value ",\\"list\\":" list "}"
    value: "\\"" /[a-z]{1,3}/ "\\""
    list: "[" (list ("," list)*)? "]"
    ''')
    constraint = GrammarConstraint(grammar, words.token_bytes)
    assert constraint.forced(START) == b'{"name":"'
    assert constraint.forced(constraint.advance(START, b'{"na')) == b'me":"'
    assert constraint.forced(constraint.advance(START, b'{"name":"n')) == b"" == constraint.forced(DEAD)
    results = {}
    for jump in ("off", "exact", "canonical"):
        engine = Engine(DryModel(words), words, slots=512, jump=jump)
        request = GenerateRequest((0,), 60, constraint=constraint, sampling=Sampling(temperature=1.0, seed=2))
        results[jump] = [finish(engine, request)[0] for _ in range(3)]
        assert results[jump][0].text.startswith('{"name":"')
    assert [r.ids for r in results["exact"]] == [r.ids for r in results["off"]]
    assert [r.finish for r in results["exact"]] == [r.finish for r in results["off"]]
    assert results["exact"][-1].usage.passes < results["exact"][0].usage.passes <= results["off"][0].usage.passes
