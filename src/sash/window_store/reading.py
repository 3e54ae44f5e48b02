"""Reading a sub-window, in one of four ways: its rows or its summaries (paper 2, 2.1: WS and IS, SS and ISS).

What comes out is the same: the summaries that the query needs. Scanning rows makes them on the spot; reading summaries
takes those beside the sub-window, and leaves there what it had to make.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa

from sash.window_store import summaries
from sash.window_store.core import Core
from sash.window_store.cutting import added_up
from sash.window_store.manifest import SIGN, Slice, SubWindow
from sash.window_store.rows import Rows
from sash.window_store.summary import Summary

Tables = dict[Summary, pa.Table]
Scan = Callable[[Path, Sequence[Slice], Core], Tables]
"""Scans the rows of a sub-window, all its slices, and makes the summaries: here, or as a Spark job."""


@dataclass
class Counters:
    """What a query read: sub-windows row by row, summaries that were there, and summaries that it made and left."""

    sub_windows: int = 0
    summaries: int = 0
    built: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def add(self, sub_windows: int = 0, found: int = 0, built: int = 0) -> None:
        """Count; from any thread."""
        with self._lock:
            self.sub_windows += sub_windows
            self.summaries += found
            self.built += built


@dataclass(frozen=True)
class Partial:
    """A sub-window as one query sees it: what it was made of, as of the read, and what that says to the query.

    `rows` are at hand where the query may have to cut them.
    """

    part: SubWindow
    slices: tuple[Slice, ...]
    tables: Tables
    rows: pa.Table | None = None


def scan_here(root: Path, parts: Sequence[Slice], core: Core) -> Tables:
    """Scan in this thread."""
    return summarize([part.read(root) for part in parts], core)


def merged(core: Core, parts: Sequence[Tables]) -> Tables:
    """The summaries of several parts together."""
    return {summary: summary.merge([part[summary] for part in parts]) for summary in core.summaries}


def with_inserts(root: Path, partial: Partial, inserted: Sequence[Slice], core: Core) -> Partial:
    """What a query has read of a sub-window, and the rows that were passed to it since (paper 2, 4.3)."""
    slices = (*partial.slices, *inserted)
    if core.subtractable:
        tables = merged(core, [partial.tables, scan_here(root, inserted, core)])
    else:
        tables = scan_here(root, slices, core)
    return replace(partial, slices=slices, tables=tables)


def summarize(parts: Sequence[pa.Table], core: Core) -> Tables:
    """The summaries of the rows. Where they are changes, and something cannot be taken off, what they add up to is
    found first."""
    if core.signed and not core.subtractable:
        return core.build(Rows.of(added_up(parts).drop_columns([SIGN])))
    return core.build(Rows.of(parts[0] if len(parts) == 1 else pa.concat_tables(parts)))


def read_summaries(root: Path, part: Slice, core: Core, scan: Scan, counters: Counters) -> Tables:
    """The summaries of the rows; what is missing is made, and kept for others."""
    found = {summary: summaries.load(root, part, summary) for summary in core.summaries}
    there = {summary: table for summary, table in found.items() if table is not None}
    missing = [summary for summary in found if summary not in there]
    counters.add(found=len(there))
    if missing:
        made = scan(root, [part], core)
        for summary in missing:
            summaries.save(root, part, summary, made[summary])
            there[summary] = made[summary]
        counters.add(sub_windows=1, built=len(missing))
    return there
