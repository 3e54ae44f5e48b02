"""Scatter: partition a stream's rows by the keys of the channels that carry them, and pack one blob per shard.

Runs in `mapInArrow`, over the rows of a leg (`_ts`, `_ok` if the leg filters, c0 ... cn) or of a scan (`_ts`, masks m0 ...,
c0 ... cn), with `_part` and `_now` if the stream has partitions that may be out of step. Every shard that reads a channel
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
from sash.operators.count_window import last_rows
from sash.physical.channels import MASK_BITS
from sash.plan.nodes import Rows
from sash.runtime.shard import partition
from sash.spark.batch_metrics import BatchMetrics
from sash.spark.layout import Target
from sash.spark.messages import BLOB_BYTES, END, METRICS, ROWS, Message, to_record_batches
from sash.spark.output import output_messages
from sash.spark.rejected import AHEAD, BATCH_TIME, NO_TIME, RejectPositions, candidates
from sash.spark.stage_errors import naming_queries
from sash.spark.workers import freeze_loaded_objects
from sash.state.changes import ChangeBatch, Signs, concat
from sash.state.encoding import encode, pieces, size_of
from sash.state.memory import Ints
from sash.state.partition_clocks import PartitionReport
from sash.time import FOREVER

if TYPE_CHECKING:
    from sash.spark.legs import Lookups

TIME, ACCEPTED, SIGN, MASK, ENDED = "_ts", "_ok", "_sign", "m", "ended"
PARTITION = "_part"


@dataclass(frozen=True)
class Feed:
    """What channels with the same rows get of a leg or scan: columns by position, and their types.

    Of a scan, a row is sent if one of these `filters` accepts it, or in any case if the feed takes `everything`; with
    `masks`, columns follow that have a bit per filter. `lookups` is the upper part of the leg, which runs here. `queries`
    need the rows.
    """

    columns: tuple[int, ...]
    dtypes: tuple[pa.DataType, ...]
    targets: tuple[Target, ...]
    filters: tuple[int, ...] = ()
    everything: bool = True
    masks: int = 0
    lookups: Lookups | None = None
    queries: tuple[str, ...] = ()
    skipped: bool = False
    """Whether lookups do not run, because they failed, and only parked queries need them."""
    last: tuple[Rows, int] | None = None
    """A count window and its clock, if of the rows before that clock only the last ones are needed."""

    def needed(self, rows: ChangeBatch) -> ChangeBatch:
        """The rows without those that the others push out of a count window."""
        if self.last is None:
            return rows
        window, clock = self.last
        rows = rows.sorted()
        split = int(np.searchsorted(rows.ts, clock, side="left"))
        return concat([last_rows(window, rows.slice(0, split)), rows.slice(split, len(rows))])

    def rows(self, batch: pa.RecordBatch, ts: Ints, sign: Signs, accepted: dict[int, Ints]) -> ChangeBatch:
        """The rows that are sent, before lookups; `accepted` has the rows that each filter accepts, as booleans."""
        given = [batch.column(f"c{index}") for index in self.columns]
        columns = [c if c.type == dtype else c.cast(dtype) for c, dtype in zip(given, self.dtypes, strict=True)]
        for start in range(0, len(self.filters) if self.masks else 0, MASK_BITS):
            mask = np.zeros(len(ts), np.int64)
            for bit, number in enumerate(self.filters[start : start + MASK_BITS]):
                mask |= accepted[number].astype(np.int64) << bit
            columns.append(pa.array(mask))
        rows = ChangeBatch(ts, np.full(len(ts), FOREVER), sign, tuple(columns))
        if self.everything:
            return rows
        wanted = accepted[self.filters[0]]
        for number in self.filters[1:]:
            wanted = wanted | accepted[number]
        return rows if wanted.all() else rows.take(np.flatnonzero(wanted))


@dataclass(frozen=True)
class Scatter:
    """Scatters the rows of one leg or scan.

    `counts` is whether to count the rows, which one pass per stream does. `signed` rows are updates of a relation, with
    `_sign` after their columns. `idle_after` is after how long a partition without rows is idle, in microseconds; None if the
    stream has no partitions of its own.
    """

    stream: str
    slack: int
    drop_bad_rows: bool
    counts: bool
    feeds: tuple[Feed, ...]
    signed: bool = False
    idle_after: int | None = None
    rejects: RejectPositions | None = None
    """Where dropped rows go, if they are kept."""
    max_jump: int | None = None
    """How far the time of a row may be ahead of that of its batch, in microseconds; rows further ahead are dropped.

    Spark records the time of a batch, so a batch that is repeated drops the same rows.
    """

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return to_record_batches(self._messages(batches))

    def _messages(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Message]:
        freeze_loaded_objects()
        sender, seq = _partition_id(), 0
        runners = [None if feed.lookups is None else feed.lookups.runner() for feed in self.feeds]
        metrics = BatchMetrics()
        high: int | None = None
        now = 0
        marks: dict[str, int] = {}
        held: list[list[ChangeBatch]] = [[] for _ in self.feeds]
        size = sent = 0
        bad: list[ChangeBatch] = []
        labels, rejects = self.feeds[0].targets[0].labels, self.rejects
        for batch in batches:
            timely = self._timely(batch, metrics, bad)
            if not timely.num_rows:
                continue
            top = pc.max(timely.column(TIME)).as_py()
            high = top if high is None else max(high, top)
            if self.idle_after is not None:
                now = max(now, pc.max(timely.column(BATCH_TIME)).as_py())
                self._mark(timely, marks)
            if rejects is not None and rejects.late is not None:
                yield candidates(timely, timely.column(TIME).to_numpy(zero_copy_only=False), rejects, sender, sent)
                sent += 1
            for feed, runner, parts, rows in zip(self.feeds, runners, held, self._fed(timely), strict=True):
                with naming_queries(feed.queries):
                    made = rows if runner is None else runner.run(rows.slice(0, 0) if feed.skipped else rows)
                    parts.append(feed.needed(made))
                size += size_of(parts[-1])
            if size > 2 * BLOB_BYTES * len(self.feeds):
                yield from self._split(held, high - self.slack, self._report(now, marks), sender, seq)
                held, size, seq = [[parts[-1].slice(0, 0)] for parts in held], 0, seq + 1
        if high is not None:
            yield from self._split(held, high - self.slack, self._report(now, marks), sender, seq)
        if bad and rejects is not None and rejects.bad is not None:
            yield from output_messages(concat(bad), rejects.bad, sender, labels[0], 0)
        if self.counts and (metrics.rows_in or metrics.bad):
            counted = {"rows_in": metrics.rows_in, "bad": metrics.bad, "ahead": metrics.ahead}
            counted = {name: count for name, count in counted.items() if count or name == "rows_in"}
            metrics.streams = {self.stream: counted}
            yield Message(labels[0], METRICS, metrics=metrics.to_json())

    def _mark(self, batch: pa.RecordBatch, marks: dict[str, int]) -> None:
        """Note the largest time of every partition."""
        columns = {name: batch.column(name) for name in (PARTITION, TIME)}
        highest = pa.table(columns).group_by(PARTITION, use_threads=False).aggregate([(TIME, "max")])
        names, highs = (highest.column(name).to_pylist() for name in (PARTITION, f"{TIME}_max"))
        for name, high in zip(map(str, names), highs, strict=True):
            marks[name] = max(high - self.slack, marks.get(name, high - self.slack))

    def _report(self, now: int, marks: dict[str, int]) -> str | None:
        return None if self.idle_after is None else PartitionReport(now, self.idle_after, marks).to_text()

    def _timely(self, batch: pa.RecordBatch, metrics: BatchMetrics, rejected: list[ChangeBatch]) -> pa.RecordBatch:
        """Drop, or refuse, rows without a time, and updates without a sign; drop rows too far ahead of the batch's time."""
        metrics.rows_in += batch.num_rows
        good = batch.column(TIME).is_valid()
        what, missing = "stream", "whose time column is NULL: give it a time"
        if self.signed:
            what, missing = "relation", "without a time, or whose _op is neither '+' nor '-': give it both"
            good = pc.and_(good, batch.column(SIGN).is_valid())
        bad = batch.num_rows - pc.sum(good).as_py() if batch.num_rows else 0
        if not bad:
            return self._near(batch, metrics, rejected)
        if not self.drop_bad_rows:
            raise BadRowError(f'{what} {self.stream} has a row {missing}, or register the {what} with bad_rows="drop"')
        metrics.bad += bad
        if self.rejects is not None and self.rejects.bad is not None:
            dropped = batch.filter(pc.invert(good))
            rejected.append(self.rejects.bad_rows(dropped, NO_TIME, dropped.column(TIME)))
        return self._near(batch.filter(good), metrics, rejected)

    def _near(self, batch: pa.RecordBatch, metrics: BatchMetrics, rejected: list[ChangeBatch]) -> pa.RecordBatch:
        """Drop the rows that are too far ahead of the batch's time."""
        if self.max_jump is None or not batch.num_rows:
            return batch
        last = min(pc.max(batch.column(BATCH_TIME)).as_py() + self.max_jump, int(FOREVER))
        ahead = pc.greater(batch.column(TIME), last)
        count = pc.sum(ahead).as_py()
        if not count:
            return batch
        metrics.ahead += count
        if self.rejects is not None and self.rejects.bad is not None:
            dropped = batch.filter(ahead)
            rejected.append(self.rejects.bad_rows(dropped, AHEAD, dropped.column(TIME)))
        return batch.filter(pc.invert(ahead))

    def _fed(self, batch: pa.RecordBatch) -> Iterator[ChangeBatch]:
        """The rows of each feed. Rows that none accepts are sent for their times only."""
        if batch.schema.names[1:2] == [ACCEPTED]:
            batch = batch.filter(batch.column(ACCEPTED))
        ts = batch.column(TIME).to_numpy(zero_copy_only=False)
        sign = np.ones(len(ts), np.int8)
        if self.signed:
            sign = batch.column(SIGN).to_numpy(zero_copy_only=False).astype(np.int8)
        accepted: dict[int, Ints] = {}
        for number in dict.fromkeys(number for feed in self.feeds for number in feed.filters):
            mask = batch.column(f"{MASK}{number // MASK_BITS}").to_numpy(zero_copy_only=False)
            accepted[number] = (mask & (1 << number % MASK_BITS)) != 0
        for feed in self.feeds:
            yield feed.rows(batch, ts, sign, accepted)

    def _split(
        self, held: list[list[ChangeBatch]], clock: int, marks: str | None, sender: int, seq: int
    ) -> Iterator[Message]:
        for feed, parts in zip(self.feeds, held, strict=True):
            rows = concat(parts)
            for target in feed.targets:
                yield from scatter_rows(
                    rows, target, Message(0, target.channel, ROWS, sender, seq, clock=clock, marks=marks)
                )


@dataclass(frozen=True)
class ClockScatter:
    """Sends clocks without rows, from a heartbeat or the control stream; its input has `_ts`, and may have `ended`."""

    kind: int
    slack: int
    targets: tuple[Target, ...]
    idle_after: int | None = None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return to_record_batches(self._messages(batches))

    def _messages(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Message]:
        given = [batch for batch in batches if batch.num_rows]
        if not given:
            return
        high = max(pc.max(batch.column(TIME)).as_py() for batch in given)
        ended = any(pc.any(batch.column(ENDED)).as_py() for batch in given if ENDED in batch.schema.names)
        marks = None if self.idle_after is None else PartitionReport(high, self.idle_after).to_text()
        for target in self.targets:
            for label in target.labels:
                yield Message(label, target.channel, END if ended else self.kind, clock=high - self.slack, marks=marks)


def scatter_rows(rows: ChangeBatch, target: Target, message: Message) -> Iterator[Message]:
    """Send rows to the shards that read a channel: without keys each of them gets all rows."""
    keyed = target.keys and len(target.labels) > 1
    shards = partition(rows, target.keys, len(target.labels)) if keyed else [rows] * len(target.labels)
    for label, shard in zip(target.labels, shards, strict=True):
        yield from pack_rows(shard, replace(message, label=label))


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
