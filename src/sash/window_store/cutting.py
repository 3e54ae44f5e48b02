"""Cutting a stream into sub-windows: which of the rows at hand make whole ones, now that the clock is here.

The clock c means that every row with ts < c is here, so a sub-window of time closes when its end is not after c; one by
rows closes when that many rows before c are there, in order of ts and then of all their columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from sash.operators.netting import net_all
from sash.state.changes import ChangeBatch
from sash.state.memory import Ints
from sash.time import BEGINNING
from sash.window_store.manifest import TIME, Layout
from sash.window_store.ordering import order_of


@dataclass(frozen=True)
class Piece:
    """The rows of one sub-window that is complete."""

    start: int
    end: int
    rows: pa.Table


def cut(layout: Layout, rows: pa.Table, reached: int, clock: int) -> tuple[list[Piece], pa.Table]:
    """The sub-windows that are complete, in order, and the rows that go on waiting. `reached` is the end of the last."""
    if layout.kind == "rows":
        return _by_rows(layout, rows, clock)
    return _by_time(layout, rows, reached, clock)


def times(rows: pa.Table) -> Ints:
    """The times of the rows, in microseconds."""
    return np.asarray(rows.column(TIME).to_numpy(), np.int64)


def _by_time(layout: Layout, rows: pa.Table, reached: int, clock: int) -> tuple[list[Piece], pa.Table]:
    length = layout.length
    ts = times(rows)
    order = np.argsort(ts, kind="stable")
    rows, ts = rows.take(pa.array(order)), ts[order]
    if reached == BEGINNING:
        if not len(ts):
            return [], rows
        reached = int(ts[0]) // length * length
    borders = _borders(reached, length, layout.count, clock, ts)
    at = np.searchsorted(ts, np.array(borders, np.int64), side="left")
    pieces = []
    for end, first, last in zip(borders[1:], at[:-1], at[1:], strict=True):
        part = rows.slice(int(first), int(last - first))
        pieces.append(Piece(end - length, end, added_up([part]) if layout.kind == "result" else part))
    return pieces, rows.slice(int(at[-1]))


def _borders(reached: int, length: int, count: int, clock: int, ts: Ints) -> list[int]:
    """The ends of the sub-windows that close. Of a long silence only as many empty ones as the window has are made:
    the state it ends in is the same."""
    borders = [reached]
    while borders[-1] + length <= clock:
        place = int(np.searchsorted(ts, borders[-1], side="left"))
        upcoming = int(ts[place]) if place < len(ts) and ts[place] < clock else clock
        silent = (upcoming - borders[-1]) // length - count
        borders.append(borders[-1] + length + (silent * length if silent > 0 else 0))
    return borders


def _by_rows(layout: Layout, rows: pa.Table, clock: int) -> tuple[list[Piece], pa.Table]:
    order = order_of(columns_of(rows))
    rows = rows.take(pa.array(order))
    ts = times(rows)
    known = int(np.searchsorted(ts, clock, side="left"))
    pieces = []
    for first in range(0, known - layout.length + 1, layout.length):
        part = rows.slice(first, layout.length)
        pieces.append(Piece(int(ts[first]), int(ts[first + layout.length - 1]) + 1, part))
    return pieces, rows.slice(len(pieces) * layout.length)


def columns_of(rows: pa.Table) -> list[pa.Array]:
    """The columns, each in one piece."""
    return [
        column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays([pa.array([], column.type), *column.chunks])
        for column in rows.columns
    ]


def added_up(parts: Sequence[pa.Table]) -> pa.Table:
    """Changes, without those that take each other back."""
    changes = pa.concat_tables(parts)
    _, sign, *columns = columns_of(changes)
    signs = np.array(sign.to_numpy(zero_copy_only=False), np.int8)
    batch = net_all(ChangeBatch.explicit(times(changes), signs, columns))
    return pa.Table.from_arrays([pa.array(batch.ts), pa.array(batch.sign), *batch.columns], schema=changes.schema)
