"""Artifacts with flipped bytes and a right checksum (case L-03): refused with E0904, or a program that runs or stops with an error."""

import hashlib
import json
import random
import zlib

import pytest

import lmc
from lmc.backend.serialize import MAGIC, VERSION, read_program, write_program
from lmc.compiler import compile_file
from lmc.diagnostics import CompileError, LmcError

PROGRAM = '''
type Note:
    grade: 1..5 = 3
    tags: list[str(max_len=4)](max_items=2) = []
type Stop:
    why: str
type Step = Note | Stop

WORDS = ["p", "q"]

pure extern def twice(n: int) -> int

def label(text: str) -> "a" | "b":
    user: "${text}"
    assistant: l = gen("a" | "b")
    return l

def main(text: str = "x", n: int = 2) -> str:
    total = 0
    for i in range(n):
        if i == 1:
            continue
        total += twice(i)
    step: Step = Note(grade=2)
    found = ""
    match step:
        case Note(grade):
            found = "${grade}"
        case Stop(why):
            found = why
    try:
        user: "${text} ${total}"
        fork d in WORDS:
            user: "${d}"
            assistant: a = gen(regex="[ab]{2}", max_tokens=3)
        join a as xs
        found = "".join(xs)
    except Error as e:
        found = e.kind
    return found + json([label(t) for t in ["u", "v"]])
'''


@pytest.fixture(scope="module")
def text(tmp_path_factory) -> bytes:
    path = tmp_path_factory.mktemp("flipped") / "program.lmp"
    path.write_text(PROGRAM, encoding="utf-8")
    return zlib.decompress(write_program(compile_file(str(path)).program)[len(MAGIC) + 34:])


def packed(text: bytes) -> bytes:
    payload = zlib.compress(text, 1)
    return MAGIC + VERSION.to_bytes(2, "little") + hashlib.sha256(payload).digest() + payload


def outcome(path, data: bytes) -> str:
    """What becomes of the artifact; an exception that is no `LmcError` goes through."""
    path.write_bytes(data)
    try:
        module = lmc.load(path, dry=True, seed=1, max_calls=20, max_tokens=100, externs={"twice": lambda n: 2 * n})
    except CompileError as error:
        assert error.diagnostics[0].code == "E0904"
        return "refused"
    except LmcError:
        return "stopped"
    with module:
        try:
            module.main()
        except (LmcError, AttributeError) as error:
            # An entry whose name was flipped is not there.
            assert isinstance(error, LmcError) or "no public function `main`" in str(error)
            return "stopped"
    return "ran"


def test_flipped_bytes_are_refused_or_run(text, tmp_path):
    draw = random.Random(5)
    seen = {"refused": 0, "stopped": 0, "ran": 0}
    assert outcome(tmp_path / "p.lmpc", packed(text)) == "ran"
    code = text.index(b'"functions"'), text.index(b'"constraints"')
    for number in range(150):
        flipped = bytearray(text)
        for _ in range(draw.choice((1, 1, 2))):
            place = draw.randrange(*code) if number % 3 else draw.randrange(len(text))
            # Digits stay digits and letters letters half of the time, so that the JSON stays JSON.
            old = flipped[place]
            same = b"0123456789" if chr(old).isdigit() else b"abcdefghijklmnopqrstuvwxyz" if chr(old).isalpha() else b""
            flipped[place] = draw.choice(same) if same and draw.random() < 0.8 else old ^ (1 << draw.randrange(8))
        seen[outcome(tmp_path / "p.lmpc", packed(bytes(flipped)))] += 1
    assert seen["refused"] > 40 and seen["ran"] > 5, seen


def _first(data, opcode: str):
    """The first instruction with the opcode."""
    if isinstance(data, dict):
        if data.get("op") == opcode:
            return data
        data = list(data.values())
    for part in data if isinstance(data, list) else ():
        if (found := _first(part, opcode)) is not None:
            return found
    return None


@pytest.mark.parametrize("opcode, change, says", [
    ("control.for", lambda i: i["in"].update(items=3), "a list is wanted"),
    ("control.for", lambda i: i["blocks"][0]["params"].append(0), "set twice"),
    ("lm.fork", lambda i: i["in"].update(context="text"), "context"),
    ("lm.fork", lambda i: i["at"].update(site="0"), "site"),
    ("lm.gen", lambda i: i["types"].__setitem__(0, "int"), "context"),
    ("lm.gen", lambda i: i["at"].update(role="system"), "turn of `system`"),
    ("lm.gen", lambda i: i["in"].update(max_tokens="3"), "max_tokens"),
    ("control.return", lambda i: i["in"].update(values=[]), "returns 0 values"),
    ("control.return", lambda i: i.update(after=[]), "waits for others"),
    ("context.append", lambda i: i["reads"].append(i["reads"][0]), "say what it reads"),
    ("extern.call", lambda i: i["at"].update(pure=False), "pure"),
    ("const", lambda i: i["at"].update(value="[1,"), "value is not of its type"),
    ("control.if", lambda i: i["in"].update(condition="yes"), "condition"),
])
def test_what_the_machine_trusts_is_checked(text, opcode, change, says):
    data = json.loads(text)
    instruction = _first(data, opcode)
    assert instruction is not None, opcode
    change(instruction)
    with pytest.raises(CompileError, match=says) as caught:
        read_program(packed(json.dumps(data).encode()), "x.lmpc")
    assert caught.value.diagnostics[0].code == "E0904"


def test_defaults_and_effects_are_checked(text):
    for change, says in ((lambda d: d["types"][0]["fields"][0].update(default="9"), "default"),
                         (lambda d: d["types"][0]["fields"][1].update(name="'rade"), "has no name"),
                         (lambda d: d["functions"][0].update(host_effects=not d["functions"][0]["host_effects"]), "effects"),
                         (lambda d: d["functions"][-1]["params"].append(d["functions"][-1]["params"][0]), "parameters")):
        data = json.loads(text)
        change(data)
        with pytest.raises(CompileError, match=says):
            read_program(packed(json.dumps(data).encode()), "x.lmpc")
