"""Messages between scatter and the stage processors: few rows with large blobs, all of one schema.

A message brings the rows of one channel to one shard, if there are any, together with the sender's clock, so it is a time
message as well. Batch metrics, and the changes that a job outputs, travel as messages that no stage reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    import pandas as pd

ROWS, HEARTBEAT, CONTROL, END = 0, 1, 2, 5
"""Where a clock comes from: rows, a heartbeat (used only in a batch without rows), or the control stream, which may also say
that its stream has ended."""

SMALL, LARGE = 3, 4
"""How much one shard outputs for a query in a batch: what fits the driver's memory easily, or more than that."""

RESTORED = 9
"""The rows of a stage that was rebuilt: they replace all that it has sent before."""

PARKED, RESUMED, CAUGHT_UP = 6, 7, 8
"""The answer that a stage had when it was parked, its answer after it was rebuilt, or that it has output all it had missed."""

METRICS = -1
"""The channel of a message that carries batch metrics."""

OUTPUT = -2
"""The channel of a message that carries changes of a query: `output` is its position in the plan, `sender` the shard."""

ANSWER = -6
"""The channel of a message about the answer of a query whose stages stood still, with `output` and `sender` as above."""

BLOB_BYTES = 2 << 20
"""The approximate limit of a blob: while one is unpacked, the next is transferred."""

_FIELDS: dict[str, pa.DataType] = {
    "label": pa.int64(),
    "channel": pa.int32(),
    "kind": pa.int32(),
    "sender": pa.int32(),
    "seq": pa.int32(),
    "output": pa.int32(),
    "clock": pa.int64(),
    "metrics": pa.string(),
    "times": pa.string(),
    "marks": pa.string(),
    "blob": pa.binary(),
}
SCHEMA = pa.schema(list(_FIELDS.items()))
_TYPES: dict[pa.DataType, str] = {pa.int64(): "long", pa.int32(): "int", pa.string(): "string", pa.binary(): "binary"}
DDL = ", ".join(f"{name} {_TYPES[dtype]}" for name, dtype in _FIELDS.items())


@dataclass
class Message:
    """One message to the shard with this label; `times` is what an edge between stages carries of time (`Times`), and `marks`
    what a source with partitions does (`PartitionReport`)."""

    label: int
    channel: int
    kind: int = ROWS
    sender: int = 0
    seq: int = 0
    output: int = 0
    clock: int = 0
    metrics: str | None = None
    times: str | None = None
    marks: str | None = None
    blob: Any = None


def to_record_batches(messages: Iterable[Message]) -> Iterator[pa.RecordBatch]:
    """Convert messages to Arrow batches, none much larger than a blob."""
    for group in _groups(messages):
        arrays = [pa.array([getattr(message, name) for message in group], dtype) for name, dtype in _FIELDS.items()]
        yield pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def to_frames(messages: Iterable[Message]) -> Iterator[pd.DataFrame]:
    """Convert messages to pandas frames, none much larger than a blob."""
    import pandas as pd

    for group in _groups(messages):
        yield pd.DataFrame({name: [getattr(message, name) for message in group] for name in _FIELDS})


def from_frame(frame: pd.DataFrame) -> Iterator[Message]:
    """Read the messages of a pandas frame."""
    for values in zip(*(frame[name] for name in _FIELDS), strict=True):
        *numbers, metrics, times, marks, blob = values
        named = dict(zip(_FIELDS, map(int, numbers), strict=False))
        yield Message(**named, metrics=metrics, times=times, marks=marks, blob=blob)


def _groups(messages: Iterable[Message]) -> Iterator[list[Message]]:
    group: list[Message] = []
    size = 0
    for message in messages:
        group.append(message)
        size += 0 if message.blob is None else len(message.blob)
        if size >= BLOB_BYTES // 2:
            yield group
            group, size = [], 0
    if group:
        yield group
