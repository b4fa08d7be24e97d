#!/usr/bin/env bash
# SGLang and transformers import torchvision and sgl_kernel wherever they run, and use neither for text on a processor without AMX; the real
# ones are made for other builds of torch.  Stand-ins are written into the environment that have any name and can do nothing.
#     bash sglang.sh ENVIRONMENT
set -euo pipefail
site=$("$1/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
for name in torchvision torchvision/io torchvision/ops torchvision/transforms torchvision/transforms/functional torchvision/transforms/v2 \
        torchvision/transforms/v2/functional sgl_kernel; do
    mkdir -p "$site/$name"
    cat > "$site/$name/__init__.py" <<'PYTHON'
"""A stand-in: every name is a class whose every name is itself."""

__version__ = "0.0"


class _Absent(type):
    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return cls


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return _Absent(name, (), {})
PYTHON
done
