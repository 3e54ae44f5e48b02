"""The inputs of a replay: rows are checked, typed, merged by time and split into micro-batches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from sash.errors import BadRowError, CatalogError
from sash.plan.catalog import OP
from sash.plan.types import BIGINT, Field, Schema
from sash.rows import Row, infer_schema, to_arrow
from sash.state.changes import ChangeBatch, Signs
from sash.state.memory import Ints
from sash.time import BEGINNING, FOREVER

TIME = "ts"
"""The column with the time of a row."""


@dataclass(frozen=True)
class ReplayInput:
    """The rows of a stream, or the updates of a relation, with their times in microseconds.

    Updates are sorted by time and have signs; rows of a stream have none.
    """

    schema: Schema
    times: Ints
    columns: list[pa.Array]
    slack: int
    signs: Signs | None = None


@dataclass(frozen=True)
class MicroBatch:
    """The rows of each input in one micro-batch, and the clocks after it."""

    rows: dict[str, ChangeBatch]
    clocks: dict[str, int]


def stream_input(name: str, rows: Sequence[Row], schema: Schema | None, scale: int, slack: float) -> ReplayInput:
    """Read the rows of a stream. A unit of time is `scale` microseconds."""
    if schema is None:
        schema = infer_schema(name, rows) if rows else (Field(TIME, BIGINT),)
    times = _times(f"stream {name}", rows, scale)
    return ReplayInput(schema, times, to_arrow(name, rows, schema), int(slack * scale))


def relation_input(
    name: str, rows: Sequence[Row], schema: Schema | None, scale: int
) -> tuple[Schema, pa.Table | ReplayInput]:
    """Read a relation: its columns, and its rows, or its updates if rows have an `_op`."""
    if any(OP in row for row in rows):
        updates = _updates(name, rows, schema, scale)
        return updates.schema, updates
    if schema is None:
        if not rows:
            raise CatalogError(f"relation {name} has no rows to infer its columns from: pass schemas={{{name!r}: ...}}")
        schema = infer_schema(name, rows)
    table = pa.table(to_arrow(name, rows, schema), names=[column.name for column in schema])
    return schema, table


def _updates(name: str, rows: Sequence[Row], schema: Schema | None, scale: int) -> ReplayInput:
    """The updates of a relation, sorted by time. Their time is also their last column."""
    times = _times(f"relation {name}", rows, scale)
    order = np.argsort(times, kind="stable")
    for position, row in enumerate(rows):
        if row.get(OP) not in ("+", "-"):
            raise BadRowError(f"row {position} of relation {name}: {OP} must be '+' or '-', not {row.get(OP)!r}")
    signs = np.array([1 if row[OP] == "+" else -1 for row in rows], np.int8)
    plain = [{column: value for column, value in row.items() if column not in (TIME, OP)} for row in rows]
    schema = infer_schema(name, plain) if schema is None else schema
    index = pa.array(order)
    columns = [column.take(index) for column in to_arrow(name, plain, schema)]
    return ReplayInput(schema, times[order], [*columns, pa.array(times[order])], 0, signs[order])


def _times(owner: str, rows: Sequence[Row], scale: int) -> Ints:
    times = np.empty(len(rows), np.int64)
    for position, row in enumerate(rows):
        time = row.get(TIME)
        if time is None:
            raise BadRowError(f"row {position} of {owner} has no {TIME}: {dict(row)!r}")
        if (
            isinstance(time, bool)
            or not isinstance(time, int | float)
            or abs(round(time * scale) - time * scale) > 1e-3
        ):
            raise BadRowError(f"row {position} of {owner}: {TIME} must be a number of whole microseconds, not {time!r}")
        times[position] = round(time * scale)
    return times


def micro_batches(inputs: Mapping[str, ReplayInput], batch: int | Sequence[int] | None) -> list[MicroBatch]:
    """Merge the rows of all inputs by the highest time that each has reached, and split them into micro-batches."""
    order = []
    for number, given in enumerate(inputs.values()):
        reached = np.maximum.accumulate(given.times) if len(given.times) else given.times
        order += [(int(at), number, position) for position, at in enumerate(reached)]
    order.sort()
    names = list(inputs)
    high = dict.fromkeys(names, BEGINNING)
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
                high[name] = max(high[name], int(ts.max()))
                clocks[name] = high[name] - given.slack
        batches.append(MicroBatch(rows, clocks))
    return batches


def _split(order: list[tuple[int, int, int]], batch: int | Sequence[int] | None) -> list[list[tuple[int, int, int]]]:
    if batch is None:
        return [order] if order else []
    if isinstance(batch, int):
        if batch < 1:
            raise CatalogError(f"batch must be at least 1, not {batch}")
        return [order[start : start + batch] for start in range(0, len(order), batch)]
    parts, start = [], 0
    for size in batch:
        parts.append(order[start : start + size])
        start += size
    if start < len(order):
        parts.append(order[start:])
    return parts
