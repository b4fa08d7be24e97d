"""What a forecast needs of a model: tokenizer, template, and the size of its keys and values; no weights.

    foreseer, target = open_target("default", cache)
    target.slot_bytes                   46,080: 30 layers, 3 heads of 64, keys and values, four bytes each
"""

from __future__ import annotations

from pathlib import Path

from lmc.backend.program import Program
from lmc.diagnostics import LmcError
from lmc.runtime.dry_text import DRY_POSITIONS, DRY_SLOT_BYTES
from lmc.runtime.forecast.counts import Target
from lmc.runtime.forecast.prompts import Foreseer
from lmc.runtime.model.progress import Progress, silent
from lmc.runtime.open_tokenizer import model_folder, open_tokenizer
from lmc.runtime.pool_size import pool_size
from lmc.runtime.remote.capabilities import CAPABILITIES
from lmc.runtime.remote.conversation import remote_vocabulary
from lmc.runtime.remote.fitting import emulations, remote_faults
from lmc.runtime.remote.settings import RemoteSettings

#: What the server alone knows.
_UNBOUNDED = 1 << 62
_ITEM_BYTES = {"float32": 4, "bfloat16": 2}


def open_target(model: str, cache: Path, *, dry: bool = False, dtype: str = "float32", pool_tokens: int | None = None,
                pool_bytes: int | str | None = None, progress: Progress = silent) -> tuple[Foreseer, Target]:
    """Arguments as in `open_session`.  Raises `UsageError` or `LmcError` naming the file at fault."""
    size = pool_size(pool_tokens, pool_bytes)
    tokenizer, template = open_tokenizer(model, cache, dry=dry, progress=progress)
    if dry:
        name, slot_bytes, positions = "the stand-in model", DRY_SLOT_BYTES, DRY_POSITIONS
    else:
        from lmc.runtime.model.config import read_config

        config = read_config(model_folder(model, cache, progress=progress))
        name, slot_bytes, positions = model, config.slot_bytes(_ITEM_BYTES[dtype]), config.max_positions
    return Foreseer(tokenizer, template), Target(name, slot_bytes, min(positions, size.slots(slot_bytes, lambda: positions)))


def open_remote_target(program: Program, settings: RemoteSettings, model: str) -> tuple[Foreseer, Target]:
    """The same for a model behind a server, which is not asked.  Raises `LmcError` with the places of what it cannot do."""
    capabilities = CAPABILITIES[settings.backend]
    faults = remote_faults(program, capabilities)
    if faults:
        raise LmcError(faults, program.sources)
    done_here = emulations(program, capabilities, attempts=settings.patience.invalid, ahead=settings.ahead)
    return Foreseer(*remote_vocabulary()), Target(model, 0, _UNBOUNDED, done_here)
