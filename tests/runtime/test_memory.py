"""The size of the pool when nobody gives one."""

import pytest

from lmc.runtime.memory import available_bytes, default_slots

GIB = 1 << 30


def machine(root, *, free, group="", **files):
    """A made-up `/proc` and `/sys`; `files` are contents of control group files, `a__b` standing for `a/b`."""
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/meminfo").write_text(f"MemTotal: 99 kB\nMemAvailable: {free // 1024} kB\n")
    (root / "proc/self/cgroup").write_text(f"0::/{group}\n")
    for name, text in files.items():
        file = root / "sys/fs/cgroup" / name.replace("__", "/").replace("memory_", "memory.")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return root


def test_the_tightest_limit_counts(tmp_path):
    free = 64 * GIB
    assert available_bytes(machine(tmp_path / "a", free=free)) == free
    root = machine(tmp_path / "b", free=free, group="outer/inner", outer__memory_max=f"{8 * GIB}", outer__memory_current=f"{2 * GIB}",
                   outer__inner__memory_max="max\n", outer__inner__memory_current="5")
    assert available_bytes(root) == 6 * GIB
    assert available_bytes(tmp_path / "nothing there") > 0


@pytest.mark.parametrize("free, tokens", [(4 * GIB, GIB // 1000), (100 * GIB, 4 * GIB // 1000), (0, 256)])
def test_a_quarter_and_at_most_four_gib(tmp_path, free, tokens):
    assert default_slots(1000, 10**9, root=machine(tmp_path, free=free)) == tokens
    assert default_slots(1000, 8, root=machine(tmp_path / "small context", free=free)) <= max(256, 64 * 8)
