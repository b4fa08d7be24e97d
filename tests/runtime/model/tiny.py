"""Tiny random models saved by transformers, and logits of them by both implementations."""

import json
from pathlib import Path

import torch
import transformers

from lmc.runtime.batch import Row

VOCAB = 128
_SIZES = dict(vocab_size=VOCAB, hidden_size=96, intermediate_size=160, num_hidden_layers=3, num_attention_heads=6,
              num_key_value_heads=2, head_dim=32, max_position_embeddings=512, bos_token_id=1, eos_token_id=2)


def build(family: str, **keys):
    """A transformers model of `family` ("Llama", "Qwen2", …) with random weights large enough that logits differ."""
    torch.manual_seed(0)
    config = getattr(transformers, f"{family}Config")(**{**_SIZES, **keys})
    model = getattr(transformers, f"{family}ForCausalLM")(config).eval()
    with torch.no_grad():
        for name, tensor in model.named_parameters():
            # Norm weights and biases too: a tensor that is not read must show.
            tensor.copy_(torch.randn_like(tensor) * 0.15 + (1.0 if "norm" in name else 0.0))
    return model


def save(model, folder: Path, **options) -> Path:
    model.save_pretrained(folder, **options)
    return folder


def edit_config(folder: Path, remove: tuple[str, ...] = (), **keys) -> Path:
    """Change keys of config.json."""
    path = folder / "config.json"
    config = {**json.loads(path.read_text()), **keys}
    path.write_text(json.dumps({k: v for k, v in config.items() if k not in remove}))
    return folder


def ids(count: int, seed: int = 0) -> list[int]:
    return torch.randint(0, VOCAB, (count,), generator=torch.Generator().manual_seed(seed)).tolist()


def reference_logits(model, tokens: list[int]) -> torch.Tensor:
    """(tokens, vocab) float32 by transformers."""
    with torch.no_grad():
        return model(torch.tensor([tokens])).logits[0].float()


def scattered(count: int, seed: int = 0, slots: int = 1024) -> list[int]:
    """Distinct slots in no order."""
    return torch.randperm(slots, generator=torch.Generator().manual_seed(seed))[:count].tolist()


def whole(tokens: list[int], slots: list[int]) -> Row:
    """One row that computes all tokens and wants all logits."""
    return Row(tokens, 0, slots, list(range(len(tokens))))
