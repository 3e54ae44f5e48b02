"""One batch of one shard of one stage: attach or rebuild the working state, run the operators, write what must survive.

The working state is in an arena, a cache on the worker's disk. Its nonce shows whether it is the state that Spark's state
store committed; otherwise it is rebuilt from the snapshot and the input logs.
"""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from sash.errors import CheckpointError
from sash.operators.count_window import last_rows
from sash.operators.netting import net_all
from sash.physical.nodes import NrrJoin, PhysicalPlan, RelationLeg, Stage, StreamLeg, UpdateLeg, walk
from sash.plan.nodes import Range, Rows
from sash.runtime.shard import Arrival, Intake, Shard
from sash.spark.batch_metrics import BatchMetrics, current_choices_of, operator_counts
from sash.spark.messages import CONTROL, HEARTBEAT, METRICS_STAGE, ROWS, Message
from sash.spark.stream_counts import count_late, counted_inputs
from sash.state.arena import Arena
from sash.state.changes import ChangeBatch
from sash.state.encoding import decode_all
from sash.state.log import InputLog
from sash.state.snapshot import ArraySnapshot
from sash.time import BEGINNING

if TYPE_CHECKING:
    from pyspark.sql.streaming.stateful_processor import MapState

    from sash.spark.stage import StageProcessor


class _StateChunks:
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
    """The batch of one shard. `header` is the state of all stages of the shard; `run` updates the stage's part of it."""

    def __init__(
        self, processor: StageProcessor, stage: Stage, label: int, header: dict[str, Any], state: MapState
    ) -> None:
        self._processor = processor
        self._stage = stage
        self._shard = processor.shard_number(stage, label)
        self._label = label
        self._header = header
        new: dict[str, Any] = {"nonce": None, "clocks": [], "heard": [], "logs": [], "snapshot": None}
        self._state = header["stages"].setdefault(str(stage.index), new)
        chunks, inputs = _StateChunks(state), range(len(stage.inputs))
        self._snapshot = ArraySnapshot(chunks, self._state["snapshot"])
        self._needs_snapshots = needs_snapshots(processor.plan, stage)
        directories = self._state["logs"] or [None for _ in inputs]
        self._logs = [self._log(index, chunks, directories[index]) for index in inputs]
        self._reported_clocks: list[list[int]] = self._state["heard"] or [
            [BEGINNING] * processor.senders(stage, index) for index in inputs
        ]

    def run(self, messages: list[Message]) -> Iterator[Message | ChangeBatch]:
        """Process the messages of the batch; yield its changes, then its metrics."""
        arrivals = [self._arrival(index, messages) for index in range(len(self._stage.inputs))]
        metrics = BatchMetrics()
        with Arena(arena_directory(self._stage.index, self._label), self._state["nonce"]) as arena:
            rebuild = arena.fresh and self._state["nonce"] is not None
            if rebuild:
                self._snapshot.load(arena.memory)
            shard = self._processor.build_shard(self._stage, self._shard, arena)
            if rebuild:
                shard.restore([log.load() for log in self._logs], self._state["clocks"], self._state.get("reached"))
                metrics.rebuilt = 1
            before = shard.clocks
            intake = shard.take(arrivals)
            metrics.streams = {
                stream: count_late(arrival.rows.ts, before[index], shard.clocks[index])
                for index, stream in counted_inputs(self._processor.plan, self._stage).items()
                if (arrival := arrivals[index]) is not None
            }
            # Changes leave first: Spark unpacks them while more are computed and the state is written.
            yield from self._processor.outgoing(self._stage, self._shard, shard, intake, metrics)
            self._write(shard, intake, arena)
            sizes = arena.memory.files
            held = shard.operator_bytes(sizes)
            metrics.operators = operator_counts(self._stage, intake.counts, shard.operator_rows, held)
            metrics.current_choice = current_choices_of(self._stage, intake.counts)
            metrics.switches = shard.switches
            metrics.late, metrics.state_rows, metrics.state_bytes = intake.late, shard.state_rows, sum(sizes.values())
            metrics.bad = sum(counts.refused for counts in intake.counts.values())
            del shard
            arena.seal(self._state["nonce"])
        yield Message(self._label, METRICS_STAGE, metrics=metrics.to_json())

    def _arrival(self, index: int, messages: list[Message]) -> Arrival | None:
        """The rows and the clock of an input, in an order that does not depend on the shuffle."""
        received = sorted((m for m in messages if m.input == index), key=lambda m: (m.kind, m.sender, m.seq))
        if not received:
            return None
        dtypes = [field.dtype for field in self._stage.inputs[index].leaf.schema]
        rows = decode_all([pa.py_buffer(m.blob) for m in received if m.blob is not None], dtypes)
        return Arrival(rows, self._clock(index, received))

    def _clock(self, index: int, received: list[Message]) -> int:
        """The clock of an input: of a stage, that of its slowest shard; of a source, that of its rows or heartbeats."""
        reported = self._reported_clocks[index]
        if reported:
            for message in received:
                reported[message.sender] = max(reported[message.sender], message.clock)
            return min(reported)
        rows = [m.clock for m in received if m.kind == ROWS]
        beats = [m.clock for m in received if m.kind == HEARTBEAT]
        controls = [m.clock for m in received if m.kind == CONTROL]
        return max([*(rows or beats), *controls])

    def _log(self, index: int, chunks: _StateChunks, directory: dict[str, Any] | None) -> InputLog:
        """The log of an input. The way in which its rows expire decides which of them it may drop."""
        leaf = self._stage.inputs[index].leaf
        dtypes = [field.dtype for field in leaf.schema]
        if leaf.leg is not None:
            leg = self._processor.plan.legs[leaf.leg]
            if isinstance(leg, StreamLeg) and isinstance(leg.window, Rows):
                return InputLog(chunks, dtypes, None, partial(last_rows, leg.window), directory, counted=True)
            expires = isinstance(leg, StreamLeg) and isinstance(leg.window, Range)
            return InputLog(chunks, dtypes, horizon=leaf.horizon if expires else None, directory=directory)
        # With snapshots, a row may retract one that is only in the snapshot, so the log cannot be netted.
        netting = net_all if leaf.expiry == "explicit" and not self._needs_snapshots else None
        return InputLog(chunks, dtypes, netting=netting, directory=directory)

    def _write(self, shard: Shard, intake: Intake, arena: Arena) -> None:
        """Write the accepted rows and the clocks to the state store, under a new nonce."""
        for log, accepted in zip(self._logs, intake.accepted, strict=True):
            log.append(accepted, shard.floor, self._next_chunk)
        size = sum(log.size for log in self._logs)
        if self._needs_snapshots and self._snapshot.due(size, self._processor.log_bytes):
            self._snapshot.write(arena.memory, self._next_chunk)
            for log in self._logs:
                log.clear()
            self._state["snapshot"] = self._snapshot.directory
        self._state["nonce"] = secrets.token_hex(16)
        self._state["clocks"] = [int(clock) for clock in shard.clocks]
        self._state["heard"] = self._reported_clocks
        if shard.reached is not None:
            self._state["reached"] = shard.reached
        self._state["logs"] = [log.directory for log in self._logs]

    def _next_chunk(self) -> int:
        self._header["next"] += 1
        return int(self._header["next"])


def needs_snapshots(plan: PhysicalPlan, stage: Stage) -> bool:
    """Whether the log of some input would grow without bound, so that snapshots must replace it.

    This is so for rows that never expire, for updates of relations, and for stages that join with a non-retroactive
    relation: their results depend on versions of the relation that are gone. A count window's log holds its last rows only.
    """
    if any(isinstance(node, NrrJoin) for node in walk(stage.root)):
        return True
    for leaf in (given.leaf for given in stage.inputs):
        leg = None if leaf.leg is None else plan.legs[leaf.leg]
        counted = isinstance(leg, StreamLeg) and isinstance(leg.window, Rows)
        if isinstance(leg, UpdateLeg):
            return True
        if leaf.expiry == "mono" and not isinstance(leg, RelationLeg) and not counted:
            return True
    return False


def arena_directory(stage: int, label: int) -> Path:
    """The directory of a shard's arena: by query, run, stage and label, under Spark's local directory."""
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
