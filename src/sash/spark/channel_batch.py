"""A channel in one batch of one shard: the rows and the clock that arrived, and the log of its live rows.

Rows behind the clock of their stream are late. They are dropped here, once for all readers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from sash.operators.count_window import last_rows
from sash.operators.netting import net_all
from sash.physical.channels import MASK_BITS, Channel, Reader
from sash.runtime.shard import Arrival
from sash.runtime.times import Times
from sash.spark.messages import CONTROL, END, HEARTBEAT, RESTORED, ROWS, Message
from sash.spark.stream_counts import StreamCounts, count_late
from sash.state.changes import ChangeBatch
from sash.state.encoding import decode_all
from sash.state.log import Chunks, InputLog, Netting
from sash.state.partition_clocks import PartitionReport, slowest
from sash.time import BEGINNING

Record = dict[str, Any]
"""What the header has of a channel: the directory of its `log`, its `clock`, the clocks that senders `reported`, and, where
operators may be behind the clock, their `times`; of a stream with partitions, their `marks`."""

_BEGINNING = [int(BEGINNING)] * 3


class ChannelBatch:
    """`record` is the channel's part of the header, which `write` updates; `senders` is the number of shards of the stage
    that sends, and 0 for a source. `bounded` is whether a source may end with any batch."""

    def __init__(
        self, channel: Channel, senders: int, chunks: Chunks, record: Record, *, bounded: bool = False
    ) -> None:
        self.channel = channel
        self._record = record
        self._ended = bounded
        self._times: Times | None = None
        if not record:
            record |= {"log": None, "clock": int(BEGINNING), "reported": [int(BEGINNING)] * senders}
        self._log: InputLog | None = None
        self._loaded: ChangeBatch | None = None
        self._chunks = chunks
        self._picked: dict[tuple[int | None, tuple[int, ...]], ChangeBatch] = {}
        self.rows = ChangeBatch.empty(channel.dtypes)
        self.reports = False
        """Whether the channel brought a clock in this batch."""
        self.late = 0
        self._restored = False

    @property
    def clock(self) -> int:
        """The clock that the channel has reached."""
        return int(self._record["clock"])

    @property
    def log(self) -> InputLog:
        """The log. The way in which rows end decides which of them it may drop."""
        if self._log is None:
            channel = self.channel
            netting: Netting | None = None
            if channel.window is not None:
                netting = partial(last_rows, channel.window)
            elif channel.kind == "explicit" and channel.owner is None:
                # With snapshots, a row may retract one that is only in the snapshot, so the log cannot be netted.
                netting = net_all
            horizon = channel.horizon if channel.kind == "time" else None
            counted = channel.window is not None or channel.may_expire
            self._log = InputLog(self._chunks, channel.dtypes, horizon, netting, self._record["log"], counted)
        return self._log

    def receive(self, messages: Sequence[Message]) -> StreamCounts:
        """Take in the messages of the batch, in an order that does not depend on the shuffle; returns counts of a stream."""
        self._restored = any(m.kind == RESTORED for m in messages)
        received = sorted(messages, key=lambda m: (m.kind, m.sender, m.seq))
        blobs = [pa.py_buffer(m.blob) for m in received if m.blob is not None]
        self._ended |= any(m.kind == END for m in received)
        rows, clock = decode_all(blobs, self.channel.dtypes), self._clock(received)
        return self.take(rows, clock, self._times_of(received))

    def restore(self, rows: ChangeBatch, clock: int) -> None:
        """Take in rows of a stage that was rebuilt: they replace those of the log."""
        self._restored = True
        self.take(rows, clock)

    def take(self, rows: ChangeBatch, clock: int, times: Times | None = None) -> StreamCounts:
        """Take in rows, a clock, and what a stage's output carries of time; returns counts of a stream."""
        before = self.clock
        self._times = times
        self._record["clock"] = max(before, clock)
        self.reports = True
        counts: StreamCounts = {}
        if self.channel.stream is not None:
            counts = count_late(rows.ts, before, self.clock)
            self.late = counts["late"]
            if self.late:
                rows = rows.take(np.flatnonzero(rows.ts >= before))
        self.rows = rows.sorted() if len(self.channel.readers) > 1 else rows
        return counts

    def _clock(self, received: Sequence[Message]) -> int:
        """The clock of a stage is that of its slowest shard; of a source, that of its rows or heartbeats, or of its slowest
        partition."""
        reported = self._record["reported"]
        if reported:
            for message in received:
                reported[message.sender] = max(reported[message.sender], message.clock)
            return int(min(reported))
        rows = [m.clock for m in received if m.kind == ROWS]
        beats = [m.clock for m in received if m.kind == HEARTBEAT]
        controls = [m.clock for m in received if m.kind in (CONTROL, END)]
        reports = [PartitionReport.from_text(m.marks) for m in received if m.marks is not None]
        if reports:
            clock = slowest(self._record.setdefault("marks", {}), reports)
            rows = rows if clock is None else [clock]
        return max([*(rows or beats), *controls])

    def _times_of(self, received: Sequence[Message]) -> Times | None:
        """The times of a stage are those of its slowest shard; a shard that sends nothing has those of its last batch."""
        found: dict[int, Times] = {}
        known = self._record.get("times", {})
        for message in received:
            if message.times is not None:
                times, sender = Times.from_text(message.times), str(message.sender)
                announced = max(times.announced, known.get(sender, _BEGINNING)[-1])
                known[sender] = [times.now, times.learnt, announced]
                found[message.sender] = replace(times, announced=announced)
        if not found:
            return None
        self._record["times"] = known
        senders = range(len(self._record["reported"]))
        return Times.slowest([found.get(one) or Times(*known.get(str(one), _BEGINNING)) for one in senders])

    def arrival(self, reader: Reader) -> Arrival | None:
        """What a reader gets in this batch; None without a report."""
        if not self.reports:
            return None
        return Arrival(self._read(reader, self.rows), self.clock, self._times or Times.at(self.clock, self._ended))

    def nothing(self, reader: Reader) -> ChangeBatch:
        """No rows, as a reader reads them."""
        return self._read(reader, self.rows).slice(0, 0)

    def live(self, reader: Reader, horizon: int, floor: int) -> ChangeBatch:
        """The rows of the log that a reader needs: those that have not ended before `floor`, if its windows end them."""
        rows = self.channel.live(self.loaded(), horizon, floor)
        return pick(reader, rows, len(self.channel.columns))

    def loaded(self) -> ChangeBatch:
        """The rows of the log, in order."""
        if self._loaded is None:
            self._loaded = ChangeBatch.empty(self.channel.dtypes) if self._restored else self.log.load()
        return self._loaded

    def preload(self, rows: ChangeBatch) -> None:
        """Give it the rows of its log, in order, so that it need not read them."""
        self._loaded = rows

    def _read(self, reader: Reader, rows: ChangeBatch) -> ChangeBatch:
        known = reader.filter, reader.columns
        if known not in self._picked:
            self._picked[known] = pick(reader, rows, len(self.channel.columns))
        return self._picked[known]

    def write(self, rows: ChangeBatch, floor: int, number: Callable[[], int]) -> None:
        """Append rows to the log, and drop those that ended before the floor."""
        self._loaded = None
        if self._restored:
            self.log.clear()
        self.log.append(rows, floor, number)

    def save(self) -> None:
        """Put the directory of the log into the header."""
        if self._log is not None:
            self._record["log"] = self._log.directory


def pick(reader: Reader, rows: ChangeBatch, width: int) -> ChangeBatch:
    """The rows and columns of a channel that belong to a reader; mask columns follow the first `width` columns."""
    positions = None
    if reader.filter is not None:
        mask = rows.columns[width + reader.filter // MASK_BITS].to_numpy(zero_copy_only=False)
        positions = np.flatnonzero(mask & (1 << reader.filter % MASK_BITS))
    columns = tuple(rows.columns[column] for column in reader.columns)
    picked = ChangeBatch(rows.ts, rows.exp, rows.sign, columns)
    return picked if positions is None or len(positions) == len(rows) else picked.take(positions)
