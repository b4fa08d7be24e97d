#!/usr/bin/env bash
# SGLang imports torchvision and sgl_kernel wherever it runs, and uses neither for text on a processor without AMX: empty packages are
# enough, and the real ones want other builds of torch.
#     bash sglang.sh ENVIRONMENT
set -euo pipefail
site=$("$1/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
for name in torchvision sgl_kernel; do
    mkdir -p "$site/$name"
    : > "$site/$name/__init__.py"
done
