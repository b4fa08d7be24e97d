"""The verifier names function and op of each broken promise."""

import pytest

from lmc.diagnostics import LmcError
from lmc.ir.core import Block, Function, Literal, Module, Parameter, Value
from lmc.ir.ops import ContextNew, Return, TextConcat
from lmc.ir.reader import read_module
from lmc.ir.verifier import verify
from lmc.types import CONTEXT, INT, STR

HEAD = "func @f(%s: str, %n: int, %b: bool, %c: context, %xs: list<str>, %t: tuple<int, str>) -> str"


def problems(body: str, head: str = HEAD, before: str = "") -> str:
    module = read_module(f'module "m" {{\n{before}\n{head} {{\n{body}\n}}\n}}')
    with pytest.raises(LmcError) as caught:
        verify(module)
    assert all(d.code == "E0903" for d in caught.value.diagnostics)
    return "\n".join(d.message for d in caught.value.diagnostics)


END = "\ncontrol.return(%s)"
DECLARED = """type @A { x: int }
type @B { y: str }
type @U = @A | @B
extern @e(q: str) -> str
part @p(%k: context, %q: str) -> int { control.return(%k, 1) }
func @g(%q: str) -> int { control.return(1) }
"""


@pytest.mark.parametrize(("body", "message"), [
    ("%y: str = text.concat(%s)", "the function: a block does not end with a terminator"),
    ("control.return(%s)\ncontrol.return(%s)", "`control.return`: a terminator stands before the end"),
    ("control.yield(%s)", "the body of a function does not end with `control.return`"),
    ("control.return(%n)", "returns a int as value 0 where a str is wanted"),
    ("control.return(%s, %s)", "returns 2 values where 1 are wanted"),
    ("control.break()", "`control.break`: is not inside a loop"),
    ("%y: str = text.concat(%c)" + END, "in `f`, `text.concat` (%y): piece 0 is a context"),
    ("%y: str = text.concat(null)" + END, "piece 0 is a none"),
    ("%y: int = text.concat(%s)" + END, "result 0 is a int where a str is given"),
    ("%d: context = context.append(%s, %s)[role = user]" + END, "the context is a str where a context is wanted"),
    ('%d: context, %v: str = lm.gen(%c)[role = user, site = "0"]' + END, "generates in a turn of `user`"),
    ('%d: context, %v: str = lm.gen(%c, temperature = %s)[role = raw, site = "0"]' + END, "`temperature` is a str"),
    ('%d: context, %v: str = lm.gen(%c, stop = %n)[role = raw, site = "0"]' + END, "`stop` is a int"),
    ('%d: context, %v: str = lm.gen(%c)[role = raw, site = "0", regex = "a", schema = "{}"]' + END, "both `regex` and `schema`"),
    ('%d: context, %v: str = lm.gen(%c)[role = raw, site = "0", follow = "ab"]' + END, "one character"),
    ('%v: str = lm.gen(%c)[role = raw, site = "0"]' + END, "has 1 results where 2 are wanted"),
    ('%d: context, %v: str = lm.select(%c, %s)[role = raw]' + END, "`options` is a str where a list<str>"),
    ('%d: context, %v: str = lm.gen(%c)[role = raw, site = "0"]\n%e: context, %w: str = lm.gen(%d)[role = raw, site = "0"]' + END,
     "the site '0' is not unique"),
    ('%r: list<str> = lm.fork(%c, %s)[site = "0"] {\n^(%k: context, %d: str):\ncontrol.yield(%d)\n}' + END, "forked over is a str"),
    ('%r: list<str> = lm.fork(%c, %xs)[site = "0"] {\n^(%d: str):\ncontrol.yield(%d)\n}' + END, "a region has 1 arguments where 2"),
    ('%r: list<int> = lm.fork(%c, %xs)[site = "0"] {\n^(%k: context, %d: str):\ncontrol.yield(%d)\n}' + END,
     "`control.yield`: yields a str as value 0 where a int is wanted"),
    ('%r: list<str> = lm.map(%xs)[site = "0"] {\n^(%d: str):\ncontrol.return(%d)\n}' + END, "leaves a function from inside a branch"),
    ('control.for(%xs)[site = "0"] {\n^(%d: str):\n%r: list<str> = lm.map(%xs)[site = "1"] {\n^(%e: str):\ncontrol.break()\n}\n'
     'control.yield()\n}' + END, "`control.break`: is not inside a loop"),
    ('%r: int = control.for(%xs, %n)[site = "0"] {\n^(%d: str, %k: int):\ncontrol.yield(%d)\n}' + END,
     "yields a str as value 0 where a int"),
    ('%r: int = control.while(%n)[site = "0"] {\n^(%k: int):\ncontrol.yield(%k, %k)\n} {\n^(%l: int):\ncontrol.yield(%l)\n}' + END,
     "yields a int as value 0 where a bool"),
    ("%r: str = control.if(%n) {\ncontrol.yield(%s)\n} {\ncontrol.yield(%s)\n}" + END, "the condition is a int"),
    ("%r: str = control.if(%b) {\ncontrol.yield(%s)\n} {\ncontrol.yield()\n}" + END, "yields 0 values where 1 are wanted"),
    ("%r: str = control.if(%b) {\n%y: str = text.concat(%s)\ncontrol.yield(%y)\n} {\ncontrol.yield(%y)\n}" + END,
     "`%y` is used outside its block"),
    ("%r: str = control.try() {\ncontrol.yield(%s)\n} {\ncontrol.yield(%s)\n}" + END, "a region has 0 arguments where 1"),
    ('%r: int = call(%s)[callee = "no", site = "0"]' + END, "no function `no`"),
    ('%r: int = call(%n)[callee = "g", site = "0"]' + END, "argument 0 is a int where a str"),
    ('%r: int = call(%s, %s)[callee = "g", site = "0"]' + END, "has 2 arguments where 1"),
    ('%r: int = call(%s)[callee = "p", site = "0"]' + END, "argument 0 is a str where a context"),
    ('%r: int = call(%c, %s)[callee = "p", site = "0"]' + END, "has 1 results where 2"),
    ('%r: str = extern.call(%s)[name = "no"]' + END, "no extern `no`"),
    ('%r: str = extern.call(%s)[name = "e", pure = true]' + END, "`e` is not pure"),
    ('%r: list<int> = const()[value = "[1,"]' + END, "its value is not of its type"),
    ('%r: list<int> = const()[value = "[\\"a\\"]"]' + END, "its value is not of its type"),
    ("%r: @A = record.make(%s)" + END, "argument 0 is a str where a int"),
    ("%r: @A = record.make()" + END, "has 0 arguments where 1"),
    ('%r: @A = record.make(1)\n%f: int = record.get(%r)[field = "z"]' + END, "has no field `z`"),
    ('%r: @A = record.make(1)\n%f: str = record.get(%r)[field = "x"]' + END, "the field `x` is a int, its result a str"),
    ('%r: @A = record.make(1)\n%f: bool = union.is(%r)[member = "B"]' + END, "is never a `B`"),
    ("%r: list<int> = list.make(%s)" + END, "element 0 is a str"),
    ("%r: str = list.make(%s)" + END, "its result is a list"),
    ("%r: str = tuple.get(%t)[index = 2]" + END, "has no element 2"),
    ("%r: dict<str, int> = dict.make(%s)" + END, "keys and values in turn"),
    ("%r: dict<str, int> = dict.make(%s, %s)" + END, "operand 1 is a str where a int"),
    ('%r: int = pure.call(%n)[function = "no"]' + END, "no pure function `no`"),
    ("io.print(%c)" + END, "value 0 is a context"),
    ("%r: str = io.input(%n)" + END, "the prompt is a int"),
    ("control.assert(%n)" + END, "the condition is a int"),
    ("hint.pin(%s)" + END, "the context is a str"),
])
def test_broken_ops(body, message):
    assert message in problems(body, before=DECLARED)


def test_what_fits():
    verify(read_module(f'module "m" {{\n{DECLARED}\n{HEAD} {{\n'
                       '%o: optional<str> = control.if(%b) {\ncontrol.yield(%s)\n} {\ncontrol.yield(null)\n}\n'
                       '%r: @A = record.make(3)\n%u: @U = control.if(%b) {\ncontrol.yield(%r)\n} {\ncontrol.yield(%r)\n}\n'
                       '%f: float = pure.call(%n, 1)[function = "add"]\n'
                       '%v: int = control.try() {\ncontrol.yield(1)\n} {\n^(%e: @Error):\ncontrol.fail("x")\n}\n'
                       'control.return(%o)\n}\n}'))


def test_modules():
    twice = "func @f() -> int { control.return(1) }\n"
    assert "two functions are named `f`" in problems("control.return(1)", "func @f() -> int", twice)
    assert "the entry `g` is not a `def`" in problems("control.return(1)", "func @f() -> int", "entries @g")


def broken(ops, args=(), params=()) -> str:
    module = Module("m", (), (), (Function("f", "def", params, STR, Block(args, ops)),), ())
    with pytest.raises(LmcError) as caught:
        verify(module)
    return "\n".join(d.message for d in caught.value.diagnostics)


def test_what_the_text_form_cannot_say():
    late, x = Value(STR, "late"), Value(STR, "x")
    assert "used before it is defined" in broken((Return((), None, (late,)),))
    twice = (TextConcat((x,), None, ()), TextConcat((x,), None, ()), Return((), None, (x,)))
    assert "`%x` is defined twice" in broken(twice)
    assert "arguments are not the parameters" in broken((Return((), None, (Literal("", STR),)),), (Value(INT, "n"),))
    param = (Parameter("n", INT),)
    assert "arguments are not the parameters" in broken((Return((), None, (Literal("", STR),)),), (x,), param)
    assert "has 2 results where 1" in broken((ContextNew((Value(CONTEXT), Value(CONTEXT)), None), Return((), None, (Literal("", STR),))))


def test_many_problems_are_cut_short():
    body = "\n".join(f"%x{i}: int = text.concat(%s)" for i in range(100)) + END
    assert len(problems(body).split("\n")) == 20
