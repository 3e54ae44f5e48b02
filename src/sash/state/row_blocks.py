"""Rows of a stream in order of time, in encoded blocks: whoever knows its clock finds the rows that ended since its last one.

A row of a window of length w ends w after its time. So windows of several lengths need one copy of the rows and no positions
of their own: between two clocks a and b, the rows that end are those whose times are between a - w and b - w.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from sash.state.changes import ChangeBatch, concat
from sash.state.encoding import Spool, decode, encode, pieces
from sash.state.memory import Arrays, Ints, Memory

_BLOCK_BYTES = 128 << 10
_SMALL_BYTES = 32 << 10
"""A last block that is smaller is encoded again together with the rows that come after it."""

_HEAD, _TAIL = 0, 1


class RowBlocks:
    """A queue of blocks in one array of bytes, each with its place, its size, its first and last time, and its rows."""

    def __init__(self, memory: Memory, dtypes: tuple[pa.DataType, ...]) -> None:
        self._memory = memory
        self._dtypes = dtypes
        self._ahead = Spool(memory.scope("ahead"), dtypes)
        self._ends = memory.array("ends", np.int64, 2)
        self._bytes = memory.array("bytes", np.uint8, 1 << 12)
        self._blocks = Arrays(memory, dict.fromkeys(("start", "size", "first", "last", "rows"), np.int64), capacity=64)

    @property
    def rows(self) -> int:
        """The number of rows, with those that wait for the clock."""
        return int(self._part("rows").sum()) + self._ahead.rows

    def append(self, rows: ChangeBatch, clock: int) -> None:
        """Add rows that have arrived, none behind the last clock; those ahead of this one wait."""
        ready = self._ahead.until(rows, clock)
        if not len(ready):
            return
        head, tail = map(int, self._ends)
        if tail > head and self._blocks["size"][tail - 1] < _SMALL_BYTES:
            self._ends[_TAIL] = tail - 1
            ready = concat([self._decoded(tail - 1), ready])
        for piece in pieces(ready, _BLOCK_BYTES):
            self._put(piece)

    def between(self, start: int, end: int) -> ChangeBatch:
        """The rows with start <= ts < end, in order."""
        low = int(self._ends[_HEAD]) + int(np.searchsorted(self._part("last"), start, side="left"))
        high = int(self._ends[_HEAD]) + int(np.searchsorted(self._part("first"), end, side="left"))
        if low >= high or start >= end:
            return ChangeBatch.empty(self._dtypes)
        rows = concat([self._decoded(block) for block in range(low, high)])
        return rows.slice(*(int(place) for place in np.searchsorted(rows.ts, (start, end), side="left")))

    def drop_before(self, time: int) -> None:
        """Drop the blocks of which every row is before this time."""
        self._ends[_HEAD] += int(np.searchsorted(self._part("last"), time, side="left"))

    def _part(self, name: str) -> Ints:
        head, tail = map(int, self._ends)
        return self._blocks[name][head:tail]

    def _decoded(self, block: int) -> ChangeBatch:
        start = int(self._blocks["start"][block])
        return decode(self._bytes[start : start + int(self._blocks["size"][block])].tobytes())

    def _put(self, rows: ChangeBatch) -> None:
        data = np.frombuffer(encode(rows), np.uint8)
        self._make_room(len(data))
        tail = int(self._ends[_TAIL])
        start = self._end()
        self._bytes[start : start + len(data)] = data
        entry = {"start": start, "size": len(data), "first": rows.ts[0], "last": rows.ts[-1], "rows": len(rows)}
        for name, value in entry.items():
            self._blocks[name][tail] = value
        self._ends[_TAIL] = tail + 1

    def _end(self) -> int:
        """Where the bytes of the last block end."""
        head, tail = map(int, self._ends)
        return 0 if tail == head else int(self._blocks["start"][tail - 1] + self._blocks["size"][tail - 1])

    def _make_room(self, size: int) -> None:
        """Make room for one more block at the end: the others move to the front, if that frees enough."""
        head, tail = map(int, self._ends)
        if tail == self._blocks.capacity:
            if head >= tail // 2:
                for name in ("start", "size", "first", "last", "rows"):
                    self._blocks[name][: tail - head] = self._blocks[name][head:tail].copy()
                self._ends[:] = 0, tail - head
                head, tail = 0, tail - head
            else:
                self._blocks.reserve(tail + 1)
        end = self._end()
        if end + size <= len(self._bytes):
            return
        first = int(self._blocks["start"][head]) if tail > head else 0
        live = end - first
        if live + size > len(self._bytes) * 3 // 4:
            self._bytes = self._memory.grow("bytes", np.uint8, (live + size) * 3 // 2)
        self._bytes[:live] = self._bytes[first:end].copy()
        self._blocks["start"][head:tail] -= first
