"""How far back each layer of a model attends, from its config.json.

    Mistral, Mixtral   "sliding_window": 4096                         every layer sees the last 4,096 tokens
    Qwen2, Qwen3       "use_sliding_window": true, "layer_types"      the layers that it names, or those from `max_window_layers` on

A window that is no shorter than the longest context is none.  A key that says anything else is refused by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_FULL, _SLIDING = "full_attention", "sliding_attention"
_QWEN_WINDOW, _QWEN_FULL_LAYERS = 4096, 28  # What transformers takes where a Qwen config leaves them out.


class UnsupportedWindow(ValueError):
    """The message names the key and its value."""


def read_windows(keys: Mapping[str, Any], family: str, layers: int, max_positions: int) -> tuple[int | None, ...]:
    """For each layer how many tokens a query sees, its own included, or None where it sees all.  Raises `UnsupportedWindow`."""
    window = _window(keys, family)
    sliding = _sliding_layers(keys, family, layers, window)
    if window is None or window >= max_positions:
        return (None,) * layers
    if family == "llama":
        raise UnsupportedWindow(f"`sliding_window` {window} is shorter than `max_position_embeddings` {max_positions}, and Llama "
                                "models have no window")
    return tuple(window if is_sliding else None for is_sliding in sliding)


def _window(keys: Mapping[str, Any], family: str) -> int | None:
    window = keys.get("sliding_window")
    if window is not None and (isinstance(window, bool) or not isinstance(window, int) or window < 1):
        raise UnsupportedWindow(f"`sliding_window` is {window!r}, expected null or a whole number of at least 1")
    if not family.startswith("qwen"):
        if keys.get("use_sliding_window"):
            raise UnsupportedWindow(f"`use_sliding_window` = {keys['use_sliding_window']!r} is not supported for {family} models")
        return window
    used = keys.get("use_sliding_window")
    if used not in (None, True, False):
        raise UnsupportedWindow(f"`use_sliding_window` is {used!r}, expected true or false")
    if not used:
        return None
    return window if "sliding_window" in keys else _QWEN_WINDOW


def _sliding_layers(keys: Mapping[str, Any], family: str, layers: int, window: int | None) -> list[bool]:
    types = keys.get("layer_types")
    qwen = family.startswith("qwen")
    if types is None:
        full = keys.get("max_window_layers", _QWEN_FULL_LAYERS) if qwen else 0
        if isinstance(full, bool) or not isinstance(full, int):
            raise UnsupportedWindow(f"`max_window_layers` is {full!r}, expected a whole number")
        return [number >= full for number in range(layers)]
    if not isinstance(types, list) or len(types) != layers or set(types) - {_FULL, _SLIDING}:
        raise UnsupportedWindow(f"`layer_types` is {types!r}, expected {_FULL!r} or {_SLIDING!r} for each of {layers} layers")
    sliding = [kind == _SLIDING for kind in types]
    if any(sliding) and window is None:
        raise UnsupportedWindow(f"`layer_types` names {_SLIDING!r}, and there is no window")
    if not qwen and window is not None and not all(sliding):
        raise UnsupportedWindow(f"`layer_types` is {types!r}; {family} models with a window have it in all layers")
    return sliding
