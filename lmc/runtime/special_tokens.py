"""Which tokens of a model are control tokens, which end a generation, and which begins a text, from all files of its folder.

    special_ids(folder, inner, data)    -> SpecialIds(control={0, 1, 2, …}, end={0, 2}, bos=None, eos=2)

End tokens are the union of what config.json, generation_config.json, tokenizer_config.json and the chat template say: files of
real models often have only one of them right.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tokenizers

from lmc.runtime.markers import Markers, read_markers, special_tokens
from lmc.runtime.model.folder import read_json
from lmc.runtime.sandbox import TemplateError


@dataclass(frozen=True, slots=True)
class SpecialIds:
    """control: ids that only a template may write; end: those that end a generation; bos: what a text begins with, if anything;
    eos: the declared end token, if there is one"""

    control: frozenset[int]
    end: frozenset[int]
    bos: int | None
    eos: int | None


def mark_special(data: dict[str, Any], folder: Path) -> None:
    """Sets the flag `special` in a tokenizer.json's added tokens where the folder's other files use them as control tokens."""
    markers, special = _markers_or_none(folder), special_tokens(folder)
    # Some files forget to call the markers of their own template special; as ordinary tokens, values could forge them.
    written = "".join([*markers.start.values(), *markers.between.values(), markers.end]) if markers else ""
    data["added_tokens"] = [
        {**token, "special": token["special"] or token["content"] in written or token["content"] in special.values()}
        for token in data.get("added_tokens", ())
    ]


def special_ids(folder: Path, inner: tokenizers.Tokenizer, data: dict[str, Any]) -> SpecialIds:
    """inner: the tokenizer, with its flags set by `mark_special`; data: its JSON."""
    names = special_tokens(folder)
    known = {key: id for key, text in names.items() if (id := inner.token_to_id(text)) is not None}
    control = {id for id, token in inner.get_added_tokens_decoder().items() if token.special} | set(known.values())
    ends = _declared_ends(folder) | ({known["eos_token"]} if "eos_token" in known else set())
    closing = _closing_token(folder, inner, control)
    ends |= {closing} if closing is not None else set()
    ends = {id for id in ends if inner.id_to_token(id) is not None}
    eos = known.get("eos_token", min(ends, default=None))
    return SpecialIds(frozenset(control | ends), frozenset(ends), _begin_token(folder, data, known), eos)


def _markers_or_none(folder: Path) -> Markers | None:
    try:
        return read_markers(folder)
    except TemplateError:
        # `load_template` reports it; programs without role blocks do not need one.
        return None


def _declared_ends(folder: Path) -> set[int]:
    ends: set[int] = set()
    for name in ("config.json", "generation_config.json"):
        found = read_json(folder / name).get("eos_token_id") if (folder / name).is_file() else None
        ends.update(id for id in (found if isinstance(found, list) else [found]) if isinstance(id, int))
    return ends


def _closing_token(folder: Path, inner: tokenizers.Tokenizer, control: set[int]) -> int | None:
    # The first control token that the template writes after the assistant's last turn.
    markers = _markers_or_none(folder)
    found = [(markers.end.find(text), id) for id in control if markers and (text := inner.id_to_token(id)) in markers.end]
    return min(found)[1] if found else None


def _begin_token(folder: Path, data: dict[str, Any], known: dict[str, int]) -> int | None:
    config = read_json(folder / "tokenizer_config.json") if (folder / "tokenizer_config.json").is_file() else {}
    adds = config.get("add_bos_token")
    if adds is None:
        adds = _post_processor_begins(data.get("post_processor"), special_tokens(folder).get("bos_token"))
    return known.get("bos_token") if adds else None


def _post_processor_begins(processor: dict[str, Any] | None, bos: str | None) -> bool:
    if processor is None or bos is None:
        return False
    if processor["type"] == "Sequence":
        return any(_post_processor_begins(part, bos) for part in processor["processors"])
    first = (processor.get("single") or [{}])[0] if processor["type"] == "TemplateProcessing" else {}
    return first.get("SpecialToken", {}).get("id") == bos
