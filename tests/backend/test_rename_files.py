"""Programs whose places are called otherwise."""

from lmc.backend.program_data import program_to_data
from lmc.backend.rename_files import public_names, rename_files
from lmc.compiler import compile_file


def test_names_are_relative_to_the_root_files_folder():
    files = ["/srv/lmp/judge.lmp", "/srv/lmp/lib/x.lmp", "/srv/other/x.lmp", "/srv/lmp/lib/judge.lmp", "/elsewhere/x.lmp"]
    assert public_names(files, "judge.lmp") == {
        "/srv/lmp/judge.lmp": "judge.lmp", "/srv/lmp/lib/x.lmp": "lib/x.lmp", "/srv/other/x.lmp": "x.lmp",
        "/srv/lmp/lib/judge.lmp": "lib/judge.lmp", "/elsewhere/x.lmp": "other/x.lmp"}
    assert public_names(["judge.lmp", "../lib/x.lmp"], "judge.lmp") == {"judge.lmp": "judge.lmp", "../lib/x.lmp": "x.lmp"}
    assert public_names(["/a/b.lmp"], "c.lmp") == {"/a/b.lmp": "b.lmp"}


def test_only_the_names_of_files_change(tmp_path):
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "x.lmp").write_text("part ask(text: str) -> 1..5:\n    user: \"${text}\"\n    assistant: n = gen(1..5)\n    return n\n")
    (tmp_path / "p.lmp").write_text('import "lib/x.lmp" as x\n\ndef main() -> int:\n    n = x.ask("How many?")\n    return n\n')
    program = compile_file(str(tmp_path / "p.lmp")).program
    renamed = rename_files(program, public_names(program.sources, program.name))
    before, after = program_to_data(program), program_to_data(renamed)
    assert str(tmp_path) in str(before) and str(tmp_path) not in str(after)
    assert set(after["sources"]) == {"p.lmp", "lib/x.lmp"} and set(after["files"]) <= set(after["sources"])
    for name in ("files", "sources"):
        del before[name], after[name]
    assert before == after
