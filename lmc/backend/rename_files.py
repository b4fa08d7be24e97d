"""A program whose places name other files: for whoever may not see how the folders of this machine are called.

    public_names(["/srv/lmp/judge.lmp", "/srv/lmp/lib/x.lmp"], "judge.lmp")
        -> {"/srv/lmp/judge.lmp": "judge.lmp", "/srv/lmp/lib/x.lmp": "lib/x.lmp"}
    rename_files(program, names)

All that a run says of places, errors that a program catches included, then uses these names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath

from lmc.backend.program import Program
from lmc.backend.program_data import program_from_data, program_to_data


def rename_files(program: Program, names: Mapping[str, str]) -> Program:
    """The same program with its files called otherwise; `names` has all of them."""
    data = program_to_data(program)
    data["files"] = [names[file] for file in data["files"]]
    data["sources"] = {names[file]: text for file, text in program.sources.items()}
    return program_from_data(data)


def public_names(files: Iterable[str], root: str) -> dict[str, str]:
    """For each file a name relative to the folder of the root file, whose last part is `root`; of a file elsewhere its last part."""
    paths = {file: PurePosixPath(file) for file in files}
    roots = sorted((path for path in paths.values() if path.name == root), key=lambda path: len(path.parts))
    folder = roots[0].parent if roots else None
    names: dict[str, str] = {}
    for file, path in paths.items():
        inside = path.relative_to(folder) if folder is not None and path.is_relative_to(folder) else None
        name = path.name if inside is None or ".." in inside.parts else str(inside)
        while name in names.values():
            name = f"other/{name}"
        names[file] = name
    return names
