"""Models of the Hugging Face hub: what is in its cache on this machine, and fetching more when the user named it.

Only names, configs, tokenizers and safetensors are fetched: never pickled weights, never Python files.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from lmc.diagnostics import Diagnostic, LmcError
from lmc.runtime.model.folder import check_folder

_WANTED = ["*.json", "*.safetensors", "*.model", "*.txt", "*.jinja"]


def local_snapshot(name: str) -> Path | None:
    """The folder of a model that is here and complete, without asking the network."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    try:
        folder = Path(snapshot_download(name, allow_patterns=_WANTED, local_files_only=True))
        check_folder(folder)
    except (LocalEntryNotFoundError, LmcError):
        # Not here, or a download that was cut off: the hub is asked for the rest.
        return None
    return folder


def download_snapshot(name: str) -> Path:
    """Fetches what is missing of the model; huggingface_hub shows its own bars.  Raises LmcError E0802 or E0804."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import GatedRepoError, RepositoryNotFoundError

    try:
        folder = Path(snapshot_download(name, allow_patterns=_WANTED))
    except GatedRepoError as error:
        raise _failed(name, "its owner wants you to ask for access first", "ask on its page, then `hf auth login`") from error
    except RepositoryNotFoundError as error:
        raise _failed(name, "the hub has no such model", "check the name; a folder needs a path such as ./name") from error
    except Exception as error:  # whatever its HTTP library raises comes through
        why = str(error).strip().partition("\n")[0]
        raise _failed(name, f"the hub could not be reached, and the model is not here ({why})",
                      "check the network, or pass --model with a folder that is already here") from error
    check_folder(folder)
    return folder


def cached_snapshots() -> Iterator[tuple[str, Path, int]]:
    """Name, folder and size in bytes of each language model in the hub's cache."""
    from huggingface_hub import scan_cache_dir
    from huggingface_hub.errors import CacheNotFound

    try:
        repos = scan_cache_dir().repos
    except CacheNotFound:
        return
    for repo in sorted(repos, key=lambda r: r.repo_id):
        for revision in repo.revisions:
            if repo.repo_type == "model" and (revision.snapshot_path / "config.json").is_file():
                yield repo.repo_id, revision.snapshot_path, revision.size_on_disk


def _failed(name: str, why: str, help: str) -> LmcError:
    return LmcError(Diagnostic("E0802", f"cannot fetch the model {name}: {why}", None, help=help))
