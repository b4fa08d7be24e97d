"""Externs, `print` and `input`: bound and checked, once and in order, values both ways."""

import asyncio
import threading
import time

import pytest

from lmc.diagnostics import UsageError
from lmc.runtime.host import bind_externs, load_extern_file
from lmc.runtime.host_types import HostTypes
from lmc.types import BOOL, CONTEXT, STR, DictT, Field, ListT, OptionalT, RecordT
from lmc.values import Record, ValueMismatch
from tests.runtime.programs import dry_session, program_of, run

TOOLS = '''
type Point:
    x: int
    label: str | None = None

extern def move(p: Point, by: list[int]) -> Point
extern def note(text: str) -> str
pure extern def slow(i: int) -> int

def step(x: int) -> Point:
    return move({x: x}, [1, 2])

def notes(n: int) -> list[str]:
    return [note("n${i}") for i in range(n)]

def straight() -> str:
    a = note("first")
    b = note("second")
    print("between")
    c = note("third")
    return a + b + c

def together(n: int) -> list[int]:
    return [slow(i) for i in range(n)]
'''


class Host:
    """Externs that remember how they were called."""

    def __init__(self):
        self.seen = []
        self.under_way = self.peak = 0
        self.lock = threading.Lock()

    def functions(self):
        return {"move": self.move, "note": self.note, "slow": self.slow}

    def move(self, p, by):
        self.seen.append((type(p).__name__, p.x, p.label, by))
        return {"x": p.x + sum(by), "label": "moved"}

    def note(self, text):
        time.sleep(0.002)
        self.seen.append(text)
        return text

    def slow(self, i):
        with self.lock:
            self.under_way += 1
            self.peak = max(self.peak, self.under_way)
        time.sleep(0.05)
        with self.lock:
            self.under_way -= 1
        return i * i


def test_records_and_lists_go_both_ways(tmp_path):
    host = Host()
    ended = run(program_of(TOOLS, tmp_path), dry_session(), "step", 4, externs=host.functions())
    assert host.seen == [("Point", 4, None, [1, 2])]
    assert ended.value.values == (7, "moved")


def test_effects_run_once_and_in_program_order(tmp_path):
    program = program_of(TOOLS, tmp_path)
    host = Host()
    ended = run(program, dry_session(), "notes", 12, externs=host.functions())
    assert host.seen == [f"n{i}" for i in range(12)] == list(ended.value)
    host = Host()
    assert run(program, dry_session(), "straight", externs=host.functions()).printed == ["between"]
    assert host.seen == ["first", "second", "third"]


def test_an_effect_after_a_model_call_keeps_its_place(tmp_path):
    program = program_of('''
extern def note(text: str) -> str

def ask(q: str) -> str:
    user: "${q}"
    assistant: a = gen(max_tokens=20, min_tokens=20)
    x = note("asked ${q}")
    return a

def both() -> str:
    a = ask("one")
    b = note("after one")
    c = ask("two")
    return a + b + c

def branches() -> list[str]:
    user: "Go."
    fork i in range(3):
        x = note("${i} a")
        assistant: a = gen(max_tokens=3)
        y = note("${i} b")
    join a as xs
    return xs
''', tmp_path)
    seen = []

    def note(text):
        seen.append(text)
        return text

    run(program, dry_session(), "both", externs={"note": note})
    assert seen == ["asked one", "after one", "asked two"]
    seen.clear()
    run(program, dry_session(), "branches", externs={"note": note})
    assert [s for s in seen if s.startswith("1")] == ["1 a", "1 b"] and len(seen) == 6


def test_pure_externs_run_side_by_side_but_not_without_bound(tmp_path):
    host = Host()
    ended = run(program_of(TOOLS, tmp_path), dry_session(), "together", 40, externs=host.functions())
    assert ended.value == tuple(i * i for i in range(40))
    assert 1 < host.peak <= 16


def test_coroutine_functions_are_awaited(tmp_path):
    async def slow(i):
        await asyncio.sleep(0.01)
        return i + 1

    functions = Host().functions() | {"slow": slow}
    assert run(program_of(TOOLS, tmp_path), dry_session(), "together", 3, externs=functions).value == (1, 2, 3)


@pytest.mark.parametrize("raised, word", [
    (ValueError("no network"), "ValueError: no network"), (SystemExit(3), "SystemExit 3"), (StopIteration(), "StopIteration"),
    (KeyError("k"), "KeyError"), (BrokenPipeError("pipe"), "BrokenPipeError"),
])
def test_what_an_extern_raises_is_a_located_error(tmp_path, raised, word):
    def move(p, by):
        raise raised

    functions = Host().functions() | {"move": move}
    error = run(program_of(TOOLS, tmp_path), dry_session(), "step", 1, externs=functions).error
    assert error.kind == "extern" and word in error.diagnostics[0].message
    assert error.diagnostics[0].span.line == 10 and error.diagnostics[0].code == "E0713"


@pytest.mark.parametrize("returned", [None, 3, "text", {"x": "no"}, {"x": 1, "y": 2}, object(), float("nan")])
def test_what_an_extern_returns_is_checked(tmp_path, returned):
    functions = Host().functions() | {"move": lambda p, by: returned}
    error = run(program_of(TOOLS, tmp_path), dry_session(), "step", 1, externs=functions).error
    assert error.kind == "extern" and error.diagnostics[0].code == "E0714" and error.diagnostics[0].span.line == 10


def test_errors_of_externs_can_be_caught(tmp_path):
    program = program_of('''
extern def find(q: str) -> str

def f() -> str:
    try:
        return find("x")
    except Error as e:
        return "${e.kind}"
''', tmp_path)

    def find(q):
        raise OSError("down")

    assert run(program, dry_session(), "f", externs={"find": find}).value == "extern"


def test_binding_reports_all_that_does_not_fit(tmp_path):
    program = program_of(TOOLS, tmp_path)
    with pytest.raises(UsageError) as caught:
        bind_externs(program, {"notes": len, "move": lambda p: p, "slow": 3})
    faults = {d.code: d for d in caught.value.diagnostics}
    assert len(caught.value.diagnostics) == 3
    assert "did you mean `notes`" in faults["E0711"].help and faults["E0711"].span.line == 6
    assert "(p)" in next(d.message for d in caught.value.diagnostics if "`move`" in d.message)
    with pytest.raises(UsageError, match="declares no extern `mvoe`"):
        bind_externs(program, Host().functions() | {"mvoe": len}, strict=True)


def test_extern_files(tmp_path):
    (tmp_path / "beside.py").write_text("VALUE = 3\n")
    (tmp_path / "tools.py").write_text(
        "from dataclasses import dataclass\nimport beside\n\n@dataclass\nclass Point:\n    x: int\n    label: str\n\n"
        "def move(p, by):\n    return Point(p.x + beside.VALUE, 'new')\n\ndef _hidden():\n    pass\n")
    found = load_extern_file(tmp_path / "tools.py")
    assert "move" in found and "_hidden" not in found
    functions = Host().functions() | {"move": found["move"]}
    assert run(program_of(TOOLS, tmp_path), dry_session(), "step", 1, externs=functions).value.values == (4, "new")
    (tmp_path / "broken.py").write_text("def f(:\n")
    (tmp_path / "raises.py").write_text("raise RuntimeError('at import')\n")
    for name, word in (("broken.py", "SyntaxError"), ("raises.py", "at import"), ("missing.py", "no file"), ("tools.txt", "no file")):
        with pytest.raises(UsageError, match=word):
            load_extern_file(tmp_path / name)


def test_cancelling_does_not_wait_for_a_blocking_extern(tmp_path):
    functions = Host().functions() | {"note": lambda text: time.sleep(30)}
    start = time.monotonic()
    ended = run(program_of(TOOLS, tmp_path), dry_session(), "notes", 3, externs=functions, cancel_after=0.2)
    assert ended.error == "cancelled" and time.monotonic() - start < 2


INPUT = '''
def f() -> list[str]:
    out: list[str] = []
    while True:
        line = input("> ")
        if line == "":
            break
        out += [line]
    return out
'''


def test_input_ends_with_the_empty_string(tmp_path):
    lines = iter(["one", "two"])
    prompts = []

    def ask(prompt):
        prompts.append(prompt)
        try:
            return next(lines)
        except StopIteration:
            raise EOFError from None

    assert run(program_of(INPUT, tmp_path), dry_session(), "f", ask=ask).value == ("one", "two")
    assert prompts == ["> "] * 3


def test_input_with_nobody_to_ask_is_an_error(tmp_path):
    error = run(program_of(INPUT, tmp_path), dry_session(), "f").error
    assert error.kind == "input" and error.diagnostics[0].span.line == 4


def test_cancelling_does_not_wait_for_input(tmp_path):
    start = time.monotonic()
    ended = run(program_of(INPUT, tmp_path), dry_session(), "f", ask=lambda prompt: time.sleep(30), cancel_after=0.2)
    assert ended.error == "cancelled" and time.monotonic() - start < 2


def test_print_shows_values(tmp_path):
    program = program_of('''
def f(n: int):
    print("a", n, 2.0, n > 1)
    print()
''', tmp_path)
    assert run(program, dry_session(), "f", 3).printed == ["a 3 2.0 true", ""]


def test_dataclasses_of_records():
    pet = RecordT("lib.zoo.Pet", (Field("name", STR), Field("class", BOOL), Field("friends", ListT(STR))), doc="A pet.")
    types = HostTypes((pet,))
    made = types.to_host(Record(pet, ("Rex", True, ("Tom",))))
    assert repr(made) == "Pet(name='Rex', class_=True, friends=['Tom'])" and type(made).__doc__ == "A pet."
    assert types.from_host(made, pet) == Record(pet, ("Rex", True, ("Tom",)))
    assert types.from_host({"name": "Rex", "class": True, "friends": ()}, pet) == Record(pet, ("Rex", True, ()))
    with pytest.raises(ValueMismatch):
        types.from_host({"name": "Rex"}, pet)


@pytest.mark.parametrize("type, value", [
    (CONTEXT, None), (CONTEXT, "text"), (ListT(CONTEXT), [None]), (OptionalT(CONTEXT), 3), (DictT(STR, CONTEXT), {"a": 1}),
    (ListT(CONTEXT), "text"),
])
def test_nothing_else_passes_for_a_context(type, value):
    with pytest.raises(ValueMismatch):
        HostTypes(()).from_host(value, type)
    assert HostTypes(()).from_host(None, OptionalT(CONTEXT)) is None
