"""The forward pass of Llama-like models on a GPU: cuBLAS products, Triton for everything between them, graphs for decoding.

    rows -> StepInputs (ids, positions, slots, tiles)  -> per layer: rms_norm, qkv, rotate_and_store, attend, output; rms_norm, gate
                                                       -> logits of the wanted tokens, on the host

It computes what `lmc.runtime.model.llama.Llama` computes, from the same weights.  A step in which every row has one token is padded to
one of a few sizes and replayed as a CUDA graph, because launching its kernels one by one takes longer than computing them.  On the CPU
it runs under Triton's interpreter, for tests, with the padding and without the graph.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F

from lmc.diagnostics import Diagnostic, LmcError
from lmc.runtime.batch import Row
from lmc.runtime.model.config import ModelConfig
from lmc.runtime.model.gpu.attention import attend, few_blocks, many_blocks
from lmc.runtime.model.gpu.graphs import DecodeGraphs
from lmc.runtime.model.gpu.inputs import StepInputs, step_inputs
from lmc.runtime.model.gpu.layer import gate, rms_norm, rotate_and_store
from lmc.runtime.model.kernels import missing_on_gpu
from lmc.runtime.model.named_weights import EMBEDDING, HEAD, NamedWeights
from lmc.runtime.model.rope import rope_table

# Rows of one product in deterministic mode: cuBLAS chooses its kernel by the number of rows, so that number is fixed.
_EXACT_ROWS = 16


@dataclass(frozen=True, slots=True)
class Product:
    """`x @ weight.T + bias`.  weight: (out, in); exact: always on `_EXACT_ROWS` rows at once, so that a row's bits are its own."""

    weight: torch.Tensor
    bias: torch.Tensor | None
    exact: bool

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        # x: (tokens, in) -> (tokens, out)
        if not self.exact:
            return F.linear(x, self.weight, self.bias)
        padded = F.pad(x, (0, 0, 0, -len(x) % _EXACT_ROWS))
        return torch.cat([F.linear(piece, self.weight, self.bias) for piece in padded.split(_EXACT_ROWS)])[: len(x)]


@dataclass(frozen=True, slots=True)
class GpuLayer:
    """Weights of one layer on the device, as `llama.Layer` has them."""

    attention_norm: torch.Tensor
    qkv: Product
    query_norm: torch.Tensor | None
    key_norm: torch.Tensor | None
    output: Product
    mlp_norm: torch.Tensor
    gate_up: Product
    down: Product


class GpuLlama:
    """A `lmc.runtime.batch.Model` on `device`.  `allocate` comes before the first `forward`.

    deterministic: a row's logits have the same bits alone, in any batch, and however its prompt is cut into chunks
    Raises `LmcError` E0822 for a model that has something which is computed by `Llama` alone.
    """

    __slots__ = ("config", "dtype", "device", "deterministic", "vocab_size", "max_positions", "embedding", "layers", "final_norm",
                 "head", "pool_k", "pool_v", "cosines", "sines", "spare_slot", "graphs")

    def __init__(self, config: ModelConfig, weights: NamedWeights, device: torch.device, *, deterministic: bool = False):
        if (lacking := missing_on_gpu(config)) is not None:
            raise LmcError(Diagnostic("E0822", f"no kernel for GPUs computes this model: {lacking}", None, help="run it on the CPU"))
        self.config, self.dtype, self.device, self.deterministic = config, weights.dtype, device, deterministic
        self.vocab_size, self.max_positions = config.vocab_size, config.max_positions
        with torch.inference_mode():
            self.embedding = weights.matrix(EMBEDDING).to(device)
            self.layers = [self._layer_weights(weights, f"model.layers.{number}.") for number in range(config.layers)]
            self.head = Product(self.embedding if config.tied else weights.matrix(HEAD).to(device), None, deterministic)
            self.final_norm = weights.norm("model.norm.weight").to(device)
        self.pool_k = self.pool_v = self.cosines = self.sines = self.spare_slot = None
        # Padding changes no row's bits, but a graph does not run on the CPU.
        self.graphs = DecodeGraphs(self._compute) if device.type == "cuda" else None

    def slot_bytes(self) -> int:
        """Bytes of keys and values of one token over all layers."""
        return self.config.layers * 2 * self.config.kv_heads * self.config.head_dim * self.dtype.itemsize

    def allocate(self, slots: int) -> None:
        """Make the pool, once: keys and values of `slots` tokens in each layer, and one slot more that padding writes to."""
        assert self.pool_k is None, "the pool is there already"
        self.spare_slot = slots
        shape = (slots + 1, self.config.kv_heads, self.config.head_dim)
        self.pool_k = [torch.zeros(shape, dtype=self.dtype, device=self.device) for _ in self.layers]
        self.pool_v = [torch.zeros(shape, dtype=self.dtype, device=self.device) for _ in self.layers]
        tables = rope_table(self.config.rope, self.config.head_dim, min(slots, self.max_positions))
        self.cosines, self.sines = (table.to(self.device) for table in tables)

    @torch.inference_mode()
    def forward(self, rows: list[Row]) -> torch.Tensor:
        """Compute the rows' tokens; logits (outputs, vocab) float32 of the wanted ones, in the order of the rows, on the host."""
        assert self.pool_k is not None, "allocate comes first"
        outputs = sum(len(row.outputs) for row in rows)
        decoding = all(len(row.tokens) == 1 == len(row.outputs) for row in rows)
        inputs = self._inputs(rows, padded=decoding)
        logits = self.graphs.run(inputs) if decoding and self.graphs is not None else self._compute(inputs)
        return logits[:outputs].float().cpu()

    def _inputs(self, rows: list[Row], *, padded: bool) -> StepInputs:
        config, group = self.config, self.config.heads // self.config.kv_heads
        few = few_blocks(self.dtype, config.head_dim, group).m // group
        many = many_blocks(self.dtype, config.head_dim).m // group
        return step_inputs(rows, few=few, many=many, heads=config.heads, head_dim=config.head_dim, spare_slot=self.spare_slot,
                           device=self.device, exact=self.deterministic, padded=padded)

    def _compute(self, inputs: StepInputs) -> torch.Tensor:
        """Logits of the wanted tokens, (outputs, vocab) of the compute dtype.  Reads and writes tensors only: a graph can hold it."""
        cosines = self.cosines.index_select(0, inputs.positions)
        sines = self.sines.index_select(0, inputs.positions)
        # The residual stream stays in float32, as in `Llama`.
        x = self.embedding.index_select(0, inputs.ids).float()
        for number, layer in enumerate(self.layers):
            x = x + self._attention(layer, number, x, cosines, sines, inputs)
            hidden = rms_norm(x, layer.mlp_norm, self.config.norm_eps, self.dtype)
            x = x + layer.down(gate(layer.gate_up(hidden)))
        x = rms_norm(x.index_select(0, inputs.outputs), self.final_norm, self.config.norm_eps, self.dtype)
        return self.head(x)

    def _attention(self, layer: GpuLayer, number: int, x: torch.Tensor, cosines: torch.Tensor, sines: torch.Tensor,
                   inputs: StepInputs) -> torch.Tensor:
        # x: (tokens, hidden) float32 -> (tokens, hidden) of the compute dtype
        config = self.config
        pool_k, pool_v = self.pool_k[number], self.pool_v[number]
        qkv = layer.qkv(rms_norm(x, layer.attention_norm, config.norm_eps, self.dtype))
        q = rotate_and_store(qkv.view(len(x), -1, config.head_dim), layer.query_norm, layer.key_norm, config.norm_eps, cosines, sines,
                             inputs.new_slots, pool_k, pool_v, config.heads)
        return layer.output(attend(q, pool_k, pool_v, inputs.plan, scale=config.head_dim ** -0.5))

    def _layer_weights(self, weights: NamedWeights, prefix: str) -> GpuLayer:
        def product(part: str, *names: str) -> Product:
            weight, bias = weights.stacked(f"{prefix}{part}.", *names)
            return Product(weight.to(self.device), None if bias is None else bias.to(self.device), self.deterministic)

        def norm(name: str) -> torch.Tensor | None:
            found = weights.norm(f"{prefix}{name}.weight")
            return None if found is None else found.to(self.device)

        return GpuLayer(norm("input_layernorm"), product("self_attn", "q_proj", "k_proj", "v_proj"),
                        norm("self_attn.q_norm"), norm("self_attn.k_norm"), product("self_attn", "o_proj"),
                        norm("post_attention_layernorm"), product("mlp", "gate_proj", "up_proj"), product("mlp", "down_proj"))
