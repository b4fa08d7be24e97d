"""Every Triton kernel compiles for sm_80 and sm_90 on a machine that has no GPU, and spills no register."""

import os
import subprocess
import sys


#: Parts of names: each kernel, and attention in the sizes that are used most and in the one that needs masks.
CHOSEN = ("bfloat16 64", "bfloat16 128", "float32 80", "rms_norm bfloat16", "gate bfloat16")


def test_kernels_compile_without_a_gpu_and_without_spills(tmp_path):
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    ran = subprocess.run([sys.executable, "-m", "tests.runtime.model.gpu.compile_ahead", "80,90", *CHOSEN], capture_output=True, text=True,
                         env=environment | {"TRITON_CACHE_DIR": str(tmp_path)}, timeout=600)
    assert ran.returncode == 0, ran.stderr
    lines = ran.stdout.splitlines()
    # On two targets, three sizes of two kinds of tiles, merging and rotation, and two kernels besides.
    assert len(lines) == 2 * (3 * 4 + 2)
    assert [line for line in lines if not line.endswith("spills 0")] == []
