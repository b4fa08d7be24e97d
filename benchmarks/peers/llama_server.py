#!/usr/bin/env python3
"""llama.cpp's HTTP server out of the package `xllamacpp`, under the command line of `llama-server`, as far as the peers use it.

    llama-server --model FILE.gguf --host 127.0.0.1 --port 8080 --parallel 8 --ctx-size 16384 --threads 2

The package's wheel is compiled for AVX2: on a processor with more, `llama.sh` builds the server instead.
"""

import argparse
import importlib.metadata
import signal
import sys
import threading

import xllamacpp


def main():
    if "--version" in sys.argv[1:]:
        # Where and how the binary says it; the package's version ends with llama.cpp's.
        version = importlib.metadata.version("xllamacpp")
        print(f"version: {version.rsplit('.', 1)[-1]} (xllamacpp {version})", file=sys.stderr)
        return
    given = options()
    params = xllamacpp.CommonParams()
    params.model.path = given.model
    params.hostnames, params.port = [given.host], given.port
    params.n_parallel, params.n_ctx, params.kv_unified = given.parallel, given.ctx_size, given.kv_unified
    params.cpuparams.n_threads, params.cpuparams_batch.n_threads = given.threads, given.threads_batch or given.threads
    params.sampling.ignore_eos, params.sampling.top_k, params.sampling.min_p = given.ignore_eos, given.top_k, given.min_p
    params.endpoint_slots, params.ui, params.offline = given.slots, False, given.offline
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    server = xllamacpp.Server(params)
    ended.wait()
    del server


def options():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", "-m", required=True)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8080)
    parser.add_argument("--parallel", "-np", type=int, default=1)
    parser.add_argument("--ctx-size", "-c", type=int, default=0)
    parser.add_argument("--threads", "-t", type=int, default=1)
    parser.add_argument("--threads-batch", "-tb", type=int)
    parser.add_argument("--top-k", type=int, default=40)
    parser.add_argument("--min-p", type=float, default=0.05)
    for flag in ("--kv-unified", "--no-webui", "--slots", "--offline", "--ignore-eos"):
        parser.add_argument(flag, action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    main()
