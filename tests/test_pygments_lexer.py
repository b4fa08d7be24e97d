"""The Pygments lexer: on every `.lmp` file of the repository, and on what is hard about the language's strings."""

from importlib.metadata import entry_points
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pygments.token import Comment, Error, Keyword, Name, Number, Operator, String, Token

from lmc.pygments_lexer import LmpLexer

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = sorted(p for folder in ("examples", "tests") for p in (ROOT / folder).rglob("*.lmp"))


def tokens(text):
    found = list(LmpLexer(stripnl=False, ensurenl=False).get_tokens(text))
    assert "".join(value for _, value in found) == text
    return found


def kind_of(text, piece):
    """The kind of the token that holds the first `piece`."""
    at = text.index(piece)
    for kind, value in tokens(text):
        at -= len(value)
        if at < 0:
            return kind
    raise AssertionError(piece)


@pytest.mark.parametrize("path", [p for p in PROGRAMS if p.parent.name == "examples"], ids=lambda p: p.name)
def test_examples_have_no_error_token(path):
    assert [value for kind, value in tokens(path.read_text(encoding="utf-8")) if kind is Error] == []


def test_every_valid_program_of_the_tests_has_no_error_token():
    from lmc.parser.parse import parse_file

    checked = 0
    for path in PROGRAMS:
        text = path.read_bytes().decode("utf-8", "replace").replace("\r\n", "\n").removeprefix("\ufeff")
        if not parse_file(str(path), text).diagnostics:
            checked += 1
            assert [v for kind, v in tokens(text) if kind is Error] == [], path
    assert checked > 10


@pytest.mark.parametrize(
    "text, piece, kind",
    [
        ('user: "a # b"', "# b", String.Double),
        ('x = 1  # "note"', "# ", Comment.Single),
        ('user: "Hi ${name}!"', "name", Name),
        ('user: "Hi ${name}!"', "${", String.Interpol),
        ('user: "Hi ${name}!"', "!", String.Double),
        ('"${gen(stop="\\n")} end"', "gen", Name.Builtin),
        ('"${gen(stop="a # b")} end"', "# b", String.Double),
        ('"${gen(stop="\\n")} end"', "\\n", String.Escape),
        ('"${gen(stop="\\n")} end"', " end", String.Double),
        ('"${f({a: "}"})} end"', " end", String.Double),
        ('"${# no } end"', "no", Comment.Special),
        ('"${# no } end"', " end", String.Double),
        ('"""\n  {"a": 1} # text "quoted"\n  ${x}\n  """', "# text", String.Heredoc),
        ('"""\n  {"a": 1} # text "quoted"\n  ${x}\n  """', "x}", Name),
        ('"""\n  ${g("""a""")} end\n  """', " end", String.Heredoc),
        ('x = r"\\d ${x}" + y', "${x", String.Other),
        ('x = r"\\d ${x}" + y', "y", Name),
        ('x = r"""a " # b\n"""', "# b", String.Other),
        ('user: "$5 and {x}"', "$5", String.Double),
        ("def judge(x: 1..5) -> str:", "judge", Name.Function),
        ("def judge(x: 1..5) -> str:", "..", Operator),
        ("def judge(x: 1..5) -> str:", "1", Number.Integer),
        ("def judge(x: 1..5) -> str:", "str", Keyword.Type),
        ("    patronus: str = None", "str", Keyword.Type),
        ("pure extern def f()", "pure", Keyword.Declaration),
        ("type Note:", "Note", Name.Class),
        ("    raw: x", "raw", Keyword.Namespace),
        ("gen(schema=S)", "schema", Name.Variable),
        ("x.join", "join", Name.Attribute),
        ("part = 1", "part", Name),
        ("beam = [here]", "here", Name.Builtin.Pseudo),
        ("a is not None", "None", Keyword.Constant),
        ('user: "not closed\nx = 1', "x", Name),
    ],
)
def test_kinds(text, piece, kind):
    assert kind_of(text, piece) is kind


@given(st.text(alphabet='"${}#\\r\nax ().:=\'é', max_size=40))
def test_no_text_loses_a_character(text):
    tokens(text)


def test_every_reserved_word_has_a_colour():
    from lmc.parser import words

    plain = (Name, Token, Name.Variable)
    for word in words.KEYWORDS | words.CONSTANTS | words.BUILTIN_FUNCTIONS | words.BUILTIN_TYPES | {"here"}:
        assert kind_of(f"    {word} x", word) not in plain, word
    for word in words.ROLES:
        assert kind_of(f"    {word}:", word) is Keyword.Namespace


def test_pygments_finds_it():
    found = {entry.name: entry.value for entry in entry_points(group="pygments.lexers")}
    assert found.get("lmp") == "lmc.pygments_lexer:LmpLexer", "install the package again: pip install -e ."
    from pygments.lexers import get_lexer_by_name, get_lexer_for_filename

    assert type(get_lexer_by_name("lmp")).__name__ == type(get_lexer_for_filename("a.lmp")).__name__ == "LmpLexer"
