"""The log: the live rows of a shard's inputs in a store of chunks, from which its state can be rebuilt.

A batch appends the rows it accepted, as compressed chunks of a few megabytes; a chunk whose rows have all expired is
dropped; many consecutive small chunks are merged. If rows end by retractions, a log of more than twice its live rows is
netted and rewritten; if later rows displace them, or they may expire before, a log of more than twice the rows left the last
time. So the amortized
cost of a batch depends on its own size, and the size of the log on the live rows. (The log of an input that never expires
grows with it, until a snapshot allows clearing it.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np
import pyarrow as pa

from sash.state.changes import ChangeBatch, concat
from sash.state.encoding import decode, encode, pieces
from sash.time import FOREVER

CHUNK_BYTES = 4 << 20
"""The approximate size of a chunk before compression."""

SMALL_BYTES = 256 << 10
"""The size of a chunk up to which it is merged with others."""

_MOST_SMALL = 32
_SPARE_ROWS = 10_000
_COMPRESSION: Final = "lz4"

Netting = Callable[[ChangeBatch], ChangeBatch]


class Chunks(Protocol):
    """A store of chunks by number."""

    def get(self, number: int) -> bytes: ...

    def put(self, number: int, data: bytes) -> None: ...

    def remove(self, number: int) -> None: ...


@dataclass
class Chunk:
    """The directory entry of a chunk: its rows, its bytes, and the last expiration time of its rows."""

    number: int
    rows: int
    size: int
    until: int


def packed(batch: ChangeBatch, horizon: int | None) -> Iterator[tuple[bytes, int, int]]:
    """The rows as chunks: the bytes of each, its number of rows, and the last expiration time of these."""
    for piece in pieces(batch, CHUNK_BYTES):
        until = int(piece.exp.max()) if horizon is None else int(piece.ts.max()) + horizon
        yield encode(piece, _COMPRESSION).to_pybytes(), len(piece), min(until, int(FOREVER))


class InputLog:
    """The log of one input.

    `horizon` is the longest lifetime of a source's rows, from their ts; None if rows carry their own expiration times.
    `netting` is given if rows end by retractions. Where they may also end by later rows, or at their expiration times, the
    log is `counted`: the number of live rows is then known only after netting.
    """

    def __init__(
        self,
        chunks: Chunks,
        dtypes: Sequence[pa.DataType],
        horizon: int | None = None,
        netting: Netting | None = None,
        directory: dict[str, Any] | None = None,
        counted: bool = False,
    ) -> None:
        self._store = chunks
        self._dtypes = dtypes
        self._horizon = horizon
        self._netting = netting
        self._counted = counted
        known = directory or {"chunks": [], "live": 0}
        self._chunks = [Chunk(*entry) for entry in known["chunks"]]
        self._live = int(known["live"])

    @property
    def directory(self) -> dict[str, Any]:
        """The directory that is needed to read the log, as plain values."""
        return {"chunks": [[c.number, c.rows, c.size, c.until] for c in self._chunks], "live": self._live}

    @property
    def rows(self) -> int:
        """The number of rows in the log, including expired and retracted ones."""
        return sum(chunk.rows for chunk in self._chunks)

    @property
    def size(self) -> int:
        """Bytes in the log."""
        return sum(chunk.size for chunk in self._chunks)

    def load(self) -> ChangeBatch:
        """All rows of the log, sorted."""
        return self._read(self._chunks).sorted()

    def append(self, batch: ChangeBatch, clock: int, number: Callable[[], int]) -> None:
        """Append a batch's rows and drop rows that ended before the clock; `number` returns numbers for new chunks."""
        self._expire(clock)
        if not self._counted:
            self._live += int(batch.sign.sum(dtype=np.int64))
        self._write(batch, number)
        if self._netting is not None and self.rows > 2 * self._live + _SPARE_ROWS:
            self._compact(clock, number)
        elif self._small() > _MOST_SMALL:
            self._merge(number)

    def clear(self) -> None:
        """Drop all rows; a snapshot holds their state."""
        for chunk in self._chunks:
            self._store.remove(chunk.number)
        self._chunks, self._live = [], 0

    def _expire(self, clock: int) -> None:
        """Drop the chunks of which every row has expired, at an instant that has been released."""
        over = [chunk for chunk in self._chunks if chunk.until < clock]
        for chunk in over:
            self._store.remove(chunk.number)
        if over:
            self._chunks = [chunk for chunk in self._chunks if chunk.until >= clock]

    def _write(self, batch: ChangeBatch, number: Callable[[], int]) -> None:
        for data, rows, until in packed(batch, self._horizon):
            chunk = Chunk(number(), rows, len(data), until)
            self._store.put(chunk.number, data)
            self._chunks.append(chunk)

    def _small(self) -> int:
        """The number of small chunks at the end."""
        count = 0
        for chunk in reversed(self._chunks):
            if chunk.size >= SMALL_BYTES:
                break
            count += 1
        return count

    def _merge(self, number: Callable[[], int]) -> None:
        count = self._small()
        self._rewrite(self._chunks[-count:], lambda rows: rows, number)

    def _compact(self, clock: int, number: Callable[[], int]) -> None:
        """Net the changes before the clock; later ones are kept unchanged."""
        netting = self._netting
        assert netting is not None

        def netted(rows: ChangeBatch) -> ChangeBatch:
            rows = rows.take(np.flatnonzero(rows.exp >= clock)).sorted()
            split = int(np.searchsorted(rows.ts, clock, side="left"))
            return concat([netting(rows.slice(0, split)), rows.slice(split, len(rows))])

        self._rewrite(self._chunks, netted, number)
        if self._counted:
            self._live = self.rows

    def _rewrite(
        self, old: list[Chunk], change: Callable[[ChangeBatch], ChangeBatch], number: Callable[[], int]
    ) -> None:
        rows = change(self._read(old))
        self._chunks = self._chunks[: len(self._chunks) - len(old)]
        for chunk in old:
            self._store.remove(chunk.number)
        self._write(rows, number)

    def _read(self, chunks: Sequence[Chunk]) -> ChangeBatch:
        return concat([decode(self._store.get(chunk.number)) for chunk in chunks] or [ChangeBatch.empty(self._dtypes)])
