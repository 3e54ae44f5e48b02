"""Scatter: partition a stream's rows by the keys of the stages that read them, and pack one blob per shard.

Runs in `mapInArrow` over the leg's rows (`_ts`, `_ok` if the leg filters, c0 ... cn). Every shard of every reading stage
gets a message, even without rows, so that all of them get the stream's clock in the same batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sash.errors import BadRowError
from sash.runtime.shard import partition
from sash.spark.batch_metrics import BatchMetrics
from sash.spark.messages import BLOB_BYTES, METRICS_STAGE, ROWS, Message, to_record_batches
from sash.spark.workers import freeze_loaded_objects
from sash.state.changes import ChangeBatch, concat
from sash.state.encoding import encode, pieces, size_of
from sash.time import FOREVER

if TYPE_CHECKING:
    from sash.spark.legs import Lookups

TIME, ACCEPTED, SIGN = "_ts", "_ok", "_sign"


@dataclass(frozen=True)
class Target:
    """An input of a stage that reads the rows: its partition keys, and the labels of the stage's shards."""

    stage: int
    input: int
    keys: tuple[int, ...]
    labels: tuple[int, ...]


@dataclass(frozen=True)
class Scatter:
    """Scatters the rows of one leg.

    `counts` is whether to count the rows, which one leg per stream does. `signed` rows are updates of a relation, with
    `_sign` after their columns. `lookups` is the upper part of the leg, which runs here.
    """

    stream: str
    slack: int
    drop_bad_rows: bool
    counts: bool
    dtypes: tuple[pa.DataType, ...]
    targets: tuple[Target, ...]
    signed: bool = False
    lookups: Lookups | None = None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return to_record_batches(self._messages(batches))

    def _messages(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Message]:
        freeze_loaded_objects()
        sender, seq = _partition_id(), 0
        runner = None if self.lookups is None else self.lookups.runner()
        metrics = BatchMetrics()
        high: int | None = None
        held: list[ChangeBatch] = []
        size = 0
        for batch in batches:
            timely = self._timely(batch, metrics)
            if not timely.num_rows:
                continue
            top = pc.max(timely.column(TIME)).as_py()
            high = top if high is None else max(high, top)
            rows = self._accepted(timely)
            held.append(rows if runner is None else runner.run(rows))
            size += size_of(held[-1])
            if size > 2 * BLOB_BYTES:
                yield from self._split(concat(held), high - self.slack, sender, seq)
                held, size, seq = [held[-1].slice(0, 0)], 0, seq + 1
        if high is not None:
            yield from self._split(concat(held), high - self.slack, sender, seq)
        if self.counts and (metrics.rows_in or metrics.bad):
            metrics.streams = {self.stream: {"rows_in": metrics.rows_in}}
            yield Message(self.targets[0].labels[0], METRICS_STAGE, metrics=metrics.to_json())

    def _timely(self, batch: pa.RecordBatch, metrics: BatchMetrics) -> pa.RecordBatch:
        """Drop, or refuse, rows without a time, and updates without a sign."""
        metrics.rows_in += batch.num_rows
        good = batch.column(TIME).is_valid()
        what, missing = "stream", "whose time column is NULL: give it a time"
        if self.signed:
            what, missing = "relation", "without a time, or whose _op is neither '+' nor '-': give it both"
            good = pc.and_(good, batch.column(SIGN).is_valid())
        bad = batch.num_rows - pc.sum(good).as_py() if batch.num_rows else 0
        if not bad:
            return batch
        if not self.drop_bad_rows:
            raise BadRowError(f'{what} {self.stream} has a row {missing}, or register the {what} with bad_rows="drop"')
        metrics.bad += bad
        return batch.filter(good)

    def _accepted(self, batch: pa.RecordBatch) -> ChangeBatch:
        """The rows that the leg accepted. The others are sent for their times only."""
        if batch.schema.names[1:2] == [ACCEPTED]:
            batch = batch.filter(batch.column(ACCEPTED))
        given = [batch.column(f"c{index}") for index in range(len(self.dtypes))]
        columns = [c if c.type == dtype else c.cast(dtype) for c, dtype in zip(given, self.dtypes, strict=True)]
        ts = batch.column(TIME).to_numpy(zero_copy_only=False)
        sign = np.ones(len(ts), np.int8)
        if self.signed:
            sign = batch.column(SIGN).to_numpy(zero_copy_only=False).astype(np.int8)
        return ChangeBatch(ts, np.full(len(ts), FOREVER), sign, tuple(columns))

    def _split(self, rows: ChangeBatch, clock: int, sender: int, seq: int) -> Iterator[Message]:
        for target in self.targets:
            shards = partition(rows, target.keys, len(target.labels))
            for label, shard in zip(target.labels, shards, strict=True):
                yield from pack_rows(shard, Message(label, target.stage, target.input, ROWS, sender, seq, clock))


@dataclass(frozen=True)
class ClockScatter:
    """Sends clocks without rows, from a heartbeat or the control stream; its input has `_ts` only."""

    kind: int
    slack: int
    targets: tuple[Target, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return to_record_batches(self._messages(batches))

    def _messages(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Message]:
        highs = [pc.max(batch.column(TIME)).as_py() for batch in batches if batch.num_rows]
        if not highs:
            return
        for target in self.targets:
            for label in target.labels:
                yield Message(label, target.stage, target.input, self.kind, clock=max(highs) - self.slack)


def pack_rows(rows: ChangeBatch, message: Message) -> Iterator[Message]:
    """Put rows into the message, or into several if they exceed a blob; without rows, send it once as it is."""
    if not len(rows):
        yield message
        return
    for number, piece in enumerate(pieces(rows, BLOB_BYTES)):
        yield replace(message, seq=message.seq * 1000 + number, blob=encode(piece).to_pybytes())


def _partition_id() -> int:
    from pyspark import TaskContext

    context = TaskContext.get()
    return 0 if context is None else context.partitionId()
