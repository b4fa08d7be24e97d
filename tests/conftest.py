"""Shared by all tests: no network, one thread (see docs/architecture.md on contention), and the `--update` switch of golden files."""

import pytest


def pytest_addoption(parser):
    parser.addoption("--update", action="store_true", help="rewrite golden files from what is printed now")


@pytest.fixture
def update(request) -> bool:
    """Whether golden files are to be rewritten."""
    return request.config.getoption("--update")


@pytest.fixture(scope="session", autouse=True)
def one_thread():
    # Two busy threads beside another process are up to 200 times slower (barriers wait for a descheduled thread).
    import torch

    torch.set_num_threads(1)
