"""`lmc doctor`: facts, faults and exit codes, on models that are folders."""

import json

import pytest

from lmc.cli.entry import run_command
from lmc.runtime.native import build
from tests.runtime.folders import byte_level_json
from tests.runtime.model import tiny
from tests.runtime.model.native import levels, needs_compiler


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tiny.save(tiny.build("Llama"), tmp_path_factory.mktemp("llama"))
    (folder / "tokenizer.json").write_text(json.dumps(byte_level_json()))
    return folder


def facts(capsys, *words: str) -> dict:
    code = run_command(["doctor", "--format", "json", *words])
    return {**json.loads(capsys.readouterr().out), "exit": code}


@needs_compiler
def test_native_kernels(folder, capsys):
    found = facts(capsys, "--model", str(folder), "--pool-tokens", "1000", "--dtype", "bfloat16")
    assert found["exit"] == 0 and not found["faults"] and not found["warnings"]
    assert found["kernels"].startswith(f"native:{levels()[0]} of {', '.join(levels())}; ")
    assert found["library"].endswith(".so") and found["dtype"] == "bfloat16"
    assert found["pool"] == "1,000 tokens, 1 MiB; context 512"


def test_text_names_everything(folder, capsys):
    assert run_command(["doctor", "--model", str(folder), "--kernels", "torch"]) == 0
    names = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert names == ["lmc", "torch", "cache", "model", "dtype", "kernels", "library", "compiler", "pool"]


def test_without_a_compiler(folder, capsys, monkeypatch):
    """Torch takes over with a reason; who insists on the native kernels gets an error."""
    monkeypatch.setattr(build.shutil, "which", lambda name: None)
    found = facts(capsys, "--model", str(folder))
    assert (found["exit"], found["warnings"], found["compiler"]) == (0, ["W182"], "none")
    assert found["kernels"] == "torch, because no C compiler (cc, gcc, clang) on the path"
    assert facts(capsys, "--model", str(folder), "--kernels", "native")["faults"] == ["E0822"]
    assert run_command(["doctor", "--model", str(folder), "--kernels", "native"]) == 1


def test_a_model_that_cannot_be_used(folder, tmp_path, capsys):
    (tmp_path / "config.json").write_text("{")
    found = facts(capsys, "--model", str(tmp_path), "--kernels", "torch")
    assert found["exit"] == 1 and found["faults"] and "pool" not in found


@pytest.mark.parametrize("kernels", ["fast", "native:", "native:sse", "torch:avx2"])
def test_wrong_words(folder, capsys, kernels):
    assert run_command(["doctor", "--model", str(folder), "--kernels", kernels]) == 2
    assert "E0851" in capsys.readouterr().err


def test_a_level_of_other_machines(folder, capsys):
    other = "neon" if "neon" not in levels() else "amx"
    assert facts(capsys, "--model", str(folder), "--kernels", f"native:{other}")["faults"] == ["E0822"]
