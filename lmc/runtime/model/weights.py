"""Finds and checks the safetensors files of a model folder; nothing is read from them before everything is known to be there.

    one file    model.safetensors
    shards      model.safetensors.index.json  ->  model-00001-of-00003.safetensors, … (any file names)

A file is a length, a JSON header (name -> dtype, shape, place) and the numbers.  Headers are read here and compared with the files'
sizes, so a truncated download is named before it is used.  A file that the index does not name is ignored.
This file does not know which tensors a model wants.
"""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open

from lmc.diagnostics import Diagnostic, LmcError

_INDEX = "model.safetensors.index.json"
_SINGLE = "model.safetensors"
_DTYPES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2}
# The format's own bound; a damaged length would otherwise ask for any amount of memory.
_MAX_HEADER = 100_000_000


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """Where a tensor lies; `dtype` is spelled as in the file (`F32`, `BF16`)."""

    name: str
    file: Path
    dtype: str
    shape: tuple[int, ...]

    @property
    def is_float(self) -> bool:
        return self.dtype in _DTYPES


def find_tensors(folder: Path) -> dict[str, StoredTensor]:
    """Every tensor of the checkpoint.  Raises `LmcError` naming each file that is missing or damaged."""
    index = folder / _INDEX
    if index.is_file():
        return _indexed(folder, index)
    if (folder / _SINGLE).is_file():
        return _one_file(folder / _SINGLE)
    raise LmcError(_no_weights(folder))


def read_tensors(stored: list[StoredTensor]) -> dict[str, torch.Tensor]:
    """The numbers, as they are stored, mapped from the files without a copy."""
    tensors = {}
    for file in sorted({t.file for t in stored}):
        with safe_open(file, framework="pt", device="cpu") as opened:
            for tensor in stored:
                if tensor.file == file:
                    assert tensor.name not in tensors, f"{tensor.name} would be read twice"
                    tensors[tensor.name] = opened.get_tensor(tensor.name)
    return tensors


def _one_file(path: Path) -> dict[str, StoredTensor]:
    found = _header(path)
    if isinstance(found, Diagnostic):
        raise LmcError(found)
    return found


def _indexed(folder: Path, index: Path) -> dict[str, StoredTensor]:
    places = _read_index(index)
    faults, headers = [], {}
    for name in sorted(set(places.values())):
        found = _header(folder / name)
        if isinstance(found, Diagnostic):
            faults.append(found)
        else:
            headers[name] = found
    if faults:
        raise LmcError(faults)
    lost = [(tensor, name) for tensor, name in places.items() if tensor not in headers[name]]
    if lost:
        raise LmcError([Diagnostic("E0815", f"{folder / name}: the tensor `{tensor}` is missing, which {index.name} says is there",
                                   None, help="fetch the model again: shards and index do not belong together")
                        for tensor, name in lost])
    return {tensor: headers[name][tensor] for tensor, name in places.items()}


def _read_index(index: Path) -> dict[str, str]:
    try:
        places = json.loads(index.read_text(encoding="utf-8"))["weight_map"]
        valid = isinstance(places, dict) and places and all(isinstance(name, str) for name in places.values())
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise LmcError(Diagnostic("E0806", f"{index}: cannot be read as an index of shards: {error!r}", None)) from None
    if not valid:
        raise LmcError(Diagnostic("E0806", f"{index}: `weight_map` must map tensor names to file names", None))
    for name in places.values():
        # An index is downloaded data: it may not lead out of its folder.
        if Path(name).name != name or name in ("", ".", ".."):
            raise LmcError(Diagnostic("E0806", f"{index}: `{name}` is not a plain file name", None))
    return places


def _header(path: Path) -> dict[str, StoredTensor] | Diagnostic:
    again = "fetch the file again: it is not what was published"
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            head = file.read(8)
            length = struct.unpack("<Q", head)[0] if len(head) == 8 else 0
            if not 2 <= length <= min(size - 8, _MAX_HEADER):
                return Diagnostic("E0806", f"{path}: truncated or not a safetensors file ({size} bytes)", None, help=again)
            entries = json.loads(file.read(length))
        return _entries(path, entries, size - 8 - length)
    except FileNotFoundError:
        return Diagnostic("E0804", f"{path}: no such file, but {_INDEX} names it", None, help="fetch the missing shard")
    except (OSError, ValueError, KeyError, TypeError) as error:
        return Diagnostic("E0806", f"{path}: the header cannot be read: {error!r}", None, help=again)


def _entries(path: Path, entries: dict[str, Any], data_bytes: int) -> dict[str, StoredTensor] | Diagnostic:
    found, needed = {}, 0
    for name, entry in entries.items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        shape = tuple(int(n) for n in entry["shape"])
        tensor = StoredTensor(name, path, entry["dtype"], shape)
        if tensor.is_float and end - begin != _DTYPES[tensor.dtype] * _product(shape):
            return Diagnostic("E0806", f"{path}: the tensor `{name}` of shape {list(shape)} has {end - begin} bytes", None,
                              help="fetch the file again: it is not what was published")
        needed = max(needed, end)
        found[name] = tensor
    if needed != data_bytes:
        return Diagnostic("E0806", f"{path}: truncated or overlong: {data_bytes} bytes of numbers, expected {needed}", None,
                          help="fetch the file again: it is not what was published")
    return found


def _product(shape: tuple[int, ...]) -> int:
    total = 1
    for n in shape:
        total *= n
    return total


def _no_weights(folder: Path) -> Diagnostic:
    loose = sorted(p.name for p in folder.glob("*.safetensors"))
    pickled = sorted(p.name for pattern in ("*.bin", "*.pt", "*.pth") for p in folder.glob(pattern))
    message = f"{folder}: no {_SINGLE} and no {_INDEX}"
    if loose:
        return Diagnostic("E0804", f"{message}, only {', '.join(loose[:4])}", None,
                          help=f"fetch {_INDEX}, which says which tensors lie in which shard")
    if pickled:
        return Diagnostic("E0804", f"{message}, only {', '.join(pickled[:4])}", None,
                          help="pickled weights can run code and are never read: convert them with transformers' "
                               "`save_pretrained(..., safe_serialization=True)` or fetch the safetensors files")
    return Diagnostic("E0804", message, None, help="give a Hugging Face model folder: config.json, *.safetensors, tokenizer.json")
