"""Opening a session by the name of a model: its files, tokenizer, template, weights and the pool.

    open_session(model="default", cache=Path("~/.cache/lmc"))
    open_session(model="", dry=True, cache=…)                   the stand-in model: no files, no weights

This file knows where everything comes from and nothing of what is done with it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmc.diagnostics import render
from lmc.runtime.ablation import check_policy, check_without
from lmc.runtime.dry_text import dry_tokenizer
from lmc.runtime.kernel_names import check_kernels
from lmc.runtime.memory import default_slots
from lmc.runtime.model.progress import Progress, silent
from lmc.runtime.options import check_jump
from lmc.runtime.pool_size import PoolSize, pool_size
from lmc.runtime.remote.session import RemoteSession
from lmc.runtime.remote.settings import RemoteSettings
from lmc.runtime.template import dry_template

if TYPE_CHECKING:
    from lmc.runtime.session import Session

    Opened = Session | RemoteSession

# The stand-in's slots hold two numbers each: this is enough for thousands of branches.
_DRY_SLOTS = 1 << 18


def open_session(*, model: str, cache: Path, dry: bool = False, dtype: str = "float32", kernels: str = "auto",
                 deterministic: bool = False, pool_tokens: int | None = None, pool_bytes: int | str | None = None, jump: str = "exact",
                 policy: str = "lpm", without: tuple[str, ...] = (), progress: Progress = silent,
                 say: Callable[[str], None] | None = None, remote: RemoteSettings | None = None) -> Opened:
    """Open a model and start its engine.  Weights are read when something is first computed.

    model: a short name, a folder, a GGUF file or a hub id; cache: where fetched models, masks of constraints and native kernels are kept;
    kernels: what computes, see `load_model`;
    pool_tokens, pool_bytes: size of the key-value pool, one of both; policy, without: the order of admission, and what to leave out (`ablation.py`);
    jump: what is done with forced text ("exact", "canonical" or "off"); progress: shown while fetching; say: told the size of the pool;
    remote: the server that the model is behind; then nothing of the others counts
    Raises `UsageError` or `LmcError` naming the file or option at fault.
    """
    if remote is not None:
        return RemoteSession(remote, model)
    size = pool_size(pool_tokens, pool_bytes)
    check_jump(jump)
    check_kernels(kernels)
    check_policy(policy)
    check_without(without)
    engine = {"jump": jump, "policy": policy, "without": without}
    if dry:
        return _open_stand_in(size, engine)
    return _open_model(model, cache, dtype, kernels, deterministic, size, engine, progress, say)


def _open_stand_in(size: PoolSize, engine: dict[str, Any]) -> Session:
    # What computes takes long to import, and a model behind a server needs none of it.
    from lmc.runtime.dry import DryModel
    from lmc.runtime.session import Session

    tokenizer = dry_tokenizer()
    opened = DryModel(tokenizer)
    slots = size.slots(opened.slot_bytes(), lambda: _DRY_SLOTS)
    return Session(opened, tokenizer, dry_template(tokenizer), slots=slots, name="the stand-in model", **engine)


def _open_model(model: str, cache: Path, dtype: str, kernels: str, deterministic: bool, size: PoolSize,
                engine: dict[str, Any], progress: Progress, say: Callable[[str], None] | None) -> Session:
    # What reads model files is not needed by the stand-in, and takes long to import.
    from lmc.runtime.model.lazy import lazy_model
    from lmc.runtime.model.load import load_model
    from lmc.runtime.model.registry import resolve_model
    from lmc.runtime.session import Session
    from lmc.runtime.template import load_template
    from lmc.runtime.tokenizer import load_tokenizer

    folder = resolve_model(model, cache, progress=progress)
    tokenizer = load_tokenizer(folder)
    template = load_template(folder, tokenizer)
    computing = {"dtype": dtype, "kernels": kernels, "cache": cache}
    # A promise about bits is tried out at once, and that needs the weights.
    opened = load_model(folder, deterministic=True, **computing) if deterministic else lazy_model(folder, **computing)
    to_come = 0 if deterministic else opened.weight_bytes
    slots = size.slots(opened.slot_bytes(), lambda: default_slots(opened.slot_bytes(), opened.max_positions, reserved=to_come))
    if say is not None:
        for warning in template.warnings if template is not None else ():
            say(render(warning, None))
        taken = slots * opened.slot_bytes() / 2**20
        say(f"pool of {slots:,} tokens ({taken:,.0f} MiB), context {min(slots, opened.max_positions):,}")
    return Session(opened, tokenizer, template, slots=slots, name=model, masks=cache / "masks", **engine)
