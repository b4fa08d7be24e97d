"""A Hugging Face folder of the Llama kind as a GGUF file, in bfloat16, float16 or float32, for llama.cpp.

    python benchmarks/peers/write_gguf.py FOLDER TARGET.gguf bfloat16

The weights are rounded once and not quantised; norms stay float32.  Only what the default model has is written: byte-level BPE with the
digits apart, a tied output, no biases.  Anything else is an error.
"""

import json
import sys
from pathlib import Path

# Names of a layer's tensors here and there.
LAYER = {
    "input_layernorm": "attn_norm", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output", "post_attention_layernorm": "ffn_norm", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
OUTER = {"model.embed_tokens.weight": "token_embd.weight", "model.norm.weight": "output_norm.weight", "lm_head.weight": "output.weight"}


def write_gguf(folder, target, dtype):
    import gguf
    from safetensors.numpy import load_file

    folder = Path(folder)
    config, tokenizer = (json.loads((folder / name).read_text(encoding="utf-8")) for name in ("config.json", "tokenizer.json"))
    if config["model_type"] != "llama" or config.get("rope_scaling"):
        raise ValueError(f"{folder}: a model of the kind `{config['model_type']}` or with scaled positions is not written as GGUF")
    writer = gguf.GGUFWriter(target, "llama")
    describe(writer, config)
    describe_tokens(writer, config, tokenizer, folder)
    kind = {"bfloat16": gguf.GGMLQuantizationType.BF16, "float16": gguf.GGMLQuantizationType.F16, "float32": gguf.GGMLQuantizationType.F32}
    for path in sorted(folder.glob("*.safetensors")):
        for name, tensor in load_file(path).items():
            tensor = interleaved(name, tensor.astype("float32"), config)
            stored = kind[dtype] if tensor.ndim > 1 else gguf.GGMLQuantizationType.F32
            writer.add_tensor(gguf_name(name), gguf.quants.quantize(tensor, stored), raw_dtype=stored)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def describe(writer, config):
    width = config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_key_length(width)
    writer.add_value_length(width)
    writer.add_rope_dimension_count(width)
    writer.add_rope_freq_base(config["rope_theta"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_vocab_size(config["vocab_size"])


def describe_tokens(writer, config, tokenizer, folder):
    import gguf

    tokens = [""] * config["vocab_size"]
    types = [gguf.TokenType.UNUSED] * config["vocab_size"]
    for text, number in tokenizer["model"]["vocab"].items():
        tokens[number], types[number] = text, gguf.TokenType.NORMAL
    for added in tokenizer["added_tokens"]:
        kind = gguf.TokenType.CONTROL if added["special"] else gguf.TokenType.USER_DEFINED
        tokens[added["id"]], types[added["id"]] = added["content"], kind
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    writer.add_token_merges([merge if isinstance(merge, str) else " ".join(merge) for merge in tokenizer["model"]["merges"]])
    writer.add_bos_token_id(config["bos_token_id"])
    writer.add_eos_token_id(config["eos_token_id"] if isinstance(config["eos_token_id"], int) else config["eos_token_id"][0])
    writer.add_add_bos_token(False)
    if template := json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8")).get("chat_template"):
        writer.add_chat_template(template)


def gguf_name(name):
    if name in OUTER:
        return OUTER[name]
    _, _, layer, rest = name.split(".", 3)
    return f"blk.{layer}.{LAYER[rest.removesuffix('.weight')]}.weight"


def interleaved(name, tensor, config):
    """Rotation takes neighbouring numbers there, and the two halves of a head here."""
    heads = {"q_proj": config["num_attention_heads"], "k_proj": config["num_key_value_heads"]}.get(name.split(".")[-2])
    if heads is None:
        return tensor
    return tensor.reshape(heads, 2, tensor.shape[0] // heads // 2, *tensor.shape[1:]).swapaxes(1, 2).reshape(tensor.shape)


if __name__ == "__main__":
    write_gguf(*sys.argv[1:])
