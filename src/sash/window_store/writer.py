"""The writer of a window store: takes in micro-batches, and moves the window on by one sub-window at a time.

A micro-batch is taken in exactly once, by its number; one that spans several sub-windows makes several updates, in
order. Killed at any point, a writer made anew goes on with the same batch: what is in a manifest is not done again, and
what is not in one has left nothing but files that nobody speaks of.
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
from sash.window_store.cutting import Piece, cut, times
from sash.window_store.files import TEMPORARY, read_table, write_table
from sash.window_store.leases import lowest_need
from sash.window_store.locks import StoreLock, WriterLock
from sash.window_store.manifest import Layout, Manifest, Slice, SubWindow, pushed
from sash.window_store.placing import Answer

Update = Callable[[Callable[[], None], Mapping[int, Slice]], object]
"""Does a window update by calling what it is given, while no reader holds the window still; queries that have read a
sub-window into which it inserts rows are passed these."""


class WindowWriter:
    """Writes one store, alone."""

    def __init__(self, root: Path, layout: Layout) -> None:
        (root / "rows").mkdir(parents=True, exist_ok=True)
        self._lock = WriterLock(root)
        self._root = root
        self._update: Update = self._alone
        try:
            self._layout = _agreed(root, layout)
            self.manifest = Manifest.load(root)
            self._sweep()
            parts = [read_table(root / "rows" / file) for file in self.manifest.pending]
            self._pending = pa.concat_tables([layout.arrow.empty_table(), *parts])
            self._answer: Answer | None = None
        except BaseException:
            self._lock.release()
            raise

    @property
    def layout(self) -> Layout:
        """How the rows are cut."""
        return self._layout

    def updates_through(self, update: Update) -> None:
        """Have the updates done by the scheduler of the queries in this process."""
        self._update = update

    def apply(self, batch: int, rows: pa.Table, clock: int) -> int:
        """Take in a micro-batch, whose rows bring the stream's clock to `clock`; how many updates that made.

        `rows` has the layout's columns. Rows behind the clock before this batch are late: counted and left out.
        """
        before = self.manifest
        if batch <= before.batch:
            return 0
        timely = times(rows) >= before.clock
        late = len(timely) - int(timely.sum())
        fresh = rows.filter(pa.array(timely)) if late else rows
        clock = max(clock, before.clock)
        # An interrupted batch is cut again as it was, from where the window stood before its first update.
        pieces, waiting = cut(self._layout, pa.concat_tables([self._pending, fresh]), before.reached, clock)
        first = before.updates - before.made
        made = self._made(pieces[before.made :], first + before.made)
        pending = self._pending_files(pieces, waiting, fresh)
        reached = pieces[-1].end if pieces else before.reached
        finished = replace(before, batch=batch, clock=clock, pending=pending, late=before.late + late, reached=reached)
        for n, part in enumerate(made):
            self._swap(part, finished if n == len(made) - 1 else None)
        if not made:
            self.manifest = replace(finished, made=0)
            self.manifest.save(self._root)
        self._pending = waiting
        self._remove(self._there - self.manifest.files)
        return len(made)

    def _pending_files(self, pieces: list[Piece], waiting: pa.Table, fresh: pa.Table) -> tuple[str, ...]:
        """Where the rows that wait are: all in a new file if sub-windows have closed, else those of this batch are."""
        if pieces:
            return (self._save(waiting),) if waiting.num_rows else ()
        return (*self.manifest.pending, self._save(fresh)) if fresh.num_rows else self.manifest.pending

    def close(self) -> None:
        """Let another writer in."""
        self._lock.release()

    def _made(self, pieces: Sequence[Piece], first: int) -> list[SubWindow]:
        """The files of the next updates, beginning with number `first`."""
        if self._layout.kind != "result":
            return [
                SubWindow(number, self._save(piece.rows), piece.rows.num_rows, piece.start, piece.end)
                for number, piece in enumerate(pieces, first)
            ]
        # If anything fails from here on, where rows are is found out anew from the files.
        answer, self._answer = self._answer or Answer(self._layout, self.manifest, self._root), None
        made = []
        for number, piece in enumerate(pieces, first):
            rows, own, inserts = answer.update(number, piece.end, piece.rows)
            made.append(SubWindow(number, self._save(rows), own, piece.start, piece.end, inserts=inserts))
            answer.note(made[-1])
        self._answer = answer
        return made

    def _save(self, rows: pa.Table) -> str:
        name = f"{uuid.uuid4().hex}.arrow"
        write_table(self._root / "rows" / name, rows)
        self._there |= {name}
        return name

    def _swap(self, part: SubWindow, finished: Manifest | None) -> None:
        """One window update: the manifest with the new sub-window takes the place of the old one; with the last one of
        a batch, the batch is finished."""

        def swap() -> None:
            moved = pushed(self.manifest, self._layout, replace(part, swapped=time.time()))
            moved = replace(moved, expired=self._still_needed(moved))
            if finished is not None:
                moved = replace(
                    moved, batch=finished.batch, clock=finished.clock, pending=finished.pending, late=finished.late,
                    reached=finished.reached, made=0,
                )  # fmt: skip
            moved.save(self._root)
            self.manifest = moved

        self._update(swap, part.inserted)

    def _alone(self, swap: Callable[[], None], _: Mapping[int, Slice]) -> None:
        with StoreLock(self._root).exclusive():
            swap()

    def _still_needed(self, manifest: Manifest) -> tuple[SubWindow, ...]:
        """The replaced sub-windows that stay: the last `retain`, and those that readers hold."""
        low = min(manifest.updates - len(manifest.live) - self._layout.retain, lowest_need(self._root))
        return tuple(part for part in manifest.expired if part.number >= low)

    def _remove(self, files: frozenset[str]) -> None:
        """Delete files that the manifest does not speak of, and their summaries."""
        for file in files:
            (self._root / "rows" / file).unlink(missing_ok=True)
            shutil.rmtree(self._root / "summaries" / file, ignore_errors=True)
        self._there -= files

    def _sweep(self) -> None:
        """Delete what a killed writer left behind."""
        self._there = frozenset(path.name for path in (self._root / "rows").iterdir())
        self._remove(self._there - self.manifest.files)
        for leftover in self._root.glob(f"*{TEMPORARY}"):
            leftover.unlink(missing_ok=True)


def _agreed(root: Path, layout: Layout) -> Layout:
    """The store's layout, which must be the one that is asked for; that of a new store is written."""
    try:
        found = Layout.load(root)
    except StoreError:
        if (root / "layout.json").exists():
            raise
        layout.save(root)
        return layout
    if found != layout:
        differing = [name for name in layout.__dict__ if getattr(found, name) != getattr(layout, name)]
        if differing == ["retain"]:
            layout.save(root)
            return layout
        what = differing[0]
        raise StoreError(
            f"the window store in {root} was made with {what} = {getattr(found, what)!r}, not {getattr(layout, what)!r}: "
            "keep as before, or in another path"
        )
    return layout
