"""llama.cpp's own HTTP server on the default model, in a process of its own.

    with llama_cpp(file) as server:
        server.url

The server comes out of the package `xllamacpp`, or is the binary that `LMC_LLAMA_SERVER` names.
"""

from __future__ import annotations

import importlib.util
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

#: Seconds for a server to read its model.
_PATIENCE = 60.0
SLOTS, CONTEXT = 4, 2048


@dataclass(frozen=True)
class Running:
    """A server that answers.  `pid`: of its process."""

    url: str
    pid: int


def how_to_start(file: Path) -> list[str] | None:
    """The command of a llama.cpp server on this machine, None where there is none; `{port}` is left open where it has to be given."""
    binary = os.environ.get("LMC_LLAMA_SERVER")
    if binary:
        return [binary, "-m", str(file), "--host", "127.0.0.1", "--port", "{port}", "-np", str(SLOTS), "-c", str(SLOTS * CONTEXT),
                "-t", "1", "-tb", "1", "-ctk", "f32", "-ctv", "f32", "--no-warmup"]
    if importlib.util.find_spec("xllamacpp") is not None:
        return [sys.executable, str(Path(__file__).with_name("llama_cpp_process.py")), str(file), str(SLOTS), str(CONTEXT)]
    return None


@contextmanager
def llama_cpp(file: Path, log: Path) -> Iterator[Running]:
    """A server on this GGUF file; what it says goes into `log`.  Raises `AssertionError` with the end of it where it does not start."""
    command = how_to_start(file)
    assert command is not None, "no llama.cpp here"
    port = _free_port() if "{port}" in command else None
    command = [part.replace("{port}", str(port)) for part in command]
    with log.open("wb") as said:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE if port is None else said, stderr=said)
        try:
            url = _address(process) if port is None else f"http://127.0.0.1:{port}"
            _wait(process, url, log)
            yield Running(url, process.pid)
        finally:
            process.kill()
            process.communicate()


def _address(process: subprocess.Popen[bytes]) -> str:
    """What the process prints once it answers; the rest of what it prints there is read away, so that it never waits for a reader."""
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith(b"http://"):
            return line.decode().strip()
    return ""


def _wait(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    end = time.monotonic() + _PATIENCE
    while time.monotonic() < end and process.poll() is None and url:
        try:
            with urllib.request.urlopen(f"{url}/health", timeout=5) as answer:
                if answer.status == 200:
                    return
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.05)
    raise AssertionError(f"llama.cpp does not start: {log.read_text(errors='replace')[-2000:]}")


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]
