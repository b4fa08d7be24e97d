"""Building the native library: once, whole, by key, and what is said where it cannot be."""

import shutil
import subprocess
import threading
from pathlib import Path

import pytest
import torch

from lmc.diagnostics import LmcError
from lmc.runtime.batch import Row
from lmc.runtime.model import kernels
from lmc.runtime.model.kernels import choose_kernels, fallback_warning
from lmc.runtime.model.large_memory import LargeMemory, Recycled, zeros
from lmc.runtime.model.llama import Llama
from lmc.runtime.model.load import load_model
from lmc.runtime.native import build, library
from lmc.runtime.native.build import CannotBuild, compiler_version, library_path, source_files
from tests.runtime.model import tiny
from tests.runtime.model.native import needs_compiler


class FakeCompiler:
    """In the place of running a compiler: writes a file and counts."""

    def __init__(self, monkeypatch, *, version: str = "cc 1.0", returncode: int = 0, stderr: str = ""):
        self.builds, self.version, self.returncode, self.stderr = 0, version, returncode, stderr
        monkeypatch.setattr(build.shutil, "which", lambda name: f"/bin/{name}" if name == "gcc" else None)
        monkeypatch.setattr(build.subprocess, "run", self)

    def __call__(self, command, **options):
        if "--version" in command:
            return subprocess.CompletedProcess(command, 0, self.version + "\nmore", "")
        self.builds += 1
        assert not any(flag.startswith("-march") for flag in command)
        Path(command[command.index("-o") + 1]).write_text("library")
        return subprocess.CompletedProcess(command, self.returncode, "", self.stderr)


def test_built_once_and_kept(tmp_path, monkeypatch):
    compiler = FakeCompiler(monkeypatch)
    first, second = library_path(tmp_path), library_path(tmp_path)
    assert first == second and first.parent == tmp_path / "native" and first.read_text() == "library"
    assert compiler.builds == 1
    assert not list(tmp_path.rglob("*.unfinished"))


def test_the_key_holds_sources_and_compiler(tmp_path, monkeypatch):
    compiler = FakeCompiler(monkeypatch)
    first = library_path(tmp_path)
    compiler.version = "cc 2.0"
    second = library_path(tmp_path)
    changed = tmp_path / "step.c"
    changed.write_text("int other;")
    monkeypatch.setattr(build, "source_files", lambda: [changed])
    assert len({first, second, library_path(tmp_path)}) == 3


def test_who_comes_together_builds_once(tmp_path, monkeypatch):
    compiler = FakeCompiler(monkeypatch)
    threads = [threading.Thread(target=library_path, args=(tmp_path,)) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert compiler.builds == 1


def test_a_failed_build_leaves_nothing(tmp_path, monkeypatch):
    FakeCompiler(monkeypatch, returncode=1, stderr="x.c: note\nx.c:3: error: no such thing\n")
    with pytest.raises(CannotBuild, match="no such thing"):
        library_path(tmp_path)
    assert [path.suffix for path in (tmp_path / "native").iterdir()] in ([], [".lock"])


def test_a_cache_that_cannot_be_written(tmp_path, monkeypatch):
    FakeCompiler(monkeypatch)
    (tmp_path / "native").write_text("a file where the folder should be")
    with pytest.raises(CannotBuild, match="cannot be written"):
        library_path(tmp_path)


def test_what_is_no_library_is_not_loaded(tmp_path, monkeypatch):
    FakeCompiler(monkeypatch)
    with pytest.raises(CannotBuild, match="cannot be loaded"):
        library.load_library(tmp_path)


@needs_compiler
def test_another_interface_is_refused(tmp_path, monkeypatch):
    """A library that was built from other structures must not be called."""
    source = tmp_path / "old.c"
    source.write_text("int lmc_abi(void) { return 999; }")
    monkeypatch.setattr(build, "source_files", lambda: [source])
    with pytest.raises(CannotBuild, match="interface 999"):
        library.load_library(tmp_path)


@needs_compiler
def test_the_sources_give_no_warning(tmp_path):
    compiler = build.find_compiler()
    assert compiler_version(compiler)
    sources = [str(path) for path in source_files() if path.suffix == ".c"]
    flags = ["-std=c11", "-O1", "-fsyntax-only", "-Wall", "-Wextra", "-Werror"]
    done = subprocess.run([compiler, *flags, *sources], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(shutil.which("aarch64-linux-gnu-gcc") is None, reason="no compiler for 64-bit ARM on this machine")
def test_the_sources_compile_for_arm(tmp_path):
    sources = [str(path) for path in source_files() if path.suffix == ".c"]
    flags = ["-std=c11", "-O1", "-fPIC", "-shared", "-pthread", "-Wall", "-Wextra", "-Werror"]
    done = subprocess.run(["aarch64-linux-gnu-gcc", *flags, *sources, "-o", str(tmp_path / "lmc.so"), "-lm"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


# The fall-back.

def test_without_a_library_torch_computes_and_says_so_once(tmp_path, monkeypatch, recwarn):
    monkeypatch.setattr(build.shutil, "which", lambda name: None)
    folder = tiny.save(tiny.build("Llama"), tmp_path / "model")
    model = load_model(folder, kernels="auto", cache=tmp_path)
    assert isinstance(model, Llama)
    assert [str(w.message).split(":")[0] for w in recwarn if "W182" in str(w.message)] == ["warning[W182]"]
    with pytest.raises(LmcError) as error:
        load_model(folder, kernels="native", cache=tmp_path)
    assert error.value.diagnostics[0].code == "E0822"
    assert fallback_warning(choose_kernels("torch", None, tmp_path)) is None


def test_what_the_step_lacks_is_named(tmp_path, monkeypatch):
    folder = tiny.save(tiny.build("Llama"), tmp_path / "model")
    monkeypatch.setattr(kernels, "_LONGEST_HEAD", 16)
    chosen = choose_kernels("auto", load_model(folder).config, tmp_path)
    assert chosen.library is None and "heads have 32 numbers" in chosen.reason


# Memory.

def test_large_memory_keeps_numbers_apart():
    memory = LargeMemory()
    tensors = [torch.randn(7, 11), torch.randn(3).to(torch.bfloat16), torch.arange(5, dtype=torch.int32)]
    placed = [memory.copy(tensor) for tensor in tensors]
    big = memory.copy(torch.ones(9 << 20))  # more than a chunk
    assert all(torch.equal(a, b) and a.data_ptr() % 64 == 0 for a, b in zip(tensors, placed))
    assert big.sum() == 9 << 20
    assert zeros((3, 1 << 20), torch.float32).sum() == 0 and zeros((2, 2), torch.bfloat16).shape == (2, 2)


def test_recycled_memory_is_not_taken_from_who_reads_it():
    logits = Recycled()
    first = logits.empty(32, 49_152)
    first.fill_(1.0)
    part = first[3:5]
    second = logits.empty(32, 49_152)
    assert second.data_ptr() != first.data_ptr()
    place = second.data_ptr()
    del second
    assert logits.empty(30, 49_152).data_ptr() == place
    del first
    kept = logits.empty(32, 49_152)
    kept.fill_(2.0)
    other = logits.empty(32, 49_152)
    other.fill_(3.0)
    assert (part == 1.0).all() and (kept == 2.0).all()
