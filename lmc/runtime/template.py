"""A model's chat template as tokens: control tokens and ordinary text, ready to be put around the turns of a context.

    between["user", "assistant"]    (2, "\\n", 1, "assistant\\n")        2 and 1 are <|im_end|> and <|im_start|>

Contents never pass through the template (`markers.py`), so no value can become part of one.  Control tokens come from here alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lmc.diagnostics import Diagnostic, LmcError, Severity
from lmc.runtime.markers import Markers, isolate, read_markers
from lmc.runtime.sandbox import TemplateError

if TYPE_CHECKING:
    from lmc.runtime.tokenizer import Tokenizer

# Ids of control tokens and non-empty pieces of ordinary text.
Marker = tuple[int | str, ...]


@dataclass(frozen=True, slots=True)
class ChatTemplate:
    """start: before the content of a first turn of that role; between: by (role that ends, role that begins); what the template
    cannot do is missing.  warnings: where a full rendering of a long conversation would differ."""

    start: Mapping[str, Marker]
    between: Mapping[tuple[str, str], Marker]
    warnings: tuple[Diagnostic, ...] = ()


def load_template(folder: Path, tokenizer: Tokenizer) -> ChatTemplate | None:
    """The folder's chat template, None if it has none.  Raises LmcError E0808 if it cannot be applied turn by turn or is
    forbidden."""
    try:
        markers = read_markers(folder)
    except TemplateError as error:
        raise LmcError(Diagnostic("E0808", f"the chat template of the model in {folder} cannot be used: {error}", None,
                                  help="put another `chat_template.jinja` into the folder, or take another model")) from error
    if markers is None:
        return None
    warnings = tuple(
        Diagnostic("W180", f"the chat template of the model in {folder} treats long conversations otherwise than lmc does: {what}",
                   None, severity=Severity.WARNING, help="lmc never changes a turn that was sent")
        for what in markers.differences
    )
    return bind_template(markers, tokenizer, warnings)


def bind_template(markers: Markers, tokenizer: Tokenizer, warnings: tuple[Diagnostic, ...] = ()) -> ChatTemplate:
    """The markers in the tokenizer's control tokens; the begin token comes once, whoever of the two writes it."""
    start = {role: _begun(tokenizer.split_control(text), tokenizer.bos_id) for role, text in markers.start.items()}
    return ChatTemplate(start, {roles: tokenizer.split_control(text) for roles, text in markers.between.items()}, warnings)


def dry_template(tokenizer: Tokenizer) -> ChatTemplate:
    """ChatML, for the stand-in model."""
    return bind_template(isolate(_CHATML, {}), tokenizer)


_CHATML = (
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)


def _begun(marker: Marker, bos: int | None) -> Marker:
    return marker if bos is None or marker[:1] == (bos,) else (bos, *marker)
