"""Dataclasses of a program's records: typed fields, defaults, JSON data, and the way back as arguments."""

import dataclasses
import typing

import pytest

from lmc.diagnostics import UsageError
from lmc.embed import load
from lmc.runtime.host_types import HostTypes
from lmc.types import BOOL, ERROR, FLOAT, INT, STR, DictT, FallibleT, Field, ListT, LiteralT, OptionalT, RangeT, RecordT, TupleT, UnionT
from lmc.values import Record

SEARCH = RecordT("lib.Search", (Field("query", STR), Field("class", RangeT(1, 5), "2")))
FINISH = RecordT("Finish", (Field("answer", OptionalT(STR), "null"),))
ACTION = UnionT("Action", (SEARCH, FINISH))
PLAN = RecordT("Plan", (
    Field("steps", ListT(ACTION), "[]"), Field("last", ACTION), Field("grade", LiteralT(("A", "B")), '"A"'),
    Field("notes", DictT(STR, FLOAT), "{}"), Field("asdict", BOOL, "true"), Field("first", SEARCH, '{"query": "x"}'),
), "A plan.")
TYPES = HostTypes((SEARCH, FINISH, ACTION, PLAN))
Search, Finish, Plan = (TYPES.class_of(n) for n in ("lib.Search", "Finish", "Plan"))


def test_fields_have_types():
    hints = typing.get_type_hints(Plan)
    assert hints == {
        "steps": list[Search | Finish], "last": Search | Finish, "grade": typing.Literal["A", "B"], "notes": dict[str, float],
        "asdict_": bool, "first": Search,
    }
    assert typing.get_type_hints(Search) == {"query": str, "class_": int} and typing.get_type_hints(Finish) == {"answer": str | None}
    assert [f.name for f in dataclasses.fields(Plan)] == ["steps", "last", "grade", "notes", "asdict_", "first"]
    assert TYPES.annotation(TupleT((INT, STR))) == list[int | str]
    assert TYPES.annotation(FallibleT(INT)) == int | TYPES.class_of(ERROR.name)


def test_defaults_are_fresh_and_a_required_field_behind_one_is_named():
    one, two = Plan(last=Finish()), Plan(last=Finish())
    assert one == two and one.steps == [] and one.steps is not two.steps and one.notes == {}
    assert one.grade == "A" and one.first == Search("x", 2) and one.last.answer is None
    with pytest.raises(TypeError, match="last"):
        Plan([])
    with pytest.raises(dataclasses.FrozenInstanceError):
        one.grade = "B"
    assert repr(Search("q")) == "Search(query='q', class_=2)"


def test_asdict_is_json_data_with_the_tags_of_unions():
    plan = Plan([Search("q", 3), Finish("f")], last=Finish(), notes={"a": 1.5})
    data = plan.asdict()
    assert data == {
        "steps": [{"type": "Search", "query": "q", "class": 3}, {"type": "Finish", "answer": "f"}],
        "last": {"type": "Finish", "answer": None}, "grade": "A", "notes": {"a": 1.5}, "asdict": True,
        "first": {"query": "x", "class": 2},
    }
    assert Search("q").asdict(tag=True) == {"type": "Search", "query": "q", "class": 2}
    assert TYPES.from_host(data, PLAN) == TYPES.from_host(plan, PLAN)
    assert TYPES.from_host(Search("q").asdict(tag=True), ACTION) == Record(SEARCH, ("q", 2))
    assert TYPES.to_host(TYPES.from_host(plan, PLAN)) == plan
    assert dataclasses.asdict(plan)["steps"] == [{"query": "q", "class_": 3}, {"answer": "f"}]


def test_a_keyword_beside_its_escape():
    record = RecordT("R", (Field("class", INT), Field("class_", STR)))
    made = HostTypes((record,)).class_of("R")(1, "x")
    assert made.class__ == 1 and made.class_ == "x" and made.asdict() == {"class": 1, "class_": "x"}


def test_asdict_of_an_instance_that_does_not_fit_its_type():
    with pytest.raises(ValueError, match="class"):
        Search("q", 9).asdict()


PROGRAM = '''
type Search:
    query: str
    limit: 1..9 = 3
type Finish:
    answer: str
type Action = Search | Finish

def pick(actions: list[Action], index: int = 0) -> Action:
    return actions[index]
def narrow(search: Search) -> Search | None:
    return search
'''


def test_results_go_back_in_as_arguments(tmp_path):
    path = tmp_path / "program.lmp"
    path.write_text(PROGRAM)
    with load(path, dry=True) as m:
        first = m.pick([{"type": "Search", "query": "q"}, {"type": "Finish", "answer": "a"}])
        assert first == m.types.Search("q", 3)
        assert m.pick([first, m.types.Finish("a")], 1) == m.types.Finish("a")
        assert m.pick([first.asdict(tag=True)]) == m.narrow(first) == m.narrow(first.asdict()) == first
        with pytest.raises(UsageError, match="limit"):
            m.narrow(m.types.Search("q", 10))
        assert m.pick.__signature__.return_annotation == m.types.Search | m.types.Finish
