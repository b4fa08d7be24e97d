"""Builtins and string methods against Python's own, JSON, and the errors of each."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmc.pure import PURE, PureError, call_pure
from lmc.types import FLOAT, INT, STR, DictT, Field, ListT, LiteralT, OptionalT, RecordT, UnionT
from lmc.values import Record

POINT = RecordT("m.Point", (Field("x", INT), Field("y", INT, "7")), "Where.")
STOP = RecordT("m.Stop", ())
ACTION = UnionT("m.Action", (POINT, STOP))
NAMED = {t.name: t for t in (POINT, STOP, ACTION)}


def call(name, *args, result=None):
    return call_pure(name, args, result, NAMED)


def fails(name, *args, result=None):
    with pytest.raises(PureError) as caught:
        call_pure(name, args, result, NAMED)
    return caught.value.kind, caught.value.message


numbers = st.lists(st.integers(-5, 5) | st.sampled_from([0.5, 1.0, -2.5]), max_size=7).map(tuple)


@given(numbers)
def test_on_lists_of_numbers_as_in_python(items):
    assert call("sorted", items) == tuple(sorted(items)) and call("sorted", items, True) == tuple(sorted(items, reverse=True))
    assert call("sum", items) == sum(items) and call("len", items) == len(items)
    assert call("enumerate", items) == tuple(enumerate(items)) and call("enumerate", items, 3) == tuple(enumerate(items, 3))
    assert call("zip", items, items[1:]) == tuple(zip(items, items[1:]))
    if not items:
        assert {fails(name, items)[0] for name in ("min", "max", "argmax", "majority")} == {"value"}
        return
    for name, function in (("min", min), ("max", max)):
        assert repr(call(name, items)) == repr(function(items))
        if len(items) > 1:
            assert repr(call(name, *items)) == repr(function(*items))
    assert call("argmax", items) == items.index(max(items))
    assert call("majority", items) == max(dict.fromkeys(items), key=items.count)


@given(st.integers(-9, 9), st.none() | st.integers(-9, 9), st.integers(-4, 4))
def test_ranges_as_in_python(first, second, step):
    if second is None:
        assert call("range", first) == tuple(range(first))
    elif step == 0:
        assert fails("range", first, second, step) == ("value", "the step of `range` cannot be 0")
    else:
        assert call("range", first, second, step) == tuple(range(first, second, step))


def test_a_huge_range_is_refused():
    assert fails("range", 10**12) == ("value", "the range would have 1,000,000,000,000 elements, more than 10,000,000")
    assert fails("range", 2**63 - 1, -(2**63), -1)[0] == "value"
    assert call("range", 0, 10**18, 10**17) == tuple(range(0, 10**18, 10**17))


@given(st.lists(st.tuples(st.text("abc", max_size=2), st.integers(0, 3)), max_size=7), st.integers(0, 8))
def test_top_is_stable(pairs, k):
    items, scores = tuple(p[0] for p in pairs), tuple(p[1] for p in pairs)
    assert call("top", items, scores, k) == tuple(p[0] for p in sorted(pairs, key=lambda p: -p[1])[:k])


def test_top_and_majority():
    assert call("top", ("x", "y", "z"), (1, 3, 3.0), 2) == ("y", "z")
    assert fails("top", ("x",), (1, 2), 1) == ("value", "`top` takes a score for each element, found 1 elements and 2 scores")
    assert fails("top", ("x",), (1,), -1) == ("value", "`top` takes a count, found -1")
    assert fails("top", ("x", "y"), (None, "a"), 1) == ("type", "`<` cannot order None and a str")
    context = object()
    assert call("top", (context, "b"), (2, 1), 1) == (context,)
    assert call("majority", ("b", "a", "a", "b")) == "b" and call("majority", (1, True, True)) is True
    assert call("majority", ({"k": 1}, {"k": 2}, {"k": 2})) == {"k": 2}


@given(st.floats(min_value=-1e15, max_value=1e15) | st.integers(-(10**6), 10**6), st.none() | st.integers(-3, 20))
def test_rounding_as_in_python(value, digits):
    args = (value,) if digits is None else (value, digits)
    found, expected = call("round", *args), round(*args)
    assert found == expected and type(found) is type(expected)


def test_numbers():
    assert call("round", 2.5) == 2 and call("round", 3.5) == 4 and call("round", 12345, -2) == 12300
    assert call("round", 7, -(10**12)) == 0
    assert call("abs", -3) == 3 and call("abs", -0.5) == 0.5 and fails("abs", -(2**63))[0] == "value"
    assert fails("round", 1e300) == ("value", "the result does not fit in a 64-bit int")
    assert fails("round", "1") == ("type", "`round` takes a number, found a str") and fails("abs", True)[0] == "type"
    assert fails("sum", ("a", 1))[0] == "type" and fails("len", 5) == ("type", "`len` takes a str, list or dict, found an int")


@pytest.mark.parametrize(
    "text, value",
    [
        ("42", 42), (" -7\n", -7), ("+0012", 12), ("0" * 100 + "5", 5), (3.9, 3), (-3.9, -3), (True, 1),
        (str(2**63 - 1), 2**63 - 1),
    ],
)
def test_int(text, value):
    assert call("int", text) == value and type(call("int", text)) is int


@pytest.mark.parametrize("text", ["", "x", "4.0", "1_000", "٣", "0x1", "1 2", "--1", "9223372036854775808", "9" * 5000, 1e30])
def test_int_is_strict(text):
    assert fails("int", text)[0] == "value"


def test_int_names_what_it_found():
    assert fails("int", "four") == ("value", '"four" is not an int')
    assert fails("int", (1,)) == ("type", "`int` takes a str or number, found a list")


@pytest.mark.parametrize("text, value",
    [("2", 2.0), (" -0.5 ", -0.5), ("1e3", 1000.0), (".5", 0.5), ("1.", 1.0), (7, 7.0), (False, 0.0)])
def test_float(text, value):
    assert call("float", text) == value and type(call("float", text)) is float


@pytest.mark.parametrize("text", ["", "nan", "inf", "-Infinity", "1e999", "1_0", "1,5", "x"])
def test_float_is_strict(text):
    assert fails("float", text)[0] == "value"


def test_str():
    assert [call("str", v) for v in (1, 2.0, True, "a", None)] == ["1", "2.0", "true", "a", "None"]
    assert fails("str", (1,)) == ("type", "a list has no text; use `json(x)`")
    assert fails("str", Record(STOP, ())) == ("type", "a Stop has no text; use `json(x)`")


texts = st.text("ab,é \n\t", max_size=10)


@given(texts, st.text("ab, ", min_size=1, max_size=2), st.integers(-1, 3))
def test_string_methods_as_in_python(text, part, count):
    for name in ("strip", "lstrip", "rstrip", "lower", "upper", "title"):
        assert call(name, text) == getattr(text, name)()
    for name in ("strip", "lstrip", "rstrip", "removeprefix", "removesuffix", "startswith", "endswith", "find", "count"):
        assert call(name, text, part) == getattr(text, name)(part)
    assert call("split", text) == tuple(text.split()) and call("split", text, part) == tuple(text.split(part))
    assert call("split", text, part, count) == tuple(text.split(part, count))
    assert call("splitlines", text) == tuple(text.splitlines())
    assert call("replace", text, part, "xyz", count) == text.replace(part, "xyz", count)
    assert call("replace", text, "", "-") == text.replace("", "-")
    assert call("find", text, part, 2) == text.find(part, 2) and call("find", text, part, -4, 5) == text.find(part, -4, 5)
    assert call("join", part, tuple(text)) == part.join(text)


def test_string_errors():
    assert fails("split", "a", "") == ("value", "`split` takes a separator of at least one character")
    assert fails("join", ",", (1,)) == ("type", "`join` takes a str, found an int")
    assert fails("strip", 5) == ("type", "`strip` takes a str, found an int")
    assert fails("replace", "a" * 5000, "a", "b" * 5000)[0] == "value"
    assert call("startswith", "abc", ("x", "ab")) is True and fails("endswith", "a", (1,))[0] == "type"


def test_text_of_lists():
    assert call("bullets", ("a", 1, True)) == "- a\n- 1\n- true" and call("lines", ("a", 2.5)) == "a\n2.5"
    assert call("bullets", ()) == ""
    assert fails("lines", ((1,),)) == ("type", "`lines` takes a list of texts or numbers, found a list; use `json(x)`")
    assert fails("bullets", "abc") == ("type", "`bullets` takes a list, found a str")


def test_regexes():
    assert call("findall", r"\d+", "3 of 12") == ("3", "12") and call("findall", r"(\w)=\d", "a=1 b=2") == ("a", "b")
    assert call("findall", r"\d", "٣") == () and call("findall", r"(?:a|ab)", "ab") == ("a",)
    assert call("matches", r"\d{2}", "12") is True and call("matches", r"\d", "12") is False
    assert call("matches", "a|ab", "ab") is True
    assert fails("findall", r"(a)(b)", "ab")[1].startswith("`findall` takes a pattern with at most one group, found 2")
    assert fails("matches", r"a(?=b)", "ab") == ("value", "invalid regex: look-around is not supported (at character 2)")
    assert fails("findall", "(", "") == ("value", "invalid regex: missing ), unterminated subpattern (at character 1)")


def test_dicts():
    table = {"a": 1, "b": 2}
    assert call("keys", table) == ("a", "b") and call("values", table) == (1, 2) and call("items", table) == (("a", 1), ("b", 2))
    assert call("get", table, "a") == 1 and call("get", table, "c") is None and call("get", table, "c", 0) == 0
    assert fails("keys", (1,)) == ("type", "`keys` takes a dict, found a list")


def test_json():
    point = Record(POINT, (1, 2))
    assert call("json", point) == '{"x":1,"y":2}'
    assert call("json", (point,), "list<@m.Action>") == '[{"type":"Point","x":1,"y":2}]'
    assert call("json", "é\n") == '"é\\n"' and call("json", None) == "null"
    assert fails("json", (object(),)) == ("type", "a list cannot be written as JSON")


def test_parse_json():
    assert call("parse_json", '{"x": 3}', result=POINT) == Record(POINT, (3, 7))
    assert call("parse_json", ' {"type":"Stop"} ', result=ACTION) == Record(STOP, ())
    assert call("parse_json", '{"k":[1]}', result=DictT(STR, ListT(INT))) == {"k": (1,)}
    assert repr(call("parse_json", "2", result=FLOAT)) == "2.0" and call("parse_json", "null", result=OptionalT(STR)) is None
    assert call("parse_json", '"A"', result=LiteralT(("A",))) == "A"


@pytest.mark.parametrize(
    "text, result, message",
    [
        ('{"x": }', POINT, "not JSON: Expecting value at line 1, column 7"),
        ('{\n"x" 1}', POINT, "not JSON: Expecting ':' delimiter at line 2, column 5"),
        ("NaN", FLOAT, "not JSON: NaN is not a JSON number"),
        ("[1,Infinity]", ListT(FLOAT), "not JSON: Infinity is not a JSON number"),
        ("9" * 5000, INT, "not JSON: "),
        ("[" * 100_000, ListT(INT), "not JSON: nested too deeply"),
        ('{"x": "1"}', POINT, "the JSON does not fit: at `x`: expected int, found '1'"),
        ('"\\ud800"', STR, "the JSON does not fit: expected str"),
        ("1e999", FLOAT, "the JSON does not fit: expected float, found inf"),
        ("", INT, "not JSON: Expecting value at line 1, column 1"),
    ],
)
def test_parse_json_says_where(text, result, message):
    kind, found = fails("parse_json", text, result=result)
    assert kind == "value" and found.startswith(message)


def test_types_as_text():
    assert json.loads(call("schema", "@m.Point"))["required"] == ["x", "y"]
    assert " " not in call("schema", "list<int>(max_items=2)")
    assert call("fields", "@m.Point") == "x and y" and call("fields", "optional<@m.Point>") == "x and y"


def test_every_function_is_documented_and_listed_once():
    undocumented = [name for name, function in PURE.items() if not function.doc]
    assert undocumented == [] and all(function.name == name for name, function in PURE.items())
