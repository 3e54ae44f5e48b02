"""One batch of one shard: attach or rebuild the working state of its stages, run them, write what must survive.

The working state is in an arena, a cache on the worker's disk. Its nonce shows whether it is the state that Spark's state
store committed; otherwise it is rebuilt from snapshots and the logs of the channels. A worker keeps the stages that it
built: if it also ran the shard's last batch, it need not attach them again.
"""

from __future__ import annotations

import secrets
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sash.errors import CheckpointError
from sash.physical.channels import Channel, Reader
from sash.physical.nodes import Stage
from sash.runtime.shard import Arrival, Intake, Shard
from sash.spark.arenas import arena_directory, part_name
from sash.spark.batch_metrics import BatchMetrics, current_choices_of, operator_counts
from sash.spark.channel_batch import ChannelBatch
from sash.spark.channel_rows import ChannelRows
from sash.spark.header import Header
from sash.spark.messages import ANSWER, CAUGHT_UP, METRICS, Message
from sash.spark.stage_errors import naming_queries
from sash.spark.stage_parking import StageParking, counted, new_record
from sash.state.arena import Arena
from sash.state.changes import ChangeBatch, concat
from sash.state.snapshot import ArraySnapshot
from sash.time import BEGINNING

if TYPE_CHECKING:
    from pyspark.sql.streaming.stateful_processor import MapState

    from sash.spark.stage import StageProcessor

_BUILT: dict[Path, tuple[str, StageProcessor, dict[int, Shard]]] = {}
"""The stages that this process built in each arena, with the nonce under which it sealed it."""


class StateChunks:
    """The chunks of logs and snapshots in Spark's map state."""

    def __init__(self, state: MapState) -> None:
        self._state = state

    def get(self, number: int) -> bytes:
        value = self._state.getValue((number,))
        if value is None:
            raise CheckpointError(
                f"chunk {number} of the state is missing, so the checkpoint is damaged: start the query with a new one"
            )
        return bytes(value[0])

    def put(self, number: int, data: bytes) -> None:
        self._state.updateValue((number,), (data,))

    def remove(self, number: int) -> None:
        self._state.removeKey((number,))


class ShardBatch:
    """The batch of the stages of one level in the shard with this label. `run` updates the header."""

    def __init__(self, processor: StageProcessor, label: int, header: Header, state: MapState) -> None:
        self._processor = processor
        self._layout = processor.layout
        self._label = label
        self._header = header
        self._chunks = StateChunks(state)
        self._stages = [
            self._layout.plan.stages[index] for index in processor.stages if label in self._layout.labels[index]
        ]
        self._channels: dict[int, ChannelBatch] = {}
        self._accepted: dict[int, ChangeBatch] = {}
        self._rows: dict[int, ChannelRows] = {}
        self._metrics = BatchMetrics()
        self._parking = StageParking(processor, label, self._metrics, self._channel)

    def run(self, messages: Mapping[int, Sequence[Message]]) -> Iterator[Message | ChangeBatch]:
        """Process the messages of the batch, by channel; yield its changes, then its metrics."""
        for index, received in messages.items():
            self._count(index, self._channel(index).receive(received))
        nonce = self._header["nonce"]
        directory = arena_directory(self._processor.level, self._label)
        with Arena(directory, nonce) as arena:
            built = _BUILT.pop(directory, None)
            shards: dict[int, Shard] = {}
            if built is not None and not arena.fresh and built[:2] == (nonce, self._processor):
                shards = built[2]
            for index in self._processor.common.keys() & messages.keys():
                self._common(self._channel(index), arena)
            ran: list[tuple[Stage, Shard, Intake]] = []
            for stage in self._stages:
                yield from self._run_stage(stage, arena, shards, ran)
            self._write(arena, ran)
            self._measure(arena, ran)
            nonce = self._header["nonce"] = secrets.token_hex(16)
            arena.seal(nonce)
            _BUILT[directory] = nonce, self._processor, shards
        yield Message(self._label, METRICS, metrics=self._metrics.to_json())

    def _run_stage(
        self, stage: Stage, arena: Arena, shards: dict[int, Shard], ran: list[tuple[Stage, Shard, Intake]]
    ) -> Iterator[Message | ChangeBatch]:
        inputs = self._processor.inputs[stage.index]
        record = self._record(stage)
        if stage.index in self._layout.parked:
            shards.pop(stage.index, None)
            known = self._header["stages"].setdefault(self._identity(stage), new_record(stage))
            yield from self._parking.stand(stage, known)
            return
        behind = record is not None and record.get("parked", False)
        if record is not None and behind and stage.index in self._layout.rebuilt:
            yield from self._rebuild(stage, record, arena, shards, ran)
            return
        arrivals: list[Arrival | None] = [None] * len(stage.inputs)
        for index, (channel, reader) in inputs.items():
            if channel.index in self._channels or behind:
                arrivals[index] = self._arrival(channel, reader, record, behind)
                if stage.inputs[index].common:
                    arrivals[index] = self._with_holder(arrivals[index], stage, channel, record, arena)
        if not any(arrivals):
            return
        if record is not None and behind:
            del record["parked"]
        number = self._layout.labels[stage.index].index(self._label)
        spent = -time.perf_counter()
        with naming_queries(sorted(self._layout.queries[stage.index])):
            # What this process has mapped stays readable if the file is deleted; the next process would miss it.
            shard = shards.get(stage.index) if arena.has(self._part(stage, record)) else None
            shard = shard or self._build(stage, number, arena, record, behind)
            shards[stage.index] = shard
            intake = shard.take(arrivals)
            handed: list[ChangeBatch] = []
            for part in self._processor.outgoing(stage, number, shard, intake, self._metrics, handed):
                # While a part is on its way, the time is Spark's.
                spent += time.perf_counter()
                yield part
                spent -= time.perf_counter()
        for channel in self._processor.local[stage.index]:
            self._channel(channel.index).take(concat(handed), shard.released, shard.times)
        if behind:
            for output in self._layout.plan.outputs_of(stage):
                yield Message(self._label, ANSWER, CAUGHT_UP, number, 0, output, shard.released)
        ran.append((stage, shard, intake))
        spent += time.perf_counter()
        self._metrics.stages[str(stage.index)] = {"seconds": round(spent, 6), "clock": shard.released}

    def _rebuild(
        self,
        stage: Stage,
        record: dict[str, Any],
        arena: Arena,
        shards: dict[int, Shard],
        ran: list[tuple[Stage, Shard, Intake]],
    ) -> Iterator[Message]:
        """Rebuild a stage that was parked. All of its shards do so in the first batch that brings it something."""
        inputs = self._processor.inputs[stage.index].values()
        if not any(self._channel(channel.index).reports for channel, _ in inputs):
            return
        begun = time.perf_counter()
        del record["parked"]
        arena.clear(self._part(stage, record))
        record["part"] = record.get("part", 0) + 1
        with naming_queries(sorted(self._layout.queries[stage.index])):
            memory = arena.memory(self._part(stage, record))
            shard, answer, arrivals = self._parking.rebuild(stage, record, memory)
        yield from self._parking.send(stage, record, shard, answer)
        accepted = [
            rows if arrival is None else arrival.rows
            for rows, arrival in zip(self._parking.nothing(stage), arrivals, strict=True)
        ]
        shards[stage.index] = shard
        ran.append((stage, shard, Intake(tuple(accepted), 0, (), shard.clock)))
        spent = time.perf_counter() - begun
        self._metrics.stages[str(stage.index)] = {"seconds": round(spent, 6), "clock": shard.released}

    def _arrival(self, channel: Channel, reader: Reader, record: dict[str, Any] | None, behind: bool) -> Arrival | None:
        """What an input gets. A stage that was parked has the rows of its logs, and needs the clocks."""
        found = self._channel(channel.index)
        arrival = found.arrival(reader)
        if arrival is None and behind and found.clock > BEGINNING:
            return Arrival(found.nothing(reader), found.clock)
        if arrival is None or record is None or "since" not in record:
            return arrival
        return replace(arrival, rows=counted(channel, record, arrival.rows))

    def _with_holder(
        self, arrival: Arrival | None, stage: Stage, channel: Channel, record: dict[str, Any] | None, arena: Arena
    ) -> Arrival | None:
        """What an input gets, with the rows that its channel keeps."""
        if arrival is None:
            return None
        rows = self._common(self._channel(channel.index), arena)
        return replace(arrival, holder=rows.holder(stage.index, (record or {}).get("since")))

    def _common(self, found: ChannelBatch, arena: Arena) -> ChannelRows:
        """The rows that a channel keeps, with those of this batch. If they are not in the arena, they come from its log."""
        index = found.channel.index
        if index not in self._rows:
            common = self._processor.common[index]
            there = arena.has(common.name)
            rows = self._rows[index] = ChannelRows(common, arena.memory(common.name))
            rows.append(found.rows if there else concat([found.loaded(), found.rows]), found.clock)
        return self._rows[index]

    def _build(self, stage: Stage, number: int, arena: Arena, record: dict[str, Any] | None, behind: bool) -> Shard:
        """Attach the stage to its part of the arena; rebuild that if the arena is new or damaged, or the stage was parked."""
        # A stage that has not run since the arena was made has no part in it.
        there = arena.has(self._part(stage, record))
        if record is not None and (behind or (not there and arena.exists(self._part(stage, record)))):
            # The new part has another path, so that no process takes its files for those that it has mapped.
            arena.clear(self._part(stage, record))
            record["part"] = record.get("part", 0) + 1
            there = False
        memory = arena.memory(self._part(stage, record))
        rebuild = record is not None and (arena.fresh or behind or not there)
        if rebuild:
            assert record is not None
            ArraySnapshot(self._chunks, record["snapshot"]).load(memory)
        shard = self._processor.build_shard(stage, number, memory)
        if rebuild:
            assert record is not None
            live = self._parking.live(stage, record)
            shard.restore(live, record["clocks"], record.get("reached"), record.get("learnt"))
            self._metrics.rebuilt += 1
        return shard

    def _write(self, arena: Arena, ran: list[tuple[Stage, Shard, Intake]]) -> None:
        """Write the accepted rows and the clocks to the state store."""
        for stage, shard, intake in ran:
            record = self._header["stages"].setdefault(self._identity(stage), {"snapshot": None})
            record["clocks"] = [int(clock) for clock in shard.clocks]
            record["clock"], record["floor"] = shard.clock, int(shard.floor)
            record["reached"] = shard.reached
            record["learnt"] = shard.learnt
            for index, (channel, _) in self._processor.inputs[stage.index].items():
                if channel.stream is None and len(channel.readers) == 1:
                    self._accepted[channel.index] = intake.accepted[index]
        for index, found in self._channels.items():
            rows = self._accepted.get(index)
            floor = self._floor(found)
            found.write(self._unread(found) if rows is None else rows, floor, self._next_chunk)
            if index in self._rows:
                self._rows[index].drop_ended(floor)
        for stage, _, _ in ran:
            self._snapshot(stage, arena)
        for found in self._channels.values():
            found.save()

    def _unread(self, channel: ChannelBatch) -> ChangeBatch:
        """The rows as they arrived. Updates that wait for a parked stage do not take effect before the clock it has reached."""
        rows, (reader, *others) = channel.rows, channel.channel.readers
        stage = self._layout.plan.stages[reader.stage]
        leaf = stage.inputs[reader.input].leaf
        if others or channel.channel.stream is not None or not (leaf.follows or channel.channel.kind == "endless"):
            return rows
        reached = (self._record(stage) or {}).get("clock", BEGINNING)
        return ChangeBatch(np.maximum(rows.ts, reached), rows.exp, rows.sign, rows.columns)

    def _floor(self, channel: ChannelBatch) -> int:
        """No reader on this level needs a row that ended before this."""
        floors = []
        for reader in channel.channel.readers:
            stage, levels, labels = self._layout.plan.stages[reader.stage], self._layout.levels, self._layout.labels
            if levels[stage.index] == self._processor.level and self._label in labels[stage.index]:
                record = self._record(stage)
                lost = stage.index in self._layout.lost
                kept = int(BEGINNING) if record is None else record["floor"]
                floors.append(self._parking.clock(stage) if lost else kept)
        return min(floors)

    def _snapshot(self, stage: Stage, arena: Arena) -> None:
        """Replace the logs of a stage by a snapshot, if it needs them and one is due."""
        owned = [
            self._channel(channel.index)
            for channel, _ in self._processor.inputs[stage.index].values()
            if channel.owner == stage.index
        ]
        record = self._record(stage)
        if not owned or record is None:
            return
        snapshot = ArraySnapshot(self._chunks, record["snapshot"])
        if snapshot.due(sum(channel.log.size for channel in owned), self._processor.log_bytes):
            snapshot.write(arena.memory(self._part(stage, record)), self._next_chunk)
            for channel in owned:
                channel.log.clear()
            record["snapshot"] = snapshot.directory

    def _measure(self, arena: Arena, ran: list[tuple[Stage, Shard, Intake]]) -> None:
        metrics = self._metrics
        common: Counter[int] = Counter()
        for index, kept in self._rows.items():
            size = sum(arena.sizes(self._processor.common[index].name).values())
            metrics.state_rows += kept.rows
            metrics.state_bytes += size
            common.update({reader.stage: size for reader in self._processor.common[index].readers})
        for stage, shard, intake in ran:
            sizes = arena.sizes(self._part(stage, self._record(stage)))
            rows, held = shard.state_rows, sum(sizes.values())
            metrics.operators |= operator_counts(stage, intake.counts, shard.operator_rows, shard.operator_bytes(sizes))
            metrics.current_choice |= current_choices_of(stage, intake.counts)
            metrics.switches += shard.switches
            metrics.late += intake.late
            metrics.state_rows += rows
            metrics.state_bytes += held
            metrics.bad += sum(counts.refused for counts in intake.counts.values())
            metrics.stages[str(stage.index)] |= {"state_rows": rows, "state_bytes": held + common[stage.index]}

    def _count(self, index: int, counts: dict[str, int]) -> None:
        """Count late rows: of a job, once per stream."""
        channel = self._channel(index)
        stream = channel.channel.stream
        first = self._processor.counted.get(stream or "") == index
        level = self._processor.level
        first &= level == min(self._layout.levels_of(channel.channel))
        first &= bool(channel.channel.keys) or self._layout.read_by(channel.channel, level)[0] == self._label
        if stream is not None and first:
            self._metrics.streams[stream] = counts
        if first or not self._layout.shared:
            self._metrics.late += channel.late

    def _channel(self, index: int) -> ChannelBatch:
        if index not in self._channels:
            channel = self._layout.channels.channels[index]
            record = self._header["channels"].setdefault(channel.identity, {})
            senders, bounded = self._processor.senders(channel), self._processor.bounded
            self._channels[index] = ChannelBatch(channel, senders, self._chunks, record, bounded=bounded)
        return self._channels[index]

    def _identity(self, stage: Stage) -> str:
        return self._layout.channels.stages[stage.index]

    def _record(self, stage: Stage) -> dict[str, Any] | None:
        found: dict[str, Any] | None = self._header["stages"].get(self._identity(stage))
        return found

    def _part(self, stage: Stage, record: Mapping[str, Any] | None) -> str:
        """The name of the stage's part of the arena. A stage that was parked gets a new one."""
        return part_name(stage, self._identity(stage), record)

    def _next_chunk(self) -> int:
        self._header["next"] += 1
        return int(self._header["next"])
