"""What kernels lack is refused, with the reason, and computed by others where that is allowed."""

import pytest
import torch

from lmc.diagnostics import LmcError
from lmc.runtime.model.config import read_config
from lmc.runtime.model.gpu.model import GpuLlama
from lmc.runtime.model.kernels import choose_kernels
from lmc.runtime.model.llama import Llama
from lmc.runtime.model.load import load_model
from lmc.runtime.model.named_weights import NamedWeights
from lmc.runtime.model.weights import find_tensors, read_tensors
from tests.runtime.model import tiny

MISSING_ON_GPU = {"last 40 tokens": ("Mistral", dict(sliding_window=40)),
                  "have 4 experts": ("Mixtral", dict(num_local_experts=4))}


@pytest.fixture(scope="module", params=MISSING_ON_GPU)
def refused(request, tmp_path_factory):
    """A folder and a part of the reason."""
    family, keys = MISSING_ON_GPU[request.param]
    return tiny.save(tiny.build(family, num_hidden_layers=1, **keys), tmp_path_factory.mktemp("model")), request.param


def test_the_native_step_refuses(tmp_path):
    folder = tiny.save(tiny.build("Llama", num_hidden_layers=1, head_dim=514, num_attention_heads=2), tmp_path / "model")
    reason, cache = "heads have 514 numbers", tmp_path / "cache"
    with pytest.raises(LmcError, match=reason) as error:
        load_model(folder, kernels="native", cache=cache)
    assert error.value.diagnostics[0].code == "E0822"
    with pytest.warns(UserWarning, match=reason):
        assert isinstance(load_model(folder, kernels="auto", cache=cache), Llama)
    assert not cache.exists(), "no library is built for a model that cannot use it"


def test_the_gpu_refuses(refused):
    folder, reason = refused
    weights = NamedWeights(read_tensors(list(find_tensors(folder).values())), torch.float32, False)
    with pytest.raises(LmcError, match=reason) as error:
        GpuLlama(read_config(folder), weights, torch.device("cpu"))
    assert error.value.diagnostics[0].code == "E0822"


def test_triton_needs_a_gpu_and_is_taken_where_there_is_one(tmp_path, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(LmcError, match="the Triton kernels cannot run: torch finds no GPU") as error:
        choose_kernels("triton", None, tmp_path)
    assert error.value.diagnostics[0].code == "E0822"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert choose_kernels("auto", None, tmp_path).name == choose_kernels("triton", None, tmp_path).name == "triton"
    assert choose_kernels("torch", None, tmp_path).name == "torch"


def test_what_the_gpu_lacks_is_computed_without_it(refused, tmp_path, monkeypatch):
    folder, reason = refused
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    # Without a cache folder there is no native step either.
    assert choose_kernels("auto", read_config(folder), None).name == "torch"
    with pytest.raises(LmcError, match=f"Triton.*{reason}"):
        choose_kernels("triton", read_config(folder), tmp_path)
