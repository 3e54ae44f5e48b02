"""The local runtime: the stages of a plan in one process, batch by batch, with any number of shards."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from sash.operators.base import Operator
from sash.physical.nodes import PhysicalPlan, RelationLeg, Stage
from sash.plan.nodes import Node
from sash.runtime.build import Relations
from sash.runtime.counts import Counts
from sash.runtime.legs import LegRunner
from sash.runtime.shard import Arrival, Shard, ShardOutput, partition
from sash.state.changes import ChangeBatch, concat
from sash.state.memory import HeapMemory


@dataclass
class LocalRun:
    """A query in execution. `advance` takes a micro-batch and returns the changes that its clocks release."""

    plan: PhysicalPlan
    tables: Mapping[Node, pa.Table]
    shards: int = 1
    late: int = 0
    counts: dict[str, Counts] = field(default_factory=dict)

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

    def _width(self, stage: Stage) -> int:
        return 1 if stage.single else self.shards

    def advance(self, rows: Mapping[str, ChangeBatch], clocks: Mapping[str, int]) -> ChangeBatch:
        """Take in the rows of a micro-batch and the clocks of the streams that reported one."""
        legs = [
            None if runner is None or isinstance(leg, RelationLeg) or leg.stream not in rows
            else runner.run(rows[leg.stream])
            for leg, runner in zip(self.plan.legs, self._legs, strict=True)
        ]  # fmt: skip
        outputs: list[list[ShardOutput]] = []
        for stage, shards in zip(self.plan.stages, self._stages, strict=True):
            spread = [self._arrivals(stage, index, legs, clocks, outputs) for index in range(len(stage.inputs))]
            made = [shard.run([given[number] for given in spread]) for number, shard in enumerate(shards)]
            outputs.append(made)
            for output in made:
                self.late += output.intake.late
                self._count(stage, output)
        return concat([output.changes for output in outputs[self.plan.root.index]]).sorted()

    def flush(self) -> ChangeBatch:
        """The changes that were not released because an operator had not learnt the time."""
        dtypes = [[column.dtype for column in stage.root.schema] for stage in self.plan.stages]
        made = [[ChangeBatch.empty(types)] for types in dtypes]
        for stage, shards in zip(self.plan.stages, self._stages, strict=True):
            for index, given in enumerate(stage.inputs):
                if given.leaf.stage is not None:
                    rows = concat(made[given.leaf.stage])
                    parts = partition(rows, given.keys, self._width(stage))
                    for shard, part in zip(shards, parts, strict=True):
                        arrivals: list[Arrival | None] = [None] * len(stage.inputs)
                        clock = min(before.clock for before in self._stages[given.leaf.stage])
                        arrivals[index] = Arrival(part, clock)
                        made[stage.index].append(shard.run(arrivals).changes)
            made[stage.index] += [shard.flush() for shard in shards]
        return concat(made[self.plan.root.index]).sorted()

    def _arrivals(
        self,
        stage: Stage,
        index: int,
        legs: list[ChangeBatch | None],
        clocks: Mapping[str, int],
        outputs: list[list[ShardOutput]],
    ) -> list[Arrival | None]:
        """The rows and clock of one input of a stage, for each of its shards."""
        given, width = stage.inputs[index], self._width(stage)
        leaf = given.leaf
        if leaf.stage is not None:
            before = outputs[leaf.stage]
            rows = concat([output.changes for output in before])
            clock = min(output.clock for output in before)
        else:
            leg = self.plan.legs[leaf.leg or 0]
            if isinstance(leg, RelationLeg):
                return [None] * width
            if leg.stream not in clocks:
                return [None] * width
            found = legs[leaf.leg or 0]
            rows = ChangeBatch.empty([column.dtype for column in leaf.schema]) if found is None else found
            clock = clocks[leg.stream]
        parts = [rows] * width if leaf.everywhere else partition(rows, given.keys, width)
        return [Arrival(part, clock) for part in parts]

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
        return sum(shard.state_rows for shards in self._stages for shard in shards)

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
