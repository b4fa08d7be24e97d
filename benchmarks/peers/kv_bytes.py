"""How much memory keys and values of a token take."""

import json
from pathlib import Path


def kv_bytes(model, number_bytes):
    """model: a Hugging Face folder; number_bytes: 2 for float16 and bfloat16, 4 for float32"""
    config = json.loads((Path(model) / "config.json").read_text())
    width = config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]
    return number_bytes * 2 * config["num_hidden_layers"] * config["num_key_value_heads"] * width
