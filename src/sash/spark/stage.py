"""Stages as one stateful operator of Spark: `groupBy(label).transformWithStateInPandas`, one key per shard.

Stages that do not depend on one another share a processor. It runs the batch of each of its stages (`shard_batch.py`),
sends their changes as messages that are already partitioned for the stages that read them, and forwards messages for
later stages.

Processing is exactly-once by Spark's checkpoint: header, log and snapshot chunks are in its state store and commit with
the batch.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sash.errors import CheckpointError
from sash.physical.nodes import PhysicalPlan, Stage
from sash.plan.options import Mode
from sash.runtime.build import Relations
from sash.runtime.shard import Intake, Shard, partition
from sash.spark.batch_metrics import BatchMetrics, DelayHistogram
from sash.spark.gather import Gather
from sash.spark.messages import ROWS, Message, from_frame, to_frames
from sash.spark.output import reduce_changes
from sash.spark.scatter import Target, pack_rows
from sash.spark.shard_batch import ShardBatch
from sash.spark.workers import freeze_loaded_objects
from sash.state.arena import Arena
from sash.state.changes import ChangeBatch, concat
from sash.state.snapshot import LOG_BYTES

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql.streaming.stateful_processor import MapState

FORMAT = 6
"""The version of header, log and snapshot. Snapshots hold the operators' arrays, so a change of those is a new format."""

HEADER = (-1,)
"""The header's key among the chunks: a second state variable would take Spark some 12 ms per batch to set up."""


@dataclass(frozen=True)
class ShardLayout:
    """The labels of every stage's shards, and the inputs that read every stage's output."""

    labels: tuple[tuple[int, ...], ...]
    readers: tuple[tuple[Target, ...], ...]


class StageProcessor:
    """Runs the given stages of a plan. Only the last processor of a plan has a `gather`."""

    def __init__(
        self,
        plan: PhysicalPlan,
        stages: tuple[int, ...],
        layout: ShardLayout,
        relations: Relations,
        mode: Mode,
        key: tuple[int, ...] | None,
        gather: Gather | None,
    ) -> None:
        self.plan = plan
        self._stages = stages
        self._layout = layout
        self._relations = dict(relations)
        self._mode = mode
        self._key = key
        self._gather = gather
        self.log_bytes = LOG_BYTES

    def run(self, label: int, rows: Iterator[Any], chunks: MapState) -> Iterator[pd.DataFrame]:
        """Run the batch of one shard, whose state is in the chunks."""
        freeze_loaded_objects()
        received: dict[int, list[Message]] = {}
        forwarded: list[Message] = []
        for frame in rows:
            for message in from_frame(frame):
                if message.stage in self._stages:
                    received.setdefault(message.stage, []).append(message)
                else:
                    forwarded.append(message)
        yield from self._frames(forwarded)
        if not received:
            return
        header = _read_header(chunks)
        for index in sorted(received):
            batch = ShardBatch(self, self.plan.stages[index], label, header, chunks)
            yield from self._frames(batch.run(received[index]))
        chunks.updateValue(HEADER, (json.dumps(header).encode(),))

    def _frames(self, outgoing: Iterable[Message | ChangeBatch]) -> Iterator[pd.DataFrame]:
        """Pack messages for the next processor; the last processor unpacks the query's changes and batch metrics."""
        if self._gather is None:
            yield from to_frames(message for message in outgoing if isinstance(message, Message))
            return
        metrics = []
        for part in outgoing:
            if isinstance(part, ChangeBatch):
                yield self._gather.rows(part)
            elif part.metrics is not None:
                metrics.append(part.metrics)
        if metrics:
            yield self._gather.metrics(metrics)

    def outgoing(
        self, stage: Stage, number: int, shard: Shard, intake: Intake, metrics: BatchMetrics
    ) -> Iterator[Message | ChangeBatch]:
        """Yield the changes part by part: as messages to the stages that read them, or as the query's output."""
        parts = shard.release(intake)
        last = bool(self.plan.outputs_of(stage))
        if last and self._mode != "changes":
            parts = iter([reduce_changes(concat(list(parts)), self._mode, self._key)])
        delays = DelayHistogram()
        for part, changes in enumerate(parts):
            clock = shard.released
            for target in self._layout.readers[stage.index]:
                shards = partition(changes, target.keys, len(target.labels))
                for to, rows in zip(target.labels, shards, strict=True):
                    yield from pack_rows(rows, Message(to, target.stage, target.input, ROWS, number, part, clock))
            if last and len(changes):
                delays.record(changes, time.time_ns() // 1_000)
                metrics.rows_out += len(changes)
                yield changes
        if last:
            metrics.clock = shard.released
            metrics.delays = delays.buckets.tolist()
            metrics.delay_sum, metrics.delay_longest = delays.sum, delays.longest

    def build_shard(self, stage: Stage, number: int, arena: Arena) -> Shard:
        """Build the operators of the stage in the arena's memory."""
        width = len(self._layout.labels[stage.index])
        return Shard(self.plan, stage, arena.memory, self._relations, number, width)

    def shard_number(self, stage: Stage, label: int) -> int:
        """The number of the stage's shard with this label."""
        return self._layout.labels[stage.index].index(label)

    def senders(self, stage: Stage, index: int) -> int:
        """The number of shards that send to this input; 0 if it reads a source."""
        below = stage.inputs[index].leaf.stage
        return 0 if below is None else len(self._layout.labels[below])


def _read_header(chunks: MapState) -> dict[str, Any]:
    stored = chunks.getValue(HEADER)
    if stored is None:
        return {"format": FORMAT, "next": 0, "stages": {}}
    header: dict[str, Any] = json.loads(bytes(stored[0]))
    if header["format"] != FORMAT:
        raise CheckpointError(
            f"the state was written in format {header['format']}, but this version of Sash reads format {FORMAT}: start "
            "the query with a new checkpoint, or run it with the version that wrote this one"
        )
    return header
