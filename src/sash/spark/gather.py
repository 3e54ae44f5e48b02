"""Gather: packed output becomes ordinary typed rows, `_op`, `_ts` and the query's columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from sash.plan.types import Schema
from sash.state.changes import ChangeBatch
from sash.state.encoding import decode

_OPS = pa.array(["-", "+"])


@dataclass(frozen=True)
class Gather:
    """What runs in `mapInArrow` over the messages that leave the last stage, `output` being their stage number."""

    output: int
    schema: Schema
    time: pa.DataType

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            stages, blobs = batch.column("stage").to_pylist(), batch.column("blob")
            for stage, blob in zip(stages, blobs, strict=True):
                if stage == self.output and blob.is_valid:
                    yield self.rows(decode(blob.as_buffer()))

    def rows(self, changes: ChangeBatch) -> pa.RecordBatch:
        """The changes as rows of the output."""
        op = _OPS.take(pa.array((changes.sign > 0).astype("int8")))
        arrays = [op, pa.array(changes.ts).view(self.time), *changes.columns]
        return pa.RecordBatch.from_arrays(arrays, names=["_op", "_ts", *(field.name for field in self.schema)])
