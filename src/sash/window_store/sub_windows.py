"""Reads sub-windows: scans their rows, or reads the summaries stored beside them (paper 2, 2.1).

Both yield the summaries that the query needs. A scan of rows builds them; reading summaries uses the stored ones, and
builds and stores those that are missing.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa

from sash.private_folders import make_private
from sash.window_store.store.files import read_table, write_table
from sash.window_store.store.layout import SIGN
from sash.window_store.store.manifest import Slice, SubWindow
from sash.window_store.store.tables import net_changes
from sash.window_store.summaries.base import RowBatch, Summary, Tables
from sash.window_store.summaries.core import Core

Scan = Callable[[Path, Sequence[Slice], Core], Tables]
"""Builds the summaries of a sub-window from the rows of all its slices, in this process or as a Spark job."""


@dataclass
class ReadCounters:
    """Counts the sub-windows scanned, the summaries read and built, and the reads that other queries had scanned."""

    sub_windows: int = 0
    summaries: int = 0
    built: int = 0
    shared: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def add(self, sub_windows: int = 0, summaries: int = 0, built: int = 0, shared: int = 0) -> None:
        """Add to the counts. Thread-safe."""
        with self._lock:
            self.sub_windows += sub_windows
            self.summaries += summaries
            self.built += built
            self.shared += shared


@dataclass(frozen=True)
class PartialResult:
    """The summaries of one sub-window for one query, and the slices that they were built from.

    `rows` is set if the query may need only some of the sub-window's rows.
    """

    part: SubWindow
    slices: tuple[Slice, ...]
    tables: Tables
    rows: pa.Table | None = None

    @property
    def nbytes(self) -> int:
        """Bytes of the summaries."""
        return sum(int(table.nbytes) for table in self.tables.values())

    def with_inserts(self, root: Path, inserted: Sequence[Slice], core: Core) -> PartialResult:
        """Add rows that were inserted after the read (paper 2, 4.3)."""
        slices = (*self.slices, *inserted)
        if core.subtractable:
            tables = merge_tables(core, [self.tables, scan_locally(root, inserted, core)])
        else:
            tables = scan_locally(root, slices, core)
        return replace(self, slices=slices, tables=tables)


def scan_locally(root: Path, slices: Sequence[Slice], core: Core) -> Tables:
    """Scan rows in this thread."""
    return summarize([part.read(root) for part in slices], core)


def summarize(parts: Sequence[pa.Table], core: Core) -> Tables:
    """The summaries of the rows. Signed rows are netted first if a summary is not subtractable."""
    if core.signed and not core.subtractable:
        return core.build(RowBatch.of(net_changes(parts).drop_columns([SIGN])))
    return core.build(RowBatch.of(parts[0] if len(parts) == 1 else pa.concat_tables(parts)))


def merge_tables(core: Core, parts: Sequence[Tables]) -> Tables:
    """Merge the summaries of several parts."""
    return {summary: summary.merge([part[summary] for part in parts]) for summary in core.summaries}


def read_summaries(root: Path, part: Slice, core: Core, scan: Scan, counters: ReadCounters) -> Tables:
    """Read the stored summaries of a slice. Missing ones are built and stored for later queries."""
    found = {}
    for summary in core.summaries:
        try:
            found[summary] = read_table(_summary_path(root, part, summary))
        except FileNotFoundError:
            continue
    counters.add(summaries=len(found))
    missing = [summary for summary in core.summaries if summary not in found]
    if missing:
        made = scan(root, [part], core)
        for summary in missing:
            path = _summary_path(root, part, summary)
            make_private(path.parent)
            # Two queries that build the same summary at a time write equal files.
            write_table(path, made[summary])
            found[summary] = made[summary]
        counters.add(sub_windows=1, built=len(missing))
    return found


def has_summaries(root: Path, part: Slice, core: Core) -> bool:
    """Whether all summaries of a slice are stored."""
    return all(_summary_path(root, part, summary).exists() for summary in core.summaries)


def stored_bytes(root: Path, parts: Sequence[Slice], core: Core) -> tuple[int, int]:
    """Bytes of the core's stored summaries, and the number of parts that have all of them."""
    size = count = 0
    for part in parts:
        try:
            size += sum(_summary_path(root, part, summary).stat().st_size for summary in core.summaries)
        except FileNotFoundError:
            continue
        count += 1
    return size, count


def all_stored_bytes(root: Path) -> int:
    """Bytes of all summaries that are stored beside the sub-windows of a store."""
    size = 0
    # The writer deletes folders meanwhile, which os.walk passes over.
    for folder, _, files in os.walk(root / "summaries"):
        for file in files:
            if file.endswith(".arrow"):
                with suppress(FileNotFoundError):
                    size += (Path(folder) / file).stat().st_size
    return size


def _summary_path(root: Path, part: Slice, summary: Summary) -> Path:
    return part.summaries(root) / f"{summary.identity}-{part.first}-{part.count}.arrow"
