"""The kept answer of a query: in which sub-window each of its rows is (paper 2, 4.3).

Update j makes sub-window j, and sub-window j - n leaves. A row whose end is known goes where it leaves with its
sub-window: then ends cost nothing, and new rows are inserted into sub-windows that are there already. A row whose end
nobody knows goes into the youngest, and when it is taken back, its `-` is inserted where it is. What is still there
when its sub-window leaves goes on as a new row. So the rows of the n sub-windows, added up, are the answer.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from sash.state.hash import HashBuffer
from sash.state.hashing import Keys, hash_rows
from sash.state.memory import Arrays, HeapMemory, Ints
from sash.window_store.cutting import added_up, columns_of, times
from sash.window_store.manifest import ENDS, SIGN, TIME, Layout, Manifest, SubWindow, pushed

_GONE = -1
_FAR = 2**61
"""Ends beyond this are none."""


class Answer:
    """Where the rows of an answer are, found out from the files of a store and carried on from update to update."""

    def __init__(self, layout: Layout, manifest: Manifest, root: Path) -> None:
        memory = HeapMemory()
        self._layout, self._manifest, self._root = layout, manifest, root
        self._buffer = HashBuffer(memory.scope("values"), oldest_first=True)
        self._rows = Arrays(memory.scope("rows"), {"place": np.int64, "ends": np.int64})
        self._members: dict[int, list[Ints]] = {}
        for part in manifest.live:
            rows = self._whole(part.number)
            self._add(rows, np.full(rows.num_rows, part.number, np.int64))

    def update(
        self, number: int, end: int, changes: pa.Table
    ) -> tuple[pa.Table, int, tuple[tuple[int, int, int], ...]]:
        """What the file of an update has to contain: its rows, those of the new sub-window first; how many these are;
        and where those for older sub-windows stand. `changes` have been added up."""
        signs = np.asarray(changes.column(SIGN).to_numpy(), np.int8)
        gone, come = changes.filter(pa.array(signs < 0)), changes.filter(pa.array(signs > 0))
        taken_from = self._take(gone)
        leaving = number - self._layout.count
        left = taken_from == leaving
        staying = self._carry(leaving, gone.filter(pa.array(left)), number, end)
        fresh = pa.concat_tables([staying, come])
        places = self._places(_ends(fresh), number, end)
        self._add(come, places[staying.num_rows :])
        rows = pa.concat_tables([gone.filter(pa.array(~left)), fresh])
        into = np.concatenate([taken_from[~left], places])
        into[into == number] = _GONE
        order = np.lexsort((times(rows), into))
        older, first, counts = np.unique(into[order], return_index=True, return_counts=True)
        found = list(zip(older.tolist(), first.tolist(), counts.tolist(), strict=True))
        own = sum(count for place, _, count in found if place == _GONE)
        return rows.take(pa.array(order)), own, tuple(insert for insert in found if insert[0] != _GONE)

    def note(self, part: SubWindow) -> None:
        """The update's file is there."""
        self._manifest = replace(pushed(self._manifest, self._layout, part), expired=())

    def _take(self, gone: pa.Table) -> Ints:
        """The sub-windows out of which rows are taken back."""
        slots = self._buffer.apply(np.full(gone.num_rows, -1, np.int8), *_hashes(gone))
        places = self._rows["place"]
        found = places[slots]
        places[slots] = _GONE
        self._buffer.release(slots)
        return found

    def _add(self, come: pa.Table, places: Ints) -> None:
        slots = self._buffer.apply(np.ones(come.num_rows, np.int8), *_hashes(come))
        self._rows.reserve(self._buffer.capacity)
        self._rows["ends"][slots] = _ends(come)
        self._put(slots, places)

    def _put(self, slots: Ints, places: Ints) -> None:
        self._rows["place"][slots] = places
        for place in np.unique(places).tolist():
            self._members.setdefault(place, []).append(slots[places == place])

    def _carry(self, leaving: int, taken: pa.Table, number: int, end: int) -> pa.Table:
        """The rows that are still there although their sub-window leaves; they are somewhere else from now on."""
        listed = self._members.pop(leaving, None)
        if listed is None:
            return taken.slice(0, 0)
        slots = np.unique(np.concatenate(listed))
        slots = slots[self._rows["place"][slots] == leaving]
        if not len(slots):
            return taken.slice(0, 0)
        self._put(slots, self._places(self._rows["ends"][slots], number, end))
        return self._whole(leaving, taken)

    def _places(self, ends: Ints, number: int, end: int) -> Ints:
        """The sub-window for rows with these ends, as of update `number`: the one that leaves with the first update
        after a row's end, as updates come; the youngest, if it is to stay longer than any; the oldest there is, while
        the window is not full."""
        updates = (np.minimum(ends, _FAR) - end) // self._layout.length + 1
        oldest = max(0, number - self._layout.count + 1)
        places: Ints = np.clip(number + updates - self._layout.count, oldest, number)
        return places

    def _whole(self, number: int, *more: pa.Table) -> pa.Table:
        """A sub-window as it is now, without what was taken back."""
        slices = self._manifest.slices(number, self._manifest.updates)
        return added_up([*(part.read(self._root) for part in slices), *more])


def _hashes(rows: pa.Table) -> Keys:
    return hash_rows(columns_of(rows.drop_columns([TIME, SIGN])), rows.num_rows)


def _ends(rows: pa.Table) -> Ints:
    """When the rows are to expire, as far as that is known."""
    if ENDS not in rows.schema.names:
        return np.full(rows.num_rows, _FAR, np.int64)
    return np.asarray(rows.column(ENDS).to_numpy(), np.int64)
