"""The house rules of DESIGN §1 and STYLE: floors, no circle, sizes, and no code that reads a file can execute it."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "lmc"
FILES = sorted(PACKAGE.rglob("*.py"))

GROUND = {"codes", "diagnostic_formats", "diagnostics", "levels", "types", "values", "pure", "json_schema", "type_text", "regex"}
# What each part may import of `lmc`, beside itself and the ground floor.
FLOORS = {
    "ir": set(),
    "parser": {"ir"},
    "passes": {"ir"},
    "backend": {"ir"},
    "runtime": {"backend.program", "backend.serialize"},
    "compiler": {"parser", "passes", "backend", "ir"},
    "embed": {"compiler", "runtime", "backend.program", "backend.serialize"},
    "server": {"compiler", "embed", "runtime", "backend"},
    "lsp": {"parser"},
    "pygments_lexer": {"parser.words"},
    "cli": {"lsp", "server", "compiler", "embed", "runtime", "backend", "ir", "parser", "passes"},
}


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(path: Path) -> list[tuple[int, str]]:
    """Every module that the file imports, those inside functions and under TYPE_CHECKING included, with the line."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: relative import"
            found.append((node.lineno, node.module))
            found += [(node.lineno, f"{node.module}.{alias.name}") for alias in node.names]
    return found


def part(module: str) -> str:
    """`lmc.runtime.engine` -> `runtime`."""
    return module.split(".")[1] if "." in module else ""


MODULES = {module_name(path): path for path in FILES}


def internal_imports(path: Path) -> list[tuple[int, str]]:
    return [(line, name) for line, name in imports(path) if name in MODULES]


def test_floors():
    wrong = []
    for name, path in MODULES.items():
        floor = part(name)
        if floor == "":
            continue
        allowed = FLOORS.get(floor, set()) if floor not in GROUND else set()
        for line, target in internal_imports(path):
            there = part(target)
            short = target.removeprefix("lmc.")
            fits = there in ("", floor) or there in GROUND or there in allowed or short in allowed
            # `import lmc.backend.program` names the package on its way.
            fits = fits or any(a.startswith(short + ".") for a in allowed)
            if not fits:
                wrong.append(f"{path.relative_to(ROOT)}:{line} imports {target}")
    assert not wrong, "\n".join(wrong)


def test_every_part_has_a_floor():
    assert {part(m) for m in MODULES} - {""} <= GROUND | set(FLOORS) | {"explain"}


def test_no_circle():
    graph = {
        name: {target for _, target in internal_imports(path) if target != name and not name.startswith(target + ".")}
        for name, path in MODULES.items()
    }
    done: set[str] = set()

    def visit(name: str, trail: tuple[str, ...]) -> None:
        assert name not in trail, "circle: " + " -> ".join(trail[trail.index(name):] + (name,))
        if name in done:
            return
        for target in sorted(graph[name]):
            visit(target, trail + (name,))
        done.add(name)

    for name in graph:
        visit(name, ())


@pytest.mark.parametrize("package", ["torch", "transformers", "tokenizers", "safetensors"])
def test_heavy_packages_only_in_the_runtime(package):
    wrong = [
        f"{path.relative_to(ROOT)}:{line}"
        for name, path in MODULES.items()
        if part(name) != "runtime"
        for line, target in imports(path)
        if target.split(".")[0] == package
    ]
    assert not wrong, wrong


@pytest.mark.parametrize("package, place", [
    ("pygments", "pygments_lexer"), ("pygls", "lsp"), ("lsprotocol", "lsp"), ("fastapi", "server"), ("starlette", "server"),
    ("uvicorn", "server"), ("pydantic", "server"), ("prometheus_client", "server"),
])
def test_packages_of_one_part_only_there(package, place):
    """They are extras: nothing else may need them."""
    wrong = [
        f"{path.relative_to(ROOT)}:{line}"
        for name, path in MODULES.items()
        if part(name) != place
        for line, target in imports(path)
        if target.split(".")[0] == package
    ]
    assert not wrong, wrong


def test_sizes():
    wrong = []
    for path in FILES:
        text = path.read_text(encoding="utf-8")
        if text.count("\n") > 450:
            wrong.append(f"{path.relative_to(ROOT)}: {text.count(chr(10))} lines")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                lines = node.end_lineno - node.lineno + 1
                if lines > 60:
                    wrong.append(f"{path.relative_to(ROOT)}:{node.lineno} {node.name}: {lines} lines")
    assert not wrong, "\n".join(wrong)


def test_files_say_what_they_do():
    wrong = [
        str(path.relative_to(ROOT))
        for path in FILES
        if path.name != "__init__.py" and not ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert not wrong, wrong


def test_names():
    vague = {"utils", "helpers", "common", "misc", "base", "manager", "handler", "processor", "wrapper"}
    wrong = [str(p.relative_to(ROOT)) for p in FILES if p.stem in vague or p.parent.name in vague]
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and node.name.lower().endswith(("manager", "handler", "processor", "wrapper", "helper")):
                wrong.append(f"{path.relative_to(ROOT)}:{node.lineno} {node.name}")
    assert not wrong, wrong


def test_nothing_read_is_executed():
    """No pickle, marshal, shelve, eval, exec or torch.load anywhere: nothing that is read from a file can run."""
    wrong = []
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                called = ast.unparse(node.func)
                if called in ("eval", "exec", "compile", "__import__", "torch.load"):
                    wrong.append(f"{path.relative_to(ROOT)}:{node.lineno} {called}")
        for line, target in imports(path):
            if target.split(".")[0] in ("pickle", "marshal", "shelve", "dill", "cloudpickle"):
                wrong.append(f"{path.relative_to(ROOT)}:{line} imports {target}")
    assert not wrong, wrong


def test_no_failure_is_passed_over():
    wrong = []
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ExceptHandler) and all(isinstance(s, ast.Pass) for s in node.body):
                wrong.append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert not wrong, wrong


def test_environment_is_read_on_top_only():
    wrong = []
    for name, path in MODULES.items():
        if part(name) in ("cli", "embed"):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and node.attr in ("environ", "getenv"):
                wrong.append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert not wrong, wrong
