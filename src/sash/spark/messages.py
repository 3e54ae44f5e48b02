"""Messages between scatter and the stage processors: few rows with large blobs, all of one schema.

A message brings the rows of one shard, if any, to one input of one stage, together with the sender's clock, so it is a
time message as well. Batch metrics travel as messages that no stage reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    import pandas as pd

ROWS, HEARTBEAT, CONTROL = 0, 1, 2
"""Where a clock comes from: rows, a heartbeat (used only in a batch without rows), or the control stream."""

METRICS_STAGE = -1
"""The stage of a message that carries batch metrics."""

BLOB_BYTES = 2 << 20
"""The approximate limit of a blob: while one is unpacked, the next is transferred."""

_FIELDS: dict[str, pa.DataType] = {
    "label": pa.int64(),
    "stage": pa.int32(),
    "input": pa.int32(),
    "kind": pa.int32(),
    "sender": pa.int32(),
    "seq": pa.int32(),
    "clock": pa.int64(),
    "metrics": pa.string(),
    "blob": pa.binary(),
}
SCHEMA = pa.schema(list(_FIELDS.items()))
_TYPES: dict[pa.DataType, str] = {pa.int64(): "long", pa.int32(): "int", pa.string(): "string", pa.binary(): "binary"}
DDL = ", ".join(f"{name} {_TYPES[dtype]}" for name, dtype in _FIELDS.items())


@dataclass
class Message:
    """One message to the shard with this label."""

    label: int
    stage: int
    input: int = 0
    kind: int = ROWS
    sender: int = 0
    seq: int = 0
    clock: int = 0
    metrics: str | None = None
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
        *numbers, metrics, blob = values
        named = dict(zip(_FIELDS, map(int, numbers), strict=False))
        yield Message(**named, metrics=metrics, blob=blob)


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
