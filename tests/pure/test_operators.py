"""Operators against Python's own, and their errors."""

import operator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmc.pure import PureError, call_pure
from lmc.types import FLOAT, INT, Field, RecordT
from lmc.values import Record

POINT = RecordT("m.Point", (Field("x", INT),))
ONE, TRUE = Record(POINT, (1,)), Record(POINT, (True,))
numbers = st.one_of(st.integers(-(2**63), 2**63 - 1), st.integers(-9, 9), st.floats(allow_nan=False, allow_infinity=False))
PYTHON = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv, "floordiv": operator.floordiv,
    "mod": operator.mod, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge, "eq": operator.eq,
    "ne": operator.ne,
}


def fails(name, *args):
    with pytest.raises(PureError) as caught:
        call_pure(name, args)
    return caught.value.kind, caught.value.message


@given(st.sampled_from(sorted(PYTHON)), numbers, numbers)
def test_numbers_as_in_python(name, a, b):
    try:
        expected = PYTHON[name](a, b)
    except (ZeroDivisionError, OverflowError):
        assert fails(name, a, b)[0] == "value"
        return
    if isinstance(expected, int) and not -(2**63) <= expected < 2**63 or expected in (float("inf"), float("-inf")):
        assert fails(name, a, b)[0] == "value"
        return
    found = call_pure(name, (a, b))
    assert found == expected and type(found) is type(expected)


@given(st.integers(-20, 20), st.integers(-6, 70))
def test_powers_as_in_python(a, b):
    if a == 0 and b < 0:
        assert fails("pow", a, b) == ("value", f"division by zero: 0 ** {b}")
    elif b >= 0 and not -(2**63) <= a**b < 2**63:
        assert fails("pow", a, b) == ("value", "the result does not fit in a 64-bit int")
    else:
        assert call_pure("pow", (a, b)) == a**b and type(call_pure("pow", (a, b))) is type(a**b)


def test_powers_that_would_take_for_ever():
    assert fails("pow", 10, 10**15)[0] == "value"
    assert call_pure("pow", (1, 10**15)) == 1 and call_pure("pow", (-1, 10**15 + 1)) == -1
    assert fails("pow", -8, 0.5) == ("value", "-8 ** 0.5 is not a real number")
    assert fails("pow", 10.0, 400)[0] == "value"


texts = st.text("ab é", max_size=5)
indexes = st.integers(-7, 7)


@given(st.one_of(texts, st.lists(st.integers(), max_size=5).map(tuple)), indexes)
def test_index_as_in_python(value, key):
    try:
        expected = value[key]
    except IndexError:
        kind, message = fails("index", value, key)
        assert kind == "index" and str(key) in message and str(len(value)) in message
        return
    assert call_pure("index", (value, key)) == expected


@given(st.one_of(texts, st.lists(st.integers(), max_size=5).map(tuple)), *(st.none() | indexes for _ in range(3)))
def test_slices_as_in_python(value, start, stop, step):
    if step == 0:
        assert fails("slice", value, start, stop, step) == ("value", "the step of a slice cannot be 0")
    else:
        assert call_pure("slice", (value, start, stop, step)) == value[start:stop:step]


def test_joining_and_repeating():
    assert call_pure("add", ("a", "b")) == "ab" and call_pure("add", ((1,), (2,))) == (1, 2)
    assert call_pure("mul", ("ab", 2)) == call_pure("mul", (2, "ab")) == "abab" and call_pure("mul", ((1,), 3)) == (1, 1, 1)
    assert call_pure("mul", ("a", -1)) == ""
    message = "the result of `*` would have 2,000,000,000,000 elements, more than 10,000,000"
    assert fails("mul", "ab", 10**12) == ("value", message)
    assert fails("add", "a" * 6_000_000, "a" * 6_000_000)[0] == "value"


def test_a_bool_is_no_number():
    assert fails("add", True, 1) == ("type", "`+` takes two numbers, two strings or two lists, found a bool and an int")
    assert fails("neg", True)[0] == "type" and fails("lt", True, 1)[0] == "type"
    assert call_pure("eq", (True, 1)) is False and call_pure("ne", (True, 1)) is True
    assert call_pure("eq", ((1, True), (1, 1))) is False and call_pure("eq", ({"a": 0}, {"a": False})) is False
    assert call_pure("eq", (ONE, TRUE)) is False and call_pure("in", (True, (1, 2))) is False
    assert call_pure("lt", (False, True)) is True


def test_equality():
    assert call_pure("eq", (1, 1.0)) and call_pure("eq", (ONE, Record(POINT, (1,)))) and call_pure("eq", (None, None))
    assert not call_pure("eq", (ONE, Record(RecordT("n.Point", POINT.fields), (1,)))) and not call_pure("eq", ("1", 1))
    assert not call_pure("eq", ((1,), (1, 2))) and call_pure("eq", ({"a": (1,)}, {"a": (1,)}))
    assert not call_pure("eq", ({"a": 1}, {"b": 1}))
    context = object()
    assert call_pure("eq", (context, context)) and not call_pure("eq", (context, object()))


def test_order_of_lists():
    assert call_pure("lt", ((1, 2), (1, 3))) and call_pure("lt", ((1,), (1, 0))) and not call_pure("gt", ((), ()))
    assert fails("lt", (1,), ("a",)) == ("type", "`<` cannot order an int and a str")
    assert fails("neg", Record(RecordT("Error", ()), ())) == ("type", "`-` takes a number, found an Error")
    assert fails("ge", ONE, ONE) == ("type", "`>=` cannot order a Point and a Point")


def test_membership():
    assert call_pure("in", ("b", "abc")) and call_pure("in", (2, (1, 2))) and call_pure("in", ("k", {"k": 1}))
    assert call_pure("not_in", (3, (1, 2)))
    assert fails("in", 1, "abc") == ("type", "`in` looks for a str in a str, found an int")
    assert fails("in", 1, 5) == ("type", "`in` looks in a str, list or dict, found an int")


def test_lookups_that_fail_name_what_was_found():
    assert fails("index", (1, 2), 2) == ("index", "index 2 is out of range for a list of 2 elements")
    assert fails("index", "a", -2) == ("index", "index -2 is out of range for a str of 1 character")
    assert fails("index", {"a": 1, "b": 2}, "c") == ("key", 'the dict has no key "c"; it has "a", "b"')
    assert fails("index", {}, "c") == ("key", 'the dict has no key "c"; it has no keys')
    assert fails("index", 5, 0) == ("type", "only a list, str or dict has elements, found an int")
    assert fails("index", (1,), True)[0] == "type" and fails("slice", 5, None, None, None)[0] == "type"
    assert fails("div", 1, 0) == ("value", "division by zero: 1 / 0")
    assert fails("mod", "%d", 1)[1].startswith("`%` takes two numbers, found a str")


def test_set_item_makes_a_new_value():
    items, table = (1, 2, 3), {"a": 1}
    assert call_pure("set_item", (items, -1, 9)) == (1, 2, 9) and items == (1, 2, 3)
    assert call_pure("set_item", (table, "b", 2)) == {"a": 1, "b": 2} and table == {"a": 1}
    assert fails("set_item", items, 3, 0)[0] == "index" and fails("set_item", "abc", 0, "x")[0] == "type"


def test_keys_of_dicts_are_scalars():
    for name, args in (("index", ({}, ({},))), ("set_item", ({}, (1,), 0)), ("in", (ONE, {})), ("get", ({}, None))):
        assert fails(name, *args)[0] == "type"
        assert "the keys of a dict are texts or numbers, found" in fails(name, *args)[1]
    assert call_pure("get", ({1: "a"}, 1)) == "a" and call_pure("in", (True, {True: 1}))


def test_flatten_and_truth():
    assert call_pure("flatten", (((1,), (), (2, 3)),)) == (1, 2, 3)
    assert [call_pure("bool", (v,)) for v in (0, 0.0, "", (), {}, None, False)] == [False] * 7
    assert [call_pure("bool", (v,)) for v in (1, 0.1, "a", (0,), {"": 0}, True, ONE, object())] == [True] * 8
    assert call_pure("not", ("",)) is True


def test_signs():
    assert call_pure("neg", (5,)) == -5 and repr(call_pure("neg", (0.0,))) == "-0.0" and call_pure("pos", (-5,)) == -5
    assert fails("neg", -(2**63)) == ("value", "the result does not fit in a 64-bit int")


def test_an_int_becomes_a_float_where_one_is_expected():
    assert repr(call_pure("add", (1, 2), result=FLOAT)) == "3.0" and repr(call_pure("add", (1, 2), result=INT)) == "3"
    assert repr(call_pure("sum", ((),), result=FLOAT)) == "0.0"


def test_the_number_of_arguments_is_checked():
    assert fails("add", 1) == ("type", "`add` takes 2 arguments, found 1")
    assert fails("range") == ("type", "`range` takes 1 to 3 arguments, found 0")
    assert fails("min") == ("type", "`min` takes at least 1 arguments, found 0")
