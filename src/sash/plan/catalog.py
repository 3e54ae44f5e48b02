"""What the names in a query mean: the registered streams and relations, by schema only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pyarrow as pa

from sash.plan.types import Schema

NativeTyper = Callable[[str, str], pa.DataType | None]
"""(stream or relation name, Spark SQL expression over its columns) -> its type, or None if Spark refuses it."""


@dataclass(frozen=True)
class StreamEntry:
    """A registered stream; `time` is the name of its time column."""

    name: str
    schema: Schema
    time: str


@dataclass(frozen=True)
class RelationEntry:
    """A registered relation; what it says is as in the plan's node."""

    name: str
    schema: Schema
    retroactive: bool = True
    changes: bool = False
    key: tuple[int, ...] | None = None
    waits: bool = True
    timed: bool = True


@dataclass
class Catalog:
    """Streams and relations by lower-case name. `native_type`, where Spark is at hand, types any Spark function."""

    streams: dict[str, StreamEntry] = field(default_factory=dict)
    relations: dict[str, RelationEntry] = field(default_factory=dict)
    native_type: NativeTyper | None = None
