"""What the files that read a part of a schema need of the one that reads all of it (`json_schema.py`)."""

from __future__ import annotations

from typing import Protocol

from lmc.regex.nodes import Node
from lmc.regex.schema_arrays import Marks
from lmc.regex.schema_flat import Flat, Part


class Schemas(Protocol):
    """`depth`: how deep a value without a schema nests."""

    marks: Marks
    depth: int

    def node(self, parts: tuple[Part, ...]) -> Node | None:
        """The texts that fulfil all of some schemas; None where there are none."""

    def alternatives(self, parts: tuple[Part, ...]) -> list[Flat]:
        """What may hold, each without choices in it; none where nothing fits."""

    def free(self, depth: int) -> Node:
        """Any value that nests so deep."""
