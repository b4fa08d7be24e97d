"""Names declared by a broken item's header stay known: what uses them is no mistake of its own. (Issue 3)"""

import pytest

from lmc.parser.headers import read_header
from tests.parser.check.program import checked, codes

LIB = "type A:\n    x: int\n\ndef b(n: int) -> int:\n    return n\n"


def found(folder, text, **others):
    return [(d.code, d.span.line) for d in checked(folder, text, lib=LIB, **others).diagnostics]


@pytest.mark.parametrize("header, code", [
    ('from "lib.lmp" import A, b c', "E0101"), ('from "lib.lmp" import A b', "E0101"), ('from "nowhere.lmp" import A, b', "E0205"),
    ("from lib import A, b", "E0107"), ('from "lib.lmp" import A, b as', "E0101"),
])
def test_names_of_a_broken_import(tmp_path, header, code):
    text = f"{header}\n\ndef f(a: A, xs: list[A]) -> int:\n    for x in xs:\n        print(x.x)\n    return b(a.x)\n"
    if header.endswith(" as"):
        text = text.replace("b(a.x)", "a.x")
    assert found(tmp_path, text) == [(code, 1)]


@pytest.mark.parametrize("header, code", [
    ('import "lib.lmp" at lib', "E0107"), ('import "nowhere.lmp" as lib', "E0205"), ("import lib", "E0107"), ("import numpy as lib", "E0107"),
])
def test_the_name_of_a_broken_import(tmp_path, header, code):
    text = f"{header}\n\ntype B = lib.A | None\n\ndef f(a: lib.A, _b: B) -> int:\n    x = lib.b(a.x)\n    match a:\n        case lib.A(x=y):\n"
    text += "            return x + y\n    return lib.LIMIT\n"
    assert found(tmp_path, text) == [(code, 1)]


@pytest.mark.parametrize("broken", [
    "class Note:\n    x: int\n", "type Note\n    x: int\n", "type Note:\n    x int\n    y: str\n", "tpye Note:\n    x: int\n",
    "type Note = | None\n", "type Note = A |\n", "type Note x: int\n", "struct Note:\n    x: int\n", "type Note: (\n    x: int\n",
])
def test_a_broken_type(tmp_path, broken):
    text = broken + '''
type Other:
    k: int

type Either = Note | Other

def f(note: Note, notes: list[Note], either: Either) -> str:
    x: Note = {x: 3}
    y = Note(x=2)
    for one in notes:
        print(one.x, one.y + 1)
    raw:
        "Pick: ${schema(Note)} ${fields(Note)} "
        v = gen(Note)
        w = gen(list[Note])
        s = select(Note)
    print(w[0].x, v.x, s, json(y), x.x)
    match either:
        case Note(n):
            return n
        case Other(k):
            return "${k}"
    match note:
        case Note(x=q):
            return q
    return ""
'''
    (error,) = found(tmp_path, text)
    assert error[1] <= broken.count("\n")


@pytest.mark.parametrize("broken", [
    "def pick(a: int, b: int = 2) int:\n    return a + b\n", "def pick(a: int, b int) -> int:\n    return a\n",
    "def pick(a: int, b: int -> int:\n    return a + b\n", "def pick a, b:\n    return a\n", "fn pick(a: int) -> int:\n    return a\n",
    "function pick(a) {\n    return a\n}\n", "async def pick(a: int) -> int:\n    return a\n", "dfe pick(a: int) -> int:\n    return a\n",
    "extern pick(a: int) -> int\n", "extern def pick(a: int) -> \n", "pure extern def pick(a int) -> int\n",
    "def pick(a: int, b: int) -> int:\n    x = (a\n    return unknown_in_a_body_that_was_not_read\n",
])
def test_a_broken_function(tmp_path, broken):
    text = broken + '''
def main() -> int:
    fork i in range(2):
        y = pick(i, b=3)
    join y as ys
    xs = [pick(q) for q in ys]
    print("${pick(1)}", xs, pick(1).name, pick(1)[0])
    if pick(1) > 3 and pick(2):
        return pick()
    return pick(pick(1, 2, 3))
'''
    errors = [line for code, line in found(tmp_path, text) if code.startswith("E")]
    assert errors and len(set(errors)) == len(errors) and max(errors) <= broken.count("\n")


@pytest.mark.parametrize("broken", ["part intro(topic: str:\n    user: \"About ${topic}\"\n", "part intro(topic str):\n    \"${topic}\"\n"])
def test_a_broken_part(tmp_path, broken):
    text = broken + '''
def turns() -> str:
    intro("a")
    user:
        intro("b")
        "${intro("q")}"
    assistant:
        x = gen()
        intro("c")
    return x
'''
    assert [line for _, line in found(tmp_path, text)] == [1]


@pytest.mark.parametrize("broken", ["K: int\n", "K = [1 2]\n", "const K = 3\n", "let K = 4\n", "K: list[int = [1]\n", "K, L = 1, 2\n", "K =\n"])
def test_a_broken_constant(tmp_path, broken):
    text = broken + "\ndef main(n: int = K) -> int:\n    for x in K:\n        print(x, K.y)\n    return K[0] + n\n"
    assert [line for _, line in found(tmp_path, text)] == [1]


def test_names_behind_a_broken_item_of_another_file(tmp_path):
    other = "def g(n: int -> int:\n    return n\n\ntype T:\n    a int\n"
    text = '''import "four.lmp" as four
from "four.lmp" import T, g as h

def main() -> int:
    x = four.g(3) + h("x")
    y: four.T = {a: 1}
    z: T = y
    match y:
        case four.T(a):
            return a + z.b
    return x
'''
    result = checked(tmp_path, text, four=other)
    assert [(d.code, d.span.file.rpartition("/")[2], d.span.line) for d in result.diagnostics] == [
        ("E0006", "four.lmp", 1), ("E0101", "four.lmp", 5)]


def test_a_name_is_known_and_not_any_name(tmp_path):
    """What the header does not declare is still a mistake."""
    assert codes(checked(tmp_path, "def pick(a: int int:\n    return a\n\ndef main() -> int:\n    return pcik(1)\n")) == ["E0006", "E0201"]


@pytest.mark.parametrize("line, kind, names", [
    ("pure extern def look(q", "extern", ["look"]), ("type T", "type", ["T"]), ("type x y = 3", "type", ["x"]), ("if x:", "if", []),
    ("return x = 3", "return", []), ("for x in xs:", "for", []), ("X, Y = 1, 2", "constant", ["X", "Y"]), ("@cache", "", []),
    ('import "a" as user', "import", []), ('from "a" import b as c, d', "import", ["c", "d"]), ("x", "x", []), ("", "", []),
])
def test_headers(line, kind, names):
    header = read_header(line)
    assert (header.kind, [name for name, _ in header.names]) == (kind, names)
    assert all(line[at:].startswith(name) for name, at in header.names)
