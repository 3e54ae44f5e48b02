"""A spool: one change batch kept between calls, as Arrow bytes in a flat array."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from sash.state.changes import ChangeBatch
from sash.state.memory import Memory


def to_record_batch(batch: ChangeBatch) -> pa.RecordBatch:
    """The changes as one Arrow batch: ts, exp, sign, then the columns c0, c1 ..."""
    arrays = [pa.array(batch.ts), pa.array(batch.exp), pa.array(batch.sign), *batch.columns]
    names = ["ts", "exp", "sign", *(f"c{index}" for index in range(len(batch.columns)))]
    return pa.RecordBatch.from_arrays(arrays, names)


def from_record_batch(record: pa.RecordBatch) -> ChangeBatch:
    """The changes of an Arrow batch made by `to_record_batch`."""
    ts, exp, sign, *columns = record.columns
    return ChangeBatch(
        ts.to_numpy(zero_copy_only=False),
        exp.to_numpy(zero_copy_only=False),
        sign.to_numpy(zero_copy_only=False),
        tuple(columns),
    )


def pack(batch: ChangeBatch, compression: str | None = None) -> pa.Buffer:
    """The changes as one Arrow IPC stream."""
    record = to_record_batch(batch)
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_stream(sink, record.schema, options=options) as writer:
        writer.write_batch(record)
    return sink.getvalue()


def unpack(data: pa.Buffer | bytes | memoryview) -> ChangeBatch:
    """The changes of a packed batch."""
    with pa.ipc.open_stream(data) as reader:
        return from_record_batch(reader.read_next_batch())


class Spool:
    """What waits: empty, or one batch."""

    def __init__(self, memory: Memory, dtypes: Sequence[pa.DataType]) -> None:
        self._memory = memory
        self._dtypes = dtypes
        self._size = memory.array("size", np.int64, 1)
        self._bytes = memory.array("bytes", np.uint8, 1024)

    def load(self) -> ChangeBatch:
        """The batch that waits."""
        size = int(self._size[0])
        if not size:
            return ChangeBatch.empty(self._dtypes)
        return unpack(pa.py_buffer(self._bytes[:size].tobytes()))

    def save(self, batch: ChangeBatch) -> None:
        """Let this batch wait instead."""
        if not len(batch):
            self._size[0] = 0
            return
        data = np.frombuffer(pack(batch), np.uint8)
        if len(data) > len(self._bytes):
            self._bytes = self._memory.grow("bytes", np.uint8, 2 * len(data))
        self._bytes[: len(data)] = data
        self._size[0] = len(data)
