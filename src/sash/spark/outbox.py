"""The outbox of a query whose sink does not get its changes: it is parked, or waits until it is complete.

There is a file per batch. Past the bound, all batches but the first become one with their net changes: then the sink gets
the difference between the answer that it has and the current one, whose size is bounded by that of the two answers. The
first is left as it is, because the sink may have committed it before it failed; it recognizes it by its number.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from urllib.parse import quote

import numpy as np
import pyarrow as pa

from sash.operators.netting import net_all
from sash.operators.output_modes import reduce_changes
from sash.spark.folders import Folder
from sash.spark.sinks.base import OutputSpec
from sash.spark.sinks.batch import typed_table
from sash.state.change_tables import changes_of
from sash.state.changes import concat

_SUFFIX = ".arrow"


@dataclass(frozen=True)
class Part:
    """A file with the changes of batches `first` to `last`; if these are several, the net changes."""

    first: int
    last: int
    size: int

    @property
    def name(self) -> str:
        """The name of the file, which also has its size, so that a listing suffices to add them up."""
        return f"{self.first}-{self.last}-{self.size}{_SUFFIX}"

    @staticmethod
    def of(name: str) -> Part:
        """The part with this file name."""
        first, last, size = map(int, name.removesuffix(_SUFFIX).split("-"))
        return Part(first, last, size)


class Outbox:
    """The outbox of one query in a folder; a caller holds the query's lock."""

    def __init__(self, folder: Folder, query: str, output: OutputSpec, limit: int) -> None:
        self._folder = folder.inside(quote(query, safe=""))
        self._query = query
        self._output = output
        self.limit = limit
        self._parts = self._load()

    def __len__(self) -> int:
        return len(self._parts)

    @property
    def size(self) -> int:
        """The bytes in it."""
        return sum(part.size for part in self._parts)

    @property
    def netted(self) -> bool:
        """Whether batches have been replaced by their net changes."""
        return any(part.first < part.last for part in self._parts)

    def add(self, number: int, table: pa.Table) -> None:
        """Keep a batch; one that is repeated replaces itself."""
        if any(part.first < part.last and part.first <= number <= part.last for part in self._parts):
            return
        if not table.num_rows:
            return
        self._write(number, number, _encode(table))
        if self.size > self.limit and len(self._parts) > 2:
            self._net()

    def deliver(self, write: Callable[[pa.Table, int], None]) -> int:
        """Write all batches in order, each under its last number, and remove those written; return how many there were."""
        delivered = 0
        while self._parts:
            part = self._parts[0]
            write(self._read(part), part.last)
            self._remove(part)
            delivered += 1
        return delivered

    def clear(self) -> None:
        """Remove everything."""
        for part in list(self._parts):
            self._remove(part)

    def _net(self) -> None:
        merged = self._parts[1:]
        every = concat([changes_of(self._read(part)) for part in merged]).sorted()
        upsert = self._output.mode == "upsert"
        changes = reduce_changes(every, "upsert", self._output.key) if upsert else net_all(every)
        at = np.full(len(changes), every.ts[-1] if len(every) else 0, np.int64)
        table = typed_table(replace(changes, ts=at).sorted(), self._output.schema, self._output.time)
        if not any(part.first < part.last for part in merged):
            logging.getLogger("sash").warning(
                "query %s: its outbox is full, so its sink will get the net difference of its answer, not every change",
                self._query,
            )
        self._write(merged[0].first, merged[-1].last, _encode(table))
        for part in merged:
            self._remove(part)

    def _write(self, first: int, last: int, data: bytes) -> None:
        part = Part(first, last, len(data))
        same = [known for known in self._parts if (known.first, known.last) == (first, last)]
        self._folder.write_bytes(part.name, data)
        for known in same:
            if known != part:
                self._remove(known)
        self._parts = sorted({*self._parts, part}, key=lambda part: (part.last, part.first))

    def _read(self, part: Part) -> pa.Table:
        data = self._folder.read_bytes(part.name)
        assert data is not None
        with pa.ipc.open_stream(data) as reader:
            return reader.read_all()

    def _remove(self, part: Part) -> None:
        self._folder.remove(part.name)
        self._parts = [known for known in self._parts if known != part]

    def _load(self) -> list[Part]:
        """The parts in order. Those that a netted one includes were about to be removed when the process died."""
        found = [Part.of(name) for name in self._folder.names() if name.endswith(_SUFFIX)]
        kept: list[Part] = []
        for part in sorted(found, key=lambda part: (part.first - part.last, part.size)):
            if any(other.first <= part.first and part.last <= other.last for other in kept):
                self._folder.remove(part.name)
            else:
                kept.append(part)
        return sorted(kept, key=lambda part: part.last)


def _encode(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue().to_pybytes())
