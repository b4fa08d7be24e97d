"""A tokenizer made of given pieces, for tests: `Words(["a", "bc"])` has the tokens 0 `a`, 1 `bc`, then a control and an end token."""

from __future__ import annotations

from lmc.regex.build import compile_regex
from lmc.runtime.constraint import TokenConstraint
from lmc.runtime.token_sets import TokenSets


class Words:
    def __init__(self, pieces: list[str | bytes]):
        data = [p.encode() if isinstance(p, str) else p for p in pieces]
        self.token_bytes = (*data, b"", b"")
        self.size = len(self.token_bytes)
        self.control, self.end = self.size - 2, self.size - 1
        self.end_ids = frozenset({self.end})

    def id(self, piece: str | bytes) -> int:
        return self.token_bytes.index(piece.encode() if isinstance(piece, str) else piece)

    def encode(self, text: str) -> list[int]:
        """The longest piece first."""
        data, ids = text.encode(), []
        while data:
            longest = max((p for p in self.token_bytes if p and data.startswith(p)), key=len, default=None)
            if longest is None:
                raise ValueError(f"no piece begins {data!r}")
            ids.append(self.id(longest))
            data = data[len(longest) :]
        return ids

    def ids(self, *pieces: str | bytes) -> tuple[int, ...]:
        return tuple(map(self.id, pieces))

    def sets(self, width: int | None = None) -> TokenSets:
        return TokenSets(self, width or self.size)

    def constraint(self, pattern: str) -> TokenConstraint:
        return TokenConstraint(compile_regex(pattern), self.sets().index)
