"""Change batches as bytes: Arrow IPC without redundant columns.

`exp` is omitted if no row expires, `sign` if every row is `+`, and times within 71 minutes are stored as 32-bit offsets:
a source's rows take their columns and four bytes each. A spool keeps one batch, encoded, between calls.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from sash.state.changes import ChangeBatch, concat
from sash.state.memory import Ints, Memory
from sash.time import FOREVER

_BASE = b"base"
_WIDEST = 2**32


def encode(batch: ChangeBatch, compression: Literal["lz4", "zstd"] | None = None) -> pa.Buffer:
    """The changes as one Arrow IPC stream."""
    base = int(batch.ts.min()) if len(batch) else 0
    narrow = len(batch) > 0 and int(batch.ts.max()) - base < _WIDEST
    times = (batch.ts - base).astype(np.uint32) if narrow else batch.ts
    fields: list[tuple[str, Any]] = [("ts", pa.array(times))]
    if (batch.exp != FOREVER).any():
        fields.append(("exp", pa.array(batch.exp)))
    if (batch.sign < 0).any():
        fields.append(("sign", pa.array(batch.sign)))
    fields += [(f"c{index}", column) for index, column in enumerate(batch.columns)]
    schema = pa.schema([(name, array.type) for name, array in fields], {_BASE: str(base if narrow else 0).encode()})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write_batch(pa.RecordBatch.from_arrays([array for _, array in fields], schema=schema))
    return sink.getvalue()


def decode(data: pa.Buffer | bytes) -> ChangeBatch:
    """The changes of an encoded batch; times, expiration times and signs are new, writable arrays."""
    with pa.ipc.open_stream(data) as reader:
        record = reader.read_next_batch()
    base = int(record.schema.metadata[_BASE])
    rows = record.num_rows
    parts = dict(zip(record.schema.names, record.columns, strict=True))
    ts: Ints = parts.pop("ts").to_numpy(zero_copy_only=False).astype(np.int64)
    if base:
        ts += base
    exp = parts.pop("exp").to_numpy().copy() if "exp" in parts else np.full(rows, FOREVER)
    sign = parts.pop("sign").to_numpy().copy() if "sign" in parts else np.ones(rows, np.int8)
    return ChangeBatch(ts, exp, sign, tuple(parts.values()))


def decode_all(blobs: Sequence[pa.Buffer | bytes], dtypes: Sequence[pa.DataType]) -> ChangeBatch:
    """All the encoded changes, one after the other."""
    return concat([decode(blob) for blob in blobs] or [ChangeBatch.empty(dtypes)])


def size_of(batch: ChangeBatch) -> int:
    """The approximate size of the changes in bytes."""
    return 17 * len(batch) + sum(int(column.nbytes) for column in batch.columns)


def pieces(batch: ChangeBatch, size: int) -> Iterator[ChangeBatch]:
    """The batch in pieces of about `size` bytes at most."""
    if not len(batch):
        return
    rows = max(1, len(batch) * size // size_of(batch))
    for start in range(0, len(batch), rows):
        yield batch.slice(start, min(start + rows, len(batch)))


class Spool:
    """Holds one pending batch, or none."""

    def __init__(self, memory: Memory, dtypes: Sequence[pa.DataType]) -> None:
        self._memory = memory
        self._dtypes = dtypes
        self._size = memory.array("size", np.int64, 2)
        self._bytes = memory.array("bytes", np.uint8, 1024)

    @property
    def rows(self) -> int:
        """The number of pending rows."""
        return int(self._size[1])

    def until(self, rows: ChangeBatch, clock: int) -> ChangeBatch:
        """The rows before the clock, pending and new, in order of time; the others are pending from now on."""
        together = (concat([self.load(), rows]) if self.rows else rows).sorted()
        split = int(np.searchsorted(together.ts, clock, side="left"))
        if self.rows or split < len(together):
            self.save(together.slice(split, len(together)))
        return together.slice(0, split)

    def load(self) -> ChangeBatch:
        """The pending batch."""
        size = int(self._size[0])
        if not size:
            return ChangeBatch.empty(self._dtypes)
        return decode(self._bytes[:size].tobytes())

    def save(self, batch: ChangeBatch) -> None:
        """Replace the pending batch."""
        data = np.frombuffer(encode(batch), np.uint8) if len(batch) else self._bytes[:0]
        if len(data) > len(self._bytes):
            self._bytes = self._memory.grow("bytes", np.uint8, 2 * len(data))
        self._bytes[: len(data)] = data
        self._size[:] = len(data), len(batch)
