"""Stages of parked queries in one batch of one shard: their last answer is kept, and they are rebuilt when they go on.

When a stage has stopped, the answer that its queries' sinks have is computed once more from its logs, for the driver to keep.
A stage whose rows are no longer in the logs is rebuilt from those that are live now. Its answer then goes to the driver as a
whole, and to the stages that read it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from sash.operators.current_rows import CurrentRows
from sash.physical.channels import Channel, needs_snapshots
from sash.physical.nodes import Stage
from sash.runtime.shard import Arrival, Shard
from sash.spark.batch_metrics import BatchMetrics
from sash.spark.causes import one_line
from sash.spark.channel_batch import ChannelBatch
from sash.spark.messages import ANSWER, PARKED, RESTORED, RESUMED, ROWS, Message
from sash.spark.scatter import pack_rows, scatter_rows
from sash.state.changes import ChangeBatch, concat
from sash.state.memory import HeapMemory, Memory
from sash.time import BEGINNING

if TYPE_CHECKING:
    from sash.spark.stage import StageProcessor

Record = dict[str, Any]
"""What the header has of a stage. It is `parked` from the first batch without it until it goes on; `held` are the bytes of
its logs then. If rows were not logged while it was parked, those before `since` do not count."""


class StageParking:
    """The stages of one shard that stand still or are rebuilt; `channel` has the channels of the batch."""

    def __init__(
        self, processor: StageProcessor, label: int, metrics: BatchMetrics, channel: Callable[[int], ChannelBatch]
    ) -> None:
        self._processor = processor
        self._layout = processor.layout
        self._label = label
        self._metrics = metrics
        self._channel = channel

    def stand(self, stage: Stage, record: Record) -> Iterator[Message]:
        """Let a stage stand still: send its answer, if this is the first batch without it, and the bytes that wait for it."""
        size = sum(self._channel(channel.index).log.size for channel, _ in self._inputs(stage))
        if not record.get("parked"):
            record["parked"], record["held"] = True, size
            if not needs_snapshots(self._layout.plan, stage):
                yield from self._answer(stage, record)
            # Without a message, the stages above that read only this one would not run, and not send their answers.
            yield from self._announce(stage, int(BEGINNING))
        self._metrics.stages[str(stage.index)] = {"held_bytes": max(0, size - record.get("held", 0))}
        if stage.index in self._layout.lost and self._reported(stage):
            yield from self._announce(stage, self.clock(stage))

    def rebuild(self, stage: Stage, record: Record, memory: Memory) -> tuple[Shard, ChangeBatch, list[Arrival | None]]:
        """Rebuild a stage at the clocks of its channels; return it with its answer, and what arrived in this batch."""
        if stage.index in self._layout.emptied:
            record["since"] = self._next_time(stage)
        clocks = [int(BEGINNING)] * len(stage.inputs)
        live = self.nothing(stage)
        arrivals: list[Arrival | None] = [None] * len(stage.inputs)
        floor = self.clock(stage)
        for index, (channel, reader) in self._processor.inputs[stage.index].items():
            found = self._channel(channel.index)
            clocks[index] = found.clock
            arrivals[index] = arrival = found.arrival(reader)
            rows = found.live(reader, stage.inputs[index].leaf.horizon, floor)
            if arrival is not None:
                rows = concat([rows, channel.live(arrival.rows, stage.inputs[index].leaf.horizon, floor)])
            live[index] = counted(channel, record, rows)
        shard = self._processor.build_shard(stage, self._number(stage), memory)
        current = CurrentRows()
        for changes in shard.replay(live, clocks):
            current.add(changes)
        current.add(shard.flush())
        return shard, _rows(current, stage, shard), arrivals

    def send(self, stage: Stage, record: Record, shard: Shard, answer: ChangeBatch) -> Iterator[Message]:
        """Send the answer of a stage that was rebuilt to the driver, and to the stages that read it."""
        number = self._number(stage)
        for output in self._layout.plan.outputs_of(stage):
            since = record.get("since")
            message = Message(
                self._label, ANSWER, RESUMED, number, 0, output, shard.released, None if since is None else str(since)
            )
            yield from pack_rows(answer, message)
            self._metrics.outputs.setdefault(str(output), {})["clock"] = shard.released
        for channel in self._processor.sent[stage.index]:
            message = Message(0, channel.index, RESTORED, number, 0, clock=shard.released)
            yield from scatter_rows(answer, self._processor.targets[channel.index], message)
        for channel in self._processor.local[stage.index]:
            self._channel(channel.index).restore(answer, shard.released)

    def clock(self, stage: Stage) -> int:
        """The clock that a stage would have reached: no row that ended before is needed to rebuild it."""
        clocks = {
            index: self._channel(channel.index).clock
            for index, (channel, _) in self._processor.inputs[stage.index].items()
        }
        awaited = [clock for index, clock in clocks.items() if not stage.inputs[index].leaf.follows]
        clock = min(awaited or clocks.values(), default=int(BEGINNING))
        return clock if stage.tau is None or clock <= BEGINNING else (clock - 1) // stage.tau * stage.tau + 1

    def live(self, stage: Stage, record: Record) -> list[ChangeBatch]:
        """The rows of the logs that a stage needs, to be rebuilt as it was."""
        live = self.nothing(stage)
        for index, (channel, reader) in self._processor.inputs[stage.index].items():
            horizon = stage.inputs[index].leaf.horizon
            rows = self._channel(channel.index).live(reader, horizon, record["floor"])
            live[index] = counted(channel, record, rows)
        return live

    @staticmethod
    def nothing(stage: Stage) -> list[ChangeBatch]:
        """No rows, for each input."""
        return [ChangeBatch.empty([field.dtype for field in given.leaf.schema]) for given in stage.inputs]

    def _answer(self, stage: Stage, record: Record) -> Iterator[Message]:
        outputs = self._layout.plan.outputs_of(stage)
        if not outputs:
            return
        number = self._number(stage)
        answer, problem = ChangeBatch.empty([field.dtype for field in stage.root.schema]), None
        if record.get("clock", 0) > BEGINNING:
            try:
                shard, current = self._processor.build_shard(stage, number, HeapMemory()), CurrentRows()
                known = record["clocks"], record.get("reached"), record.get("learnt")
                for changes in shard.replay(self.live(stage, record), *known):
                    current.add(changes)
                answer = _rows(current, stage, shard)
            except Exception as error:  # noqa: BLE001  (rows that have ended are missing, so that operators may fail here)
                problem = one_line(f"{type(error).__name__}: {error}")
        for output in outputs:
            message = Message(self._label, ANSWER, PARKED, number, 0, output, record.get("clock", 0), problem)
            yield from pack_rows(answer, message)

    def _announce(self, stage: Stage, clock: int) -> Iterator[Message]:
        """Send a clock without rows, so that the logs of the stages above need not wait, either."""
        nothing = ChangeBatch.empty([field.dtype for field in stage.root.schema])
        for channel in self._processor.sent[stage.index]:
            message = Message(0, channel.index, ROWS, self._number(stage), 0, clock=clock)
            yield from scatter_rows(nothing, self._processor.targets[channel.index], message)
        for channel in self._processor.local[stage.index]:
            self._channel(channel.index).take(nothing, clock)

    def _next_time(self, stage: Stage) -> int:
        """The first instant of which no row has arrived."""
        times = [self.clock(stage)]
        for channel, _ in self._inputs(stage):
            found = self._channel(channel.index)
            times += [int(rows.ts.max()) + 1 for rows in (found.rows, found.log.load()) if len(rows)]
        return max(times)

    def _reported(self, stage: Stage) -> bool:
        return any(self._channel(channel.index).reports for channel, _ in self._inputs(stage))

    def _inputs(self, stage: Stage) -> list[tuple[Channel, Any]]:
        return list(self._processor.inputs[stage.index].values())

    def _number(self, stage: Stage) -> int:
        return self._layout.labels[stage.index].index(self._label)


def counted(channel: Channel, record: Record | None, rows: ChangeBatch) -> ChangeBatch:
    """The rows of a channel that count for a stage: of a stream, those since it began again."""
    since = None if record is None else record.get("since")
    if since is None or channel.stream is None or not len(rows) or rows.ts.min() >= since:
        return rows
    return rows.take(np.flatnonzero(rows.ts >= since))


def new_record(stage: Stage) -> Record:
    """The record of a stage that has not run yet."""
    beginning = int(BEGINNING)
    clocks = [beginning] * len(stage.inputs)
    return {"clocks": clocks, "clock": beginning, "floor": beginning, "reached": None, "snapshot": None}


def _rows(current: CurrentRows, stage: Stage, shard: Shard) -> ChangeBatch:
    rows = current.rows(shard.released)
    return ChangeBatch.empty([field.dtype for field in stage.root.schema]) if rows is None else rows
