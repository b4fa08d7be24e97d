"""One error per cause: what follows from a mistake is not reported as well. (Issue 3)"""

import pytest

from tests.parser.check.program import checked


def found(folder, text):
    """All that is said, warnings too."""
    return [(d.code, d.span.line) for d in checked(folder, text).diagnostics]


@pytest.mark.parametrize("body, line", [
    ('    n = "three"\n    return n + 1\n', 2),
    ('    x = n\n    x = "one"\n    for i in range(3):\n        x = "two"\n    x = 2.5\n    print(x + 1, x[0], x.y)\n    return x\n', 3),
    ('    t = [n]\n    t = 3\n    t += 1\n    print(t - 2, t == "a")\n    return t\n', 3),
    ('    for i in ["a", "b"]:\n        i = n\n        print(i + 1)\n    i = 5\n    return i\n', 3),
    ("    n: str = \"x\"\n    print(n.strip(), n + 1)\n    return n\n", 2),
    ('    x = [n]\n    if n > 1:\n        x = "a"\n    x[0] = 3\n    return x[0]\n', 4),
    ('    x = None\n    x = n\n    x = n + 1\n    return x\n', 3),
])
def test_a_name_of_two_types(tmp_path, body, line):
    assert found(tmp_path, f"def f(n: int) -> int:\n{body}") == [("E0307", line)]


def test_a_name_keeps_its_type_before_the_mistake_and_in_other_functions(tmp_path):
    text = 'def f(n: int) -> int:\n    print(n.x)\n    n = "a"\n    return n\n\ndef g(n: int) -> int:\n    return n + "a"\n'
    assert found(tmp_path, text) == [("E0318", 2), ("E0307", 3), ("E0308", 7)]


@pytest.mark.parametrize("call", ["g(b=1, 2, 3)", "g(a=1, 2)", "g(c=1, 2)", "P(y=1, 2)", "s.strip(x=1, 2)", "gen(max_tokens=1, str)", "nope.x(a=1, 2)"])
def test_a_positional_argument_after_a_named_one(tmp_path, call):
    text = f"""type P:
    x: int
    y: int

def g(a: int, b: int) -> int:
    return a + b

def f(s: str) -> int:
    user: "${{s}}"
    assistant:
        v = {call}
        "${{v}}"
    print(v.x, v + 1)
    return v
"""
    assert found(tmp_path, text) == [("E0111", 11)]


def test_each_argument_after_a_named_one_is_looked_at(tmp_path):
    assert found(tmp_path, "def f(a: int) -> int:\n    return f(a=1, nope)\n") == [("E0111", 2), ("E0201", 2)]


@pytest.mark.parametrize("text", [
    'def f(user: str, n: int) -> str:\n    if user == "x":\n        return user\n    return "${user} ${n}"\n',
    "def f(n: int, class: int) -> int:\n    print(class + n)\n    return class\n",
    "def f(list: list[int]) -> int:\n    for x in list:\n        print(x)\n    return list[0]\n",
    "type user:\n    x: int\n\ndef f(u: user, us: list[user]) -> int:\n    print(json(us))\n    return u.x\n",
    'part system(n: int):\n    user: "${n}"\n\ndef f():\n    system(3)\n    system(n=4)\n',
    "def f(xs: list[int]):\n    for pass in xs:\n        print(pass)\n",
])
def test_a_reserved_word_as_a_name(tmp_path, text):
    ((code, _),) = found(tmp_path, text)
    assert code == "E0110"


def test_a_reserved_word_that_nothing_is_called_is_a_mistake_where_it_stands(tmp_path):
    assert found(tmp_path, "def f(n: int) -> int:\n    return n + class\n\ndef g() -> int:\n    return user\n") == [("E0110", 2), ("E0110", 5)]


@pytest.mark.parametrize("text, code, line", [
    ('def f(n: int) -> int:\n    y = {a: n, "b": 2}\n    print(y.a, y["b"], y)\n    return y.c\n', "E0112", 2),
    ("def f(n: int | None) -> int:\n    match n:\n        case x:\n            return x + 1\n", "E0115", 3),
    ("def f(n: str) -> str:\n    match n:\n        case \"a\":\n            return n\n        case other:\n            return other.x\n", "E0115", 5),
    ("def f(n: int) -> str:\n    return \"${n:.2f}\"\n", "E0118", 2),
    ("def f(n: int) -> str:\n    return \"${n\"\n", "E0008", 2),
    ("def f(n: integer) -> int:\n    return 1\n", "E0313", 1),
    ("LIMIT = {a: 1, \"b\": 2}\nXS = [f(a=1, 2)]\n\ndef f(a: int, b: int = LIMIT) -> int:\n    return a + b + XS[0]\n", None, 1),
])
def test_what_was_wrong_when_it_was_read(tmp_path, text, code, line):
    """No name is unknown or unread because of it."""
    assert found(tmp_path, text) == ([(code, line)] if code else [("E0112", 1), ("E0111", 2)])
