"""Shared by all tests: one thread, the `--update` switch of golden files, and the real model."""

import os
from pathlib import Path

# Before torch is imported anywhere: two busy threads beside another process are up to 200 times slower, because barriers wait for a
# thread that is not scheduled.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Read when a kernel is decorated.  Without a GPU the Triton kernels run under their interpreter.
if not Path("/dev/nvidia0").exists():
    os.environ.setdefault("TRITON_INTERPRET", "1")

import pytest  # noqa: E402


def pytest_addoption(parser):
    parser.addoption("--update", action="store_true", help="rewrite golden files from what is printed now")


@pytest.fixture
def update(request) -> bool:
    """Whether golden files are to be rewritten."""
    return request.config.getoption("--update")


@pytest.fixture(scope="session")
def model_folder() -> Path:
    """The default model's folder, fetched and converted on first use into `$LMC_CACHE` or the user's cache."""
    from lmc.embed import cache_folder
    from lmc.runtime.model.registry import DEFAULT_MODEL, resolve_model

    return resolve_model(DEFAULT_MODEL, cache_folder())
