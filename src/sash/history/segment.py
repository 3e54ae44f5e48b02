"""A segment of the history as it is read: the answers at its start, and the changes of its batches, as far as committed."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from sash.history.answers import decode_table
from sash.history.outputs import Part, QueryState
from sash.history.records import Record, read_records


class Segment:
    """Reads a segment, which a process may be appending to. Its file stays open, so that it can be removed meanwhile."""

    def __init__(self, path: Path, *, whole: bool = False) -> None:
        self.path = path
        self.queries: dict[str, QueryState] = {}
        self.pending: dict[int, dict[str, Part]] = {}
        """The parts of batches that are not committed."""
        self.last = -1
        """The number of the last batch, committed or not."""
        self.committed = -1
        self.follows: tuple[int, ...] = ()
        """The numbers that the next batch may have, where the job was changed."""
        self.begun: float | None = None
        """When the segment was begun, and when the last batch was written."""
        self.written: float = 0.0
        self.end = 0
        self._whole = whole
        self._handle = os.open(path, os.O_RDONLY)

    def close(self) -> None:
        """Close the file."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1

    def __del__(self) -> None:
        self.close()

    def read_on(self) -> bool:
        """Take in what has been appended; return whether there was anything."""
        before = self.end
        for record in read_records(self._handle, self.end, whole=self._whole):
            self._take(record)
            self.end = record.end
        return self.end > before

    @property
    def has_parts(self) -> bool:
        """Whether it has a committed batch."""
        return any(state.parts for state in self.queries.values())

    def table(self, place: tuple[int, int]) -> pa.Table:
        """The table at a place."""
        return decode_table(os.pread(self._handle, place[1], place[0]))

    def tables(self, parts: list[Part]) -> list[pa.Table]:
        """The tables of parts that have any changes."""
        return [self.table(part.place) for part in parts if part.place is not None]

    def base(self, state: QueryState) -> list[pa.Table]:
        """The answer of a query at the segment's start, unless it is empty."""
        return [] if state.base is None else [self.table(state.base)]

    def _take(self, record: Record) -> None:
        meta = record.meta
        match meta["kind"]:
            case "base":
                self.begun = self.written = meta["time"]
                self.last, self.committed = meta["last"], meta["committed"]
                self.follows = tuple(meta["follows"])
                for name, given in meta["queries"].items():
                    self.queries[name] = QueryState.of(name, given, record.payload)
            case "batch":
                self.written = meta["time"]
                self._add(meta["number"], meta["parts"], record.payload)
            case "commit":
                self.commit(meta["number"], meta.get("clocks", {}))

    def _add(self, number: int, parts: dict[str, list[Any]], payload: int) -> None:
        found = {name: Part.of(number, part, payload) for name, part in parts.items()}
        if number > self.last:
            self.last, self.follows = number, ()
        if number <= self.committed:
            self._publish(found)
        else:
            self.pending.setdefault(number, {}).update(found)

    def commit(self, number: int, clocks: Mapping[str, int] | None = None) -> None:
        """Take the batches up to a number as committed; `clocks` has those of queries that the last batch did not know."""
        for one in sorted(self.pending):
            if one <= number:
                self._publish(self.pending.pop(one))
        self.committed = max(self.committed, number)
        for name, clock in (clocks or {}).items():
            if name in self.queries:
                self.queries[name].pass_clock(number, clock)

    def _publish(self, parts: dict[str, Part]) -> None:
        for name, part in parts.items():
            if name in self.queries:
                self.queries[name].add(part)
