"""A round of stages as Spark runs it: `groupBy(label).transformWithStateInPandas`, one key per shard.

Stages that do not wait for one another form a round and share one stateful operator. For each of them the shard's
working state is attached (or built again from the log), the batch is run, what it accepted goes to the log, and its
changes leave as messages, already scattered for the stages that read them. Messages for later rounds pass through.

Exactly once comes from Spark's checkpoint: header, log and snapshot chunks are in its state store and commit with the
batch. The arena is a cache beside it, trusted by nonce.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from sash.errors import CheckpointError
from sash.operators.count_window import last_rows
from sash.operators.netting import net_all
from sash.physical.nodes import NrrJoin, PhysicalPlan, RelationLeg, Stage, StreamLeg, UpdateLeg, walk
from sash.plan.nodes import Range, Rows
from sash.plan.options import Mode
from sash.runtime.build import Relations
from sash.runtime.shard import Arrival, Intake, Shard, partition
from sash.spark.counts import Delays, in_force_of, operator_counts
from sash.spark.gather import Gather
from sash.spark.messages import CONTROL, HEARTBEAT, NOTE, ROWS, Message, from_frame, to_frames
from sash.spark.notes import Note
from sash.spark.output import reduce_changes
from sash.spark.scatter import Target, pack_rows
from sash.spark.workers import spare_collections
from sash.state.arena import Arena
from sash.state.changes import ChangeBatch, concat
from sash.state.encoding import decode_all
from sash.state.log import InputLog
from sash.state.snapshot import LOG_BYTES, ArraySnapshot
from sash.time import BEGINNING

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql.streaming.stateful_processor import MapState, StatefulProcessorHandle, TimerValues

FORMAT = 6
"""Of header, log and snapshot; a snapshot has the operators' arrays as they are, so a change of those is one of this."""

HEADER = (-1,)
"""The key of the header among the chunks: a second variable of state would take Spark some 12 ms a batch to set up."""


class _StateChunks:
    """The chunks of logs and snapshots in Spark's map state."""

    def __init__(self, state: MapState) -> None:
        self._state = state

    def get(self, number: int) -> bytes:
        value = self._state.getValue((number,))
        if value is None:
            raise CheckpointError(f"chunk {number} of the state is missing: the checkpoint is damaged")
        return bytes(value[0])

    def put(self, number: int, data: bytes) -> None:
        self._state.updateValue((number,), (data,))

    def remove(self, number: int) -> None:
        self._state.removeKey((number,))


@dataclass(frozen=True)
class Layout:
    """How the stages of a plan are laid out over shards: the labels of each stage, and who reads each stage's output."""

    labels: tuple[tuple[int, ...], ...]
    readers: tuple[tuple[Target, ...], ...]


class Round(StatefulProcessor):
    """The stages of one round."""

    def __init__(
        self,
        plan: PhysicalPlan,
        stages: tuple[int, ...],
        layout: Layout,
        relations: Relations,
        mode: Mode,
        key: tuple[int, ...] | None,
        gather: Gather | None,
    ) -> None:
        self._plan = plan
        self._stages = stages
        self._layout = layout
        self._relations = dict(relations)
        self._mode = mode
        self._key = key
        self._gather = gather
        self.log_bytes = LOG_BYTES

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Name the state: opaque bytes, in a format of our own, chunk by chunk."""
        spare_collections()
        self._chunks = handle.getMapState("chunks", "number long", "data binary")

    def close(self) -> None:
        """Nothing is held between batches."""

    def handleInputRows(  # noqa: N802  (Spark's name)
        self,
        key: Any,
        rows: Iterator[Any],
        timerValues: TimerValues,  # noqa: N803
    ) -> Iterator[pd.DataFrame]:
        """Run the batch of one shard."""
        label = int(key[0])
        mine: dict[int, list[Message]] = {}
        passing: list[Message] = []
        for frame in rows:
            for message in from_frame(frame):
                if message.stage in self._stages:
                    mine.setdefault(message.stage, []).append(message)
                else:
                    passing.append(message)
        yield from self._frames(passing)
        if not mine:
            return
        header = self._read_header()
        for index in sorted(mine):
            run = _ShardRun(self, self._plan.stages[index], label, header, _StateChunks(self._chunks))
            yield from self._frames(run.run(mine[index]))
        self._chunks.updateValue(HEADER, (json.dumps(header).encode(),))

    def _frames(self, leaving: Iterable[Message | ChangeBatch]) -> Iterator[pd.DataFrame]:
        """What leaves the round: messages for the next, or, from the last, the query's changes and the notes."""
        if self._gather is None:
            yield from to_frames(message for message in leaving if isinstance(message, Message))
            return
        notes = []
        for part in leaving:
            if isinstance(part, ChangeBatch):
                yield self._gather.rows(part)
            elif part.note is not None:
                notes.append(part.note)
        if notes:
            yield self._gather.notes(notes)

    def _read_header(self) -> dict[str, Any]:
        stored = self._chunks.getValue(HEADER)
        if stored is None:
            return {"format": FORMAT, "next": 0, "stages": {}}
        header: dict[str, Any] = json.loads(bytes(stored[0]))
        if header["format"] != FORMAT:
            raise CheckpointError(
                f"the state was written in format {header['format']}, this version reads {FORMAT}: start the query with "
                "a new checkpoint, or run it with the version that wrote this one"
            )
        return header

    def outgoing(
        self, stage: Stage, number: int, shard: Shard, taken: Intake, note: Note
    ) -> Iterator[Message | ChangeBatch]:
        """The changes as messages for the stages that read them, or as the output, part by part as they come."""
        parts = shard.release(taken)
        last = stage.index == len(self._plan.stages) - 1
        if last and self._mode != "changes":
            parts = iter([reduce_changes(concat(list(parts)), self._mode, self._key)])
        delays = Delays()
        for part, changes in enumerate(parts):
            clock = shard.released
            for target in self._layout.readers[stage.index]:
                shards = partition(changes, target.keys, len(target.labels))
                for to, rows in zip(target.labels, shards, strict=True):
                    yield from pack_rows(rows, Message(to, target.stage, target.input, ROWS, number, part, clock))
            if last and len(changes):
                delays.note(changes)
                note.rows_out += len(changes)
                yield changes
        if last:
            note.clock = shard.released
            note.delays, note.delay_sum, note.delay_longest = delays.buckets.tolist(), delays.sum, delays.longest

    def shard(self, stage: Stage, number: int, arena: Arena) -> Shard:
        """The operators of the stage on the arena's memory."""
        width = len(self._layout.labels[stage.index])
        return Shard(self._plan, stage, arena.memory, self._relations, number, width)

    def number(self, stage: Stage, label: int) -> int:
        """Which shard of the stage the label stands for."""
        return self._layout.labels[stage.index].index(label)

    def senders(self, stage: Stage, index: int) -> int:
        """How many shards send to this input; 0 for a source."""
        before = stage.inputs[index].leaf.stage
        return 0 if before is None else len(self._layout.labels[before])

    def endless(self, stage: Stage) -> bool:
        """Whether some input brings ever more rows that must be kept in order, so that its log needs snapshots.

        These are rows that never expire, updates of relations, and whatever meets a non-retroactive relation: what rows
        got from it depends on versions of it that are gone. A count window's log keeps its last rows alone.
        """
        if any(isinstance(node, NrrJoin) for node in walk(stage.root)):
            return True
        for leaf in (given.leaf for given in stage.inputs):
            leg = None if leaf.leg is None else self._plan.legs[leaf.leg]
            counted = isinstance(leg, StreamLeg) and isinstance(leg.window, Rows)
            if isinstance(leg, UpdateLeg):
                return True
            if leaf.expiry == "mono" and not isinstance(leg, RelationLeg) and not counted:
                return True
        return False

    def log(self, stage: Stage, index: int, chunks: _StateChunks, directory: dict[str, Any] | None) -> InputLog:
        """The log of an input, by how its rows end."""
        leaf = stage.inputs[index].leaf
        dtypes = [field.dtype for field in leaf.schema]
        if leaf.leg is not None:
            leg = self._plan.legs[leaf.leg]
            if isinstance(leg, StreamLeg) and isinstance(leg.window, Rows):
                return InputLog(chunks, dtypes, None, partial(last_rows, leg.window), directory, counted=True)
            expires = isinstance(leg, StreamLeg) and isinstance(leg.window, Range)
            return InputLog(chunks, dtypes, horizon=leaf.horizon if expires else None, directory=directory)
        # Rows may take back what only a snapshot has: nothing to net them with, and no need to.
        netting = net_all if leaf.expiry == "explicit" and not self.endless(stage) else None
        return InputLog(chunks, dtypes, netting=netting, directory=directory)


class _ShardRun:
    """One batch of one shard of one stage."""

    def __init__(self, owner: Round, stage: Stage, label: int, header: dict[str, Any], chunks: _StateChunks) -> None:
        self._owner = owner
        self._stage = stage
        self._shard = owner.number(stage, label)
        self._label = label
        self._header = header
        new: dict[str, Any] = {"nonce": None, "clocks": [], "heard": [], "logs": [], "snapshot": None}
        state = header["stages"].setdefault(str(stage.index), new)
        self._state = state
        self._snapshot = ArraySnapshot(chunks, state["snapshot"])
        inputs = range(len(stage.inputs))
        self._logs = [
            owner.log(stage, index, chunks, state["logs"][index] if state["logs"] else None) for index in inputs
        ]
        self._heard: list[list[int]] = state["heard"] or [[BEGINNING] * owner.senders(stage, i) for i in inputs]

    def run(self, messages: list[Message]) -> Iterator[Message | ChangeBatch]:
        arrivals = [self._arrival(index, messages) for index in range(len(self._stage.inputs))]
        note = Note()
        with Arena(arena_directory(self._stage.index, self._label), self._state["nonce"]) as arena:
            rebuild = arena.fresh and self._state["nonce"] is not None
            if rebuild:
                self._snapshot.load(arena.memory)
            shard = self._owner.shard(self._stage, self._shard, arena)
            if rebuild:
                shard.restore([log.load() for log in self._logs], self._state["clocks"], self._state.get("reached"))
                note.rebuilt = 1
            taken = shard.take(arrivals)
            # The changes leave first: they are unpacked while more are made and what must survive is written.
            yield from self._owner.outgoing(self._stage, self._shard, shard, taken, note)
            self._write(shard, taken, arena)
            sizes = arena.memory.files
            held = shard.operator_bytes(sizes)
            note.operators = operator_counts(self._stage, taken.counts, shard.operator_rows, held)
            note.in_force = in_force_of(self._stage, taken.counts)
            note.switches = shard.switches
            note.late, note.state_rows, note.state_bytes = taken.late, shard.state_rows, sum(sizes.values())
            note.bad = sum(counts.refused for counts in taken.counts.values())
            del shard
            arena.seal(self._state["nonce"])
        yield Message(self._label, NOTE, note=note.to_json())

    def _arrival(self, index: int, messages: list[Message]) -> Arrival | None:
        """The rows and the clock that an input brought, in an order that does not depend on the shuffle."""
        given = sorted((m for m in messages if m.input == index), key=lambda m: (m.kind, m.sender, m.seq))
        if not given:
            return None
        dtypes = [field.dtype for field in self._stage.inputs[index].leaf.schema]
        rows = decode_all([pa.py_buffer(m.blob) for m in given if m.blob is not None], dtypes)
        return Arrival(rows, self._clock(index, given))

    def _clock(self, index: int, given: list[Message]) -> int:
        """An earlier stage is as far as its slowest shard; a source as its latest row, else as its heartbeat."""
        heard = self._heard[index]
        if heard:
            for message in given:
                heard[message.sender] = max(heard[message.sender], message.clock)
            return min(heard)
        rows = [m.clock for m in given if m.kind == ROWS]
        beats = [m.clock for m in given if m.kind == HEARTBEAT]
        ends = [m.clock for m in given if m.kind == CONTROL]
        return max([*(rows or beats), *ends])

    def _write(self, shard: Shard, taken: Intake, arena: Arena) -> None:
        """Put what must survive in the state store, under a new nonce."""
        for log, accepted in zip(self._logs, taken.accepted, strict=True):
            log.append(accepted, shard.floor, self._next)
        size = sum(log.size for log in self._logs)
        if self._owner.endless(self._stage) and self._snapshot.due(size, self._owner.log_bytes):
            self._snapshot.write(arena.memory, self._next)
            for log in self._logs:
                log.clear()
            self._state["snapshot"] = self._snapshot.directory
        self._state["nonce"] = secrets.token_hex(16)
        self._state["clocks"] = [int(clock) for clock in shard.clocks]
        self._state["heard"] = self._heard
        if shard.reached is not None:
            self._state["reached"] = shard.reached
        self._state["logs"] = [log.directory for log in self._logs]

    def _next(self) -> int:
        self._header["next"] += 1
        return int(self._header["next"])


def arena_directory(stage: int, label: int) -> Path:
    """The arena of a shard on this machine: by query, run, stage and label, under Spark's local directory."""
    from pyspark import TaskContext

    context = TaskContext.get()
    query = (context.getLocalProperty("sql.streaming.queryId") if context else None) or "query"
    run = (context.getLocalProperty("spark.jobGroup.id") if context else None) or "run"
    local = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0] or tempfile.gettempdir()
    home = Path(local) / "sash" / query
    if not (home / run).exists() and home.exists():
        for other in home.iterdir():
            if other.name != run:
                shutil.rmtree(other, ignore_errors=True)
    return home / run / f"{stage}-{label}"
