"""Weights are complete and fit the model, or loading fails before a number is read, naming the file (cases K-01 and K-02)."""

import json
import shutil
import warnings

import pytest
import torch
from safetensors.torch import load_file, save_file

from lmc.diagnostics import LmcError
from lmc.runtime.model import load
from lmc.runtime.model.load import load_model
from tests.runtime.model import tiny

TOKENS = tiny.ids(12)


def logits(folder, **options) -> torch.Tensor:
    model = load_model(folder, **options)
    model.allocate(16)
    return model.forward([tiny.whole(TOKENS, list(range(12)))])


@pytest.fixture(scope="module")
def single(tmp_path_factory):
    return tiny.save(tiny.build("Llama"), tmp_path_factory.mktemp("single"))


@pytest.fixture(scope="module")
def three_shards(tmp_path_factory):
    folder = tiny.save(tiny.build("Llama"), tmp_path_factory.mktemp("sharded"), max_shard_size="400KB")
    assert len(list(folder.glob("*.safetensors"))) >= 3
    return folder


@pytest.fixture
def sharded(three_shards, tmp_path):
    return shutil.copytree(three_shards, tmp_path / "model")


def refused(folder, monkeypatch) -> list[str]:
    """The diagnostics of a load that fails before any number is read."""
    monkeypatch.setattr(load, "read_tensors", lambda *_: pytest.fail("numbers were read"))
    with pytest.raises(LmcError) as error:
        load_model(folder)
    return [f"{d.code} {d.message}" for d in error.value.diagnostics]


def shard(folder, number: int):
    return sorted(folder.glob("*.safetensors"))[number]


def test_shards_equal_one_file(single, sharded):
    assert torch.equal(logits(single), logits(sharded))


def test_unusual_shard_names(single, sharded):
    index = sharded / "model.safetensors.index.json"
    name = shard(sharded, 1).name
    shard(sharded, 1).rename(sharded / "weights two.st")
    index.write_text(index.read_text().replace(name, "weights two.st"))
    assert torch.equal(logits(single), logits(sharded))


def test_stale_extra_shard_is_ignored(single, sharded):
    save_file({"model.norm.weight": torch.zeros(96), "stray": torch.ones(2)}, sharded / "model-00009-of-00009.safetensors")
    (sharded / "model-00010.safetensors").write_bytes(b"junk")
    assert torch.equal(logits(single), logits(sharded))


def test_missing_shard(sharded, monkeypatch):
    gone = shard(sharded, 1)
    gone.unlink()
    assert refused(sharded, monkeypatch) == [f"E0804 {gone}: no such file, but model.safetensors.index.json names it"]


def test_two_missing_shards_are_both_named(sharded, monkeypatch):
    gone = [shard(sharded, 2), shard(sharded, 0)]
    for path in gone:
        path.unlink()
    assert len(refused(sharded, monkeypatch)) == 2


@pytest.mark.parametrize("keep", [0, 5, 40, 2000, -1])
def test_truncated_shard(sharded, monkeypatch, keep):
    path = shard(sharded, 1)
    path.write_bytes(path.read_bytes()[:keep])
    (fault,) = refused(sharded, monkeypatch)
    assert fault.startswith("E0806") and str(path) in fault


def test_overlong_and_garbled_files(sharded, monkeypatch):
    path = shard(sharded, 1)
    data = path.read_bytes()
    for damaged in (data + b"\0", b"\xff" * 8 + data[8:], data[:8] + b"{{" + data[10:]):
        path.write_bytes(damaged)
        (fault,) = refused(sharded, monkeypatch)
        assert fault.startswith("E0806") and str(path) in fault


def test_missing_index(sharded, monkeypatch):
    (sharded / "model.safetensors.index.json").unlink()
    (fault,) = refused(sharded, monkeypatch)
    assert fault.startswith("E0804") and "no model.safetensors.index.json, only model-00001" in fault


@pytest.mark.parametrize("text", ["", "{}", '{"weight_map": {}}', '{"weight_map": [1]}', '{"weight_map": {"a": 1}}',
                                  '{"weight_map": {"a": "../secret.safetensors"}}', '{"weight_map": {"a": "/etc/passwd"}}'])
def test_damaged_index(sharded, monkeypatch, text):
    (sharded / "model.safetensors.index.json").write_text(text)
    (fault,) = refused(sharded, monkeypatch)
    assert fault.startswith("E0806") and "index.json" in fault


def test_index_and_shard_disagree(sharded, monkeypatch):
    index = sharded / "model.safetensors.index.json"
    content = json.loads(index.read_text())
    names = sorted(set(content["weight_map"].values()))
    moved = next(t for t, n in content["weight_map"].items() if n == names[0])
    content["weight_map"][moved] = names[1]
    index.write_text(json.dumps(content))
    (fault,) = refused(sharded, monkeypatch)
    assert moved in fault and str(sharded / names[1]) in fault


def test_no_weights(single, tmp_path, monkeypatch):
    shutil.copy(single / "config.json", tmp_path)
    assert refused(tmp_path, monkeypatch) == [f"E0804 {tmp_path}: no model.safetensors and no model.safetensors.index.json"]


def test_pickled_weights_are_never_read(single, tmp_path):
    shutil.copy(single / "config.json", tmp_path)
    (tmp_path / "pytorch_model.bin").write_bytes(b"cos\nsystem\n(S'touch owned'\ntR.")
    with pytest.raises(LmcError) as error:
        load_model(tmp_path)
    assert "pytorch_model.bin" in error.value.diagnostics[0].message and "pickled" in error.value.diagnostics[0].help


def rewritten(single, folder, change):
    """A copy of the model whose tensors `change` has edited."""
    shutil.copy(single / "config.json", folder)
    tensors = load_file(single / "model.safetensors")
    change(tensors)
    save_file(tensors, folder / "model.safetensors")
    return folder


LAYER = "model.layers.1."


@pytest.mark.parametrize(("change", "part"), [
    (lambda t: t.pop(LAYER + "mlp.up_proj.weight"), "`model.layers.1.mlp.up_proj.weight` is missing"),
    (lambda t: t.update({LAYER + "mlp.up_proj.bias": torch.zeros(96)}), "`model.layers.1.mlp.up_proj.bias` is not part"),
    (lambda t: t.update({"model.layers.3.mlp.up_proj.weight": torch.zeros(96, 64)}), "`model.layers.3.mlp.up_proj.weight` is not part"),
    (lambda t: t.update({"model.norm.weight": torch.zeros(95)}), "shape [95], expected [96]"),
    (lambda t: t.update({"model.embed_tokens.weight": torch.zeros(96, 128)}), "shape [96, 128], expected [128, 96]"),
    (lambda t: t.update({"model.norm.weight": torch.zeros(96, dtype=torch.int8)}), "number format I8"),
])
def test_tensors_that_do_not_fit(single, tmp_path, monkeypatch, change, part):
    (fault,) = refused(rewritten(single, tmp_path, change), monkeypatch)
    assert fault.startswith("E0815") and part in fault and str(tmp_path) in fault


def test_all_faulty_tensors_are_named(single, tmp_path, monkeypatch):
    def change(tensors):
        tensors.pop("model.norm.weight")
        tensors.pop(LAYER + "self_attn.q_proj.weight")
        tensors["stray"] = torch.zeros(1)

    assert len(refused(rewritten(single, tmp_path, change), monkeypatch)) == 3


def test_stored_rotary_frequencies_are_not_needed(single, tmp_path):
    folder = rewritten(single, tmp_path, lambda t: t.update({LAYER + "self_attn.rotary_emb.inv_freq": torch.zeros(8)}))
    assert torch.equal(logits(folder), logits(single))


@pytest.mark.parametrize("stored", [torch.bfloat16, torch.float16, torch.float64])
def test_stored_formats(single, tmp_path, stored):
    """Numbers stored in another format are computed with as they are, in float32."""
    got = logits(rewritten(single, tmp_path, lambda t: t.update({k: v.to(stored) for k, v in t.items()})))
    wanted = logits(rewritten(single, tmp_path, lambda t: t.update({k: v.to(stored).float() for k, v in t.items()})))
    assert torch.equal(got, wanted)


# Case K-02.

def tied_case(folder, *, tied: bool, present: bool, equal: bool = True):
    model = tiny.build("Llama", tie_word_embeddings=tied)
    tiny.save(model, folder)
    tensors = load_file(folder / "model.safetensors")
    tensors.pop("lm_head.weight", None)
    if present:
        tensors["lm_head.weight"] = model.lm_head.weight.detach().clone() * (1.0 if equal else 2.0)
    save_file(tensors, folder / "model.safetensors")
    return model, folder


@pytest.mark.parametrize(("tied", "present"), [(True, False), (True, True), (False, True)])
def test_output_matrix(tmp_path, tied, present):
    model, folder = tied_case(tmp_path, tied=tied, present=present)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        got = logits(folder)
    torch.testing.assert_close(got, tiny.reference_logits(model, TOKENS), rtol=1e-4, atol=1e-4)


def test_tied_with_another_output_matrix_warns_and_ties(tmp_path):
    model, folder = tied_case(tmp_path, tied=True, present=True, equal=False)
    with pytest.warns(UserWarning, match="lm_head.weight"):
        got = logits(folder)
    torch.testing.assert_close(got, tiny.reference_logits(model, TOKENS), rtol=1e-4, atol=1e-4)


def test_untied_without_output_matrix(tmp_path, monkeypatch):
    _, folder = tied_case(tmp_path, tied=False, present=False)
    (fault,) = refused(folder, monkeypatch)
    assert "`lm_head.weight` is missing" in fault


def test_unknown_dtype(single):
    with pytest.raises(LmcError, match="float16"):
        load_model(single, dtype="float16")
