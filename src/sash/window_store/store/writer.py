"""The writer of a window store: applies micro-batches and advances the window by one sub-window at a time.

A micro-batch is applied exactly once, identified by its number. One that spans several sub-windows makes several
updates, in order. After a crash at any point, a new writer continues with the same batch: updates in the manifest are
not repeated, and an unfinished update has left only unreferenced files.
"""

from __future__ import annotations

import shutil
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from sash.errors import StoreError
from sash.private_folders import make_private
from sash.window_store.store.files import TEMPORARY, read_table, write_table
from sash.window_store.store.layout import LAYOUT_FILE, StoreLayout
from sash.window_store.store.locks import StoreLock, WriterLock, oldest_leased
from sash.window_store.store.manifest import Manifest, Slice, SubWindow
from sash.window_store.store.result_rows import ResultRows
from sash.window_store.store.split import CompleteSubWindow, split
from sash.window_store.store.tables import times

UpdateRunner = Callable[[Callable[[], None], Mapping[int, Slice]], object]
"""Runs the given function, which replaces the manifest, as one window update. The slices are the rows that the update
inserts into older sub-windows, for the queries that have already read these."""


class WindowWriter:
    """The only writer of one store. The scheduler of the queries in this process, if any, must be its `run_update`."""

    def __init__(self, root: Path, layout: StoreLayout) -> None:
        make_private(root / "rows")
        self._lock = WriterLock(root)
        self._root = root
        self.run_update: UpdateRunner = self._update_unscheduled
        try:
            self._layout = _open_layout(root, layout)
            self.manifest = Manifest.load(root)
            self._sweep()
            parts = [read_table(root / "rows" / file) for file in self.manifest.pending]
            self._pending = pa.concat_tables([layout.arrow.empty_table(), *parts])
            self._result: ResultRows | None = None
        except BaseException:
            self._lock.release()
            raise

    @property
    def layout(self) -> StoreLayout:
        """The layout of the store."""
        return self._layout

    @property
    def waiting(self) -> pa.Table:
        """The rows whose sub-window is not complete."""
        return self._pending

    def apply(self, batch: int, rows: pa.Table, clock: int) -> int:
        """Apply a micro-batch that advances the stream's clock to `clock`; returns the number of window updates.

        `rows` has the layout's columns. Rows behind the clock before this batch are late: they are counted and dropped.
        """
        before = self.manifest
        if batch <= before.batch:
            return 0
        timely = times(rows) >= before.clock
        late = len(timely) - int(timely.sum())
        fresh = rows.filter(pa.array(timely)) if late else rows
        clock = max(clock, before.clock)
        # An interrupted batch is split again in the same way, from the end of the window before its first update.
        complete, waiting = split(self._layout, pa.concat_tables([self._pending, fresh]), before.reached, clock)
        made = self._write(complete[before.made :], before.updates)
        # One new file of the remaining rows if sub-windows were completed, else one more for this batch.
        written, known = (waiting, ()) if complete else (fresh, before.pending)
        pending = (*known, self._save(written)) if written.num_rows else known
        reached = complete[-1].end if complete else before.reached
        finished = replace(before, batch=batch, clock=clock, pending=pending, late=before.late + late, reached=reached)
        for n, part in enumerate(made):
            self._swap(part, finished if n == len(made) - 1 else None)
        if not made:
            self.manifest = replace(finished, made=0)
            self.manifest.save(self._root)
        self._pending = waiting
        self._remove(self._files - self.manifest.files)
        return len(made)

    def close(self) -> None:
        """Allow another writer."""
        self._lock.release()

    def _write(self, complete: Sequence[CompleteSubWindow], first: int) -> list[SubWindow]:
        """Write the files of the next updates, numbered from `first`."""
        if self._layout.kind != "result":
            return [
                SubWindow(number, self._save(part.rows), part.rows.num_rows, part.start, part.end)
                for number, part in enumerate(complete, first)
            ]
        # After a failure from here on, the positions of the rows are read from the files again.
        result, self._result = self._result or ResultRows(self._layout, self.manifest, self._root), None
        made = []
        for number, part in enumerate(complete, first):
            rows, own, inserts = result.update(number, part.end, part.rows)
            made.append(SubWindow(number, self._save(rows), own, part.start, part.end, inserts=inserts))
            result.add_sub_window(made[-1])
        self._result = result
        return made

    def _save(self, rows: pa.Table) -> str:
        name = f"{uuid.uuid4().hex}.arrow"
        write_table(self._root / "rows" / name, rows)
        self._files |= {name}
        return name

    def _swap(self, part: SubWindow, finished: Manifest | None) -> None:
        """Run one window update: replace the manifest. The last update of a batch also finishes the batch."""

        def swap() -> None:
            moved = self.manifest.advance(replace(part, swapped=time.time()), self._layout.count)
            moved = replace(moved, expired=self._still_needed(moved))
            if finished is not None:
                moved = replace(
                    moved, batch=finished.batch, clock=finished.clock, pending=finished.pending, late=finished.late,
                    reached=finished.reached, made=0,
                )  # fmt: skip
            moved.save(self._root)
            self.manifest = moved

        self.run_update(swap, part.inserted)

    def _update_unscheduled(self, swap: Callable[[], None], _: Mapping[int, Slice]) -> None:
        with StoreLock(self._root).exclusive():
            swap()

    def _still_needed(self, manifest: Manifest) -> tuple[SubWindow, ...]:
        """The replaced sub-windows to keep: the last `retain`, and those that readers have leased."""
        low = min(manifest.updates - len(manifest.live) - self._layout.retain, oldest_leased(self._root))
        return tuple(part for part in manifest.expired if part.number >= low)

    def _remove(self, files: frozenset[str]) -> None:
        """Delete files of rows and their summaries."""
        for file in files:
            (self._root / "rows" / file).unlink(missing_ok=True)
            shutil.rmtree(self._root / "summaries" / file, ignore_errors=True)
        self._files -= files

    def _sweep(self) -> None:
        """Delete the unreferenced files of a writer that was killed."""
        self._files = frozenset(path.name for path in (self._root / "rows").iterdir())
        self._remove(self._files - self.manifest.files)
        for leftover in self._root.glob(f"*{TEMPORARY}"):
            leftover.unlink(missing_ok=True)


def _open_layout(root: Path, layout: StoreLayout) -> StoreLayout:
    """Write the layout of a new store; check that of an existing one, of which only `retain` and `not_carried` may change."""
    try:
        found = StoreLayout.load(root)
    except StoreError:
        if (root / LAYOUT_FILE).exists():
            raise
        layout.save(root)
        return layout
    if found != layout:
        differing = [name for name in layout.__dict__ if getattr(found, name) != getattr(layout, name)]
        if set(differing) <= {"retain", "not_carried"}:
            layout.save(root)
            return layout
        what = next(name for name in differing if name not in ("retain", "not_carried"))
        raise StoreError(
            f"the window store in {root} was made with {what} = {getattr(found, what)!r}, not {getattr(layout, what)!r}: "
            "keep the window with the same settings, or in another path"
        )
    return layout
