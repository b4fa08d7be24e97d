"""`python llama_cpp_process.py FILE.gguf SLOTS CONTEXT`: llama.cpp's HTTP server out of the package `xllamacpp`, on a free port of
the loopback.

SLOTS: requests at a time; CONTEXT: the tokens that each may have.  Prints its address as soon as it answers, and ends when its
standard input does, so that it never outlives who started it.
"""

import sys

import xllamacpp


def main(file: str, slots: int, context: int) -> None:
    params = xllamacpp.CommonParams()
    params.model.path = file
    params.hostnames, params.port = ["127.0.0.1"], 0
    params.n_parallel, params.n_ctx = slots, slots * context
    # One thread and float32 throughout, so that a text can be compared with the one of a float32 run elsewhere.
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.cache_type_k = params.cache_type_v = xllamacpp.ggml_type.GGML_TYPE_F32
    params.warmup = False
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
