"""The rows of a query's kept result: assigns each row to a sub-window (paper 2, 4.3).

Update j writes sub-window j and drops sub-window j - n. A row whose expiration time is known goes into the sub-window
that is dropped when the row expires: its expiration then needs no retraction, but new rows are inserted into existing
sub-windows. A row whose expiration time is unknown goes into the youngest sub-window, and its retraction is inserted
there as well. A row that outlives its sub-window is written again as a new row. The net rows of the n sub-windows are
therefore the result.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from sash.state.hash import HashBuffer
from sash.state.hashing import Keys, hash_rows
from sash.state.memory import Arrays, HeapMemory, Ints
from sash.window_store.store.layout import ENDS, SIGN, TIME, StoreLayout
from sash.window_store.store.manifest import Manifest, SubWindow
from sash.window_store.store.tables import columns_of, net_changes, times

_NONE = -1
_FAR = 2**61
"""Later expiration times mean that the row never expires."""


class ResultRows:
    """The sub-window of every row of a result: read from the files of the store once, then maintained by each update."""

    def __init__(self, layout: StoreLayout, manifest: Manifest, root: Path) -> None:
        memory = HeapMemory()
        self._layout, self._manifest, self._root = layout, manifest, root
        self._buffer = HashBuffer(memory.scope("values"), oldest_first=True)
        self._rows = Arrays(memory.scope("rows"), {"target": np.int64, "ends": np.int64})
        self._members: dict[int, list[Ints]] = {}
        for part in manifest.live:
            rows = self._net_rows(part.number)
            self._add(rows, np.full(rows.num_rows, part.number, np.int64))

    def update(
        self, number: int, end: int, changes: pa.Table
    ) -> tuple[pa.Table, int, tuple[tuple[int, int, int], ...]]:
        """The contents of an update's file: all its rows, those of the new sub-window first; the number of these; and the
        inserts into older sub-windows. `changes` must be net changes."""
        signs = np.asarray(changes.column(SIGN).to_numpy(), np.int8)
        retracted, added = changes.filter(pa.array(signs < 0)), changes.filter(pa.array(signs > 0))
        retracted_from = self._retract(retracted)
        leaving = number - self._layout.count
        left = retracted_from == leaving
        carried = self._carry(leaving, retracted.filter(pa.array(left)), number, end)
        fresh = pa.concat_tables([carried, added])
        targets = self._assign(_ends(fresh), number, end)
        self._add(added, targets[carried.num_rows :])
        rows = pa.concat_tables([retracted.filter(pa.array(~left)), fresh])
        into = np.concatenate([retracted_from[~left], targets])
        into[into == number] = _NONE
        order = np.lexsort((times(rows), into))
        older, first, counts = np.unique(into[order], return_index=True, return_counts=True)
        found = list(zip(older.tolist(), first.tolist(), counts.tolist(), strict=True))
        own = sum(count for target, _, count in found if target == _NONE)
        return rows.take(pa.array(order)), own, tuple(insert for insert in found if insert[0] != _NONE)

    def add_sub_window(self, part: SubWindow) -> None:
        """Record the file of an update that was just written."""
        self._manifest = replace(self._manifest.advance(part, self._layout.count), expired=())

    def _retract(self, retracted: pa.Table) -> Ints:
        """Remove retracted rows; returns their sub-windows."""
        slots = self._buffer.apply(np.full(retracted.num_rows, -1, np.int8), *_hashes(retracted))
        targets = self._rows["target"]
        found = targets[slots]
        targets[slots] = _NONE
        self._buffer.release(slots)
        return found

    def _add(self, added: pa.Table, targets: Ints) -> None:
        slots = self._buffer.apply(np.ones(added.num_rows, np.int8), *_hashes(added))
        self._rows.reserve(self._buffer.capacity)
        self._rows["ends"][slots] = _ends(added)
        self._put(slots, targets)

    def _put(self, slots: Ints, targets: Ints) -> None:
        self._rows["target"][slots] = targets
        for target in np.unique(targets).tolist():
            self._members.setdefault(target, []).append(slots[targets == target])

    def _carry(self, leaving: int, taken: pa.Table, number: int, end: int) -> pa.Table:
        """Move the rows that outlive a sub-window to others; returns them."""
        listed = self._members.pop(leaving, None)
        if listed is None:
            return taken.slice(0, 0)
        slots = np.unique(np.concatenate(listed))
        slots = slots[self._rows["target"][slots] == leaving]
        if not len(slots):
            return taken.slice(0, 0)
        self._put(slots, self._assign(self._rows["ends"][slots], number, end))
        return self._net_rows(leaving, taken)

    def _assign(self, ends: Ints, number: int, end: int) -> Ints:
        """The sub-windows for rows with these expiration times, as of update `number`: the sub-window dropped by the first
        update after the expiration, the youngest if the row outlives them all, and the oldest if the window is not yet
        full."""
        updates = (np.minimum(ends, _FAR) - end) // self._layout.length + 1
        oldest = max(0, number - self._layout.count + 1)
        targets: Ints = np.clip(number + updates - self._layout.count, oldest, number)
        return targets

    def _net_rows(self, number: int, *more: pa.Table) -> pa.Table:
        """The net rows of a sub-window."""
        slices = self._manifest.slices(number, self._manifest.updates)
        return net_changes([*(part.read(self._root) for part in slices), *more])


def _hashes(rows: pa.Table) -> Keys:
    return hash_rows(columns_of(rows.drop_columns([TIME, SIGN])), rows.num_rows)


def _ends(rows: pa.Table) -> Ints:
    """The expiration times of the rows, as far as they are known."""
    if ENDS not in rows.schema.names:
        return np.full(rows.num_rows, _FAR, np.int64)
    return np.asarray(rows.column(ENDS).to_numpy(), np.int64)
