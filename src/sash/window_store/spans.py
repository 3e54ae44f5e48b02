"""Translates a query's window into sub-windows: how many it reads, and which of their rows.

A snapshot is as of a window update. Let E be the end of the youngest sub-window. All rows before E have arrived, so the
answer is that of the query at the last instant before E, and `[RANGE W]` selects the rows with E - W <= ts < E. Of a
sub-window that is partly in the range only some rows are used (in paper 2, 2.1, ranges are multiples of t).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from sash.errors import StoreError, WindowError
from sash.plan.nodes import Aligned, Range, Rows, Unbounded, Window
from sash.window_store.store.layout import StoreLayout
from sash.window_store.store.manifest import SubWindow
from sash.window_store.store.tables import columns_of, sort_positions, times


@dataclass(frozen=True)
class RowsBetween:
    """The rows with low <= ts < high."""

    low: int
    high: int

    def select(self, rows: pa.Table) -> pa.Table:
        """Select from the rows of a sub-window, which are ordered by ts."""
        first, last = np.searchsorted(times(rows), [self.low, self.high], side="left")
        return rows.slice(int(first), int(last - first))


@dataclass(frozen=True)
class LastRows:
    """The last `count` rows, ordered by ts and then by all columns."""

    count: int

    def select(self, rows: pa.Table) -> pa.Table:
        """Select from the rows of a sub-window."""
        order = sort_positions(columns_of(rows))
        return rows.take(pa.array(np.sort(order[len(order) - self.count :])))


Selection = RowsBetween | LastRows | None
"""The rows of a sub-window to use; None is all of them."""


@dataclass(frozen=True)
class Span:
    """The window of one query over one store: at most `length` sub-windows. If `whole`, all their rows are used."""

    window: Window
    layout: StoreLayout
    length: int
    whole: bool

    def selections(self, parts: Sequence[SubWindow]) -> dict[int, Selection]:
        """The rows to use of the youngest `length` sub-windows, oldest first. Sub-windows outside of it are left out."""
        match self.window:
            case Range():
                low, high = self._bounds(parts[-1].end)
                return {
                    part.number: None if low <= part.start and part.end <= high else RowsBetween(low, high)
                    for part in parts
                    if part.end > low and part.start < high
                }
            case Rows(count):
                return self._last(parts, count)
            case Unbounded():
                return {part.number: None for part in parts}

    def _bounds(self, end: int) -> tuple[int, int]:
        """The time range of the rows that are valid just before `end`."""
        assert isinstance(self.window, Range)
        step = self.window.slide or 1
        moment = (end - 1) // step * step
        return moment - self.window.length + 1, moment + 1

    def _last(self, parts: Sequence[SubWindow], count: int) -> dict[int, Selection]:
        found: dict[int, Selection] = {}
        for part in reversed(parts):
            if not count:
                break
            found[part.number] = None if part.rows <= count else LastRows(count)
            count -= min(count, part.rows)
        if count and parts[0].number > 0 and len(parts) == self.layout.count:
            raise StoreError(
                f"{self.layout.name} keeps {self.layout.count} sub-windows, which now have {count} rows too few for the "
                "ROWS of the query: keep a longer window, or use fewer ROWS"
            )
        return found


def span_of(window: Window, layout: StoreLayout) -> Span:
    """The span of a window in a store. Raises an error for a window that the store does not cover."""
    if layout.kind == "result":
        if not isinstance(window, Unbounded):
            raise WindowError(f"{layout.name} is the answer of a query: query it without a window")
        return Span(window, layout, layout.count, True)
    match window:
        case Unbounded():
            return Span(window, layout, layout.count, True)
        case Aligned():
            raise WindowError(
                f"a snapshot that assigns rows to windows needs a window of {layout.name}: write {layout.name} [RANGE ...]"
            )
        case Range():
            return _range(window, layout)
        case Rows(count, partition):
            if partition:
                raise WindowError("a snapshot does not support ROWS per partition: use [ROWS n], or a standing query")
            if layout.kind == "time":
                return Span(window, layout, layout.count, False)
            needed = -(-count // layout.length)
            _check_fits(needed, layout, f"ROWS {count}")
            return Span(window, layout, needed, count % layout.length == 0)


def _range(window: Range, layout: StoreLayout) -> Span:
    if layout.kind == "rows":
        raise WindowError(f"{layout.name} is kept by rows: query it with [ROWS n], or keep it by time")
    reach = window.length + (window.slide or 1) - 1
    needed = -(-reach // layout.length)
    _check_fits(needed, layout, f"RANGE of {window.length / 1e6:g} s")
    return Span(window, layout, needed, window.slide in (None, 1) and window.length % layout.length == 0)


def _check_fits(needed: int, layout: StoreLayout, what: str) -> None:
    if needed > layout.count:
        raise StoreError(
            f"{layout.name} keeps {layout.count} sub-windows of {layout.unit}, too few for a {what}: keep a longer "
            "window, or use a shorter one"
        )
