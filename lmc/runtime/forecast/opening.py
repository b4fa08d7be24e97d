"""What a forecast needs of a model: tokenizer, template, and the size of its keys and values; no weights.

    foreseer, target = open_target("default", cache)
    target.slot_bytes                   46,080: 30 layers, 3 heads of 64, keys and values, four bytes each
"""

from __future__ import annotations

from pathlib import Path

from lmc.runtime.dry_text import DRY_POSITIONS, DRY_SLOT_BYTES
from lmc.runtime.forecast.counts import Target
from lmc.runtime.forecast.prompts import Foreseer
from lmc.runtime.model.progress import Progress, silent
from lmc.runtime.open_tokenizer import model_folder, open_tokenizer

_ITEM_BYTES = {"float32": 4, "bfloat16": 2}


def open_target(model: str, cache: Path, *, dry: bool = False, dtype: str = "float32", pool_tokens: int | None = None,
                progress: Progress = silent) -> tuple[Foreseer, Target]:
    """Arguments as in `open_session`.  Raises `UsageError` or `LmcError` naming the file at fault."""
    tokenizer, template = open_tokenizer(model, cache, dry=dry, progress=progress)
    if dry:
        name, slot_bytes, positions = "the stand-in model", DRY_SLOT_BYTES, DRY_POSITIONS
    else:
        from lmc.runtime.model.config import read_config

        config = read_config(model_folder(model, cache, progress=progress))
        name, slot_bytes, positions = model, config.slot_bytes(_ITEM_BYTES[dtype]), config.max_positions
    return Foreseer(tokenizer, template), Target(name, slot_bytes, min(positions, pool_tokens or positions))
