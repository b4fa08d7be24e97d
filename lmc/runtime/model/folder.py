"""What a model folder must hold before anything is loaded from it.

    config.json                      what kind of model, and its sizes
    model.safetensors                the weights, or model.safetensors.index.json with all shards that it names
    tokenizer.json                   or tokenizer.model, or vocab.json with merges.txt

It looks at names, not at what the files say.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from lmc.diagnostics import Diagnostic, LmcError

# Any one of these groups is enough for a tokenizer.
TOKENIZER_FILES = (("tokenizer.json",), ("tokenizer.model",), ("vocab.json", "merges.txt"))
INDEX = "model.safetensors.index.json"


def check_folder(folder: Path) -> None:
    """Raises LmcError E0804 with one diagnostic for each file that is missing, E0806 for an index that cannot be read."""
    problems = []
    if not (folder / "config.json").is_file():
        problems.append(_missing(folder, "config.json", "it says what kind of model this is"))
    problems += _missing_weights(folder)
    if not any(all((folder / name).is_file() for name in group) for group in TOKENIZER_FILES):
        names = ", ".join(" with ".join(group) for group in TOKENIZER_FILES)
        problems.append(_missing(folder, "tokenizer", f"looked for {names}"))
    if problems:
        raise LmcError(problems)


def read_json(path: Path) -> dict[str, Any]:
    """The file's JSON object.  Raises LmcError E0806 where it is none."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, OSError) as error:
        raise LmcError(Diagnostic("E0806", f"cannot read {path}: {error}", None, help="fetch the model again")) from error
    if not isinstance(data, dict):
        raise LmcError(Diagnostic("E0806", f"cannot read {path}: expected a JSON object", None, help="fetch the model again"))
    return data


def _missing_weights(folder: Path) -> list[Diagnostic]:
    if (folder / INDEX).is_file():
        shards = read_json(folder / INDEX).get("weight_map")
        if not isinstance(shards, dict):
            message = f"cannot read {folder / INDEX}: it has no `weight_map`"
            return [Diagnostic("E0806", message, None, help="fetch the model again")]
        return [
            _missing(folder, shard, f"{INDEX} names it as a shard of the weights")
            for shard in sorted(set(map(str, shards.values())))
            if not (folder / shard).is_file()
        ]
    if any(folder.glob("*.safetensors")):
        return []
    other = sorted(p.name for p in folder.glob("*") if p.suffix in (".bin", ".gguf", ".pt", ".pth"))
    found = f"; found {', '.join(other)}, which are not read" if other else ""
    return [_missing(folder, "model.safetensors", f"the weights{found}")]


def _missing(folder: Path, name: str, why: str) -> Diagnostic:
    return Diagnostic("E0804", f"the model folder {folder} has no {name} ({why})", None,
                      help="put the file there, or fetch the model again")
