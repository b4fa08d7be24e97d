"""What a request asks, as JSON data in which nothing depends on how a model cuts text into tokens.

    {"kind": "gen", "prompt": [{"control": "<|im_start|>"}, "user\\nHi"], "options": {"max_tokens": 20, "temperature": 0.0}, …}
    {"kind": "select", "prompt": […], "options": [["positive"], ["negative"]]}

The same program asks the same of a model and of its cassette.  What cannot change an answer (streaming) is left out.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from os.path import commonprefix
from typing import Any

from lmc.regex.dfa import ByteDfa
from lmc.regex.grammar import Grammar
from lmc.runtime.prompt_pieces import Control, Piece, prompt_pieces
from lmc.runtime.rendering import option_list
from lmc.runtime.request import GenerateRequest, Origin, ScoreRequest


def gen_ask(request: GenerateRequest, tokenizer: Any, constraint: dict[str, str] | None) -> dict[str, Any]:
    """What a generation asks; `constraint` as `constraint_data` gives it."""
    options = {name: value for name, value in option_list(request).items() if name != "stream"}
    prompt = _pieces_data(prompt_pieces(tokenizer, request.prompt, request.heal))
    # Tuples become lists, as they are when a file has been read.
    return {"kind": "gen", "prompt": prompt, "options": json.loads(json.dumps(options)), "follow": request.follow.hex(),
            "constraint": constraint}


def score_ask(requests: Sequence[ScoreRequest], tokenizer: Any) -> dict[str, Any]:
    """What a choice asks: the text that all options share, and the rest of each."""
    assert requests[0].origin is not None
    return {"kind": requests[0].origin.kind, **rows_ask([r.ids for r in requests], tokenizer)}


def rows_ask(rows: Sequence[Sequence[int]], tokenizer: Any) -> dict[str, Any]:
    """The same for rows of ids, without the kind."""
    pieces = [prompt_pieces(tokenizer, ids) for ids in rows]
    shared = _shared(pieces)
    if all(len(row) > len(shared) and isinstance(row[len(shared)], str) for row in pieces):
        text = commonprefix([row[len(shared)] for row in pieces])
        rests = [[row[len(shared)][len(text):], *row[len(shared) + 1:]] for row in pieces]
        return {"prompt": _pieces_data([*shared, *([text] if text else [])]),
                "options": [_pieces_data(p for p in rest if p != "") for rest in rests]}
    return {"prompt": _pieces_data(shared), "options": [_pieces_data(row[len(shared):]) for row in pieces]}


def constraint_data(constraint: ByteDfa | Grammar) -> dict[str, str]:
    """What a value must match: for people, and as a digest that changes when the constraint does."""
    digest = hashlib.sha256()
    if isinstance(constraint, Grammar):
        digest.update(f"{constraint.kind}\0{constraint.source}".encode())
        return {"of": f"{constraint.kind} grammar", "sha256": digest.hexdigest()}
    for array in (constraint.byte_class, constraint.table, constraint.accepting):
        digest.update(f"{array.shape}".encode() + array.astype("<i4").tobytes())
    return {"of": constraint.source, "sha256": digest.hexdigest()}


def place_of(origin: Origin) -> tuple[str, str]:
    """`at` and `where` of an entry."""
    return origin.path, short_place(origin.span)


def short_place(span: Any) -> str:
    """`vote.lmp:9:9`: without folders, which differ between machines."""
    return "" if span is None else f"{span.file.replace(chr(92), '/').rpartition('/')[2]}:{span.line}:{span.column}"


def difference(recorded: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """The first thing in which two questions differ, in words."""
    if recorded["kind"] != now["kind"]:
        return f"a `{recorded['kind']}` was recorded, now it is a `{now['kind']}`"
    before, after = _shown(recorded["prompt"]), _shown(now["prompt"])
    if recorded["prompt"] != now["prompt"]:
        return f"the prompt differs\n{_texts(before, after)}"
    if now["kind"] != "gen":
        return f"the options differ\n{_texts(_options_text(recorded), _options_text(now))}"
    for name in sorted(recorded["options"].keys() | now["options"].keys()):
        old, new = (json.dumps(a["options"].get(name), ensure_ascii=False) for a in (recorded, now))
        if old != new:
            return f"`{name}` was {old}, now it is {new}" + _SEED * (name == "seed")
    if recorded["constraint"] != now["constraint"]:
        old, new = (a["constraint"]["of"] if a["constraint"] else "none" for a in (recorded, now))
        return f"what the value must match was {old}, now it is {new}" + " with another definition" * (old == new)
    return "the text that follows in the turn differs"


def _shared(rows: Sequence[tuple[Piece, ...]]) -> list[Piece]:
    shared = []
    for column in zip(*rows):
        if any(piece != column[0] for piece in column):
            break
        shared.append(column[0])
    return shared


_SEED = "; it follows from the program's seed and from where the generation stands"
#: Characters shown before and after the first difference.
_BEFORE, _AFTER = 20, 50


def _texts(before: str, after: str) -> str:
    """Both from a little before their first difference."""
    start = len(commonprefix([before, after]))
    start = max(0, start - _BEFORE)

    def part(text: str) -> str:
        end = start + _BEFORE + _AFTER
        return "…" * (start > 0) + json.dumps(text[start:end], ensure_ascii=False)[1:-1] + "…" * (len(text) > end)

    return f"recorded: {part(before)}\nnow:      {part(after)}"


def _options_text(ask: Mapping[str, Any]) -> str:
    return " ".join(json.dumps(_shown(option), ensure_ascii=False) for option in ask["options"])


def _shown(pieces: Sequence[Any]) -> str:
    return "".join(p if isinstance(p, str) else p["control"] for p in pieces)


def _pieces_data(pieces: Any) -> list[Any]:
    return [{"control": p.text} if isinstance(p, Control) else p for p in _joined(pieces)]


def _joined(pieces: Any) -> list[Piece]:
    """Neighbouring text as one piece, so that equal prompts are equal data."""
    joined: list[Piece] = []
    for piece in pieces:
        if isinstance(piece, str) and joined and isinstance(joined[-1], str):
            joined[-1] += piece
        else:
            joined.append(piece)
    return joined
