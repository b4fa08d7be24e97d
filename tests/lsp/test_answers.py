"""What the server answers, asked without a process: the tables, positions, cursors and rare documents."""

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from lsprotocol.types import Position, PositionEncodingKind

from lmc.lsp.analysis import analyse
from lmc.lsp.builtin_docs import FUNCTIONS, OPTIONS, ROLES
from lmc.lsp.completion import complete
from lmc.lsp.cursor import read_cursor
from lmc.lsp.documents import Documents
from lmc.lsp.hover import hover
from lmc.lsp.navigation import definition, references
from lmc.lsp.positions import Lines, translate
from lmc.parser import words
from lmc.parser.check.builtins import BUILTINS
from lmc.parser.check.options import CONFIG, FORK, GEN


def test_everything_built_in_has_a_line():
    assert FUNCTIONS.keys() == BUILTINS.keys()
    assert OPTIONS.keys() == GEN.keys() | CONFIG.keys() | FORK.keys()
    assert ROLES.keys() == words.ROLES


# ----------------------------------------------------------------- positions


@given(st.text(alphabet="aé漢😀\n"), st.sampled_from(list(PositionEncodingKind)))
def test_places_come_back(text, encoding):
    lines = Lines(text, encoding)
    for number, line in enumerate(text.split("\n"), 1):
        for column in range(1, len(line) + 2):
            position = lines.position(number, column)
            assert lines.place(position) == (number, column)
            assert lines.offset(position) == sum(len(x) + 1 for x in text.split("\n")[: number - 1]) + column - 1


def test_positions_outside_and_within_a_character():
    lines = Lines("😀b\nc")
    assert lines.place(Position(0, 1)) == (1, 1) and lines.place(Position(0, 2)) == (1, 2)
    assert lines.place(Position(0, 99)) == (1, 3) and lines.place(Position(99, 99)) == (2, 2)
    assert lines.position(99, 99) == Position(1, 1)
    assert Lines("a\r\nb").position(1, 99) == Position(0, 1)


def test_lines_are_followed_through_an_edit():
    old, new = ["a", "b", "c", "d"], ["a", "x", "y", "c", "d"]
    assert [translate(old, new, n) for n in (1, 2, 3, 4)] == [1, None, 4, 5]
    assert translate(old, old, 3) == 3
    # A line taken out of equal lines: the others stay known.
    assert translate(["a", "a", "a"], ["a", "a"], 1) == 1 and translate(["a"], [], 1) is None


# -------------------------------------------------------------------- cursor


@pytest.mark.parametrize(
    "text, word, callee, dot",
    [
        ("x = gen(Note, te|", "te", "gen", False),
        ("x = f(gen(1), te|)", "te", "f", False),
        ("x = f([1, te|", "te", None, False),
        ("x = note.|", "", None, True),
        ("x = f(a).b|", "b", None, True),
        ("x = xs[0].|", "", None, True),
        ('x = "${no|}"', "no", None, False),
        ('x = "${note.|}"', "", None, True),
        ('x = "${note.|', "", None, True),
        ('x = "a ${gen(|', "", "gen", False),
        ("x = 1.|", "", None, False),
        ("x: 1..|", "", None, False),
    ],
)
def test_cursor(text, word, callee, dot):
    offset = text.index("|")
    found = read_cursor(text.replace("|", ""), offset)
    assert found is not None
    assert (text[found.start : offset], found.callee, found.dot is not None) == (word, callee, dot)


@pytest.mark.parametrize("text", ['x = "no|"', 'x = "no| ${x}"', 'x = "${x} no|', "x = 1 # no|", 'x = r"${no|}"',
                                  'x = "${# no|}"', 'x = """\n no|\n """'])
def test_text_and_comments_are_no_code(text):
    assert read_cursor(text.replace("|", ""), text.index("|")) is None


# ------------------------------------------------------------------- answers

PROGRAM = '''import "other.lmp" as other
type Wide:
    letter: str(regex="[ab]{2}")
    more: Wide2 | None = None
type Wide2:
    deep: int
extern def look(query: str, most: int = 3) -> list[str]
def f(q: str, w: Wide) -> str:
    """Asks once."""
    xs = look(q, most=2)
    longest = max([len(line) for line in xs])
    fork x in xs with temperature=0.5:
        user: "${x} ${w.letter} ${longest}"
        assistant: inner = gen(regex="[0-9]{3}")
    join inner as inners
    if w.more is not None:
        user: "${w.more.deep} ${other.twice(2)} ${json(inners)}"
        assistant: free = gen(schema="{\\"type\\": \\"integer\\"}")
        return free
    return q
'''
OTHER = "def twice(n: int) -> int:\n    return n + n\n"


@pytest.fixture
def read(tmp_path):
    texts = {str(tmp_path / "main.lmp"): PROGRAM, str(tmp_path / "other.lmp"): OTHER}
    return texts.__getitem__


@pytest.fixture
def analysis(tmp_path, read):
    found = analyse(str(tmp_path / "main.lmp"), None, read)
    assert found.checked.errors == ()
    return found


def place(mark, inside=0):
    before = PROGRAM[: PROGRAM.index(mark) + inside]
    return before.count("\n") + 1, len(before) - before.rfind("\n")


@pytest.mark.parametrize(
    "mark, inside, shown",
    [
        ('gen(regex="[0-9]{3}', 0, "[0-9]{3}"),
        ('gen(regex="[0-9]{3}', 0, "Automaton: 4 states."),
        ("gen(schema", 1, '"type": "integer"'),
        ("look(q", 1, "extern def look(query: str, most: int = 3) -> list[str]"),
        ("w.letter", 3, 'letter: str(regex="[ab]{2}")'),
        ("w.more.deep", 8, "deep: int"),
        ("temperature", 2, "temperature: float"),
        ("def f", 4, "Asks once."),
        ("other.twice", 7, "def twice(n: int) -> int"),
        ("other.twice", 1, "imported file"),
        ("max([", 1, "max(x, …)"),
        ("line in", 1, "line: str"),
        ("    user:", 5, "user:"),
        ("longest}", 0, "longest: int"),
        ("Wide2 | None", 1, "type Wide2:"),
    ],
)
def test_hover(analysis, mark, inside, shown):
    found = hover(analysis, *place(mark, inside))
    assert found is not None and shown in found[0], found


def test_a_field_is_shown_as_declared_and_a_keyword_not_at_all(analysis):
    assert "more: Wide2 | None = None" in hover(analysis, *place("w.more.deep", 5))[0]
    assert hover(analysis, *place("fork x", 1)) is None


@pytest.mark.parametrize(
    "mark, inside, there",
    [
        ("most=2", 1, "most: int"),
        ("w.letter", 3, "letter: str"),
        ("w.more.deep", 8, "deep: int"),
        ("inners)}", 1, "inners\n"),
        ("x} ", 0, "x in xs with"),
        ("Wide2 |", 1, "Wide2:"),
        ("longest}", 1, "longest ="),
    ],
)
def test_definition(analysis, mark, inside, there):
    found = definition(analysis, *place(mark, inside))
    assert (found.line, found.column) == place(there)


def test_definition_in_other_files(analysis, tmp_path):
    found = definition(analysis, *place("other.twice", 7))
    assert (found.file, found.line, found.column) == (str(tmp_path / "other.lmp"), 1, 5)
    found = definition(analysis, *place('"other.lmp"', 3))
    assert (found.file, found.line) == (str(tmp_path / "other.lmp"), 1)
    assert definition(analysis, *place("max([", 1)) is None


def test_references_of_an_imported_function_are_its_name_only(analysis, tmp_path):
    found = references(analysis, *place("other.twice", 7), declaration=False)
    assert [(s.line, s.column) for s in found] == [place("twice(2)")]


def names(analysis, read, before, typed):
    text = PROGRAM.replace(before, typed.replace("|", ""), 1)
    offset = PROGRAM.index(before) + typed.index("|")

    def again(changed):
        return analyse(analysis.path, None, lambda path: changed if path == analysis.path else read(path))

    return {p.label for p in complete(text, offset, again, analysis)}


def test_names_are_those_of_the_scope(analysis, read):
    inside = names(analysis, read, "${longest}", "${|}")
    assert {"x", "xs", "q", "w", "longest", "f", "look", "other", "len"} <= inside
    assert not {"line", "inners", "inner", "free"} & inside
    after = names(analysis, read, "return free", "return |")
    assert {"inners", "free", "q"} <= after and not {"inner", "x", "line"} & after


def test_members(analysis, read):
    assert names(analysis, read, "other.twice(2)", "other.|") == {"twice"}
    assert names(analysis, read, "w.more.deep", "w.more.|") == {"deep"}
    assert {"strip", "split"} <= names(analysis, read, "    return q\n", "    return q.|\n")


def test_options_and_parameters(analysis, read):
    assert {"query=", "most="} <= names(analysis, read, "look(q, most=2)", "look(q, |)")
    assert {"temperature=", "errors="} <= names(analysis, read, "temperature=0.5", "|")
    assert {"int", "Wide", "Wide2", "other"} <= names(analysis, read, "deep: int", "deep: |")


# ----------------------------------------------------------------- documents


def test_documents_without_a_file_and_outside_a_folder(tmp_path):
    def failed(path, error):
        raise error

    documents = Documents(failed)
    documents.open("untitled:Untitled-1", "def f(x: str) -> str:\n    return y\n")
    (found,) = documents.diagnostics()["untitled:Untitled-1"]
    assert found.code == "E0201"
    # What was shown is taken back once.
    documents.close("untitled:Untitled-1")
    assert documents.diagnostics() == {"untitled:Untitled-1": []} and documents.diagnostics() == {}


def test_a_library_file_may_import_its_neighbours_in_the_workspace(tmp_path):
    (tmp_path / "lib").mkdir()
    (tmp_path / "other.lmp").write_text(OTHER)
    text = 'import "../other.lmp" as o\ndef g() -> int:\n    return o.twice(1)\n'
    uri = (tmp_path / "lib" / "a.lmp").as_uri()
    documents = Documents(lambda path, error: None)
    documents.open(uri, text)
    assert [d.code for d in documents.diagnostics()[uri]] == ["E0207"]
    documents.folders = (str(tmp_path),)
    documents.analyse_all()
    assert documents.diagnostics()[uri] == []
    documents.change(uri, text.replace("../other", "../../other"))
    assert [d.code for d in documents.diagnostics()[uri]] == ["E0207"]


def test_a_fault_of_lmc_keeps_the_last_analysis(tmp_path, monkeypatch):
    told = []
    documents = Documents(lambda path, error: told.append(error))
    uri = (tmp_path / "a.lmp").as_uri()
    documents.open(uri, OTHER)
    kept = documents.get(uri).current

    def broken(*args):
        raise AssertionError("broken")

    monkeypatch.setattr("lmc.lsp.documents.analyse", broken)
    documents.change(uri, OTHER + "\n")
    assert documents.get(uri).current is kept and len(told) == 1


def test_without_the_extra_the_command_says_what_to_install(monkeypatch):
    from lmc.cli.lsp import lsp

    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    result = CliRunner().invoke(lsp, [])
    assert result.exit_code == 2 and "pip install 'lmc[lsp]'" in result.output


@pytest.mark.parametrize("type, shown", [
    ("1..5", "Regex\n```regex\n[1-5]\n```\nAutomaton: 2 states."),
    ("8..12", "[89]|1[0-2]"),
    ("str(max_len=5)", r"[\s\S]{0,5}"),
    ("str(min_len=2)", r"[\s\S]{2,}"),
    ('str(regex=r"[a-z]+", min_len=2, max_len=4)', "Regex, 2 to 4 characters\n```regex\n[a-z]+\n"),
    ('str(regex=r"[a-z]+", min_len=2)', "Regex, at least 2 characters"),
    ("int", "-?[1-9][0-9]{0,17}|0"),
    ("float", r"(\.[0-9]{1,15})?"),
    ("bool", "true|false"),
    ('"a.b" | "c"', r"a\.b|c"),
    ("1..3 | None", '"minimum": 1'),
    ("list[1..3]", '"type": "array"'),
    ("str", "Free text: no constraint."),
])
def test_a_generation_shows_its_regex_or_schema(tmp_path, type, shown):
    """Hover with the compiled regex or schema of a `gen`. (Issue 3)"""
    text = f"def main():\n    raw:\n        \"x\"\n        value = gen({type})\n    print(value)\n"
    analysis = analyse("main.lmp", None, lambda path: text)
    found = hover(analysis, 4, 18)
    assert found is not None and shown in found[0], found
