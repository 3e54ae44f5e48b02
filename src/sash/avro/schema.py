"""Avro schemas: their JSON becomes types, in which names are resolved."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sash.errors import CatalogError

PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")


@dataclass(eq=False)
class Avro:
    """A type. `kind` is a primitive's name, or fixed, enum, array, map, union or record.

    `parts` are the branches of a union, the fields of a record in order, or the only element of an array or map. A record may
    be a part of itself.
    """

    kind: str
    logical: str = ""
    name: str = ""
    parts: list[Avro] = field(default_factory=list)
    fields: list[str] = field(default_factory=list)
    symbols: tuple[str, ...] = ()
    size: int = 0
    precision: int = 0
    scale: int = 0

    def __str__(self) -> str:
        described = {"union": f"[{', '.join(map(str, self.parts))}]"} if self.kind == "union" else {}
        name = described.get(self.kind, self.name or self.kind)
        return f"{name} ({self.logical})" if self.logical else name

    def part(self, name: str) -> Avro | None:
        """The field of a record with this name, or one that differs in case only."""
        if name in self.fields:
            return self.parts[self.fields.index(name)]
        alike = [part for known, part in zip(self.fields, self.parts, strict=True) if known.lower() == name.lower()]
        return alike[0] if len(alike) == 1 else None


def parse_avro(text: str, named: Mapping[str, Avro] | None = None) -> Avro:
    """The type of a schema, given as JSON; `named` are types of other schemas that it refers to.

    >>> str(parse_avro('["null", {"type": "long", "logicalType": "timestamp-millis"}]'))
    '[null, long (timestamp-millis)]'
    """
    try:
        written = json.loads(text)
    except ValueError:
        # The name of a type alone is a schema in a registry too.
        written = text.strip()
    return _Reader(dict(named or {})).read(written, "")


class _Reader:
    """Reads one schema; `named` are the types that have names."""

    def __init__(self, named: dict[str, Avro]) -> None:
        self.named = named

    def read(self, given: Any, space: str) -> Avro:
        if isinstance(given, str):
            return self._of_name(given, space)
        if isinstance(given, list):
            return Avro("union", parts=[self.read(branch, space) for branch in given])
        if not isinstance(given, dict) or "type" not in given:
            raise CatalogError(f"{json.dumps(given)[:200]} is no Avro schema: it has no type")
        kind = given["type"]
        if not isinstance(kind, str):
            return self.read(kind, space)
        if kind in ("record", "error", "enum", "fixed"):
            return self._named(given, "record" if kind == "error" else kind, space)
        if kind == "array":
            return Avro("array", parts=[self.read(_required(given, "items"), space)])
        if kind == "map":
            return Avro("map", parts=[self.read(_required(given, "values"), space)])
        found = self._of_name(kind, space)
        return _logical(Avro(kind), given) if found.kind in PRIMITIVES and found.kind == kind else found

    def _of_name(self, name: str, space: str) -> Avro:
        if name in PRIMITIVES:
            return Avro(name)
        for full in (f"{space}.{name}" if space and "." not in name else name, name):
            if full in self.named:
                return self.named[full]
        raise CatalogError(f"the Avro schema has no type {name}: name one that is defined before it is used")

    def _named(self, given: Mapping[str, Any], kind: str, space: str) -> Avro:
        name = str(_required(given, "name"))
        space = name.rpartition(".")[0] if "." in name else str(given.get("namespace", space))
        full = name if "." in name or not space else f"{space}.{name}"
        found = Avro(kind, name=full)
        self.named[full] = found  # before its fields, which may be of this type
        if kind == "enum":
            found.symbols = tuple(map(str, _required(given, "symbols")))
        elif kind == "fixed":
            found.size = int(_required(given, "size"))
            _logical(found, given)
        else:
            fields: Sequence[Mapping[str, Any]] = _required(given, "fields")
            for one in fields:
                # A field's own attributes are not those of its type, which may be a primitive beside them.
                found.parts.append(self.read(_required(one, "type"), space))
                found.fields.append(str(_required(one, "name")))
        return found


def _logical(found: Avro, given: Mapping[str, Any]) -> Avro:
    """Add the logical type, if it is valid; one that is not is ignored, as Avro demands."""
    logical = str(given.get("logicalType", _OF_CONNECT.get(str(given.get("connect.name", "")), "")))
    if logical == "decimal":
        found.precision, found.scale = int(given.get("precision", 0)), int(given.get("scale", 0))
        if found.kind not in ("bytes", "fixed") or not 0 <= found.scale <= found.precision or found.precision == 0:
            return found
    elif logical not in _LOGICAL.get(found.kind, ()):
        return found
    found.logical = logical
    return found


_LOGICAL = {
    "int": ("date", "time-millis"),
    "long": (
        "time-micros", "timestamp-millis", "timestamp-micros", "timestamp-nanos", "local-timestamp-millis",
        "local-timestamp-micros", "local-timestamp-nanos",
    ),
    "string": ("uuid",),
    "fixed": ("uuid", "duration"),
}  # fmt: skip

_OF_CONNECT = {
    "io.debezium.time.Date": "date",
    "io.debezium.time.Timestamp": "timestamp-millis",
    "io.debezium.time.MicroTimestamp": "timestamp-micros",
    "io.debezium.time.NanoTimestamp": "timestamp-nanos",
}
"""What types of Kafka Connect mean that have no logical type."""


def _required(given: Any, name: str) -> Any:
    if not isinstance(given, Mapping) or name not in given:
        raise CatalogError(f"the Avro schema has a part without {name}: {json.dumps(given)[:200]}")
    return given[name]
