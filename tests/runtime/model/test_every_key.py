"""No key of a config.json is passed over: each is changed in turn, and what lmc does not notice must not matter to transformers."""

import json

import pytest
import torch
import transformers

from lmc.diagnostics import LmcError
from lmc.runtime.model.config import ModelConfig, read_config
from tests.runtime.model import tiny

FAMILIES = {
    "Llama": {}, "Llama, yarn": dict(rope_parameters={"rope_type": "yarn", "rope_theta": 1e4, "factor": 2.0, "beta_fast": 16.0,
                                                      "original_max_position_embeddings": 256}),
    "Llama, dynamic": dict(max_position_embeddings=16, rope_parameters={"rope_type": "dynamic", "rope_theta": 1e4, "factor": 2.0}),
    "Mistral": dict(sliding_window=8), "Qwen2": dict(use_sliding_window=True, sliding_window=8, max_window_layers=1),
    "Qwen3": {}, "Mixtral": dict(num_local_experts=4, num_experts_per_tok=2, sliding_window=8),
}
TOKENS = tiny.ids(24)


@pytest.fixture(scope="module", params=FAMILIES)
def model(request):
    return tiny.build(request.param.split(",")[0], num_hidden_layers=2, **FAMILIES[request.param])


def changed(value: object) -> list[object]:
    """Other values of the same kind."""
    match value:
        case bool():
            return [not value]
        case int():
            return [value + 1, value * 2, 1]
        case float():
            return [value * 2 + 0.25]
        case str():
            return ["gelu", "other"]
        case list():
            return [value[::-1], value[:1]]
        case dict():
            return [{**value, key: other} for key, inner in value.items() for other in changed(inner)]
    return [1, 0.5, True, "other"]


def noticed(folder, keys: dict, before: ModelConfig) -> bool:
    """Whether lmc reads another shape, or refuses."""
    (folder / "config.json").write_text(json.dumps(keys))
    try:
        return read_config(folder) != before
    except LmcError:
        return True


def unchanged_logits(model, key: str, value: object) -> bool:
    """Whether transformers computes the same with the same weights, or cannot compute at all."""
    try:
        config = type(model.config).from_dict({**model.config.to_dict(), key: value})
        other = type(model)(config).eval()
        other.load_state_dict(model.state_dict())
        logits = tiny.reference_logits(other, TOKENS)
    except Exception:  # Whatever it is: what does not run gives no wrong text.
        return True
    return torch.equal(logits, tiny.reference_logits(model, TOKENS))


def test_what_is_not_noticed_does_not_matter(model, tmp_path):
    keys = {**model.config.to_dict(), "architectures": [type(model).__name__]}
    noticed(tmp_path, keys, None)
    before = read_config(tmp_path)
    passed_over = [(key, value) for key in keys for value in changed(keys[key])
                   if not noticed(tmp_path, {**keys, key: value}, before)]
    # The test is worth something only if both happen.
    assert 5 < len(passed_over) < sum(len(changed(value)) for value in keys.values()) - 20
    wrong = [(key, value) for key, value in passed_over if not unchanged_logits(model, key, value)]
    assert not wrong, wrong


def test_what_is_left_out_means_what_it_means_to_transformers(model, tmp_path):
    keys = {**model.config.to_dict(), "architectures": [type(model).__name__]}
    differing = []
    for key in keys:
        left = {name: value for name, value in keys.items() if name != key}
        if noticed(tmp_path, left, None) and (ours := shape_or_none(tmp_path)) is not None:
            noticed(tmp_path, {**type(model.config).from_dict(left).to_dict(), "architectures": keys["architectures"]}, None)
            if shape_or_none(tmp_path) != ours:
                differing.append(key)
    assert not differing


def shape_or_none(folder) -> ModelConfig | None:
    try:
        return read_config(folder)
    except LmcError:
        return None


@pytest.mark.parametrize("family", ["Llama", "Mistral", "Qwen2", "Qwen3", "Mixtral"])
def test_no_key_of_the_family_is_unknown(family, tmp_path):
    """With every default written out, as some tools do."""
    config = getattr(transformers, f"{family}Config")()
    keys = {**config.to_dict(), "architectures": [f"{family}ForCausalLM"]}
    (tmp_path / "config.json").write_text(json.dumps(keys))
    assert read_config(tmp_path).family == family.lower()
