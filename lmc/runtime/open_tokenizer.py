"""The part of a model that makes prompts, without its weights: tokenizer and chat template.

    tokenizer, template = open_tokenizer("default", cache)
    tokenizer, template = open_tokenizer("", cache, dry=True)       the stand-in's: no files
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lmc.runtime.dry_text import dry_tokenizer
from lmc.runtime.model.progress import Progress, silent
from lmc.runtime.template import dry_template


def open_tokenizer(model: str, cache: Path, *, dry: bool = False, progress: Progress = silent) -> tuple[Any, Any]:
    """Tokenizer and template (None where the model has none).  Arguments as in `open_session`.

    Raises `UsageError` or `LmcError` naming the file at fault.
    """
    if dry:
        tokenizer = dry_tokenizer()
        return tokenizer, dry_template(tokenizer)
    from lmc.runtime.template import load_template
    from lmc.runtime.tokenizer import load_tokenizer

    folder = model_folder(model, cache, progress=progress)
    tokenizer = load_tokenizer(folder)
    return tokenizer, load_template(folder, tokenizer)


def model_folder(model: str, cache: Path, *, progress: Progress = silent) -> Path:
    """Where the files of a model are; one that is given as a folder need not be complete, since its weights are not looked at.

    Raises `UsageError` where there is no such model.
    """
    from lmc.runtime.model.registry import find_packaged, resolve_model

    folder = Path(model).expanduser()
    if find_packaged(model) is None and model and folder.is_dir():
        return folder
    return resolve_model(model, cache, progress=progress)
