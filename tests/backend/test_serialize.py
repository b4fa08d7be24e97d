"""Artifacts: what was written reads back, and what is damaged, newer, hostile or odd is refused with a reason (case L-03)."""

import base64
import copy
import hashlib
import json
import os
import pickle
import random
import zlib
from pathlib import Path

import numpy as np
import pytest

from lmc.backend.emit import emit
from lmc.backend.program_text import format_program
from lmc.backend.serialize import MAGIC, VERSION, is_program, read_program, write_program
from lmc.compiler import compile_file
from lmc.diagnostics import CompileError
from lmc.ir.reader import read_module

ROOT = Path(__file__).resolve().parents[2]
EVERYTHING = (ROOT / "tests" / "ir" / "everything.ir").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def program():
    return emit(read_module(EVERYTHING))


@pytest.fixture(scope="module")
def data(program):
    return write_program(program)


def unpack(data: bytes) -> dict:
    return json.loads(zlib.decompress(data[len(MAGIC) + 34:]))


def pack(content, *, version: int = VERSION) -> bytes:
    text = content if isinstance(content, bytes) else json.dumps(content).encode()
    payload = zlib.compress(text)
    return MAGIC + version.to_bytes(2, "little") + hashlib.sha256(payload).digest() + payload


def refused(data: bytes) -> str:
    with pytest.raises(CompileError) as caught:
        read_program(data, "x.lmpc")
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "E0904" and "x.lmpc" in diagnostic.message and diagnostic.help
    return diagnostic.message


def test_everything_reads_back(program, data):
    again = read_program(data, "x.lmpc")
    assert write_program(again) == data and is_program(data)
    assert format_program(again) == format_program(program)
    for name in ("name", "types", "functions", "externs", "entries", "config", "sources"):
        assert getattr(again, name) == getattr(program, name), name
    for a, b in zip(program.constraints, again.constraints, strict=True):
        assert np.array_equal(a.table, b.table) and np.array_equal(a.byte_class, b.byte_class)
        assert np.array_equal(a.accepting, b.accepting) and a.source == b.source
        assert (b.table.dtype, b.byte_class.dtype, b.accepting.dtype) == (np.int32, np.uint8, bool)


@pytest.mark.parametrize("name", ["classify", "judge", "react", "character", "chat", "vote", "tree"])
def test_examples_read_back(name):
    program = compile_file(str(ROOT / "examples" / f"{name}.lmp")).program
    again = read_program(write_program(program), "x.lmpc")
    assert again.functions == program.functions and again.types == program.types and again.sources == program.sources


def test_literal_kinds_survive():
    text = 'module "m" { func @f() -> str {\n%t: str = text.concat(1, 1.0, true, "1", 2: float)\ncontrol.return(%t)\n} }'
    again = read_program(write_program(emit(read_module(text))), "x")
    pieces = again.functions["f"].body.instructions[0].inputs["pieces"]
    assert [(p, type(p)) for p in pieces] == [(1, int), (1.0, float), (True, bool), ("1", str), (2, int)]


def test_every_damage_is_found(data):
    random.seed(1)
    places = [*range(len(MAGIC) + 34), *random.sample(range(len(MAGIC) + 34, len(data)), 100)]
    for place in places:
        damaged = bytearray(data)
        damaged[place] ^= 1 << random.randrange(8)
        refused(bytes(damaged))
    for length in (0, 3, len(MAGIC), 20, len(data) // 2, len(data) - 1):
        refused(data[:length])
    refused(data + b"x")


def test_text_mode_damage_is_named(data):
    assert "mark" in refused(data.replace(b"\r\n", b"\n"))


def test_newer_versions_are_refused_by_name(data):
    assert "a newer version" in refused(pack(unpack(data), version=VERSION + 1))


def test_older_versions_are_refused_and_said_what_to_do(data, tmp_path):
    """Format 1 knew neither grammars nor what calls stand in whose place: it would be misread."""
    # 1 has no leading parameters, 2 no automata in front of the functions and no requests of several pieces.
    for version in (1, 2):
        assert f"format {version}, of an older version of lmc; this one reads format {VERSION}" in refused(pack(unpack(data), version=version))
    path = tmp_path / "old.lmpc"
    path.write_bytes(pack(unpack(data), version=1))
    with pytest.raises(CompileError) as caught:
        read_program(path.read_bytes(), str(path))
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "E0904" and str(path) in diagnostic.message and "compile it again" in diagnostic.help


def test_a_pickle_is_never_loaded(tmp_path):
    canary = tmp_path / "canary"

    class Bomb:
        def __reduce__(self):
            return os.mkdir, (str(canary),)

    bomb = pickle.dumps(Bomb())
    refused(bomb)
    refused(pack(bomb))
    refused(MAGIC + bomb)
    refused(pack({"name": base64.b64encode(bomb).decode()}))
    assert not canary.exists()


def test_deep_and_large_content_is_refused():
    assert "nested too deeply" in refused(pack(b"[" * 10_000_000))
    assert "not JSON" in refused(pack(b"\xff"))
    assert "not JSON" in refused(pack(b"1" * 10_000))
    payload = zlib.compress(b"\0" * 300 * 2**20, 1)
    bomb = MAGIC + VERSION.to_bytes(2, "little") + hashlib.sha256(payload).digest() + payload
    assert "larger than" in refused(bomb)


def _first(data, opcode):
    """The first instruction of an opcode, of any block."""
    def walk(block):
        for i in block["code"]:
            if i["op"] == opcode:
                return i
            for inner in i["blocks"]:
                if found := walk(inner):
                    return found
        return None

    return next(i for f in data["functions"] if (i := walk(f["body"])))


def _deep(content):
    block = content["functions"][0]["body"]
    plain = {"params": [], "code": []}
    for _ in range(200):
        block = {"params": [], "code": [{"op": "control.if", "in": {"condition": True}, "out": [], "types": [], "at": {},
                                        "blocks": [block, plain], "reads": [], "after": [], "span": None}]}
    content["functions"][0]["body"] = block


CHANGES = {
    "unknown instruction": (lambda c: _first(c, "lm.gen").update(op="os.system"), "unknown instruction `os.system`"),
    "unknown field": (lambda c: c.update(plugin="os"), "unknown field `plugin`"),
    "unknown field of an instruction": (lambda c: _first(c, "call").update(hook=1), "unknown field `hook`"),
    "missing field": (lambda c: c.pop("entries"), "without `entries`"),
    "wrong kind": (lambda c: c.update(entries={"main": 1}), "whose `entries` is a dict"),
    "unknown input": (lambda c: _first(c, "lm.gen")["in"].update(magic=1), "unknown field `magic`"),
    "missing input": (lambda c: _first(c, "lm.gen")["in"].pop("context"), "without `context`"),
    "odd literal": (lambda c: _first(c, "text.concat")["in"].update(pieces=[[1]]), "a literal that is a list"),
    "unknown attribute": (lambda c: _first(c, "lm.gen")["at"].update(module="os"), "unknown field `module`"),
    "unknown role": (lambda c: _first(c, "context.append")["at"].update(role="root"), "unknown value `root`"),
    "register not set": (lambda c: _first(c, "text.concat")["in"].update(pieces=[{"r": 999}]), "reads what is not set"),
    "register out of range": (lambda c: _first(c, "text.concat").update(out=[10**9]), "set twice or does not exist"),
    "register set twice": (lambda c: _first(c, "context.append").update(out=[0]), "set twice"),
    "too many registers": (lambda c: c["functions"][0].update(registers=10**12), "registers"),
    "waiting for a later one": (lambda c: _first(c, "lm.fork").update(after=[50]), "waits for a later one"),
    "negative": (lambda c: _first(c, "lm.fork").update(after=[-1]), "holds something else"),
    "no end": (lambda c: c["functions"][0]["body"]["code"].pop(), "without an end"),
    "callee": (lambda c: _first(c, "call")["at"].update(callee="no"), "a call of `no`"),
    "arguments": (lambda c: _first(c, "call")["in"].update(args=[]), "takes other arguments"),
    "extern": (lambda c: _first(c, "extern.call")["at"].update(name="os.system"), "the extern `os.system`, which is not declared"),
    "pure function": (lambda c: _first(c, "pure.call")["at"].update(function="eval"), "unknown function `eval`"),
    "constraint": (lambda c: _first(c, "lm.gen")["at"].update(constraint=99), "constraint that does not exist"),
    "blocks": (lambda c: _first(c, "control.if")["blocks"].pop(), "with 1 blocks"),
    "types": (lambda c: _first(c, "lm.gen")["types"].pop(), "2 outputs and 1 types"),
    "type": (lambda c: _first(c, "lm.gen")["types"].__setitem__(1, "@Nope"), "a type that cannot be read"),
    "span": (lambda c: _first(c, "lm.gen").update(span=[9, 1, 1, 1, 1]), "in no file"),
    "entry": (lambda c: c["entries"].append("no"), "the entry `no`"),
    "twice": (lambda c: c["functions"].append(c["functions"][0]), "two functions of one name"),
    "kind": (lambda c: c["functions"][0].update(kind="macro"), "kind of function `macro`"),
    "depth": (_deep, "blocks inside one another"),
    "no object": (lambda c: c["functions"].append(3), "a function that is no object"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_content_made_by_hand_is_checked(data, change):
    content = unpack(data)
    edit, message = CHANGES[change]
    edit(content)
    assert message in refused(pack(content))


def _dfa(content, **changes):
    content["constraints"][0].update(changes)


@pytest.mark.parametrize("changes", [
    {"table": "???"}, {"table": ""}, {"table": base64.b64encode(b"\xff" * 16).decode()}, {"states": 1}, {"states": 10**12},
    {"classes": 0}, {"classes": 300}, {"states": 10}, {"byte_class": base64.b64encode(b"\xff" * 256).decode()}, {"source": 1},
    {"hook": "x"},
])
def test_automata_are_checked(data, changes):
    content = unpack(data)
    _dfa(content, **changes)
    refused(pack(content))


@pytest.mark.parametrize("same", [
    {"source": "x", "same": 99}, {"source": "x", "same": -1}, {"source": 1, "same": 0}, {"source": "x", "same": 0, "states": 3},
])
def test_an_automaton_is_the_same_as_one_before_it(data, same):
    content = unpack(data)
    content["constraints"].append(same)
    refused(pack(content))


def test_tables_stay_inside(data):
    content = unpack(data)
    entry = content["constraints"][0]
    table = np.frombuffer(base64.b64decode(entry["table"]), dtype="<i4").copy()
    for place, value in ((-1, entry["states"]), (-1, -5), (0, 1)):
        changed = table.copy()
        changed[place] = value
        _dfa(content, table=base64.b64encode(changed.tobytes()).decode())
        assert "automaton" in refused(pack(content))


def test_random_content_is_no_crash(data):
    random.seed(2)
    content = unpack(data)
    for _ in range(300):
        changed = copy.deepcopy(content)
        _mutate(changed)
        try:
            read_program(pack(changed), "x.lmpc")
        except CompileError as error:
            assert error.diagnostics[0].code == "E0904"


def _mutate(node):
    """Replace one value somewhere inside by an odd one."""
    while True:
        keys = list(node) if isinstance(node, dict) else list(range(len(node)))
        if not keys:
            return
        key = random.choice(keys)
        if isinstance(node[key], (dict, list)) and node[key] and random.random() < 0.9:
            node = node[key]
            continue
        node[key] = random.choice([None, -1, 10**30, 1.5, True, "", "x", [], {}, [None], {"r": 0}])
        return
