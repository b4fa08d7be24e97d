"""Every Triton kernel compiles for sm_80 and sm_90 on a machine that has no GPU, and spills no register."""

import os
import subprocess
import sys


def test_kernels_compile_without_a_gpu_and_without_spills(tmp_path):
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    ran = subprocess.run([sys.executable, "-m", "tests.runtime.model.gpu.compile_ahead", "80,90"], capture_output=True, text=True,
                         env=environment | {"TRITON_CACHE_DIR": str(tmp_path)}, timeout=600)
    assert ran.returncode == 0, ran.stderr
    lines = ran.stdout.splitlines()
    # Two dtypes: three head sizes of two kinds of tiles, merging and rotation, and two kernels besides.
    assert len(lines) == 2 * 2 * (3 * 4 + 2)
    assert [line for line in lines if not line.endswith("spills 0")] == []
