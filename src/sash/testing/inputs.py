"""The inputs of a replay: rows are checked, typed, merged by time and split into micro-batches."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from sash.arguments import check_count, check_mapping, check_named, shown
from sash.errors import BadRowError, CatalogError
from sash.plan.catalog import OP, Catalog, partition_names
from sash.plan.statistics import UNKNOWN
from sash.plan.types import BIGINT, Field, Schema, is_numeric, type_name
from sash.rows import parse_schema, refuse_duplicates
from sash.state.changes import ChangeBatch, Signs
from sash.state.memory import Ints
from sash.state.partition_clocks import Marks, PartitionReport, slowest
from sash.testing.tables import InputRows, Rows, TypedRows, read_rows, typed
from sash.testing.times import TimeUnit
from sash.time import FOREVER

TIME = "ts"
"""The column with the time of a row."""


@dataclass(frozen=True)
class ReplayInput:
    """The rows of a stream, or the updates of a relation, with their times in microseconds.

    Updates are sorted by time and have signs; rows of a stream have none. `not_carried` has the types, by name, of columns
    that no query can use. `dated` means that the times were given as datetimes. `partition` is the position of
    the column with the partition of a row, if partitions may be out of step.
    """

    schema: Schema
    times: Ints
    columns: list[pa.Array]
    slack: int
    signs: Signs | None = None
    not_carried: Mapping[str, str] = field(default_factory=dict)
    dated: bool = False
    partition: int | None = None

    def marks(self, chosen: Ints) -> dict[str, int]:
        """The largest time of every partition among these rows, less the slack; without partitions all rows are of one."""
        found: dict[str, int] = {}
        of = None if self.partition is None else self.columns[self.partition].take(pa.array(chosen)).to_pylist()
        for position, at in enumerate(self.times[chosen].tolist()):
            name = "" if of is None else str(of[position])
            found[name] = max(at - self.slack, found.get(name, at - self.slack))
        return found


@dataclass(frozen=True)
class MicroBatch:
    """The rows of each input in one micro-batch, and the clocks after it."""

    rows: dict[str, ChangeBatch]
    clocks: dict[str, int]


@dataclass(frozen=True)
class Inputs:
    """The streams and relations of a replay as the user gives them, by name; relations in `nrrs` are non-retroactive."""

    streams: Mapping[str, Rows]
    relations: Mapping[str, Rows]
    nrrs: Mapping[str, Rows]

    @staticmethod
    def of(streams: object, relations: object, nrrs: object) -> Inputs:
        """Check that the inputs are named, each once."""
        made = Inputs(
            check_mapping("streams", streams, CatalogError),
            check_mapping("relations", relations, CatalogError),
            check_mapping("nrrs", nrrs, CatalogError),
        )
        twice = made.relations.keys() & made.nrrs.keys()
        if twice:
            raise CatalogError(f"{min(twice)} is in relations and in nrrs: leave it in nrrs if it is non-retroactive")
        return made

    def read(
        self,
        unit: TimeUnit,
        schemas: object,
        slack: object,
        keys: object,
        statistics: object,
        unbounded: str = "refuse",
        partition_by: object = None,
    ) -> tuple[Catalog, dict[str, ReplayInput], dict[str, pa.Table]]:
        """Register all inputs, and return them: streams and relations with updates, and tables."""
        tables = {**self.relations, **self.nrrs}
        written = check_named("schemas", schemas, (*self.streams, *tables), "streams and relations")
        parsed = {name: parse_schema(text) for name, text in written.items()}
        key = check_named("keys", keys, tables, "relations")
        held = check_named("slack", slack, self.streams, "streams") if isinstance(slack, Mapping) else None
        parts = check_named("partition_by", partition_by, self.streams, "streams")
        known = {name.lower(): given for name, given in check_mapping("statistics", statistics).items()}
        catalog, inputs, static = Catalog(), {}, {}
        for name, rows in self.streams.items():
            catalog.check_name(name)
            length = unit.length("slack", slack if held is None else held.get(name, 0))
            stream = stream_input(name, rows, parsed.get(name), unit, length)
            if name in parts:
                named = partition_names(name, stream.schema, parts[name])
                if len(named) != 1:
                    raise CatalogError(f"partition_by must name one column of stream {name}, not {shown(parts[name])}")
                stream = replace(stream, partition=[field.name for field in stream.schema].index(named[0]))
            inputs[name] = stream
            given = known.get(name.lower(), UNKNOWN)
            catalog.add_stream(
                name,
                stream.schema,
                TIME,
                check_time=False,
                statistics=given,
                not_carried=stream.not_carried,
                unbounded=unbounded,
            )
        for name, rows in tables.items():
            catalog.check_name(name)
            columns, found = relation_input(name, rows, parsed.get(name), unit)
            entry = catalog.add_relation(
                name,
                columns.schema,
                key=key.get(name),
                retroactive=name not in self.nrrs,
                changes=isinstance(found, ReplayInput),
                statistics=known.get(name.lower(), UNKNOWN),
                not_carried=columns.not_carried,
            )
            if isinstance(found, ReplayInput):
                inputs[name] = found
                continue
            static[name] = found
            if entry.key is not None:
                refuse_duplicates(name, found, entry.key)
        return catalog, inputs, static


def stream_input(name: str, given: Rows, schema: Schema | None, unit: TimeUnit, slack: int) -> ReplayInput:
    """Read the rows of a stream. Its time column is one of its columns: where that is a TIMESTAMP, SQL sees the instant."""
    rows = read_rows("stream", name, given)
    if schema is not None:
        _check_time_column(name, schema)
    if schema is None and not rows.columns:
        schema = (Field(TIME, BIGINT),)
    times = _times(f"stream {name}", rows, unit)
    found = typed(rows, schema, unit)
    return ReplayInput(found.schema, times, found.columns, slack, not_carried=found.not_carried, dated=_dated(rows))


def relation_input(
    name: str, given: Rows, schema: Schema | None, unit: TimeUnit
) -> tuple[TypedRows, pa.Table | ReplayInput]:
    """Read a relation: its columns, and its rows, or its updates if rows have an `_op`."""
    rows = read_rows("relation", name, given)
    if OP in rows.columns:
        return _updates(rows, schema, unit)
    if schema is None and not rows.columns:
        raise CatalogError(f"relation {name} has no rows to infer its columns from: pass schemas={{{name!r}: ...}}")
    found = typed(rows, schema, unit)
    return found, pa.table(found.columns, names=[column.name for column in found.schema])


def _updates(rows: InputRows, schema: Schema | None, unit: TimeUnit) -> tuple[TypedRows, ReplayInput]:
    """The updates of a relation, sorted by time. Their time is also their last column."""
    owner = f"relation {rows.name}"
    times = _times(owner, rows, unit)
    order = np.argsort(times, kind="stable")
    ops = rows.values(OP)
    for position, op in enumerate(ops):
        if not isinstance(op, str) or op not in ("+", "-"):
            raise BadRowError(f"row {position} of {owner}: {OP} must be '+' or '-', not {shown(op)}")
    signs = np.array([1 if op == "+" else -1 for op in ops], np.int8)
    own = None if schema is None else tuple(column for column in schema if column.name not in (TIME, OP))
    found = typed(rows.without(TIME, OP), own, unit)
    index = pa.array(order)
    columns = [column.take(index) for column in found.columns]
    columns.append(pa.array(times[order]))
    return found, ReplayInput(found.schema, times[order], columns, 0, signs[order], dated=_dated(rows))


def _check_time_column(name: str, schema: Schema) -> None:
    """Raise CatalogError if a schema has no time column, or one of a type that is not a time."""
    found = next((column for column in schema if column.name == TIME), None)
    if found is None:
        raise CatalogError(
            f"the schema of stream {name} has no column {TIME}, the time of its rows: add {TIME} TIMESTAMP, or {TIME} BIGINT"
        )
    if not (pa.types.is_temporal(found.dtype) or is_numeric(found.dtype)):
        raise CatalogError(
            f"the time column {TIME} of stream {name} is {type_name(found.dtype)}: make it TIMESTAMP, TIMESTAMP_NTZ, DATE "
            "or BIGINT"
        )


def _times(owner: str, rows: InputRows, unit: TimeUnit) -> Ints:
    """The times of the rows in microseconds."""
    times = np.empty(rows.count, np.int64)
    for position, time in enumerate(rows.values(TIME)):
        if time is None:
            raise BadRowError(f"row {position} of {owner} has no {TIME}")
        times[position] = unit.instant(f"row {position} of {owner}: {TIME}", time, BadRowError)
    return times


def _dated(rows: InputRows) -> bool:
    return all(isinstance(time, datetime.date) for time in rows.values(TIME))


def numbered(changes: ChangeBatch, batch: int) -> ChangeBatch:
    """The changes, with the number of the micro-batch that released them as a last column."""
    return changes.with_columns((*changes.columns, pa.array(np.full(len(changes), batch))))


def micro_batches(inputs: Mapping[str, ReplayInput], batch: int | Sequence[int] | None) -> list[MicroBatch]:
    """Merge the rows of all inputs by the highest time that each has reached, and split them into micro-batches."""
    order = []
    for number, given in enumerate(inputs.values()):
        reached = np.maximum.accumulate(given.times) if len(given.times) else given.times
        order += [(int(at), number, position) for position, at in enumerate(reached)]
    order.sort()
    names = list(inputs)
    marks: dict[str, Marks] = {name: {} for name in names}
    batches = []
    for part in _split(order, batch):
        rows: dict[str, ChangeBatch] = {}
        # Updates are in order, so their clock is that of all rows.
        clocks = {name: part[-1][0] for name in names if inputs[name].signs is not None and part}
        for number, name in enumerate(names):
            given = inputs[name]
            chosen = np.array([position for _, owner, position in part if owner == number], np.int64)
            if not len(chosen):
                continue
            index = pa.array(chosen)
            ts = given.times[chosen]
            columns = tuple(column.take(index) for column in given.columns)
            signs = np.ones(len(ts), np.int8) if given.signs is None else given.signs[chosen]
            rows[name] = ChangeBatch(ts, np.full(len(ts), FOREVER), signs, columns)
            if given.signs is None:
                clock = slowest(marks[name], [PartitionReport(0, 0, given.marks(chosen))])
                assert clock is not None
                clocks[name] = clock
        batches.append(MicroBatch(rows, clocks))
    return batches


def _split(order: list[tuple[int, int, int]], batch: int | Sequence[int] | None) -> list[list[tuple[int, int, int]]]:
    if batch is None:
        return [order] if order else []
    if not isinstance(batch, Sequence) or isinstance(batch, str | bytes):
        size = check_count("batch", batch)
        return [order[start : start + size] for start in range(0, len(order), size)]
    parts, start = [], 0
    for size in batch:
        check_count("a number of rows in batch", size, least=0)
        parts.append(order[start : start + size])
        start += size
    if start < len(order):
        parts.append(order[start:])
    return parts
