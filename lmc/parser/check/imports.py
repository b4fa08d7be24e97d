"""Files: which a program is made of, in which order they are checked.

    main.lmp -> lib/a.lmp -> lib/b.lmp        loaded as [lib/b.lmp, lib/a.lmp, main.lmp]

Paths are relative to the importing file.  A file outside the roots (the folder of the root file, and those given) is refused after
symbolic links are resolved, so that a program cannot read what it was not given.  A circle is reported with its chain.
This file does not look into what a file declares.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from lmc.diagnostics import LmcError
from lmc.parser import ast
from lmc.parser.check.facts import Facts
from lmc.parser.check.suggest import nearest
from lmc.parser.parse import parse_file

Read = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class LoadedFile:
    """A parsed file.  `module` prefixes its names in the IR; `targets` has the path of each import that could be loaded.

    `comments` by line, for `# lmc: allow W103`.
    """

    path: str
    module: str
    file: ast.File
    comments: Mapping[int, str]
    targets: Mapping[ast.Import, str]


def load_files(facts: Facts, root_path: str, roots: tuple[str, ...] | None, read: Read) -> list[LoadedFile]:
    """The root file and all that it imports, imports before importers.  Raises `LmcError` where the root file cannot be read."""
    folder = os.path.dirname(os.path.realpath(root_path))
    loader = _Loader(facts, (folder, *map(os.path.realpath, roots or ())), read)
    loader.load(root_path, read(root_path), module="")
    return loader.files


class _Loader:
    __slots__ = ("facts", "roots", "read", "files", "paths", "chain", "modules")

    def __init__(self, facts: Facts, roots: tuple[str, ...], read: Read):
        self.facts, self.roots, self.read = facts, roots, read
        self.files: list[LoadedFile] = []
        self.paths: dict[str, str] = {}  # real path -> the path shown
        self.chain: list[str] = []  # real paths from the root file to the one being loaded
        self.modules: set[str] = {""}

    def load(self, path: str, text: str, module: str) -> None:
        real = os.path.realpath(path)
        self.paths[real] = path
        self.chain.append(real)
        parsed = parse_file(path, text)
        self.facts.sources[path] = parsed.text
        self.facts.diagnostics.extend(parsed.diagnostics)
        targets: dict[ast.Import, str] = {}
        for item in parsed.file.items:
            if isinstance(item, ast.Import):
                target = self._import(path, item)
                if target is not None:
                    targets[item] = target
        self.chain.pop()
        self.files.append(LoadedFile(path, module, parsed.file, parsed.comments, targets))

    def _import(self, importer: str, item: ast.Import) -> str | None:
        spec = item.path.plain
        if not spec:
            self._refuse("E0205", "the path of an import is fixed, non-empty text", item, "not a path")
            return None
        if os.path.isabs(spec) or re.match(r"[A-Za-z]:", spec) or "\\" in spec or "\0" in spec or spec.startswith("~"):
            self._refuse("E0207", f'the import "{spec}" must be a path relative to this file, with `/` between folders', item,
                         "not relative",
                         'for example `"lib/x.lmp"`')
            return None
        path = os.path.normpath(os.path.join(os.path.dirname(importer), spec))
        real = os.path.realpath(path)
        if self._root_of(real) is None:
            self._refuse("E0207", f'the import "{spec}" leads out of the project', item, "outside the project's folder",
                         "keep the files of a program in one folder, or allow another one with `--root DIR`", self._about_roots())
            return None
        if real in self.chain:
            names = [self.paths[r] for r in self.chain[self.chain.index(real):]] + [self.paths[real]]
            self._refuse("E0206", "these files import one another in a circle", item, "closes the circle",
                         "move what both need into a third file", (" -> ".join(names),))
            return None
        if real in self.paths:
            return self.paths[real]
        return self._read(item, spec, path, real)

    def _read(self, item: ast.Import, spec: str, path: str, real: str) -> str | None:
        try:
            text = self.read(path)
        except LmcError as error:
            what = error.diagnostics[0].message
        except OSError as error:
            what = f"cannot read `{path}`: {error.strerror or error}"
        else:
            self.load(path, text, self._module(real))
            return path
        label = "this cannot be read" if os.path.exists(path) else "not found"
        self._refuse("E0205", f'the import "{spec}" fails: {what}', item, label, _near(path, spec))
        return None

    def _refuse(self, code: str, message: str, item: ast.Import, label: str, help: str | None = None,
                notes: tuple[str, ...] = ()) -> None:
        self.facts.error(code, message, item.path, label, help, notes)

    def _about_roots(self) -> tuple[str, ...]:
        first, *others = self.roots
        return (f"the project's folder is {first}" + (f"; also allowed: {', '.join(others)}" if others else ""),)

    def _root_of(self, real: str) -> str | None:
        return next((r for r in self.roots if real.startswith(r.rstrip(os.sep) + os.sep)), None)

    def _module(self, real: str) -> str:
        """`lib/x.lmp` -> `lib.x`; other characters than those of names become `_`, and equal results get a number."""
        root = self._root_of(real)
        assert root is not None, real
        stem = os.path.splitext(os.path.relpath(real, root))[0]
        name = ".".join(re.sub(r"\W", "_", part) for part in stem.split(os.sep))
        module, number = name, 2
        while module in self.modules:
            module, number = f"{name}_{number}", number + 1
        self.modules.add(module)
        return module


def _near(path: str, spec: str) -> str | None:
    """A file in the same folder with a similar name."""
    folder, name = os.path.split(path)
    try:
        names = os.listdir(folder or ".")
    except OSError:
        return None
    near = nearest(name, [n for n in names if n.endswith(".lmp")])
    if near is None:
        return "paths start at the folder of the importing file"
    base = spec.rpartition("/")[0]
    return f'did you mean "{base + "/" if base else ""}{near}"?'
