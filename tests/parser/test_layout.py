"""Masking and cutting: what is replaced, what stays, where items begin, which layout is refused."""

import pytest

from lmc.parser.layout import scan
from lmc.parser.places import Places


def laid_out(text):
    return scan(text, Places("a.lmp", text))


def codes(text):
    return [d.code for d in laid_out(text).diagnostics]


@pytest.mark.parametrize(("text", "masked"), [
    ('x = "ab" # c\n', 'x = "__"    \n'),
    ('x = r"\\d" + "a\\"b"\n', 'x = "___" + "____"\n'),
    ('x = """a "b" c"""\n', 'x = "___________"\n'),
    ("x = [1,\n     2]\n", "x = [1,      2]\n"),
    ("x = 1 + \\\n    2\n", "x = 1 +       2\n"),
    ('x = "${f("a", "${b}")}"\n', 'x = "_________________"\n'),
    ('x = "# no comment"\n', 'x = "____________"\n'),
    ('x = "${# "quoted" } b"\n', 'x = "________________"\n'),
    ('x = r"""${a} "q" \\"""\n', 'x = "_______________"\n'),
])
def test_masked(text, masked):
    layout = laid_out(text)
    assert layout.code.masked == masked and len(masked) == len(text)
    assert not layout.diagnostics


def test_holes_keep_their_code_and_offsets():
    text = 'x = "a ${f("b")} c ${ d }"\n'
    string = laid_out(text).code.strings[4]
    first, second = string.holes
    assert text[first.start : first.end] == '${f("b")}' and first.code.masked == 'f("_")'
    assert text[first.code.start :].startswith('f("b")')
    inner = first.code.strings[text.index('"b"')]
    assert text[inner.body : inner.body_end] == "b"
    assert second.code.masked == " d "


def test_a_comment_hole_ends_at_the_first_brace_and_has_no_code():
    string = laid_out('x = "${# a } b }"\n').code.strings[4]
    assert [h.code for h in string.holes] == [None]


def test_items_begin_at_column_one_outside_strings_and_brackets():
    text = 'a = [\n1,\n]\n"""\ndef no():\n"""\n\ndef yes():\n    # comment\n\n    pass\n# end\n'
    items = laid_out(text).items
    assert [text[i.start :].split("\n")[0] for i in items] == ["a = [", '"""', "def yes():"]


def test_a_layout_error_breaks_its_item_only():
    items = laid_out('a = "x\nb = 1\nc = (2\n\ndef d():\n    pass\n').items
    assert [item.broken for item in items] == [True, False, True, False]


def test_comments_are_kept_by_line():
    assert laid_out('x = "#a" # lmc: allow W103\n# two\n').comments == {1: " lmc: allow W103", 2: " two"}


@pytest.mark.parametrize(("text", "expected"), [
    ('x = "a\n', ["E0005"]),
    ('x = """a\n', ["E0005"]),
    ("x = (1\n", ["E0006"]),
    ("x = (1]\n", ["E0007"]),
    ("x = 1)\n", ["E0007"]),
    ('x = "${a"\n', ["E0008"]),
    ('x = "${# a"\n', ["E0008"]),
    ("x = 'a'\n", ["E0010"]),
    ("x = 'a\n", ["E0010"]),
    ("x = '''a\nb'''\n", ["E0010"]),
    ('x = f"a"\n', ["E0011"]),
    ('x = b"a"\n', ["E0011"]),
    ('x = rb"a"\n', ["E0011"]),
    ("def f():\n\tpass\n\tpass\n", ["E0003"]),
    ("def f():\n        a = 1\n    b = 2\n", ["E0004"]),
    ("  x = 1\n", ["E0017"]),
    ("x =\u00a01\ny = \u200b2\n", ["E0016", "E0016"]),
    ("x = “a”\n", ["E0016"]),
    ("x = 1\r2\n", ["E0016"]),
    ('x = "${\u00a0a}"\n', ["E0016"]),
    ('x = "' + "${" * 3 + '"\n', ["E0008"]),
])
def test_layout_errors(text, expected):
    assert codes(text) == expected


def test_nesting_has_a_limit_of_ours():
    assert codes("x = " + "(" * 100 + ")" * 100 + "\n") == []
    assert codes("x = " + "(" * 101 + ")" * 101 + "\n") == ["E0015"]
    assert codes("x = " + "(" * 1_000_000) == ["E0015"]
    assert codes("".join("  " * i + "if x:\n" for i in range(102))) == ["E0015"]


def test_an_unclosed_block_string_stops_at_the_next_item():
    layout = laid_out('def f():\n    user: """\n        a\n\ndef g():\n    pass\n')
    assert [d.code for d in layout.diagnostics] == ["E0005"]
    assert [item.broken for item in layout.items] == [True, False]
