"""Reads the chunks of an old generation's state and sends their rows to the shards of the new one.

Runs in `mapInArrow` over (level, label, number, data). A chunk of a log that does not change and stays in its shard is sent
as it is. Otherwise its rows are computed by the programs of the channels that they are for, and partitioned anew. Answers of
old stages that outputs of the new job replace are restored here, and sent as retractions.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from sash.errors import CheckpointError
from sash.operators.current_rows import CurrentRows
from sash.runtime.shard import Shard, partition
from sash.spark.channel_batch import pick
from sash.spark.handover import CHUNK, NOTICE, RAW, SNAPSHOT, Handover, OldAnswer
from sash.spark.layout import Layout, shard_labels
from sash.spark.messages import OUTPUT, ROWS, SMALL, Message, to_record_batches
from sash.spark.scatter import pack_rows
from sash.spark.stored_state import HEADER
from sash.spark.workers import freeze_loaded_objects
from sash.state.changes import ChangeBatch, concat
from sash.state.encoding import decode, size_of
from sash.state.log import SMALL_BYTES, packed
from sash.state.memory import HeapMemory


@dataclass(frozen=True)
class SeedScatter:
    """Scatters the old state. `shards` is the new number of shards."""

    handover: Handover
    shards: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return to_record_batches(self.handover.files.put(self._messages(batches)))

    def _messages(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Message]:
        freeze_loaded_objects()
        handover = self.handover
        uses, snapshots = handover.chunk_uses(), handover.snapshot_uses()
        answers = _OldAnswers(handover)
        packing = _Packing(handover.new)
        same = not handover.classification.reshaped
        noticed = False
        for batch in batches:
            for level, label, number, data in zip(*(batch.column(n) for n in range(4)), strict=True):
                if not noticed:
                    noticed = True
                    yield from (Message(to, NOTICE) for to in shard_labels(self.shards))
                key = (level.as_py(), label.as_py(), number.as_py())
                if key[2] == HEADER:
                    continue
                if key in snapshots:
                    yield Message(key[1], SNAPSHOT, RAW, key[1], key[2], snapshots[key], blob=data.as_py())
                answers.keep(key, data)
                rows: ChangeBatch | None = None
                for use in uses.get(key, ()):
                    if use.program is None and same and packing.stays(use.channel, key[1]):
                        entry = json.dumps(answers.entries[key])
                        for to in packing.copies(use.channel, key[1]):
                            yield Message(to, use.channel, RAW, key[1], key[2], metrics=entry, blob=data.as_py())
                        continue
                    if rows is None:
                        rows = decode(data.as_buffer())
                    yield from packing.add(
                        use.channel, rows if use.program is None else use.program.run(rows, use.clock)
                    )
        yield from packing.flush()
        yield from answers.messages()


class _Packing:
    """Rows on their way to new channels, until there are enough for a message."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._targets = [layout.target(channel) for channel in layout.channels.channels]
        self._held: dict[int, list[ChangeBatch]] = {}
        self._sizes: dict[int, int] = {}
        self._seq = 0

    def stays(self, channel: int, label: int) -> bool:
        """Whether the rows of a channel that does not change stay in this shard."""
        return label in self._targets[channel].labels

    def copies(self, channel: int, label: int) -> tuple[int, ...]:
        """The shards that need the rows of this one: without keys, all of the channel's."""
        target = self._targets[channel]
        return (label,) if target.keys else target.labels

    def add(self, channel: int, rows: ChangeBatch) -> Iterator[Message]:
        """Add rows to a channel; yield what is large enough."""
        if not len(rows):
            return
        self._held.setdefault(channel, []).append(rows)
        self._sizes[channel] = self._sizes.get(channel, 0) + size_of(rows)
        # Chunks are split one by one, if the parts are not small: rows of one time stay together, and end together.
        if self._sizes[channel] > 2 * SMALL_BYTES * max(1, len(self._targets[channel].labels)):
            yield from self._send(channel)

    def flush(self) -> Iterator[Message]:
        """Yield the rest."""
        for channel in list(self._held):
            yield from self._send(channel)

    def _send(self, channel: int) -> Iterator[Message]:
        rows, target = concat(self._held.pop(channel)), self._targets[channel]
        self._sizes.pop(channel)
        self._seq += 1
        parts = partition(rows, target.keys, len(target.labels)) if target.keys else [rows] * len(target.labels)
        made = self._layout.channels.channels[channel]
        for label, part in zip(target.labels, parts, strict=True):
            if made.kind != "time":
                yield from pack_rows(part, Message(label, channel, ROWS, 0, self._seq)) if len(part) else ()
                continue
            for number, (data, count, until) in enumerate(packed(part, made.horizon)):
                entry = json.dumps([number, count, len(data), until])
                yield Message(label, channel, CHUNK, 0, self._seq, metrics=entry, blob=data)


class _OldAnswers:
    """Restores the old stages whose answers are retracted, each in the shard that has its logs."""

    def __init__(self, handover: Handover) -> None:
        self._handover = handover
        self._layout = handover.old
        self.entries = {
            (level, label, chunk[0]): chunk
            for (level, label), header in handover.headers.items()
            for record in header["channels"].values()
            for chunk in (record["log"] or {"chunks": ()})["chunks"]
        }
        self._wanted: dict[tuple[int, int], dict[int, str]] = {}
        self._retracted = () if handover.in_place else handover.retracted
        for answer in self._retracted:
            level = self._layout.levels[answer.stage]
            for label in self._layout.labels[answer.stage]:
                wanted = self._wanted.setdefault((level, label), {})
                for channel, _ in self._layout.channels.inputs_of(answer.stage).values():
                    for chunk in handover.chunks(channel, level, label):
                        wanted[chunk[0]] = channel.identity
        self._rows: dict[tuple[int, int, str], list[ChangeBatch]] = {}
        self._seen: set[tuple[int, int]] = set()

    def keep(self, key: tuple[int, int, int], data: pa.Scalar) -> None:
        """Keep the rows of a chunk that an answer needs."""
        level, label, number = key
        self._seen.add((level, label))
        identity = self._wanted.get((level, label), {}).get(number)
        if identity is not None:
            self._rows.setdefault((level, label, identity), []).append(decode(data.as_buffer()))

    def messages(self) -> Iterator[Message]:
        """The retractions of all answers of the shards that were read."""
        for answer in self._retracted:
            for label in self._layout.labels[answer.stage]:
                if (self._layout.levels[answer.stage], label) in self._seen:
                    yield from self._answer(answer, label)

    def _answer(self, answer: OldAnswer, label: int) -> Iterator[Message]:
        layout, stage = self._layout, self._layout.plan.stages[answer.stage]
        record = self._handover.old_stage(layout.channels.stages[answer.stage], label)
        if record is None:
            return
        whole_logs(record)
        number, width = layout.labels[answer.stage].index(label), len(layout.labels[answer.stage])
        shard = Shard(layout.plan, stage, HeapMemory(), self._handover.old_tables, number, width)
        live = [ChangeBatch.empty([field.dtype for field in given.leaf.schema]) for given in stage.inputs]
        for index, (channel, reader) in layout.channels.inputs_of(answer.stage).items():
            parts = self._rows.get((layout.levels[answer.stage], label, channel.identity), [])
            rows = concat([ChangeBatch.empty(channel.dtypes), *parts]).sorted()
            rows = channel.live(rows, stage.inputs[index].leaf.horizon, record["floor"])
            live[index] = pick(reader, rows, len(channel.columns))
        current = CurrentRows()
        for changes in shard.replay(live, record["clocks"], record.get("reached"), net=True):
            current.add(changes)
        yield from retractions(self._handover, answer, current.rows(), number, shard.clock)


def whole_logs(record: Mapping[str, Any]) -> None:
    """Make sure that the logs of a stage have all of its rows, so that its answer can be computed from them."""
    if record.get("snapshot"):
        raise CheckpointError(
            "the change needs the answer of a query whose state is kept as arrays, and these are not on this machine, or "
            "would move: start the job as it was before, and change it while it runs, with the same number of shards"
        )


def retractions(
    handover: Handover, answer: OldAnswer, rows: ChangeBatch | None, number: int, clock: int
) -> Iterator[Message]:
    """Retract an answer of an old shard from the outputs that replace it."""
    for one in answer.retractions if rows is not None else ():
        assert rows is not None
        to = handover.new.labels[handover.new.plan.outputs[one.output].stage][0]
        yield from pack_rows(one.of(rows), Message(to, OUTPUT, SMALL, number, 0, one.output, clock))


@dataclass(frozen=True)
class Notices:
    """Makes sure that every shard runs, whatever it reads."""

    shards: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        labels = shard_labels(self.shards)
        rows = sum(batch.num_rows for batch in batches)
        return to_record_batches(Message(to, NOTICE) for to in (labels if rows else ()))
