'''Strings: escapes, blocks, raw strings, holes and their places.'''

import pytest

from lmc.parser.ast import Hole, Text, TextPiece, walk
from lmc.parser.parse import parse_file


def text_of(literal):
    """The `Text` of a constant's literal and the codes of what was reported."""
    result = parse_file("a.lmp", f"X = {literal}\n")
    nodes = [node for node in walk(result.file) if isinstance(node, Text)]
    return nodes[0] if nodes else None, [d.code for d in result.diagnostics]


def shape(text):
    return [p.text if isinstance(p, TextPiece) else f"<{getattr(p.value, 'text', type(p.value).__name__)}>" for p in text.parts]


@pytest.mark.parametrize(("literal", "plain"), [
    ('""', ""),
    ('"a"', "a"),
    ('"""a "b" c"""', 'a "b" c'),
    ('"\\n\\t\\r\\"\\\\\\$"', '\n\t\r"\\$'),
    ('"\\u{e9}\\u{1F600}"', "é😀"),
    ('"$ {a} $x }{ $$"', "$ {a} $x }{ $$"),
    ('"\\${a}"', "${a}"),
    ('"# no comment"', "# no comment"),
    ('r"\\d${a}"', "\\d${a}"),
    ('r"""a"b\\"""', 'a"b\\'),
    ('"""\n    a\n      b\n    c\n    """', "a\n  b\nc"),
    ('"""\n    a\n\n  \n    c\n\n    """', "a\n\n\nc\n"),
    ('"""\n    """', ""),
    ('"""\n\n    """', ""),
    ('"""\na\n"""', "a"),
    ('"""\n  a\\n  b\n  """', "a\n  b"),
    ('r"""\n  \\d\n  """', "\\d"),
    ('"${# c }a${# d }b"', "ab"),
])
def test_plain(literal, plain):
    text, codes = text_of(literal)
    assert (text.plain, codes) == (plain, [])


def test_blank_lines_keep_what_is_beyond_the_indentation():
    text, codes = text_of('"""\n  a\n     \n  b\n  """')
    assert (text.plain, codes) == ("a\n   \nb", [])


def test_json_and_the_marks_of_other_languages_are_text():
    """J-01: only `${` is special."""
    marks = '{"a": [1, {"b": {}}]} {{x}} {x} %s %(a)d [[c]] } { $ $x #{y} # no comment <|im_end|> {% if %}'
    for literal in (f'"""{marks}"""', f'"""\n    {marks}\n    """', f'r"""{marks}"""'):
        text, codes = text_of(literal)
        assert (text.plain, codes) == (marks, [])


def test_holes_between_pieces():
    text, codes = text_of('"${a}b${c}${d}"')
    assert shape(text) == ["<a>", "b", "<c>", "<d>"] and codes == []


def test_dedent_does_not_look_into_values_or_escapes():
    text, _ = text_of('"""\n    ${a}\n    \\tb\n    """')
    assert shape(text) == ["<a>", "\n\tb"]


def test_a_hole_at_the_start_of_a_line_needs_the_indentation_too():
    _, codes = text_of('"""\n  ${a}\n    """')
    assert codes == ["E0013"]


@pytest.mark.parametrize(("literal", "expected"), [
    ('"\\d"', ["E0009"]), ('"\\u12"', ["E0009"]), ('"\\u{110000}"', ["E0009"]), ('"\\u{d800}"', ["E0009"]),
    ('"\\u{}"', ["E0009"]),
    ('"\\x41"', ["E0009"]), ('"""\n  a\\\n  b\n  """', ["E0009"]), ('"""\n  a\\\n  """', ["E0009"]),
    ('"""a\n  b\n  """', ["E0012"]), ('"""\n  a"""', ["E0012"]), ('"""\n  a\n b\n  """', ["E0013"]),
    ('"""\n\ta\n  """', ["E0003"]), ('"${}"', ["E0117"]), ('"${ }"', ["E0117"]), ('"${a b}"', ["E0101"]),
    ('"${a:.2f}"', ["E0118"]),
    ('"${a!r}"', ["E0118"]), ('"${a.b := c}"', ["E0114"]), ('"${a +}"', ["E0101"]), ('"${gen := a}"', ["E0110"]),
    ('"${a} ${b c} ${d e}"', ["E0101", "E0101"]),
])
def test_refused(literal, expected):
    assert text_of(literal)[1] == expected


def test_a_less_indented_line_is_named():
    result = parse_file("a.lmp", 'X = """\n    a\n  b\n    """\n')
    (error,) = result.diagnostics
    assert (error.span.line, error.span.column, error.span.end_column) == (3, 1, 4)


@pytest.mark.parametrize("source", [
    'X = "a ${name} b"\n',
    'X = "${f("${name}")}"\n',
    'X = "${f("é${g("${ name }")}")} ${other}"\n',
    'X = """\n    é\n      ${name}\n    """\n',
    'X = """\n    ${f("x",\n        name)}\n    ${g("${name}")}\n    """\n',
])
def test_the_place_of_a_name_in_a_hole_is_where_it_stands(source):
    result = parse_file("a.lmp", source)
    assert not result.diagnostics
    names = [node for node in walk(result.file) if getattr(node, "text", None) == "name"]
    assert names
    for node in names:
        line = source.split("\n")[node.span.line - 1]
        assert line[node.span.column - 1 : node.span.end_column - 1] == "name"


def test_binding_holes():
    text, codes = text_of('"${label := select(Label)}"')
    (hole,) = text.parts
    assert isinstance(hole, Hole) and hole.name.text == "label" and codes == []
    assert (hole.span.column, hole.span.end_column) == (6, 31)


def test_five_megabytes_in_one_literal():
    big = "ab ${x} \\n" * 1000 + "y" * 5_000_000
    text, codes = text_of(f'"{big}"')
    assert codes == [] and len(text.parts) == 2001 and len(text.parts[-1].text) == 5_000_002
