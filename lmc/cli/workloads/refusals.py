"""Who does not run which workload, and why: one line for each reason, below the table.

    outlines does not run mmlu, rag, self_consistency: it writes no free text
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol, TypeVar


class Named(Protocol):
    @property
    def name(self) -> str: ...


class Refusing(Named, Protocol):
    """A contender: `cannot` gives why it does not run a workload, or None."""

    def cannot(self, workload: Any) -> str | None: ...


_Contender = TypeVar("_Contender", bound=Refusing)


class Refusals:
    """Of one run of a benchmark."""

    __slots__ = ("_found",)

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], list[str]] = {}

    def able(self, contenders: Sequence[_Contender], workload: Named) -> list[_Contender]:
        """Those that run it; the reasons of the others are kept."""
        able = []
        for contender in contenders:
            reason = contender.cannot(workload)
            if reason is None:
                able.append(contender)
            else:
                self._found.setdefault((contender.name, reason), []).append(workload.name)
        return able

    def lines(self) -> Iterator[str]:
        for (name, reason), workloads in self._found.items():
            yield f"{name} does not run {', '.join(workloads)}: {reason}"
