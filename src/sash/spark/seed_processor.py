"""The first batch of a generation: shards write the logs that they are given, and stages that are not kept are restored.

Each level is a stateful operator of Spark, as in every batch (`stage.py`). A kept stage needs no operators: the next batch
rebuilds them from its logs. The others are restored here, at the clocks of their inputs. Their answers go to the outputs
that change, and to the channels of later stages that begin with them.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from sash.operators.current_rows import CurrentRows
from sash.physical.channels import Channel, StageRows
from sash.physical.nodes import Stage
from sash.runtime.shard import Shard, partition
from sash.spark.channel_batch import ChannelBatch
from sash.spark.handover import NOTICE, RAW, SNAPSHOT, Handover, snapshot_chunks
from sash.spark.header import FORMAT, Header, write_header
from sash.spark.messages import METRICS, OUTPUT, ROWS, SMALL, Message, from_frame, to_frames
from sash.spark.scatter import pack_rows
from sash.spark.shard_batch import StateChunks
from sash.spark.workers import freeze_loaded_objects
from sash.state.changes import ChangeBatch
from sash.state.encoding import decode_all
from sash.state.memory import HeapMemory
from sash.time import BEGINNING

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql.streaming.stateful_processor import MapState


class SeedProcessor:
    """Seeds one level of the new generation."""

    def __init__(self, handover: Handover, level: int) -> None:
        self._handover = handover
        self._level = level

    def run(self, label: int, rows: Iterator[Any], chunks: MapState) -> Iterator[pd.DataFrame]:
        """Seed one shard, whose state is in the chunks."""
        freeze_loaded_objects()
        received: list[Message] = []
        layout = self._handover.new
        for frame in rows:
            forwarded = []
            for message in from_frame(frame):
                levels = self._levels(message)
                if self._level in levels:
                    received.append(message)
                if message.channel in (OUTPUT, METRICS) or any(level > self._level for level in levels):
                    forwarded.append(message)
            yield from to_frames(forwarded)
        if any(self._level == layout.levels[stage] and label in labels for stage, labels in enumerate(layout.labels)):
            yield from to_frames(_SeedShard(self._handover, self._level, label, chunks).run(received))

    def _levels(self, message: Message) -> set[int]:
        layout = self._handover.new
        if message.channel == NOTICE:
            return set(range(layout.height))
        if message.channel == SNAPSHOT:
            return {layout.levels[message.output]}
        if message.channel < 0:
            return set()
        return layout.levels_of(layout.channels.channels[message.channel])


class _SeedShard:
    def __init__(self, handover: Handover, level: int, label: int, state: MapState) -> None:
        self._handover = handover
        self._layout = handover.new
        self._level = level
        self._label = label
        self._state = state
        self._chunks = StateChunks(state)
        self._header: Header = {"format": FORMAT, "next": 0, "nonce": "", "channels": {}, "stages": {}}
        self._channels: dict[int, ChannelBatch] = {}
        self._snapshots: dict[tuple[int, int], int] = {}
        self._handed: dict[int, tuple[ChangeBatch, int]] = {}

    def run(self, messages: list[Message]) -> Iterator[Message]:
        """Write the logs, then restore stages in order; yield what they send."""
        by_channel: dict[int, list[Message]] = {}
        for message in messages:
            if message.channel == SNAPSHOT:
                self._snapshots[message.output, message.seq] = self._put(message.blob)
            elif message.channel >= 0:
                by_channel.setdefault(message.channel, []).append(message)
        stages = [
            stage
            for stage in self._layout.plan.stages
            if self._layout.levels[stage.index] == self._level and self._label in self._layout.labels[stage.index]
        ]
        for stage in stages:
            for channel, _ in self._layout.channels.inputs_of(stage.index).values():
                if channel.index not in self._channels:
                    self._channels[channel.index] = self._seeded(channel, by_channel.pop(channel.index, []))
            yield from self._stage(stage)
        for found in self._channels.values():
            found.save()
        self._header["channels"] = {
            identity: record for identity, record in self._header["channels"].items() if record["log"] is not None
        }
        self._header["nonce"] = secrets.token_hex(16)
        write_header(self._state, self._header)

    def _seeded(self, channel: Channel, messages: list[Message]) -> ChannelBatch:
        """The channel with its rows in its log, at its clock."""
        change = self._handover.classification.channels[channel.index]
        sends = isinstance(channel.source, StageRows) and not self._layout.in_memory(channel, self._level)
        senders = len(self._layout.labels[channel.source.stage]) if sends else 0  # type: ignore[union-attr]
        record: dict[str, Any] = self._header["channels"].setdefault(channel.identity, {})
        raw = sorted((m for m in messages if m.kind == RAW), key=lambda m: (m.sender, m.seq))
        rows = decode_all(
            [pa.py_buffer(m.blob) for m in messages if m.kind == ROWS and m.blob is not None], channel.dtypes
        )
        if channel.index in self._handover.constants:
            rows = self._constants(channel)
        clock = change.clock
        if change.restored:
            if channel.index in self._handed:
                rows, clock = self._handed.pop(channel.index)
            else:
                clock = min((m.clock for m in messages), default=int(BEGINNING))
        assert clock is not None
        record |= {"log": self._log(channel, raw), "clock": int(clock), "reported": [int(clock)] * senders}
        made = ChannelBatch(channel, senders, self._chunks, record)
        if len(rows):
            made.write(rows.sorted(), int(BEGINNING), self._next)
        return made

    def _constants(self, channel: Channel) -> ChangeBatch:
        """The constants of alike queries that begin with this generation, which this shard reads."""
        rows, target = self._handover.constants[channel.index], self._layout.target(channel)
        if not target.keys:
            return rows
        return partition(rows, target.keys, len(target.labels))[target.labels.index(self._label)]

    def _log(self, channel: Channel, raw: list[Message]) -> dict[str, Any]:
        """The directory of a log of chunks that did not change."""
        entries, live = [], 0
        for message in raw:
            _, rows, size, until = json.loads(message.metrics or "[]")
            entries.append([self._put(message.blob), rows, size, until])
            live += rows
        if raw:
            known = [
                record["log"]["live"]
                for header in (self._handover.headers[key] for key in self._handover.headers if key[1] == self._label)
                if (record := header["channels"].get(channel.identity)) is not None
            ]
            live = known[0] if known else live
        return {"chunks": entries, "live": live}

    def _stage(self, stage: Stage) -> Iterator[Message]:
        identity = self._layout.channels.stages[stage.index]
        change = self._handover.classification.stages[stage.index]
        record = self._kept(stage, identity) if change.verdict == "kept" else None
        if change.verdict == "kept":
            if record is None:
                return
            self._header["stages"][identity] = record
            if stage.index not in self._handover.restored:
                return
        inputs = self._layout.channels.inputs_of(stage.index)
        if all(self._channels[channel.index].clock <= BEGINNING for channel, _ in inputs.values()):
            return
        number, width = self._layout.labels[stage.index].index(self._label), len(self._layout.labels[stage.index])
        shard = Shard(self._layout.plan, stage, HeapMemory(), self._handover.new_tables, number, width)
        clocks = [int(BEGINNING)] * len(stage.inputs)
        for index, (channel, _) in inputs.items():
            clocks[index] = self._channels[channel.index].clock
        reached, floor, learnt = None, int(BEGINNING), None
        if record is not None:
            clocks, floor = record["clocks"], record["floor"]
            reached, learnt = record.get("reached"), record.get("learnt")
        live = [ChangeBatch.empty([field.dtype for field in given.leaf.schema]) for given in stage.inputs]
        for index, (channel, reader) in inputs.items():
            horizon = stage.inputs[index].leaf.horizon
            live[index] = self._channels[channel.index].live(reader, horizon, floor)
        current = CurrentRows()
        for changes in shard.replay(live, clocks, reached, learnt):
            current.add(changes)
        if record is None:
            current.add(shard.flush())
            self._header["stages"][identity] = {
                "clocks": [int(clock) for clock in shard.clocks],
                "floor": int(shard.floor),
                "reached": shard.reached,
                "snapshot": None,
            }
        yield from self._send(stage, number, shard, current)

    def _send(self, stage: Stage, number: int, shard: Shard, current: CurrentRows) -> Iterator[Message]:
        """Send the answer of a stage to the outputs that change, and to the channels that begin with it."""
        rows = current.rows(shard.released)
        if rows is None:
            rows = ChangeBatch.empty([field.dtype for field in stage.root.schema])
        for output in sorted(self._handover.emitted):
            if self._layout.plan.outputs[output].stage == stage.index:
                yield from pack_rows(rows, Message(self._label, OUTPUT, SMALL, number, 0, output, shard.clock))
        for change in self._handover.classification.channels:
            channel = change.channel
            if not change.restored or not isinstance(channel.source, StageRows) or channel.source.stage != stage.index:
                continue
            if self._layout.in_memory(channel, self._level):
                self._handed[channel.index] = rows, shard.released
            if self._layout.sent_to(channel):
                target = self._layout.target(channel)
                parts = partition(rows, target.keys, len(target.labels)) if target.keys else [rows] * len(target.labels)
                for to, part in zip(target.labels, parts, strict=True):
                    message = Message(to, channel.index, ROWS, number, 0, clock=shard.released)
                    yield from pack_rows(part, message)

    def _kept(self, stage: Stage, identity: str) -> dict[str, Any] | None:
        """What the header has of a stage that is kept: of this shard, or, if rows move to other shards, of all."""
        if not self._handover.classification.reshaped:
            record = self._handover.old_stage(identity, self._label)
            if record is None:
                return None
            numbers = {n: self._snapshots[stage.index, n] for n in snapshot_chunks(record)}
            directory = record.get("snapshot")
            if directory:
                files = [[name, size, [numbers[n] for n in known]] for name, size, known in directory["files"]]
                record = {**record, "snapshot": {"size": directory["size"], "files": files}}
            return {key: value for key, value in record.items() if key != "part"}
        records = self._handover.old_stages(identity)
        if not records:
            return None
        clocks = [min(clocks) for clocks in zip(*(record["clocks"] for record in records), strict=True)]
        return {**records[0], "clocks": clocks, "floor": min(record["floor"] for record in records), "snapshot": None}

    def _put(self, data: Any) -> int:
        number = self._next()
        self._chunks.put(number, bytes(data))
        return number

    def _next(self) -> int:
        self._header["next"] += 1
        return int(self._header["next"])
