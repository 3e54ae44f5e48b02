"""Splits the rows of a stream into sub-windows.

The clock c (the watermark) means that every row with ts < c has arrived. A sub-window of time is complete when its end
is not after c. A sub-window by rows is complete when that many rows before c have arrived, ordered by ts and then by
all columns.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from sash.state.memory import Ints
from sash.time import BEGINNING
from sash.window_store.store.layout import StoreLayout
from sash.window_store.store.tables import columns_of, net_changes, sort_positions, times


@dataclass(frozen=True)
class CompleteSubWindow:
    """The bounds and rows of a sub-window that is complete."""

    start: int
    end: int
    rows: pa.Table


def split(layout: StoreLayout, rows: pa.Table, reached: int, clock: int) -> tuple[list[CompleteSubWindow], pa.Table]:
    """The complete sub-windows, in order, and the remaining rows. `reached` is the end of the window so far."""
    if layout.kind == "rows":
        return _split_by_rows(layout, rows, clock)
    return _split_by_time(layout, rows, reached, clock)


def _split_by_time(
    layout: StoreLayout, rows: pa.Table, reached: int, clock: int
) -> tuple[list[CompleteSubWindow], pa.Table]:
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
    complete = []
    for end, first, last in zip(borders[1:], at[:-1], at[1:], strict=True):
        part = rows.slice(int(first), int(last - first))
        part = net_changes([part]) if layout.kind == "result" else part
        complete.append(CompleteSubWindow(end - length, end, part))
    return complete, rows.slice(int(at[-1]))


def _borders(reached: int, length: int, count: int, clock: int, ts: Ints) -> list[int]:
    """The ends of the complete sub-windows. A long gap without rows yields at most `count` empty sub-windows: they
    already empty the whole window."""
    borders = [reached]
    while borders[-1] + length <= clock:
        at = int(np.searchsorted(ts, borders[-1], side="left"))
        upcoming = int(ts[at]) if at < len(ts) and ts[at] < clock else clock
        silent = (upcoming - borders[-1]) // length - count
        borders.append(borders[-1] + length + (silent * length if silent > 0 else 0))
    return borders


def _split_by_rows(layout: StoreLayout, rows: pa.Table, clock: int) -> tuple[list[CompleteSubWindow], pa.Table]:
    order = sort_positions(columns_of(rows))
    rows = rows.take(pa.array(order))
    ts = times(rows)
    known = int(np.searchsorted(ts, clock, side="left"))
    complete = []
    for first in range(0, known - layout.length + 1, layout.length):
        part = rows.slice(first, layout.length)
        complete.append(CompleteSubWindow(int(ts[first]), int(ts[first + layout.length - 1]) + 1, part))
    return complete, rows.slice(len(complete) * layout.length)
