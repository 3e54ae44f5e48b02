"""Rows that are dropped, kept for their owner: bad ones and late ones, as further outputs of a job.

A bad row has no time, or one too far in the future. A row is kept as text, with the stream, the reason, and where it came
from. Scatter sends the bad rows; of all other rows it sends the texts to the shards, which know the clock that the stream had before the batch, and pass the late ones on.
They leave with the batch, like the changes of a query, so a sink gets them once per batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from sash.errors import BadRowError
from sash.plan.types import STRING, TIMESTAMP, Field
from sash.spark.messages import Message
from sash.spark.output import output_messages
from sash.state.changes import ChangeBatch, concat
from sash.state.encoding import decode, encode
from sash.state.memory import Ints
from sash.time import BEGINNING, FOREVER

if TYPE_CHECKING:
    from sash.spark.batch_metrics import BatchMetrics
    from sash.spark.header import Header
    from sash.spark.sinks.base import Sink
    from sash.spark.sources.inputs import QueryInputs

CANDIDATES = -7
"""The channel of a message with texts of rows that may be late: `output` is where they go, `kind` the channel that knows the
clock of their stream."""

RAW, ORIGIN, BATCH_TIME = "_raw", "_origin", "_now"
"""Columns of a scan: a row's text, where it came from, and the time of the batch, which Spark records."""

BATCH_MICROS = "unix_micros(current_timestamp())"
"""The time of a batch in Spark SQL: that which Spark has recorded, also when the batch is repeated."""

COLUMNS = (
    Field("stream", STRING),
    Field("reason", STRING),
    Field("time", TIMESTAMP),
    Field("origin", STRING),
    Field("row", STRING),
)
"""What is kept of a row; its `_ts` is the time of the batch."""

NO_TIME, AHEAD, LATE = "no time", "ahead", "late"
_CANDIDATE = [pa.int64(), STRING, STRING]


@dataclass(frozen=True)
class Rejects:
    """The sinks of the rows of a stream that are dropped, and expressions for the text and the origin of a row.

    `most_bad` is the largest share of rows without a time with which the job goes on.
    """

    bad: Sink | None
    late: Sink | None
    text: str
    origin: str
    most_bad: float | None = None


@dataclass(frozen=True)
class RejectedOutput:
    """An output of a job with rejected rows: its name, its position, and its sink."""

    name: str
    stream: str
    reason: str
    position: int
    sink: Sink


def rejected_outputs(streams: Iterable[str], inputs: QueryInputs, first: int) -> list[RejectedOutput]:
    """The outputs of rejected rows of these streams, at positions from `first` on."""
    found: list[RejectedOutput] = []
    for name in sorted({stream.lower() for stream in streams}):
        source = inputs.streams.get(name)
        rejects = None if source is None else source.rejects
        for kind, reason in (("bad", NO_TIME), ("late", LATE)) if rejects is not None else ():
            sink = getattr(rejects, kind)
            if sink is not None:
                found.append(RejectedOutput(f"{kind} rows of {name}", name, reason, first + len(found), sink))
    return found


_LEAST = 1_000
"""The share of bad rows is of at least so many rows, so that the first bad one is not too many."""


@dataclass
class BadRowLimit:
    """Counts the rows of a stream since the job was started, and raises BadRowError when too many of them have no time."""

    stream: str
    percent: float
    where: str
    rows: int = 0
    bad: int = 0

    def check(self, total: BatchMetrics) -> None:
        """Count a batch."""
        counts = total.streams.get(self.stream, {})
        self.rows += counts.get("rows_in", 0)
        self.bad += counts.get("bad", 0)
        if counts.get("bad", 0) and self.bad * 100 > self.percent * max(self.rows, _LEAST):
            raise BadRowError(
                f"{self.bad:,} of {self.rows:,} rows of stream {self.stream} have no time, more than MAX BAD ROWS "
                f"{self.percent:g} PERCENT{self.where}"
            )


def bad_row_limits(streams: Iterable[str], inputs: QueryInputs) -> dict[str, BadRowLimit]:
    """The limits of the streams that have one."""
    found: dict[str, BadRowLimit] = {}
    for stream in streams:
        rejects = inputs.streams[stream.lower()].rejects
        if rejects is not None and rejects.most_bad is not None:
            target = "" if rejects.bad is None else ", ".join(value for _, value in rejects.bad.target[1])
            where = f": see {target}" if target else ": BAD ROWS INTO keeps them"
            found[stream] = BadRowLimit(stream, rejects.most_bad, where)
    return found


@dataclass(frozen=True)
class RejectPositions:
    """Where scatter sends the rejected rows of a stream: to outputs, by their positions.

    Late ones are found by the shards with these `labels`, which know the clock by `channel`.
    """

    stream: str
    bad: int | None
    late: int | None
    channel: int
    labels: tuple[int, ...]

    @staticmethod
    def of(
        stream: str, outputs: Iterable[RejectedOutput], channel: int, labels: tuple[int, ...]
    ) -> RejectPositions | None:
        """The positions of a stream's outputs; None if it has none."""
        found = {one.reason: one.position for one in outputs if one.stream == stream.lower()}
        return RejectPositions(stream, found.get(NO_TIME), found.get(LATE), channel, labels) if found else None

    def bad_rows(self, batch: pa.RecordBatch, reason: str, time: pa.Array) -> ChangeBatch:
        """Bad rows as an output has them, with their times in microseconds."""
        now = batch.column(BATCH_TIME).to_numpy(zero_copy_only=False)
        return _rejected(now, self.stream, reason, time.cast(TIMESTAMP), batch.column(ORIGIN), batch.column(RAW))


def _rejected(now: Ints, stream: str, reason: str, time: pa.Array, origin: pa.Array, row: pa.Array) -> ChangeBatch:
    names = [pa.array([text] * len(now), STRING) for text in (stream, reason)]
    return ChangeBatch.explicit(now.copy(), np.ones(len(now), np.int8), [*names, time, origin, row])


def candidates(batch: pa.RecordBatch, times: Ints, to: RejectPositions, sender: int, seq: int) -> Message:
    """The texts of rows, on their way to one of the shards."""
    assert to.late is not None
    given = tuple(batch.column(name) for name in (BATCH_TIME, ORIGIN, RAW))
    rows = ChangeBatch(times, np.full(len(times), FOREVER), np.ones(len(times), np.int8), given)
    label = to.labels[(sender + seq) % len(to.labels)]
    return Message(label, CANDIDATES, to.channel, sender, seq, to.late, blob=encode(rows).to_pybytes())


def late_rows(
    label: int, messages: Sequence[Message], identities: Mapping[int, str], streams: Mapping[int, str], header: Header
) -> Iterator[Message]:
    """The late ones among candidates, as messages to outputs: those before the clock that their stream had so far.

    `identities` are those of channels, and `streams` those of outputs, by position.
    """
    for position in sorted({message.output for message in messages}):
        mine = [message for message in messages if message.output == position]
        record = header["channels"].get(identities[mine[0].kind], {})
        parts = [decode(pa.py_buffer(message.blob)) for message in mine]
        rows = concat([ChangeBatch.empty(_CANDIDATE), *parts])
        rows = rows.take(np.flatnonzero(rows.ts < record.get("clock", int(BEGINNING)))).sorted()
        if len(rows):
            now = rows.columns[0].to_numpy(zero_copy_only=False)
            time = pa.array(rows.ts).cast(TIMESTAMP)
            found = _rejected(now, streams[position], LATE, time, rows.columns[1], rows.columns[2])
            yield from output_messages(found, position, label, label, 0)
