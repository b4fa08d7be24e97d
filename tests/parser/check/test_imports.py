"""Imports: relative to the importing file, inside the project, without circles; names qualified by their file."""

import os

import pytest

from lmc.parser.check import check
from lmc.parser.check.model import FunctionCall, RecordCall
from lmc.parser import ast
from lmc.types import RecordT, UnionT
from tests.parser.check.program import checked, codes

LIB = '''
type Note:
    score: 1..5
type Other:
    x: int
type Both = Note | Other
LIMIT = 3
def judge(text: str, n: int = LIMIT) -> Note:
    print(text, n)
    return Note(score=LIMIT)
'''


def test_relative_to_the_importing_file_from_any_directory(tmp_path, monkeypatch):
    main = 'import "sub/a.lmp" as a\ndef main() -> int:\n    return a.one()\n'
    files = {"sub__a": 'from "../b.lmp" import two\ndef one() -> int:\n    return two()\n',
             "b": "def two() -> int:\n    return 2\n"}
    assert codes(checked(tmp_path, main, **files)) == []
    for folder in (tmp_path, tmp_path / "sub", tmp_path.parent):
        monkeypatch.chdir(folder)
        result = check(os.path.relpath(tmp_path / "main.lmp"))
        assert result.diagnostics == ()
        assert [f.module for f in result.files] == ["b", "sub.a", ""]
        assert [f.functions[0].qualified for f in result.files] == ["b.two", "sub.a.one", "main"]


def test_names_are_qualified(tmp_path):
    main = '''
import "lib/x.lmp" as x
from "lib/x.lmp" import judge as decide, Note
def main(text: str) -> Note:
    a: x.Both = x.Note(score=x.LIMIT)
    match a:
        case x.Note(grade):
            print(grade)
        case x.Other(value):
            print(value)
    print(json(x.judge(text)))
    return decide(text)
'''
    result = checked(tmp_path, main, lib__x=LIB)
    assert codes(result) == []
    lib, root = result.files
    assert [t.name for t in lib.types] == ["lib.x.Note", "lib.x.Other", "lib.x.Both"]
    assert isinstance(lib.types[0], RecordT) and isinstance(lib.types[2], UnionT)
    assert root.functions[0].result is lib.types[0]
    targets = {c.target.qualified for c in result.calls.values() if isinstance(c, FunctionCall)}
    assert targets == {"lib.x.judge"}
    assert [c.type.name for c in result.calls.values() if isinstance(c, RecordCall)] == ["lib.x.Note"] * 2


def test_same_names_in_two_files_do_not_collide(tmp_path):
    main = 'import "a/x.lmp" as a\nimport "b/x.lmp" as b\ndef main() -> int:\n    return a.f() + b.f()\n'
    result = checked(tmp_path, main, a__x="def f() -> int:\n    return 1\n", b__x="def f() -> int:\n    return 2\n")
    assert codes(result) == []
    assert [f.module for f in result.files] == ["a.x", "b.x", ""]


def test_one_file_imported_twice_is_loaded_once(tmp_path):
    files = {"a": 'import "c.lmp" as c\ndef a() -> int:\n    return c.c()\n',
             "b": 'import "./c.lmp" as c\ndef b() -> int:\n    return c.c()\n',
             "c": "def c() -> int:\n    return 1\n"}
    result = checked(tmp_path, 'import "a.lmp" as a\nimport "b.lmp" as b\ndef main() -> int:\n    return a.a() + b.b()\n',
                     **files)
    assert codes(result) == []
    assert [f.module for f in result.files] == ["c", "a", "b", ""]


def test_circle_is_reported_with_its_chain(tmp_path):
    result = checked(tmp_path, 'import "a.lmp" as a\ndef main() -> int:\n    return a.f()\n',
                     a='import "b.lmp" as b\ndef f() -> int:\n    return b.f()\n',
                     b='import "a.lmp" as a\ndef f() -> int:\n    return a.f()\n')
    assert codes(result) == ["E0206"]
    assert result.diagnostics[0].notes[0].replace(str(tmp_path) + "/", "") == "a.lmp -> b.lmp -> a.lmp"
    assert result.diagnostics[0].span.file.endswith("b.lmp")


def test_a_file_that_imports_itself(tmp_path):
    assert codes(checked(tmp_path, 'import "main.lmp" as me\ndef main() -> int:\n    return me.main()\n')) == ["E0206"]


@pytest.mark.parametrize("path",
                         ["/etc/passwd", "C:/x.lmp", "..\\\\x.lmp", "../outside.lmp", "sub/../../outside.lmp", "link.lmp",
                          "folder/x.lmp"])
def test_no_way_out_of_the_project(tmp_path, path):
    project = tmp_path / "project"
    project.mkdir()
    (tmp_path / "outside.lmp").write_text("def secret() -> int:\n    return 1\n")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "x.lmp").write_text("def secret() -> int:\n    return 1\n")
    (project / "link.lmp").symlink_to(tmp_path / "outside.lmp")
    (project / "folder").symlink_to(tmp_path / "elsewhere")
    read = []
    (project / "main.lmp").write_text(f'import "{path}" as x\ndef main() -> int:\n    return x.secret()\n')

    def spy(name):
        read.append(name)
        return open(name, encoding="utf-8").read()

    assert codes(check(str(project / "main.lmp"), read=spy)) == ["E0207"]
    assert read == [str(project / "main.lmp")], "a refused file must not even be opened"


def test_a_folder_with_the_same_beginning_is_outside(tmp_path):
    (tmp_path / "project2").mkdir()
    (tmp_path / "project2" / "x.lmp").write_text("A = 1\n")
    (tmp_path / "project").mkdir()
    assert codes(checked(tmp_path / "project",
                         'import "../project2/x.lmp" as x\ndef main() -> int:\n    return x.A\n')) == ["E0207"]


def test_given_roots_widen_the_project(tmp_path):
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "x.lmp").write_text("def f() -> int:\n    return 1\n")
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "main.lmp").write_text('import "../lib/x.lmp" as x\ndef main() -> int:\n    return x.f()\n')
    result = check(str(tmp_path / "app" / "main.lmp"), roots=(str(tmp_path),))
    assert codes(result) == []
    assert [f.module for f in result.files] == ["lib.x", ""]


def test_unknown_file_and_unknown_name(tmp_path):
    main = ('import "judg.lmp" as a\nfrom "judge.lmp" import jugde, judge\nimport "judge.lmp" as j\n'
            "def main() -> int:\n    return j.nothing() + jugde() + a.x()\n")
    result = checked(tmp_path, main, judge="def judge() -> int:\n    return 1\n")
    assert codes(result) == ["E0205", "E0208", "E0208"]
    assert result.diagnostics[0].help == 'did you mean "judge.lmp"?'
    assert result.diagnostics[1].help == "did you mean `judge`?"


def test_errors_of_imported_files_are_reported_in_their_file(tmp_path):
    result = checked(tmp_path, 'import "a.lmp" as a\ndef main() -> int:\n    return a.f()\n',
                     a="def f() -> int:\n    return missing\n")
    assert codes(result) == ["E0201"]
    assert result.diagnostics[0].span.file.endswith("a.lmp")
    assert result.diagnostics[0].span.file in result.sources


def test_a_root_that_cannot_be_read(tmp_path):
    result = check(str(tmp_path / "nothing.lmp"))
    assert len(result.errors) == 1 and result.files == ()
    (tmp_path / "utf16.lmp").write_text("A = 1\n", encoding="utf-16")
    assert codes(check(str(tmp_path / "utf16.lmp"))) == ["E0001"]


def test_a_part_of_another_file_keeps_its_kind(tmp_path):
    lib = 'part turn(q: str):\n    user: "${q}"\n    assistant: gen()\npart text(q: str):\n    "${q}"\n'
    main = 'import "lib.lmp" as lib\ndef main(q: str):\n    lib.turn(q)\n    user: lib.text(q)\n    lib.text(q)\n'
    result = checked(tmp_path, main, lib=lib)
    assert codes(result) == ["E0408"]
    assert result.root.functions[0].uses_context
    roles = {symbol.name: found for symbol, found in result.part_roles.items()}
    assert roles["text"] >= {"user"}
    assert all(isinstance(n, ast.Node) for n in result.symbols)
