"""`$ref` inside one document, and all that it leads to.

    References(document).find("#/$defs/name", "properties.a.$ref")     # the schema there

A reference to elsewhere is refused, and so is every reference where a part of the document has an address of its own.  Every
keyword that counts is looked at before anything is built, so that none is passed over because another part was read another way.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote

from lmc.regex.schema_keywords import (
    ENFORCED, REFUSED, BeyondAutomata, SchemaError, is_annotation, shown, subschemas, under,
)


class References:
    __slots__ = ("document", "address", "anchors", "inner_address")

    def __init__(self, document: Any):
        self.document = document
        self.address = ""
        #: `$anchor`, and the `$id` of a part that is only a fragment.
        self.anchors: dict[str, Any] = {}
        self.inner_address: str | None = None
        for schema, path in subschemas(document, ""):
            address = schema.get("$id", schema.get("id"))
            if isinstance(schema.get("$anchor"), str):
                self.anchors["#" + schema["$anchor"]] = schema
            if isinstance(address, str):
                if address.startswith("#"):
                    self.anchors[address] = schema
                elif schema is document:
                    self.address = address.rstrip("#")
                elif "$id" in schema:
                    self.inner_address = path

    def find(self, target: Any, path: str) -> Any:
        """Raises `SchemaError`."""
        if not isinstance(target, str):
            raise SchemaError(path, f"expected a reference, found {shown(target)}")
        if self.address and (target == self.address or target.startswith(self.address + "#")):
            target = target[len(self.address) :] or "#"
        if not target.startswith("#"):
            raise BeyondAutomata(path, f"only references inside the document are supported, found {shown(target)}")
        if self.inner_address is not None:
            raise BeyondAutomata(path, f"the schema at `{self.inner_address}` has an `$id` of its own, which is not supported")
        if target in self.anchors:
            return self.anchors[target]
        if target not in ("#", "") and not target.startswith("#/"):
            raise SchemaError(path, f"there is no {target}")
        found = self.document
        for step in target[1:].split("/")[1:]:
            step = unquote(step).replace("~1", "/").replace("~0", "~")
            if isinstance(found, list) and step.isdigit() and int(step) < len(found):
                found = found[int(step)]
            elif isinstance(found, dict) and step in found:
                found = found[step]
            else:
                raise SchemaError(path, f"there is no {target}")
        return found


def check_keywords(document: Any, references: References) -> None:
    """Raises `SchemaError` at the first unknown keyword in a schema that counts: the document, and what it refers to."""
    seen: set[int] = set()
    pending = [(document, "")]
    for start in pending:
        for schema, path in subschemas(*start, defined=False):
            if id(schema) not in seen:
                seen.add(id(schema))
                _check_names(schema, path)
                if "$ref" in schema:
                    place = under(path, "$ref")
                    try:
                        pending.append((references.find(schema["$ref"], place), place))
                    except BeyondAutomata:
                        continue  # reading it says so again


def _check_names(schema: dict[str, Any], path: str) -> None:
    for name in schema:
        if not (is_annotation(name) or name in ENFORCED or name in REFUSED):
            raise SchemaError(under(path, name), f"`{name}` is no keyword of JSON Schema; notes of your own begin with `x-`")
