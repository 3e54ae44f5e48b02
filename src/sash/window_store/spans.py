"""What a query's window is in sub-windows: how many it reads, and which rows of them.

A snapshot answers as of a window update: E, the end of the youngest sub-window. Every row before E is there, so the
answer is Q at the last instant before E, and `[RANGE W]` is the rows with E - W <= ts < E. A sub-window that lies partly
in the range is read and cut (paper 2, 2.1, where ranges are multiples of t).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from sash.errors import StoreError, WindowError
from sash.plan.nodes import Range, Rows, Unbounded, Window
from sash.window_store.cutting import columns_of, times
from sash.window_store.manifest import Layout, SubWindow
from sash.window_store.ordering import order_of


@dataclass(frozen=True)
class Between:
    """The rows with low <= ts < high."""

    low: int
    high: int

    def of(self, rows: pa.Table) -> pa.Table:
        """These rows; a sub-window's are in order of ts."""
        first, last = np.searchsorted(times(rows), [self.low, self.high], side="left")
        return rows.slice(int(first), int(last - first))


@dataclass(frozen=True)
class Youngest:
    """The last `count` rows, by ts and then by all columns."""

    count: int

    def of(self, rows: pa.Table) -> pa.Table:
        """These rows."""
        order = order_of(columns_of(rows))
        return rows.take(pa.array(np.sort(order[len(order) - self.count :])))


Cut = Between | Youngest | None
"""Which rows of a sub-window: None is all of them."""


@dataclass(frozen=True)
class Span:
    """The window of one query over one store: `length` sub-windows at most. `whole`: none of them is ever cut."""

    window: Window
    layout: Layout
    length: int
    whole: bool

    def cuts(self, parts: Sequence[SubWindow]) -> dict[int, Cut]:
        """Which rows of which sub-windows, these being the youngest `length`, oldest first; those left out have none."""
        match self.window:
            case Range():
                low, high = self._bounds(parts[-1].end)
                return {
                    part.number: None if low <= part.start and part.end <= high else Between(low, high)
                    for part in parts
                    if part.end > low and part.start < high
                }
            case Rows(count):
                return self._last(parts, count)
            case Unbounded():
                return {part.number: None for part in parts}

    def _bounds(self, end: int) -> tuple[int, int]:
        """The times of the rows that are valid just before `end`."""
        assert isinstance(self.window, Range)
        step = self.window.slide or 1
        moment = (end - 1) // step * step
        return moment - self.window.length + 1, moment + 1

    def _last(self, parts: Sequence[SubWindow], count: int) -> dict[int, Cut]:
        found: dict[int, Cut] = {}
        for part in reversed(parts):
            if not count:
                break
            found[part.number] = None if part.rows <= count else Youngest(count)
            count -= min(count, part.rows)
        if count and parts[0].number > 0 and len(parts) == self.layout.count:
            raise StoreError(
                f"{self.layout.name} keeps {self.layout.count} sub-windows, which now have {count} rows too few for the "
                "ROWS asked for: keep a longer window, or ask for fewer"
            )
        return found


def span_of(window: Window, layout: Layout) -> Span:
    """What the window means in this store; a window that the store does not cover is refused."""
    if layout.kind == "result":
        if not isinstance(window, Unbounded):
            raise WindowError(f"{layout.name} is the answer of a query, as it is now: ask it without a window")
        return Span(window, layout, layout.count, True)
    match window:
        case Unbounded():
            return Span(window, layout, layout.count, True)
        case Range():
            return _range(window, layout)
        case Rows(count, partition):
            if partition:
                raise WindowError("a snapshot does not take ROWS per partition: use [ROWS n], or a standing query")
            if layout.kind == "time":
                return Span(window, layout, layout.count, False)
            needed = -(-count // layout.length)
            _fits(needed, layout, f"ROWS {count}")
            return Span(window, layout, needed, count % layout.length == 0)


def _range(window: Range, layout: Layout) -> Span:
    if layout.kind == "rows":
        raise WindowError(f"{layout.name} is kept by rows: ask it with [ROWS n], or keep it by time")
    reach = window.length + (window.slide or 1) - 1
    needed = -(-reach // layout.length)
    _fits(needed, layout, f"RANGE of {window.length / 1e6:g} s")
    return Span(window, layout, needed, window.slide in (None, 1) and window.length % layout.length == 0)


def _fits(needed: int, layout: Layout, what: str) -> None:
    if needed > layout.count:
        kept = f"{layout.length} rows" if layout.kind == "rows" else f"{layout.length / 1e6:g} s"
        raise StoreError(
            f"{layout.name} keeps {layout.count} sub-windows of {kept}, which a {what} does not fit in: keep a longer "
            "window, or ask for a shorter one"
        )
