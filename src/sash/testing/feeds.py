"""Feeds: the rows of a replay, checked and typed, merged by their times and cut into micro-batches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from sash.errors import BadRowError, CatalogError
from sash.plan.catalog import OP
from sash.plan.types import BIGINT, Field, Schema
from sash.rows import Row, infer_schema, to_arrow
from sash.state.changes import ChangeBatch, Signs
from sash.time import BEGINNING, FOREVER

TIME = "ts"
"""The column with the time of a row."""


@dataclass(frozen=True)
class Feed:
    """One stream of a replay, or the updates of a relation: its columns, and the time of every row in microseconds.

    `signs` are those of updates, which come in order; a stream has none.
    """

    name: str
    schema: Schema
    times: np.ndarray[Any, np.dtype[np.int64]]
    columns: list[pa.Array]
    slack: int
    signs: Signs | None = None


@dataclass(frozen=True)
class MicroBatch:
    """The rows of each stream in one micro-batch, and the clocks they bring."""

    rows: dict[str, ChangeBatch]
    clocks: dict[str, int]


def feed_of(name: str, rows: Sequence[Row], schema: Schema | None, scale: int, slack: float) -> Feed:
    """The rows of a stream, whose times are in units of so many microseconds."""
    if schema is None:
        schema = infer_schema(name, rows) if rows else (Field(TIME, BIGINT),)
    return Feed(name, schema, _times(f"stream {name}", rows, scale), to_arrow(name, rows, schema), int(slack * scale))


def _times(owner: str, rows: Sequence[Row], scale: int) -> np.ndarray[Any, np.dtype[np.int64]]:
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


def _updates(name: str, rows: Sequence[Row], schema: Schema | None, scale: int) -> Feed:
    """The updates of a relation, sorted by time; each has the time at which it was made after its columns."""
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
    return Feed(name, schema, times[order], [*columns, pa.array(times[order])], 0, signs[order])


def relation_of(name: str, rows: Sequence[Row], schema: Schema | None, scale: int) -> tuple[Schema, pa.Table | Feed]:
    """A relation: its columns, and its rows, or its updates where rows say what they do."""
    if any(OP in row for row in rows):
        feed = _updates(name, rows, schema, scale)
        return feed.schema, feed
    if schema is None:
        if not rows:
            raise CatalogError(f"relation {name} is empty: say what its columns are with schemas={{{name!r}: ...}}")
        schema = infer_schema(name, rows)
    table = pa.table(to_arrow(name, rows, schema), names=[column.name for column in schema])
    return schema, table


def micro_batches(feeds: Mapping[str, Feed], batch: int | Sequence[int] | None) -> list[MicroBatch]:
    """The rows of all feeds, merged by the time that each has reached, cut into micro-batches."""
    order = []
    for number, feed in enumerate(feeds.values()):
        reached = np.maximum.accumulate(feed.times) if len(feed.times) else feed.times
        order += [(int(at), number, position) for position, at in enumerate(reached)]
    order.sort()
    names = list(feeds)
    high = dict.fromkeys(names, BEGINNING)
    batches = []
    for part in _cut(order, batch):
        rows: dict[str, ChangeBatch] = {}
        # Updates come in order, so a relation is as far as everything is.
        clocks = {name: part[-1][0] for name in names if feeds[name].signs is not None and part}
        for number, name in enumerate(names):
            feed = feeds[name]
            chosen = np.array([position for _, owner, position in part if owner == number], np.int64)
            if not len(chosen):
                continue
            index = pa.array(chosen)
            ts = feed.times[chosen]
            columns = tuple(column.take(index) for column in feed.columns)
            signs = np.ones(len(ts), np.int8) if feed.signs is None else feed.signs[chosen]
            rows[name] = ChangeBatch(ts, np.full(len(ts), FOREVER), signs, columns)
            if feed.signs is None:
                high[name] = max(high[name], int(ts.max()))
                clocks[name] = high[name] - feed.slack
        batches.append(MicroBatch(rows, clocks))
    return batches


def _cut(order: list[tuple[int, int, int]], batch: int | Sequence[int] | None) -> list[list[tuple[int, int, int]]]:
    if batch is None:
        return [order] if order else []
    if isinstance(batch, int):
        if batch < 1:
            raise CatalogError("batch must be at least 1")
        return [order[start : start + batch] for start in range(0, len(order), batch)]
    parts, start = [], 0
    for size in batch:
        parts.append(order[start : start + size])
        start += size
    if start < len(order):
        parts.append(order[start:])
    return parts
