"""The Triton kernels of a layer's small operations against the plain torch of `llama.py` and `rope.py`."""

import pytest
import torch
import torch.nn.functional as F

from lmc.runtime.model.gpu import layer
from lmc.runtime.model.llama import rms_norm
from lmc.runtime.model.rope import rotate

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
TOLERANCE = {torch.float32: 1e-6, torch.bfloat16: 2e-2}


def randn(*shape, seed=0, dtype=torch.float32):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


@pytest.mark.parametrize("size", [64, 576, 1000])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_rms_norm(size, dtype):
    x, weight = randn(5, size), randn(size, seed=1)
    got = layer.rms_norm(x.to(DEVICE), weight.to(DEVICE), 1e-5, dtype).cpu()
    assert got.dtype == dtype
    torch.testing.assert_close(got.float(), rms_norm(x, weight, 1e-5), rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


@pytest.mark.parametrize("head_dim", [16, 80])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("normed", [False, True])
def test_rotation_and_the_pool(head_dim, dtype, normed):
    heads, kv_heads, tokens = 6, 2, 4
    qkv = randn(tokens, heads + 2 * kv_heads, head_dim, dtype=dtype)
    angles = randn(tokens, head_dim // 2, seed=1)
    norms = (randn(head_dim, seed=2), randn(head_dim, seed=3)) if normed else (None, None)
    new_slots = torch.tensor([7, 0, 3, 8], dtype=torch.int32)
    pool_k, pool_v = randn(9, kv_heads, head_dim, seed=4, dtype=dtype), randn(9, kv_heads, head_dim, seed=5, dtype=dtype)

    qk = qkv[:, : heads + kv_heads].float()
    if normed:
        qk = torch.cat((rms_norm(qk[:, :heads], norms[0], 1e-5), rms_norm(qk[:, heads:], norms[1], 1e-5)), 1)
    qk = rotate(qk, angles.cos()[:, None], angles.sin()[:, None])
    expected_k, expected_v = pool_k.clone(), pool_v.clone()
    expected_k[new_slots.long()], expected_v[new_slots.long()] = qk[:, heads:].to(dtype), qkv[:, heads + kv_heads :]

    on_device = [None if norm is None else norm.to(DEVICE) for norm in norms]
    pool_k, pool_v = pool_k.to(DEVICE), pool_v.to(DEVICE)
    q = layer.rotate_and_store(qkv.to(DEVICE), *on_device, 1e-5, angles.cos().to(DEVICE), angles.sin().to(DEVICE),
                               new_slots.to(DEVICE), pool_k, pool_v, heads)
    tolerance = dict(rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])
    torch.testing.assert_close(q.cpu().float(), qk[:, :heads], **tolerance)
    torch.testing.assert_close(pool_k.cpu(), expected_k, **tolerance)
    assert torch.equal(pool_v.cpu(), expected_v)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_gate(dtype):
    gate_value = randn(3, 2 * 1100, dtype=dtype)
    gates, values = gate_value.float().chunk(2, -1)
    got = layer.gate(gate_value.to(DEVICE)).cpu()
    torch.testing.assert_close(got.float(), F.silu(gates) * values, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])
