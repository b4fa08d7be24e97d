"""Which tokens end a text, and the bias that keeps an engine from drawing them.

An engine's own `ignore_eos` writes an end token and goes on behind it; ours never draws one.
"""

import json
from pathlib import Path


def end_tokens(model):
    """Their ids.  model: a Hugging Face folder"""
    for name in ("generation_config.json", "config.json"):
        path = Path(model) / name
        ends = json.loads(path.read_text()).get("eos_token_id") if path.exists() else None
        if ends is not None:
            return ends if isinstance(ends, list) else [ends]
    return []


def never(ends):
    """A bias for each: the lowest that vLLM takes, and enough for any model."""
    return dict.fromkeys(ends, -100.0)
