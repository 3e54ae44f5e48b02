"""Stages as one stateful operator of Spark: `groupBy(label).transformWithStateInPandas`, one key per shard.

The stages of a level share a processor. It runs their batch (`shard_batch.py`), sends their changes as messages that are
already partitioned for the stages that read them, and forwards messages for later levels.

Processing is exactly-once by Spark's checkpoint: header, log and snapshot chunks are in its state store and commit with
the batch.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from sash.operators.output_modes import reduce_changes
from sash.physical.channels import Channel, StageRows
from sash.physical.common_rows import common_rows
from sash.physical.nodes import Stage
from sash.runtime.build import Relations
from sash.runtime.shard import Intake, Shard
from sash.spark.batch_metrics import BatchMetrics, DelayHistogram
from sash.spark.gather import Gather
from sash.spark.header import read_header, write_header
from sash.spark.layout import Layout
from sash.spark.messages import ROWS, Message, from_frame, to_frames
from sash.spark.output import OutputMode, output_messages
from sash.spark.rejected import CANDIDATES, RejectedOutput, late_rows
from sash.spark.scatter import scatter_rows
from sash.spark.shard_batch import ShardBatch
from sash.spark.workers import freeze_loaded_objects
from sash.state.changes import ChangeBatch, concat
from sash.state.memory import Memory
from sash.state.snapshot import LOG_BYTES

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql.streaming.stateful_processor import MapState


class StageProcessor:
    """Runs the stages of one level of a plan. Only the last processor of a query that runs alone has a `gather`.

    `bounded` is whether any batch may be the last one.
    """

    def __init__(
        self,
        layout: Layout,
        level: int,
        relations: Relations,
        outputs: Sequence[OutputMode],
        gather: Gather | None,
        *,
        bounded: bool = False,
        rejected: Sequence[RejectedOutput] = (),
    ) -> None:
        self.layout = layout
        self.level = level
        self.stages = layout.stages_of(level)
        self._relations = dict(relations)
        self._outputs = tuple(outputs)
        self._gather = gather
        self.bounded = bounded
        self.log_bytes = LOG_BYTES
        channels = layout.channels.channels
        self.inputs = {stage: layout.channels.inputs_of(stage) for stage in self.stages}
        self.common = {
            index: one
            for index, one in common_rows(layout.plan, layout.channels).items()
            if any(reader.stage in self.inputs for reader in one.readers)
        }
        self.targets = {channel.index: layout.target(channel) for channel in channels}
        self.counted = layout.counted()
        self._rejecting = {one.position: one.stream for one in rejected}
        self._lowest = {channel.index: min(layout.levels_of(channel)) for channel in channels}
        self._taken = {c.index: layout.read_by(c, level) for c in channels if level in layout.sent_to(c)}
        self._later = {channel.index for channel in channels if max(layout.levels_of(channel)) > level}
        fed = {stage: [c for c in channels if _sends(c, stage)] for stage in self.stages}
        self.sent = {stage: [c for c in found if layout.sent_to(c)] for stage, found in fed.items()}
        self.local = {stage: [c for c in found if layout.in_memory(c, level)] for stage, found in fed.items()}

    def run(self, label: int, rows: Iterator[Any], chunks: MapState) -> Iterator[pd.DataFrame]:
        """Run the batch of one shard, whose state is in the chunks."""
        freeze_loaded_objects()
        received: dict[int, list[Message]] = {}
        forwarded: list[Message] = []
        candidates: list[Message] = []
        for frame in rows:
            for message in from_frame(frame):
                if label in self._taken.get(message.channel, ()):
                    received.setdefault(message.channel, []).append(message)
                if message.channel == CANDIDATES and self._lowest[message.kind] == self.level:
                    candidates.append(message)
                elif message.channel < 0 or message.channel in self._later:
                    forwarded.append(message)
        yield from self._frames(forwarded)
        if not received:
            return
        header = read_header(chunks, self.layout.channels)
        identities = {channel.index: channel.identity for channel in self.layout.channels.channels}
        yield from self._frames(list(late_rows(label, candidates, identities, self._rejecting, header)))
        yield from self._frames(ShardBatch(self, label, header, chunks).run(received))
        write_header(chunks, header)

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
        self,
        stage: Stage,
        number: int,
        shard: Shard,
        intake: Intake,
        metrics: BatchMetrics,
        handed: list[ChangeBatch],
    ) -> Iterator[Message | ChangeBatch]:
        """Yield the changes part by part: as messages to the stages that read them, or as a query's output.

        Changes for readers in the same shard are added to `handed`.
        """
        outputs = self.layout.plan.outputs_of(stage)
        sent, local = self.sent[stage.index], bool(self.local[stage.index])
        parts: list[ChangeBatch] = []
        for part, changes in enumerate(shard.release(intake)):
            for channel in sent:
                times = None if shard.times is None else shard.times.to_text()
                message = Message(0, channel.index, ROWS, number, part, clock=shard.released, times=times)
                yield from scatter_rows(changes, self.targets[channel.index], message)
            if local:
                handed.append(changes)
            if outputs and self._streams(outputs):
                yield from self._output(outputs[0], changes, shard, number, metrics)
            elif outputs:
                parts.append(changes)
        if parts:
            together = concat(parts)
            reduced: dict[OutputMode, ChangeBatch] = {}
            for output in outputs:
                mode = self._outputs[output]
                if mode not in reduced:
                    reduced[mode] = reduce_changes(together, mode.mode, mode.key)
                yield from self._output(output, reduced[mode], shard, number, metrics)
        for output in outputs:
            metrics.outputs.setdefault(str(output), {})["clock"] = shard.released
        if outputs:
            metrics.clock = min(shard.released, shard.released if metrics.clock is None else metrics.clock)

    def _streams(self, outputs: list[int]) -> bool:
        """Whether changes leave as they are made, in typed rows: those of a query that runs alone, at every instant."""
        return self._gather is not None and all(self._outputs[output].mode == "changes" for output in outputs)

    def _output(
        self, output: int, changes: ChangeBatch, shard: Shard, number: int, metrics: BatchMetrics
    ) -> Iterator[Message | ChangeBatch]:
        """Output changes of a query, and count them."""
        if not len(changes):
            return
        delays = DelayHistogram()
        delays.record(changes, time.time_ns() // 1_000)
        metrics.count_output(output, len(changes), delays)
        if self._gather is not None:
            yield changes
            return
        label = self.layout.labels[self.layout.plan.outputs[output].stage][number]
        yield from output_messages(changes, output, number, label, shard.released)

    def build_shard(self, stage: Stage, number: int, memory: Memory) -> Shard:
        """Build the operators of the stage in a memory."""
        width = len(self.layout.labels[stage.index])
        return Shard(self.layout.plan, stage, memory, self._relations, number, width)

    def senders(self, channel: Channel) -> int:
        """The number of shards that send messages of a channel; 0 if it reads a source, or a stage of the same shard."""
        source = channel.source
        if not isinstance(source, StageRows) or self.layout.in_memory(channel, self.level):
            return 0
        return len(self.layout.labels[source.stage])


def _sends(channel: Channel, stage: int) -> bool:
    return isinstance(channel.source, StageRows) and channel.source.stage == stage
