"""The local runtime: the stages of a plan in one process, batch by batch, with any number of shards."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from sash.operators.base import Operator
from sash.physical.nodes import PhysicalPlan, RelationLeg, Stage, StageInput
from sash.plan.nodes import Node
from sash.runtime.build import Relations
from sash.runtime.counts import Counts
from sash.runtime.legs import LegRunner
from sash.runtime.shard import Arrival, Shard, ShardOutput, partition
from sash.runtime.times import Times
from sash.state.changes import ChangeBatch, concat
from sash.state.memory import HeapMemory
from sash.state.row_blocks import RowBlocks


@dataclass(frozen=True)
class _Released:
    """The changes that a shard of a stage has released, the clock before which there will be no others, and its times."""

    changes: ChangeBatch
    clock: int
    times: Times | None


@dataclass
class LocalRun:
    """A plan in execution. `advance` takes a micro-batch and returns the changes that its clocks release.

    Every stage has its own clock: an input that reports none delays only the stages that read it. For a plan of several
    queries, `advance_all` and `flush_all` return the changes of each of its outputs.
    """

    plan: PhysicalPlan
    tables: Mapping[Node, pa.Table]
    shards: int = 1
    counts: dict[str, Counts] = field(default_factory=dict)
    late_rows: Counter[int] = field(default_factory=Counter)
    """The number of late rows by stage; a row is late in every stage that reads it."""

    def __post_init__(self) -> None:
        relations: Relations = self.tables
        self._legs = [
            None if isinstance(leg, RelationLeg) else LegRunner(leg.node, relations) for leg in self.plan.legs
        ]
        self._memories = [[HeapMemory() for _ in range(self._width(stage))] for stage in self.plan.stages]
        self._stages = [
            [Shard(self.plan, stage, memory, relations, shard, len(memories)) for shard, memory in enumerate(memories)]
            for stage, memories in zip(self.plan.stages, self._memories, strict=True)
        ]

        self._holders = {
            (stage.index, index): [
                RowBlocks(memory.scope(f"common{index}"), tuple(field.dtype for field in given.leaf.schema))
                for memory in memories
            ]
            for stage, memories in zip(self.plan.stages, self._memories, strict=True)
            for index, given in enumerate(stage.inputs)
            if given.common
        }

    def _width(self, stage: Stage) -> int:
        return 1 if stage.single else self.shards

    def advance(
        self, rows: Mapping[str, ChangeBatch], clocks: Mapping[str, int], *, ended: bool = False
    ) -> ChangeBatch:
        """Take in the rows of a micro-batch and the clocks of the streams that reported one; for a plan of one query.

        `ended` is whether these are the last ones, so that no time need wait for a later row.
        """
        (changes,) = self.advance_all(rows, clocks, ended=ended)
        return changes

    def advance_all(
        self, rows: Mapping[str, ChangeBatch], clocks: Mapping[str, int], *, ended: bool = False
    ) -> list[ChangeBatch]:
        """As `advance`, for a plan of any number of queries: the changes of each output, in the order of the outputs."""
        legs = [
            None if runner is None or isinstance(leg, RelationLeg) or leg.stream not in rows
            else runner.run(rows[leg.stream])
            for leg, runner in zip(self.plan.legs, self._legs, strict=True)
        ]  # fmt: skip
        made: list[list[_Released]] = []
        for stage, shards in zip(self.plan.stages, self._stages, strict=True):
            spread = [self._arrivals(given, self._width(stage), legs, clocks, made, ended) for given in stage.inputs]
            spread = [self._common(arrivals, stage, index) for index, arrivals in enumerate(spread)]
            outputs = [shard.run([given[number] for given in spread]) for number, shard in enumerate(shards)]
            self._drop_ended(stage)
            made.append([_Released(output.changes, output.clock, output.times) for output in outputs])
            for output in outputs:
                self.late_rows[stage.index] += output.intake.late
                self._count(stage, output)
        return self._outputs(made)

    def flush(self) -> ChangeBatch:
        """The changes that were not released because an operator had not learnt the time; for a plan of one query."""
        (changes,) = self.flush_all()
        return changes

    def flush_all(self) -> list[ChangeBatch]:
        """As `flush`, for a plan of any number of queries: the changes of each output."""
        made: list[list[_Released]] = []
        for stage, shards in zip(self.plan.stages, self._stages, strict=True):
            nothing = ChangeBatch.empty([column.dtype for column in stage.root.schema])
            changes: list[list[ChangeBatch]] = [[nothing] for _ in shards]
            for index, given in enumerate(stage.inputs):
                if given.leaf.stage is not None:
                    spread = self._from_stage(given, self._width(stage), made[given.leaf.stage])
                    for number, (shard, arrival) in enumerate(zip(shards, spread, strict=True)):
                        arrivals: list[Arrival | None] = [None] * len(stage.inputs)
                        arrivals[index] = arrival
                        changes[number].append(shard.run(arrivals).changes)
            for number, shard in enumerate(shards):
                changes[number].append(shard.flush())
            pairs = zip(changes, shards, strict=True)
            made.append([_Released(concat(parts), shard.clock, None) for parts, shard in pairs])
        return self._outputs(made)

    def _outputs(self, made: Sequence[Sequence[_Released]]) -> list[ChangeBatch]:
        return [concat([part.changes for part in made[output.stage]]).sorted() for output in self.plan.outputs]

    def _arrivals(
        self,
        given: StageInput,
        width: int,
        legs: Sequence[ChangeBatch | None],
        clocks: Mapping[str, int],
        made: Sequence[Sequence[_Released]],
        ended: bool,
    ) -> Sequence[Arrival | None]:
        """The rows and clock of one input of a stage, for each of its shards."""
        leaf = given.leaf
        if leaf.stage is not None:
            return self._from_stage(given, width, made[leaf.stage])
        leg = self.plan.legs[leaf.leg or 0]
        if isinstance(leg, RelationLeg) or leg.stream not in clocks:
            return [None] * width
        found = legs[leaf.leg or 0]
        rows = ChangeBatch.empty([column.dtype for column in leaf.schema]) if found is None else found
        parts = [rows] * width if leaf.everywhere else partition(rows, given.keys, width)
        clock = clocks[leg.stream]
        return [Arrival(part, clock, Times.at(clock, ended)) for part in parts]

    def _common(self, arrivals: Sequence[Arrival | None], stage: Stage, index: int) -> Sequence[Arrival | None]:
        """What arrives at an input, with the rows that it has in common: here, every stage has a copy of its own."""
        if not stage.inputs[index].common:
            return arrivals
        common: list[Arrival | None] = []
        for arrival, blocks, shard in zip(
            arrivals, self._holders[stage.index, index], self._stages[stage.index], strict=True
        ):
            if arrival is not None:
                in_time = np.flatnonzero(arrival.rows.ts >= shard.clocks[index])
                blocks.append(arrival.rows.take(in_time), arrival.clock)
                arrival = replace(arrival, holder=blocks)  # noqa: PLW2901
            common.append(arrival)
        return common

    def _drop_ended(self, stage: Stage) -> None:
        """Drop the rows that have ended in every shard of a stage."""
        for index, given in enumerate(stage.inputs):
            if given.common:
                for blocks, shard in zip(self._holders[stage.index, index], self._stages[stage.index], strict=True):
                    blocks.drop_before(shard.clock - given.leaf.horizon)

    @staticmethod
    def _from_stage(given: StageInput, width: int, before: Sequence[_Released]) -> list[Arrival]:
        """The changes of an earlier stage: those of the same shard, or, sent by key, those of all shards."""
        if given.local:
            return [Arrival(part.changes, part.clock, part.times) for part in before]
        rows = concat([part.changes for part in before])
        clock = min(part.clock for part in before)
        times = [part.times or Times.at(part.clock) for part in before]
        return [Arrival(part, clock, Times.slowest(times)) for part in partition(rows, given.keys, width)]

    @property
    def late(self) -> int:
        """The number of late rows."""
        return self.late_rows.total()

    def _count(self, stage: Stage, output: ShardOutput) -> None:
        for name, seen in output.intake.counts.items():
            self.counts.setdefault(f"{stage.index}.{name}", Counts()).add(seen)

    @property
    def leg_runners(self) -> list[LegRunner]:
        """The runners of the legs."""
        return [leg for leg in self._legs if leg is not None]

    @property
    def operators(self) -> list[Operator]:
        """The operators of all stages and shards."""
        return [operator for shards in self._stages for shard in shards for operator in shard.operators]

    @property
    def state_rows(self) -> int:
        """The number of rows that all operators keep."""
        return sum(self.stage_rows.values())

    @property
    def stage_rows(self) -> dict[int, int]:
        """The number of rows that the operators of each stage keep, and of those that wait."""
        return {
            stage.index: sum(shard.state_rows for shard in shards)
            for stage, shards in zip(self.plan.stages, self._stages, strict=True)
        }

    @property
    def operator_rows(self) -> dict[str, int]:
        """The number of rows that each operator keeps, by the names of `counts`."""
        total: Counter[str] = Counter()
        for stage, shards in zip(self.plan.stages, self._stages, strict=True):
            for shard in shards:
                total.update({f"{stage.index}.{name}": rows for name, rows in shard.operator_rows.items()})
        return dict(total)

    @property
    def operator_bytes(self) -> dict[str, int]:
        """The size of each operator's arrays in bytes, by the names of `counts`."""
        total: Counter[str] = Counter()
        for stage, shards, memories in zip(self.plan.stages, self._stages, self._memories, strict=True):
            for shard, memory in zip(shards, memories, strict=True):
                held = shard.operator_bytes(memory.sizes)
                total.update({f"{stage.index}.{name}": size for name, size in held.items()})
        return dict(total)

    @property
    def stage_bytes(self) -> dict[int, int]:
        """The size of each stage's arrays in bytes, with the rows that wait."""
        return {
            stage.index: sum(memory.nbytes for memory in memories)
            for stage, memories in zip(self.plan.stages, self._memories, strict=True)
        }
