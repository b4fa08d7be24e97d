"""Triton has packages for Linux only; elsewhere its kernels cannot run and are not tested."""

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("triton") else ["test_*.py"]
