"""Bytes to text: LF, CRLF and a byte-order mark are one program; what is no text is refused with its place."""

import pytest

from lmc.diagnostics import CompileError
from lmc.parser.ast_text import format_tree
from lmc.parser.parse import parse_file
from lmc.parser.read import decode_source, read_source
from tests.parser.programs import PROGRAMS


def tree(data):
    result = parse_file("a.lmp", decode_source("a.lmp", data))
    return format_tree(result.file, places=True), result.diagnostics


@pytest.mark.parametrize("name", PROGRAMS)
def test_line_ends_and_byte_order_mark_change_nothing(name):
    data = PROGRAMS[name].encode("utf-8")
    expected = tree(data)
    assert expected[1] == ()
    assert tree(data.replace(b"\n", b"\r\n")) == expected
    assert tree(b"\xef\xbb\xbf" + data) == expected
    assert tree(b"\xef\xbb\xbf" + data.replace(b"\n", b"\r\n")) == expected


def test_errors_have_the_same_places_with_any_line_ends():
    text = 'def f():\n    user: """\n        ${a b}\n        """\n    x = (1\n'
    lf, crlf = parse_file("a.lmp", text), parse_file("a.lmp", "\ufeff" + text.replace("\n", "\r\n"))
    assert lf.diagnostics == crlf.diagnostics and lf.diagnostics


@pytest.mark.parametrize(("data", "where"), [
    ("x = 1\n".encode("utf-16"), (1, 1)),
    ("x = 1\n".encode("utf-16-be"), None),
    (b"x = 1\ny = \"\xe9\"\n", (2, 6)),
    (b"\xef\xbb\xbfx\xff\n", (1, 2)),
])
def test_what_is_not_utf8_is_refused(data, where):
    if where is None:
        # Without a mark it decodes as UTF-8 with null bytes, which the parser refuses.
        (error,) = parse_file("a.lmp", decode_source("a.lmp", data)).diagnostics
        assert error.code == "E0002" and error.span.column == 1
        return
    with pytest.raises(CompileError) as caught:
        decode_source("a.lmp", data)
    (error,) = caught.value.diagnostics
    assert error.code == "E0001" and (error.span.line, error.span.column) == where and "UTF-8" in error.help


def test_mixed_line_ends():
    """J-04: mixed line ends are one program; an escape still makes a carriage return."""
    text = 'def f():\n    user: """\n        a\n        b\\r\n        """\n'
    mixed = text.replace("\n", "\r\n", 2)
    assert mixed != text and tree(mixed.encode()) == tree(text.encode())
    assert "b\\r'" in tree(text.encode())[0]


def test_names_in_two_normal_forms():
    """J-04: one name, as in Python, or an error at its place; never two names that look alike."""
    result = parse_file("a.lmp", "\ufb01 = 1\ny = fi\n")
    assert [item.name.text for item in result.file.items] == ["fi", "y"] and not result.diagnostics
    (error,) = parse_file("a.lmp", "x = 1\nyz = cafe\u0301\n").diagnostics
    assert (error.code, error.span.line, error.span.column) == ("E0016", 2, 10)
    (error,) = parse_file("a.lmp", "def f(\uff49\uff46: int):\n    pass\n").diagnostics
    assert error.code == "E0110" and "`if`" in error.message


def test_a_null_byte_has_its_place():
    (error,) = parse_file("a.lmp", "x = 1\ny = \0\n").diagnostics
    assert (error.code, error.span.line, error.span.column) == ("E0002", 2, 5)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(CompileError, match="cannot read"):
        read_source(tmp_path / "none.lmp")
    with pytest.raises(CompileError, match="cannot read"):
        read_source(tmp_path)


def test_reading(tmp_path):
    path = tmp_path / "a.lmp"
    path.write_bytes("\ufeffX = \"é\"\r\n".encode())
    assert read_source(path) == 'X = "é"\n'
