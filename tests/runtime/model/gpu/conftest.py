"""Triton has packages for Linux only; elsewhere its kernels cannot run and are not tested."""

from importlib.util import find_spec

import pytest

collect_ignore_glob = [] if find_spec("triton") else ["test_*.py"]


@pytest.fixture
def products_of_one_kind(monkeypatch):
    """Under the interpreter a product of tiles is numpy's, whose library may add up another way in other rows of the same tile.  A GPU
    does not, so where bits are compared the interpreter is not to either: here every element is added up in the order of the keys."""
    import numpy as np
    from triton.runtime.interpreter import InterpreterBuilder, TensorHandle

    def create_dot(self, a, b, d, input_precision, max_num_imprecise_acc):
        products = a.data[..., :, :, None].astype(d.data.dtype) * b.data[..., None, :, :].astype(d.data.dtype)
        return TensorHandle(np.add.reduce(products, axis=-2) + d.data, d.dtype.scalar)

    monkeypatch.setattr(InterpreterBuilder, "create_dot", create_dot)
