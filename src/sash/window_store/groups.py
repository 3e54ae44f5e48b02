"""Query groups: queries over one window that differ only in its length or in m read each sub-window once (paper 2, 2.3).

A snapshot or periodic query joins the group of its window and summaries when it is submitted, whoever submits it. Every
query stays a read transaction of its own, with its isolation level and priority: the scheduler decides which versions it
reads. But a version never changes, so that its scan by one query of the group is the scan of all that read it. Queries that
run at the same time share what any of them has scanned; periodic queries also what was scanned since the last update.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

from sash.window_store.live_window import LiveWindow
from sash.window_store.store.manifest import Slice
from sash.window_store.summaries.base import Tables
from sash.window_store.summaries.core import Core


@dataclass(eq=False)
class _Scan:
    """A scan that is running, or its result with the update at which it was made."""

    done: threading.Event = field(default_factory=threading.Event)
    tables: Tables | None = None
    update: int = -1
    size: int = 0


class ScanGroup:
    """The queries with the same summaries over one window. `room` asks whether so many more bytes may be kept."""

    def __init__(self, window: LiveWindow, core: Core, room: Callable[[int], bool]) -> None:
        self._window, self._core, self._room = window, core, room
        self._lock = threading.Lock()
        self._scans: dict[tuple[Slice, ...], _Scan] = {}
        self._running: weakref.WeakSet[Hashable] = weakref.WeakSet()
        self._standing: weakref.WeakSet[Hashable] = weakref.WeakSet()
        self._made = self._shared = 0

    def read(self, slices: Sequence[Slice], scan: Callable[[], Tables]) -> tuple[Tables, bool]:
        """The summaries of a sub-window, and whether another query has scanned it."""
        key = tuple(slices)
        while True:
            with self._lock:
                found = self._scans.get(key)
                if found is None:
                    mine = self._scans[key] = _Scan(update=self._window.scheduler.latest)
                    break
            found.done.wait()
            if found.tables is not None:
                with self._lock:
                    self._shared += 1
                return found.tables, True
        try:
            tables = scan()
        except BaseException:
            self._drop(key)
            mine.done.set()  # those that wait scan themselves
            raise
        size = size_of(tables)
        with self._lock:
            self._made += 1
            mine.tables, mine.size = tables, size
        if not self._room(0):
            self._drop(key)
        mine.done.set()
        return tables, False

    def _drop(self, key: tuple[Slice, ...]) -> None:
        with self._lock:
            self._scans.pop(key, None)

    def begin(self, query: Hashable) -> None:
        """An execution of a query begins."""
        with self._lock:
            self._forget()
            self._running.add(query)

    def end(self, query: Hashable) -> None:
        """An execution has ended. Ending it twice has no effect."""
        with self._lock:
            self._running.discard(query)
            self._forget()

    def _forget(self) -> None:
        """Without a running query, forget the scans but those that other periodic queries use at this update."""
        if self._running:
            return
        latest = self._window.scheduler.latest
        again = len(self._standing) > 1
        self._scans = {key: scan for key, scan in self._scans.items() if again and scan.update == latest}

    def join(self, query: Hashable) -> None:
        """A periodic query is started."""
        with self._lock:
            self._standing.add(query)

    def leave(self, query: Hashable) -> None:
        """A periodic query is stopped."""
        with self._lock:
            self._standing.discard(query)
            self._forget()

    @property
    def queries(self) -> int:
        """The number of queries: periodic ones, and snapshots that are running."""
        with self._lock:
            return len({*self._standing, *self._running})

    @property
    def size(self) -> int:
        """Bytes of the scans that are kept for other queries."""
        with self._lock:
            return sum(scan.size for scan in self._scans.values())

    def metrics(self) -> dict[str, Any]:
        """Its window and summaries, its queries, and the number of sub-windows scanned and read without a scan."""
        queries, size = self.queries, self.size
        return {
            "window": self._window.layout.name,
            "summaries": [summary.identity for summary in self._core.summaries],
            "queries": queries,
            "scans": self._made,
            "reads_shared": self._shared,
            "bytes": size,
        }


class QueryGroups:
    """The groups of all windows. All scans kept for other queries have at most `limit` bytes."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._groups: dict[Hashable, ScanGroup] = {}
        self._lock = threading.Lock()

    def of(self, window: LiveWindow, core: Core, reads: str) -> ScanGroup:
        """The group of queries with these summaries, whose sub-windows are read in the same way."""
        key = window, tuple(summary.identity for summary in core.summaries), core.signed, reads
        with self._lock:
            if key not in self._groups:
                self._groups = {known: group for known, group in self._groups.items() if group.queries}
                self._groups[key] = ScanGroup(window, core, self._has_room)
            return self._groups[key]

    def metrics(self) -> list[dict[str, Any]]:
        """The groups that have queries, or have had."""
        with self._lock:
            groups = list(self._groups.values())
        return [group.metrics() for group in groups]

    def _has_room(self, more: int) -> bool:
        with self._lock:
            groups = list(self._groups.values())
        return sum(group.size for group in groups) + more <= self.limit


def size_of(tables: Tables) -> int:
    """Bytes of the summaries of a sub-window."""
    return sum(int(table.nbytes) for table in tables.values())
