"""Scans and channels: what a plan reads of each stream, and what is sent to shards, once for all stages that read it.

A *scan* is the one pass over a stream: the distinct filters and expressions that the legs over it need. A *channel* brings
rows of one source, partitioned by one key, to the shards. Its readers pick their rows by a bit of its mask columns, and
their columns by position; each applies its own window. Every shard keeps one log per channel, so a channel's `kind` says how
its rows end: those of time windows end by the longest one among the readers; count windows, edges between stages and stages
that write snapshots have channels of their own.

Channels and stages are named by identities, digests of what they hold. A stage's identity depends on what it reads, not on
what else its channels carry for others.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from sash.physical.nodes import (
    NrrJoin,
    PhysicalPlan,
    RelationLeg,
    Stage,
    StreamLeg,
    UpdateLeg,
    walk,
)
from sash.physical.state_names import digest
from sash.plan.expressions import Expression
from sash.plan.nodes import Node, Rows, Stream
from sash.state.changes import ChangeBatch

MASK_BITS = 62
"""The number of filters per mask column."""

Kind = Literal["time", "rows", "endless", "stamped", "explicit"]
"""How the rows of a channel end: by the time windows above, as later rows push them out, never, at the expiration times that
they carry, or by retractions."""


@dataclass(frozen=True)
class ScanColumn:
    """An expression over the stream's columns. One that may fail is evaluated only for rows that filter `guard` accepts."""

    expression: Expression
    guard: int | None = None


@dataclass(frozen=True)
class Scan:
    """One pass over a stream: filters (conjuncts, each guarded by those before it), and columns."""

    stream: Stream
    filters: tuple[tuple[Expression, ...], ...]
    columns: tuple[ScanColumn, ...]
    everything: bool
    """Whether some reader takes all rows; otherwise those that no filter accepts are read for their times only."""

    @property
    def masks(self) -> int:
        """The number of mask columns."""
        return -(-len(self.filters) // MASK_BITS)


@dataclass(frozen=True)
class ScanRows:
    """Columns of a scan: all rows, or those that one of these filters accepts."""

    scan: int
    columns: tuple[int, ...]
    filters: tuple[int, ...]
    everything: bool


@dataclass(frozen=True)
class LookupRows:
    """The rows that one filter of a scan accepts (None: all), through lookups in static tables.

    `leg` computes the same rows from the stream itself, where its tables are too large to look them up after the scan.
    """

    scan: int
    columns: tuple[int, ...]
    filter: int | None
    node: Node
    leg: int


@dataclass(frozen=True)
class LegRows:
    """The rows of a leg, in a pass of their own."""

    leg: int


@dataclass(frozen=True)
class StageRows:
    """The changes of an earlier stage; if `local`, of the same shard, which are handed over in memory.

    If `strict`, rows may carry expiration times, up to which they may be retracted.
    """

    stage: int
    local: bool = False
    strict: bool = False


@dataclass(frozen=True)
class StartClock:
    """No rows, and a clock without an end from the start on: what makes a stage over constants alone run, once."""


Source = ScanRows | LookupRows | LegRows | StageRows | StartClock


@dataclass(frozen=True)
class Reader:
    """A stage's input that reads a channel: the bit that its rows have set (None: all rows), and its columns."""

    stage: int
    input: int
    filter: int | None
    columns: tuple[int, ...]


@dataclass(frozen=True)
class Channel:
    """Rows that are sent to shards once, partitioned by the columns `keys` (none: every reader gets all rows).

    `masks` columns with a bit per filter follow the others. `horizon` is the longest life of a row in a time window.
    `window` is the count window of kind `rows`. `owner` is the stage whose snapshots replace the log, if it writes any.
    """

    index: int
    source: Source
    keys: tuple[int, ...]
    columns: tuple[pa.DataType, ...]
    kind: Kind
    horizon: int
    readers: tuple[Reader, ...]
    description: dict[str, Any]
    masks: int = 0
    window: Rows | None = None
    owner: int | None = None
    stream: str | None = None

    @property
    def dtypes(self) -> tuple[pa.DataType, ...]:
        """The types of all columns that are sent."""
        return (*self.columns, *([pa.int64()] * self.masks))

    @property
    def may_expire(self) -> bool:
        """Whether the rows of a stage may carry expiration times, up to which they may be retracted."""
        return isinstance(self.source, StageRows) and self.source.strict

    def live(self, rows: ChangeBatch, horizon: int, floor: int) -> ChangeBatch:
        """The rows that have not ended before `floor`, for a reader whose windows have this length, as far as times end them.

        The log may have dropped a row that expired, and still have its retraction: the reader gets neither.
        """
        if self.kind == "time":
            needed = rows.ts + horizon >= floor
        elif self.may_expire:
            needed = rows.exp >= floor
        else:
            return rows
        return rows if needed.all() else rows.take(np.flatnonzero(needed))

    @cached_property
    def identity(self) -> str:
        """The name of the channel's log in checkpoints."""
        return digest(json.dumps(self.description, sort_keys=True))


@dataclass(frozen=True)
class Channels:
    """The scans and channels of a plan, and the identity of each stage."""

    scans: tuple[Scan, ...]
    channels: tuple[Channel, ...]
    stages: tuple[str, ...]

    def inputs_of(self, stage: int) -> dict[int, tuple[Channel, Reader]]:
        """The channel and reader of every input of a stage that is not a relation."""
        return {
            reader.input: (channel, reader)
            for channel in self.channels
            for reader in channel.readers
            if reader.stage == stage
        }


def queries_of_stages(plan: PhysicalPlan) -> tuple[frozenset[str], ...]:
    """The names of the queries that need each stage: it outputs their changes, or a stage that they need reads it."""
    found: list[set[str]] = [set() for _ in plan.stages]
    for output in plan.outputs:
        found[output.stage].add(output.query)
    for stage in reversed(plan.stages):
        for given in stage.inputs:
            if given.leaf.stage is not None:
                found[given.leaf.stage] |= found[stage.index]
    return tuple(map(frozenset, found))


def needs_snapshots(plan: PhysicalPlan, stage: Stage) -> bool:
    """Whether the log of some input would grow without bound, so that snapshots must replace it.

    This is so for rows that never expire, for updates of relations, and for stages that join with a non-retroactive
    relation: their results depend on versions of the relation that are gone. A count window's log holds its last rows only.
    """
    if any(isinstance(node, NrrJoin) for node in walk(stage.root)):
        return True
    for leaf in (given.leaf for given in stage.inputs):
        leg = None if leaf.leg is None else plan.legs[leaf.leg]
        counted = isinstance(leg, StreamLeg) and isinstance(leg.window, Rows)
        if isinstance(leg, UpdateLeg) and not leg.relation.constants:
            return True
        if leaf.expiry == "mono" and not isinstance(leg, RelationLeg) and not counted:
            return True
    return False


def is_constant(plan: PhysicalPlan, stage: Stage) -> bool:
    """Whether a stage reads nothing but relations that never change."""
    legs = [None if given.leaf.leg is None else plan.legs[given.leaf.leg] for given in stage.inputs]
    return all(isinstance(leg, RelationLeg) for leg in legs)
