"""One shard of the first batch of a generation: it writes the logs that it is given, and restores stages that are not kept.

A kept stage needs no operators: the next batch rebuilds them from its logs, or finds its arrays. The others are restored
here, at the clocks of their inputs. Their answers go to the outputs that change, and to the channels of later stages that
begin with them.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Generator, Iterator, Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from sash.operators.current_rows import CurrentRows
from sash.physical.channels import Channel, StageRows
from sash.physical.common_rows import common_rows
from sash.physical.nodes import Stage
from sash.physical.strategies.registry import strategy_of
from sash.runtime.legs import stage_tables
from sash.runtime.shard import Shard, partition
from sash.spark.arenas import find_arena, part_name, replace_arena, seed_directory
from sash.spark.channel_batch import ChannelBatch
from sash.spark.handover import CHUNK, RAW, SNAPSHOT, Handover, snapshot_chunks
from sash.spark.header import FORMAT, Header, write_header
from sash.spark.messages import OUTPUT, ROWS, SMALL, Message
from sash.spark.scatter import pack_rows
from sash.spark.seed_scatter import retractions, whole_logs
from sash.spark.shard_batch import StateChunks
from sash.state.arena import Arena
from sash.state.changes import ChangeBatch
from sash.state.encoding import decode_all
from sash.state.memory import HeapMemory
from sash.state.snapshot import ArraySnapshot
from sash.time import BEGINNING, FOREVER

if TYPE_CHECKING:
    from pyspark.sql.streaming.stateful_processor import MapState


class SeedShard:
    """One shard of one level. In place, it begins with the chunks that the old generation has there."""

    def __init__(self, handover: Handover, level: int, label: int, state: MapState) -> None:
        self._handover = handover
        self._layout = handover.new
        self._level = level
        self._label = label
        self._state = state
        self._chunks = StateChunks(state)
        self._old = handover.headers.get((level, label), {}) if handover.in_place else {}
        self._header: Header = {
            "format": FORMAT, "next": self._old.get("next", 0), "nonce": "", "channels": {}, "stages": {},
        }  # fmt: skip
        self._channels: dict[int, ChannelBatch] = {}
        self._snapshots: dict[tuple[int, int], int] = {}
        self._handed: dict[int, tuple[ChangeBatch, int]] = {}
        self._read: dict[tuple[int, ...], ChangeBatch] = {}
        self._arrived: dict[int, list[pa.Buffer]] = {}

    def run(self, messages: list[Message]) -> Iterator[Message]:
        """Retract old answers, write the logs, then restore stages in order; yield what they send."""
        place, nonce = find_arena(self._level, self._label, self._old.get("nonce")), secrets.token_hex(16)
        seeded = seed_directory(self._level, self._label)
        with Arena(seeded, None) as self._arena, ExitStack() as stack:
            self._before = None if place is None else stack.enter_context(Arena(place, self._old["nonce"]))
            yield from self._retractions()
            yield from self._seed(messages)
            self._take_common()
            self._forget()
            self._header["nonce"] = nonce
            write_header(self._state, self._header)
            self._arena.seal(nonce)
            if place is not None and self._before is not None:
                # Should the change fail, the old job finds all but the parts that were taken, and rebuilds those.
                self._before.seal(self._old["nonce"])
                replace_arena(seeded, place)

    def _retractions(self) -> Iterator[Message]:
        """The retractions of the answers that this shard's stages had in the old generation."""
        layout = self._handover.old
        for answer in self._handover.retracted if self._handover.in_place else ():
            labels, identity = layout.labels[answer.stage], layout.channels.stages[answer.stage]
            if layout.levels[answer.stage] != self._level or self._label not in labels:
                continue
            record = self._handover.old_stage(identity, self._label)
            if record is None:
                continue
            number, stage = labels.index(self._label), layout.plan.stages[answer.stage]
            rows, clock = self._old_answer(stage, number, len(labels), record)
            yield from retractions(self._handover, answer, rows, number, clock)

    def _old_answer(
        self, stage: Stage, number: int, width: int, record: dict[str, Any]
    ) -> tuple[ChangeBatch | None, int]:
        """The answer of an old stage: from its arena, if that is here and its operators can tell, or from its logs."""
        layout, tables = self._handover.old, self._handover.old_tables
        part = part_name(stage, layout.channels.stages[stage.index], record)
        if self._before is not None and self._before.has(part) and not record.get("parked"):
            shard = Shard(layout.plan, stage, self._before.memory(part), tables, number, width)
            rows = shard.answer()
            if rows is not None:
                return rows, shard.clock
        whole_logs(record)
        shard = Shard(layout.plan, stage, HeapMemory(), tables, number, width)
        live = [ChangeBatch.empty([field.dtype for field in given.leaf.schema]) for given in stage.inputs]
        for index, (channel, reader) in layout.channels.inputs_of(stage.index).items():
            known = self._old["channels"].get(channel.identity)
            if known is not None and known["log"] is not None:
                found = ChannelBatch(channel, 0, self._chunks, {**known})
                self._preload(found, known["log"])
                live[index] = found.live(reader, stage.inputs[index].leaf.horizon, record["floor"])
        current = CurrentRows()
        for changes in shard.replay(live, record["clocks"], record.get("reached"), record.get("learnt"), net=True):
            current.add(changes)
        return current.rows(), shard.clock

    def _preload(self, channel: ChannelBatch, directory: dict[str, Any]) -> None:
        """Read the rows of a log of the old generation once for all that need them."""
        numbers = tuple(entry[0] for entry in directory["chunks"])
        if numbers not in self._read:
            self._read[numbers] = channel.loaded()
        channel.preload(self._read[numbers])

    def _forget(self) -> None:
        """Remove the chunks of the old generation that the new one does not have."""
        kept = set(_numbers(self._header))
        for number in _numbers(self._old):
            if number not in kept:
                self._chunks.remove(number)

    def _seed(self, messages: list[Message]) -> Iterator[Message]:
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

    def _seeded(self, channel: Channel, messages: list[Message]) -> ChannelBatch:
        """The channel with its rows in its log, at its clock."""
        change = self._handover.classification.channels[channel.index]
        sends = isinstance(channel.source, StageRows) and not self._layout.in_memory(channel, self._level)
        senders = len(self._layout.labels[channel.source.stage]) if sends else 0  # type: ignore[union-attr]
        record: dict[str, Any] = self._header["channels"].setdefault(channel.identity, {})
        if channel.index in self._handover.staying:
            return self._staying(channel, senders, record)
        raw = sorted((m for m in messages if m.kind == RAW), key=lambda m: (m.sender, m.seq))
        chunks = [m for m in messages if m.kind == CHUNK]
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
        record |= {"log": self._log(channel, raw, chunks), "clock": int(clock), "reported": [int(clock)] * senders}
        self._mark(channel, record)
        made = ChannelBatch(channel, senders, self._chunks, record)
        if len(rows):
            rows = rows.sorted()
            made.write(rows, int(BEGINNING), self._next)
            if not raw and not chunks:
                made.preload(rows)
        elif chunks and not raw:
            self._arrived[channel.index] = [pa.py_buffer(m.blob) for m in chunks]
        return made

    def _staying(self, channel: Channel, senders: int, record: dict[str, Any]) -> ChannelBatch:
        """The channel with the log that an old channel has in this shard. If rows end at another time now, so do its chunks."""
        before, change = self._handover.staying[channel.index], self._handover.classification.channels[channel.index]
        directory = self._old["channels"][before.identity]["log"] or {"chunks": [], "live": 0}
        later = channel.horizon - before.horizon if channel.kind == "time" else 0
        entries = [
            [number, rows, size, min(until + later, int(FOREVER)) if until < FOREVER else until]
            for number, rows, size, until in directory["chunks"]
        ]
        assert change.clock is not None
        record |= {
            "log": {"chunks": entries, "live": directory["live"]},
            "clock": int(change.clock),
            "reported": [int(change.clock)] * senders,
        }
        self._mark(channel, record)
        return ChannelBatch(channel, senders, self._chunks, record)

    def _mark(self, channel: Channel, record: dict[str, Any]) -> None:
        """Go on with the marks of the partitions of a stream."""
        if channel.stream is not None and (marks := self._handover.marks(channel.stream)):
            record["marks"] = marks

    def _constants(self, channel: Channel) -> ChangeBatch:
        """The constants of alike queries that begin with this generation, which this shard reads."""
        rows, target = self._handover.constants[channel.index], self._layout.target(channel)
        if not target.keys:
            return rows
        return partition(rows, target.keys, len(target.labels))[target.labels.index(self._label)]

    def _log(self, channel: Channel, raw: list[Message], chunks: list[Message]) -> dict[str, Any]:
        """The directory of a log of chunks that did not change, and of chunks that were made for it."""
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
        for message in chunks:
            _, rows, size, until = json.loads(message.metrics or "[]")
            entries.append([self._put(message.blob), rows, size, until])
            live += rows
        return {"chunks": entries, "live": live}

    def _stage(self, stage: Stage) -> Iterator[Message]:
        identity = self._layout.channels.stages[stage.index]
        change = self._handover.classification.stages[stage.index]
        record = self._kept(stage, identity) if change.verdict == "kept" else None
        if change.verdict == "kept":
            if record is None:
                return
            self._header["stages"][identity] = record
            taken = self._take_part(stage, identity)
            if stage.index not in self._handover.restored and not self._moved(stage, record):
                return
            if not taken and record.get("snapshot"):
                self._load(stage, identity, record)
            if (taken or record.get("snapshot")) and (yield from self._sent_as_it_is(stage, identity)):
                return
            whole_logs(record)
        inputs = self._layout.channels.inputs_of(stage.index)
        if all(self._channels[channel.index].clock <= BEGINNING for channel, _ in inputs.values()):
            return
        number, width = self._layout.labels[stage.index].index(self._label), len(self._layout.labels[stage.index])
        # The next run goes on with what is built here. Operators that may be behind the clock are built once more.
        lasting = (record is None or self._moved(stage, record)) and not _lags(stage)
        memory = self._arena.memory(part_name(stage, identity, None)) if lasting else HeapMemory()
        shard = Shard(self._layout.plan, stage, memory, self._handover.new_tables, number, width)
        clocks = [int(BEGINNING)] * len(stage.inputs)
        for index, (channel, _) in inputs.items():
            clocks[index] = self._channels[channel.index].clock
        reached, floor, learnt = None, int(BEGINNING), None
        if record is not None:
            clocks, floor = record["clocks"], record["floor"]
            reached, learnt = record.get("reached"), record.get("learnt")
        live = self._live(stage, floor)
        current = CurrentRows()
        for changes in shard.replay(live, clocks, reached, learnt, net=not self._feeds(stage)):
            current.add(changes)
        if record is None:
            current.add(shard.flush())
            self._header["stages"][identity] = {
                "clocks": [int(clock) for clock in shard.clocks],
                "floor": int(shard.floor),
                "reached": shard.reached,
                "learnt": shard.learnt,
                "snapshot": None,
            }
        yield from self._send(stage, number, shard, current)

    def _live(self, stage: Stage, floor: int) -> list[ChangeBatch]:
        """The rows that the logs of a stage have."""
        live = [ChangeBatch.empty([field.dtype for field in given.leaf.schema]) for given in stage.inputs]
        for index, (channel, reader) in self._layout.channels.inputs_of(stage.index).items():
            found = self._channels[channel.index]
            if channel.index in self._handover.staying:
                self._preload(found, self._header["channels"][channel.identity]["log"])
            elif channel.index in self._arrived:
                found.preload(decode_all(self._arrived.pop(channel.index), channel.dtypes).sorted())
            live[index] = found.live(reader, stage.inputs[index].leaf.horizon, floor)
        return live

    def _load(self, stage: Stage, identity: str, record: dict[str, Any]) -> None:
        """Restore the arrays of a kept stage from its snapshot and the rows that came after it."""
        memory = self._arena.memory(part_name(stage, identity, None))
        ArraySnapshot(self._chunks, record["snapshot"]).load(memory)
        labels = self._layout.labels[stage.index]
        number = labels.index(self._label)
        shard = Shard(self._layout.plan, stage, memory, self._handover.new_tables, number, len(labels))
        live = self._live(stage, record["floor"])
        shard.restore(live, record["clocks"], record.get("reached"), record.get("learnt"))

    def _moved(self, stage: Stage, record: Mapping[str, Any]) -> bool:
        """Whether the rows of a kept stage are here, on their way to another shard, so that it is best built at once."""
        ready = not _lags(stage) and not stage_tables(self._layout.plan)
        return ready and not self._handover.in_place and not record.get("snapshot")

    def _feeds(self, stage: Stage) -> bool:
        """Whether the log of a later stage begins with the answer of this one, so that the times of its rows matter."""
        return any(
            change.restored
            and isinstance(change.channel.source, StageRows)
            and change.channel.source.stage == stage.index
            for change in self._handover.classification.channels
        )

    def _take_part(self, stage: Stage, identity: str) -> bool:
        """Take the arrays of a stage that is kept from the arena of the old generation."""
        record = self._handover.old_stage(identity, self._label)
        old = part_name(stage, identity, record)
        if self._before is None or record is None or not self._before.has(old):
            return False
        self._arena.take(old, self._before, part_name(stage, identity, None))
        return True

    def _take_common(self) -> None:
        """Take the rows that channels keep, where their logs stay; others are rebuilt from the logs."""
        for index, common in common_rows(self._layout.plan, self._layout.channels).items():
            staying = index in self._channels and index in self._handover.staying
            if staying and self._before is not None and self._before.has(common.name):
                self._arena.take(common.name, self._before, common.name)

    def _sent_as_it_is(self, stage: Stage, identity: str) -> Generator[Message, None, bool]:
        """Send the answer of a stage whose arrays are here, if its operators can tell it."""
        labels = self._layout.labels[stage.index]
        number, tables = labels.index(self._label), self._handover.new_tables
        memory = self._arena.memory(part_name(stage, identity, None))
        shard = Shard(self._layout.plan, stage, memory, tables, number, len(labels))
        rows = None if self._feeds(stage) else shard.answer()
        if rows is None:
            return False
        current = CurrentRows()
        current.add(rows)
        yield from self._send(stage, number, shard, current)
        return True

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
            directory = record.get("snapshot")
            if directory and not self._handover.in_place:
                numbers = {n: self._snapshots[stage.index, n] for n in snapshot_chunks(record)}
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


def _lags(stage: Stage) -> bool:
    """Whether operators may be behind the clock, or keep nothing, so that arrays alone are not their state."""
    strategy = strategy_of(stage.strategy)
    return strategy.paced or strategy.recomputes


def _numbers(header: Header) -> Iterator[int]:
    """The numbers of the chunks that a header knows."""
    for channel in header.get("channels", {}).values():
        yield from (entry[0] for entry in (channel["log"] or {"chunks": ()})["chunks"])
    for stage in header.get("stages", {}).values():
        yield from snapshot_chunks(stage)
