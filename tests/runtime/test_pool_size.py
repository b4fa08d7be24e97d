"""The size of the pool in tokens or in bytes: what is understood, what is refused, and that both come out at the engine."""

import pytest

from lmc import RunError, UsageError, load
from lmc.cli.entry import run_command
from lmc.runtime.dry_text import DRY_SLOT_BYTES
from lmc.runtime.open_session import open_session
from lmc.runtime.pool_size import PoolSize, pool_size


@pytest.mark.parametrize("text, size", [
    ("2GiB", 2 << 30), ("512 MiB", 512 << 20), ("1.5g", 1_500_000_000), ("64k", 64_000), ("100B", 100), ("4096", 4096), (4096, 4096),
    ("1 gib", 1 << 30),
])
def test_sizes_as_people_write_them(text, size):
    assert pool_size(size=text) == PoolSize(bytes=size)


@pytest.mark.parametrize("text", ["", "GiB", "-1MB", "2 TiB and more", "1e9", "many", "2iB"])
def test_what_is_no_size_is_told(text):
    with pytest.raises(UsageError, match="expected a size such as 512MiB"):
        pool_size(size=text)


def test_too_small_or_said_twice():
    with pytest.raises(UsageError, match="expected at least 2"):
        pool_size(tokens=1)
    with pytest.raises(UsageError, match="a pool of 100 bytes holds 1 tokens of 64 bytes each"):
        pool_size(size=100).slots(64, lambda: 5)
    with pytest.raises(UsageError, match="expected one of both"):
        pool_size(100, "1MiB")
    assert pool_size().slots(64, lambda: 5) == 5 and pool_size(7).slots(64, lambda: 5) == 7


def test_bytes_are_tokens_of_the_model(tmp_path):
    session = open_session(model="", dry=True, cache=tmp_path, pool_bytes="64 KiB")
    try:
        assert session.stats.free_slots == session.limit == (64 << 10) // DRY_SLOT_BYTES
    finally:
        session.close()


PROGRAM = 'def ask(text: str) -> str:\n    raw:\n        "${text}"\n        answer = gen(max_tokens=3)\n    return answer\n'


def test_from_python_and_the_command_line(tmp_path, capsys):
    path = tmp_path / "ask.lmp"
    path.write_text(PROGRAM)
    with load(path, dry=True, pool_bytes=100 * DRY_SLOT_BYTES) as program, pytest.raises(RunError, match="the pool has 100"):
        program.ask("x" * 300)
    with pytest.raises(UsageError, match="expected a size"):
        load(path, dry=True, pool_bytes="some")
    command = ["run", str(path), "--text", "Hello", "--dry", "-q"]
    assert run_command([*command, "--pool-bytes", "1MiB"]) == 0
    assert run_command([*command, "--pool-bytes", "1MiB", "--pool-tokens", "50"]) != 0
    assert "expected one of both" in capsys.readouterr().err
    assert run_command(["plan", str(path), "--text", "Hello", "--dry", "--pool-bytes", "1MiB"]) == 0
