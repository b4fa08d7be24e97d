"""The style itself: a source under `before`, the same as it is written under `after`."""

import re
from pathlib import Path
from textwrap import dedent

import pytest

from lmc.parser.format import format_source


PAGE = (Path(__file__).resolve().parents[3] / "docs" / "formatting.md").read_text(encoding="utf-8")


def styled(source: str) -> str:
    text = format_source("a.lmp", source).text
    assert text is not None and format_source("a.lmp", text).text == text
    return text


CASES = {
    "spaces": ("def f( x:int=3,y :str )->dict[ str,int ] :\n  return {\"a\":-x**-2}\n",
               "def f(x: int = 3, y: str) -> dict[str, int]:\n    return {\"a\": -x ** -2}\n"),
    "arguments": ("X=g( 1,if = 2 )[ 1 : ][ :-1 ] . y\n", "X = g(1, if=2)[1:][:-1].y\n"),
    "ranges and unions": ("type A=- 1 .. 5|None\n", "type A = -1..5 | None\n"),
    "options": ("def f():\n  fork x in[1] with a = 1,b=2 :\n    y=not(x)\n  join y as ys,here  as h\n",
                "def f():\n    fork x in [1] with a=1, b=2:\n        y = not (x)\n    join y as ys, here as h\n"),
    "bodies": ("def f():\n  if a: return 1 # why\n  else: user: \"x\"\n  match a:\n   case 1|2: pass\n".replace(": user: ", ":\n   user: "),
               "def f():\n    if a:\n        return 1  # why\n    else:\n        user: \"x\"\n    match a:\n        case 1 | 2: pass\n"),
    "blank lines": ("\n\nX = 1\n\n\n\nY = 2\ndef f():\n\n  x = 1\n\n\n  y = 1\n# about g\ndef g():\n  pass\n\n\n",
                    "X = 1\n\nY = 2\n\ndef f():\n    x = 1\n\n    y = 1\n\n# about g\ndef g():\n    pass\n"),
    "last comma": ("X = [1, 2,]\nY = f(a,)\nT = [\n  1,\n  2]\n",
                   "X = [\n    1,\n    2,\n]\nY = f(\n    a,\n)\nT = [1, 2]\n"),
    "backslashes": ("X = 1 + \\\n   2\n", "X = 1 + 2\n"),
    "comments": ("def f():\n  if a:\n    b\n    # in if\n  # before else\n  else:\n      # in else\n      c\n      # end of else\n  # end of f\n# end\n",
                 "def f():\n    if a:\n        b\n        # in if\n    # before else\n    else:\n        # in else\n        c\n"
                 "        # end of else\n    # end of f\n# end\n"),
    "comments in brackets": ("X = [ # first\n 1, # one\n   # own\n 2 # two\n , 3 + # mid\n 4\n # end\n ]\n",
                             "X = [  # first\n    1,  # one\n    # own\n    2,  # two\n    3 +  # mid\n    4,\n    # end\n]\n"),
    "comments keep their column": ("x = 1     # a\nyy=2      # b\nz = 3# c\n".upper(),
                                   "X = 1     # A\nYY = 2    # B\nZ = 3  # C\n"),
    "a switch stays on its line": (f"def f():\n  if x: g({'a' * 60}, {'b' * 60})  # lmc: allow W111\n",
                                   f"def f():\n    if x: g({'a' * 60}, {'b' * 60})  # lmc: allow W111\n"),
}


@pytest.mark.parametrize("name", CASES)
def test_style(name):
    before, after = CASES[name]
    assert styled(before) == after


def test_long_lines_break_inside_brackets_only_where_that_makes_them_fit():
    a, b, c = "a" * 40, "b" * 40, "c" * 40
    assert styled(f"X = f({a}, {b}, {c})\n") == f"X = f(\n    {a},\n    {b},\n    {c},\n)\n"
    assert styled(f"X = ({a} and {b} and {c})\n") == f"X = (\n    {a}\n    and {b}\n    and {c}\n)\n"
    assert styled(f"X = [{a} for {b} in {c} if d]\n") == f"X = [\n    {a}\n    for {b} in {c}\n    if d\n]\n"
    assert styled(f'X = "{a}{b}{c}" + f(d)\n') == f'X = "{a}{b}{c}" + f(d)\n'
    assert styled(f"X = {a} + \\\n  {b} + \\\n  {c}\n") == f"X = {a} + \\\n    {b} + \\\n    {c}\n"
    exact = f"X = f({a}, {b}, {'d' * (100 - 6 - 84 - 1)})"
    assert len(exact) == 100 and styled(exact) == exact + "\n"


def test_a_block_string_moves_as_a_whole():
    before = dedent('''
        def f(x: str):
          user: """
               Hi ${ x+1 }

                 deeper \\n # text
               """  # tail
          raw:
             r"""
           two
           """
        ''')
    after = dedent('''
        def f(x: str):
            user: """
                Hi ${ x+1 }

                  deeper \\n # text
                """  # tail
            raw:
                r"""
                two
                """
        ''').lstrip("\n")
    assert styled(before) == after


def test_blank_lines_of_a_block_string_never_become_text():
    # Two spaces on a blank line are less than the old indentation and more than the new one.
    before = "type A:\n         " + '"""\n         a\n    \n          \n         b\n         """\n         x: int\n'
    assert styled(before) == 'type A:\n    """\n    a\n\n     \n    b\n    """\n    x: int\n'


def test_a_byte_order_mark_and_crlf_go():
    assert styled("\ufeffX = 1\r\nY = 2\r\n") == "X = 1\nY = 2\n"


def test_syntax_errors_are_reported_and_nothing_is_written():
    result = format_source("a.lmp", "X = [1\n\ndef f(:\n    pass\n")
    assert result.text is None and len(result.diagnostics) == 2


def test_nothing_stays_nothing():
    assert styled("") == "" and styled("\n\n") == "" and styled("# c") == "# c\n"


def test_the_example_of_the_page():
    before, after = re.findall(r"^```(?:text|lmp)\n(.*?)^```", PAGE, re.M | re.S)
    assert styled(before) == after
