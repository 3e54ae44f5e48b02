"""What flows between scatter and the rounds of stages: few rows with large blobs, all of one packed schema.

A message brings one input of one stage the rows of one shard, or none, and the sender's clock: it is the time message
as well. Notes travel past the stages to the end of the query.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    import pandas as pd

ROWS, HEARTBEAT, CONTROL = 0, 1, 2
"""The kinds of clock: of rows that came, of a heartbeat (heard only where no rows came), of the end of an input."""

NOTE = -1
"""The stage of a message that only carries counts."""

BLOB_BYTES = 2 << 20
"""No blob is much larger than this: while one is unpacked, the next is on its way."""

_FIELDS: dict[str, pa.DataType] = {
    "label": pa.int64(),
    "stage": pa.int32(),
    "input": pa.int32(),
    "kind": pa.int32(),
    "sender": pa.int32(),
    "seq": pa.int32(),
    "clock": pa.int64(),
    "note": pa.string(),
    "blob": pa.binary(),
}
SCHEMA = pa.schema(list(_FIELDS.items()))
_TYPES: dict[pa.DataType, str] = {
    pa.int64(): "long",
    pa.int32(): "int",
    pa.string(): "string",
    pa.binary(): "binary",
}
DDL = ", ".join(f"{name} {_TYPES[dtype]}" for name, dtype in _FIELDS.items())


@dataclass
class Message:
    """One packed row."""

    label: int
    stage: int
    input: int = 0
    kind: int = ROWS
    sender: int = 0
    seq: int = 0
    clock: int = 0
    note: str | None = None
    blob: Any = None


def to_record_batches(messages: Iterable[Message]) -> Iterator[pa.RecordBatch]:
    """The messages as Arrow batches, none much larger than a blob."""
    for group in _groups(messages):
        arrays = [pa.array([getattr(message, name) for message in group], dtype) for name, dtype in _FIELDS.items()]
        yield pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def to_frames(messages: Iterable[Message]) -> Iterator[pd.DataFrame]:
    """The messages as pandas frames, none much larger than a blob."""
    import pandas as pd

    for group in _groups(messages):
        yield pd.DataFrame({name: [getattr(message, name) for message in group] for name in _FIELDS})


def from_frame(frame: pd.DataFrame) -> Iterator[Message]:
    """The messages of a pandas frame."""
    for values in zip(*(frame[name] for name in _FIELDS), strict=True):
        *numbers, note, blob = values
        named = dict(zip(_FIELDS, map(int, numbers), strict=False))
        yield Message(**named, note=note, blob=blob)


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
