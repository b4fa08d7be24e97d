"""Shared by all tests: one thread, and the `--update` switch of golden files."""

import os

# Before torch is imported anywhere: two busy threads beside another process are up to 200 times slower, because barriers wait for a
# thread that is not scheduled.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest  # noqa: E402


def pytest_addoption(parser):
    parser.addoption("--update", action="store_true", help="rewrite golden files from what is printed now")


@pytest.fixture
def update(request) -> bool:
    """Whether golden files are to be rewritten."""
    return request.config.getoption("--update")
