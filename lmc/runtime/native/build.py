"""Builds the native CPU step with the system's C compiler, once for each state of its sources, and keeps it in the cache folder.

    library_path(Path("~/.cache/lmc"))     ->  ~/.cache/lmc/native/lmc-1f0c….so          about ten seconds the first time

The name holds a hash of the sources, the compiler's version and the flags, so a stale library is never loaded and two versions of
`lmc` share a cache folder.  Processes that start together wait for one build (a file lock); what is there is whole (it is written
beside and renamed).  The library runs on any processor of the same kind: which instructions it uses is decided when it is opened,
never when it is built.  This file does not know what the library does.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from filelock import FileLock, Timeout

_SOURCES = Path(__file__).parent
_COMPILERS = ("cc", "gcc", "clang")
# No -march: the library chooses by itself.  No contraction: where a product and a sum are fused is written down, not guessed.
_FLAGS = ("-std=c11", "-O3", "-fPIC", "-shared", "-pthread", "-ffp-contract=off", "-fno-math-errno", "-w")
# A build takes seconds; on a busy machine a minute.
_PATIENCE_S = 300


class CannotBuild(Exception):
    """Why there is no native library; the message is one line for people."""


def library_path(cache: Path) -> Path:
    """The library for the sources as they are, built if need be.  Raises `CannotBuild`."""
    compiler = find_compiler()
    if compiler is None:
        raise CannotBuild(f"no C compiler ({', '.join(_COMPILERS)}) on the path")
    target = cache.expanduser() / "native" / f"lmc-{_key(compiler)}.so"
    if target.is_file():
        return target
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(target.with_suffix(".lock"), timeout=_PATIENCE_S):
            if not target.is_file():
                _build(compiler, target)
    except Timeout:
        raise CannotBuild(f"another process has been building {target.name} for {_PATIENCE_S} seconds") from None
    except OSError as error:
        raise CannotBuild(f"{target.parent} cannot be written: {error.strerror or error}") from None
    return target


def find_compiler() -> str | None:
    """Path of the system's C compiler."""
    return next((found for name in _COMPILERS if (found := shutil.which(name))), None)


def compiler_version(compiler: str) -> str:
    """The first line of what the compiler says about itself.  Raises `CannotBuild`."""
    said = _run([compiler, "--version"]).stdout
    return said.splitlines()[0] if said else compiler


def source_files() -> list[Path]:
    """The C sources and headers, sorted."""
    return sorted(path for path in _SOURCES.iterdir() if path.suffix in (".c", ".h"))


def _key(compiler: str) -> str:
    digest = hashlib.sha256()
    # The C library's version is part of the binary interface.
    about = (compiler_version(compiler), *_FLAGS, sys.platform, platform.machine(), *platform.libc_ver())
    for text in about:
        digest.update(text.encode() + b"\0")
    for path in source_files():
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:24]


def _build(compiler: str, target: Path) -> None:
    descriptor, unfinished = tempfile.mkstemp(prefix=target.stem, suffix=".unfinished", dir=target.parent)
    os.close(descriptor)
    try:
        sources = [str(path) for path in source_files() if path.suffix == ".c"]
        done = _run([compiler, *_FLAGS, *sources, "-o", unfinished, "-lm"])
        if done.returncode:
            said = next((line for line in done.stderr.splitlines() if "error" in line), done.stderr.strip()[:200])
            raise CannotBuild(f"{compiler} failed: {said}")
        os.replace(unfinished, target)
    finally:
        Path(unfinished).unlink(missing_ok=True)


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=_PATIENCE_S, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        raise CannotBuild(f"{command[0]} did not end within {_PATIENCE_S} seconds") from None
    except OSError as error:
        raise CannotBuild(f"{command[0]} cannot be run: {error.strerror or error}") from None
