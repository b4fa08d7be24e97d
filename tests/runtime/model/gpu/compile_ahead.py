"""Compiles the Triton kernels for GPUs that are not there and prints what they use; a test runs this without the interpreter.

    python -m tests.runtime.model.gpu.compile_ahead 80 90
    attend_tiles few bfloat16 64 sm_90    registers 68  shared 20480  spills 0

Spills are the loads and stores of local memory in the disassembly of the compiled kernel.
"""

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from lmc.runtime.model.gpu import attention_kernels, small_kernels
from lmc.runtime.model.gpu.attention import few_blocks, many_blocks

TYPES = {torch.float32: "*fp32", torch.bfloat16: "*bf16", torch.float16: "*fp16"}
DISASSEMBLER = Path(triton.__file__).parent / "backends/nvidia/bin/nvdisasm"


def kernels(group: int = 3) -> Iterator[tuple[str, ASTSource, dict]]:
    """Each kernel at the sizes of use: its name, its source with types and constants, and how it is launched."""
    for dtype in (torch.bfloat16, torch.float32):
        for head_dim in (64, 80, 128):
            shape = {"HEADS": 2 * group, "HEAD_DIM": head_dim, "BLOCK_D": triton.next_power_of_2(head_dim)}
            for kind, blocks in (("few", few_blocks(dtype, head_dim, group)), ("many", many_blocks(dtype, head_dim))):
                constants = shape | {"KV_HEADS": 2, "BLOCK_M": blocks.m, "BLOCK_N": blocks.n, "WIDEN": False}
                types = dict.fromkeys(("q", "pool_k", "pool_v", "out"), TYPES[dtype])
                yield (f"attend_tiles {kind} {name_of(dtype)} {head_dim}", source(attention_kernels.attend_tiles, constants, types),
                       {"num_warps": blocks.warps, "num_stages": blocks.stages})
            yield (f"merge_partials {name_of(dtype)} {head_dim}",
                   source(attention_kernels.merge_partials, shape, {"out": TYPES[dtype]}), {"num_warps": 1})
            yield (f"rotate_and_store {name_of(dtype)} {head_dim}",
                   source(small_kernels.rotate_and_store, {"HEADS": 2 * group, "KV_HEADS": 2, "HEAD_DIM": head_dim,
                                                           "BLOCK": triton.next_power_of_2(head_dim // 2), "NORMED": True},
                          dict.fromkeys(("qkv", "q", "pool_k", "pool_v"), TYPES[dtype])), {"num_warps": 1})
        yield (f"rms_norm {name_of(dtype)}", source(small_kernels.rms_norm, {"SIZE": 576, "BLOCK": 1024}, {"out": TYPES[dtype]}),
               {"num_warps": 4})
        yield (f"gate {name_of(dtype)}",
               source(small_kernels.gate, {"SIZE": 1536, "BLOCK": 1024}, dict.fromkeys(("gate_value", "out"), TYPES[dtype])),
               {"num_warps": 4})


def source(kernel, constants: dict, types: dict) -> ASTSource:
    """Arguments that are not constants are pointers to float32 or int32, aligned to 16 bytes as torch allocates them."""
    integers = {"query_tokens", "query_positions", "slots", "merged_tokens", "merge_first", "merge_rows", "new_slots"}
    signature, aligned = {}, {}
    for place, name in enumerate(kernel.arg_names):
        if name in constants:
            signature[name] = "constexpr"
        elif name in ("scale_log2", "eps"):
            signature[name] = "fp32"
        else:
            whole = name in integers or name.startswith("tile_")
            signature[name] = types.get(name, "*i32" if whole else "*fp32")
            aligned[(place,)] = [["tt.divisibility", 16]]
    return ASTSource(kernel, signature, constants, aligned)


def spills(cubin: bytes) -> int:
    """Loads from and stores to local memory in the machine code."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        text = subprocess.run([DISASSEMBLER, "-c", file.name], capture_output=True, text=True, check=True).stdout
    assert "EXIT" in text, "this is no disassembly"
    return sum(text.count(f" {op}") for op in ("LDL", "STL"))


def name_of(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def main() -> None:
    chosen = sys.argv[2:]
    for capability in map(int, sys.argv[1].split(",")):
        for name, ast, options in kernels():
            if chosen and not any(word in name for word in chosen):
                continue
            compiled = triton.compile(ast, target=GPUTarget("cuda", capability, 32), options={"enable_fp_fusion": True} | options)
            print(f"{name} sm_{capability}    shared {compiled.metadata.shared}  spills {spills(compiled.asm['cubin'])}", flush=True)


if __name__ == "__main__":
    main()
