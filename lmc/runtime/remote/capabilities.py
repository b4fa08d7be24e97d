"""What the servers of each kind can do themselves.

    CAPABILITIES["openai"].stops         4: a fifth stop text is cut here

Declared, not tried out: what is not in the list is emulated or refused when a program is bound (`fitting.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

#: Options of a generation that every interface of the kind has.
_PLAIN = frozenset({"temperature", "top_p", "seed", "frequency_penalty", "presence_penalty", "logit_bias", "logprobs"})
_ENGINES = _PLAIN | {"top_k", "min_p", "repetition_penalty", "min_tokens", "ignore_eos"}


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a target does in turns of a chat and in raw text; sets hold `chat` and `raw`.

    options: of a generation, beside `max_tokens` and `stop`; stops: how many stop texts a request may have, None for any number
    schemas, regexes: where values are held to a JSON Schema and to a regex while they are written
    scores: where the log-probabilities of a prompt's own tokens can be had
    continues: whether a turn of the assistant that has begun is gone on with as it stands
    """

    name: str
    options: frozenset[str]
    stops: int | None = None
    schemas: frozenset[str] = field(default=frozenset())
    regexes: frozenset[str] = field(default=frozenset())
    scores: frozenset[str] = field(default=frozenset())
    continues: bool = False


_BOTH = frozenset({"chat", "raw"})
CAPABILITIES: Mapping[str, Capabilities] = {
    "openai": Capabilities("openai", _PLAIN, stops=4, schemas=frozenset({"chat"})),
    "sglang": Capabilities("sglang", _ENGINES - {"logit_bias"}, schemas=_BOTH, regexes=_BOTH, scores=frozenset({"raw"}),
                           continues=True),
    "vllm": Capabilities("vllm", _ENGINES, schemas=_BOTH, regexes=_BOTH, scores=_BOTH, continues=True),
}
