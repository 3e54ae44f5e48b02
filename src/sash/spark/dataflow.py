"""Dataflow: a physical plan over registered streams becomes one streaming DataFrame.

Stages are grouped into levels: a stage is one level above the highest stage that it reads, and all stages of a level are
one stateful operator of Spark. The levels form a chain, so that every DataFrame is used once and no stage runs twice. A
source joins the chain at the first level that reads it, and messages for higher levels are forwarded.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from sash.physical.nodes import PhysicalPlan, RelationLeg, StreamLeg, UpdateLeg
from sash.plan.nodes import Stream
from sash.plan.nodes import walk as walk_logical
from sash.plan.options import Mode
from sash.plan.types import BIGINT, DATE, TIMESTAMP, TIMESTAMP_NTZ, Schema
from sash.runtime.legs import stage_tables
from sash.spark.gather import Gather
from sash.spark.legs import find_lookups, leg_frame, relation_table, update_frame, update_time
from sash.spark.messages import CONTROL, DDL, HEARTBEAT
from sash.spark.packed_processor import PackedProcessor
from sash.spark.scatter import TIME, ClockScatter, Scatter, Target
from sash.spark.sources.inputs import QueryInputs, heartbeats
from sash.spark.stage import ShardLayout, StageProcessor

_MASK, _SEED = 0xFFFFFFFF, 42


def change_frame(
    plan: PhysicalPlan,
    schema: Schema,
    inputs: QueryInputs,
    shards: int,
    mode: Mode = "changes",
    key: tuple[int, ...] | None = None,
) -> DataFrame:
    """Build the change stream of a plan: `_op`, `_ts` and the query's columns."""
    layout = _layout(plan, shards)
    levels = stage_levels(plan)
    joining: dict[int, list[DataFrame]] = {}
    for number, frame in _sources(plan, layout, inputs, levels):
        joining.setdefault(number, []).append(frame)
    # Legs join with their relations in Spark or in scatter; stages need theirs as tables.
    tables = {node: relation_table(node, inputs.relations) for node in stage_tables(plan)}
    gather = Gather(schema, time_type(plan, inputs))
    packed: DataFrame | None = None
    for number, stages in enumerate(levels):
        frames = [*([] if packed is None else [packed]), *joining.get(number, ())]
        last = number == len(levels) - 1
        processor = StageProcessor(plan, stages, layout, tables, mode, key, gather if last else None)
        grouped = reduce(DataFrame.unionAll, frames).groupBy("label")
        packed = grouped.transformWithStateInPandas(
            PackedProcessor(processor), gather.ddl if last else DDL, "Append", "None"
        )
    assert packed is not None
    return gather.typed(packed)


def stage_levels(plan: PhysicalPlan) -> list[tuple[int, ...]]:
    """The stages of each level, from the lowest."""
    levels: list[int] = []
    for stage in plan.stages:
        below = [levels[given.leaf.stage] for given in stage.inputs if given.leaf.stage is not None]
        levels.append(max(below, default=-1) + 1)
    return [tuple(i for i, level in enumerate(levels) if level == number) for number in range(max(levels) + 1)]


def time_type(plan: PhysicalPlan, inputs: QueryInputs) -> pa.DataType:
    """The type of `_ts`: that of the streams' times (without streams: of the updates'), or BIGINT microseconds."""
    streams = [node for leg in plan.legs for node in walk_logical(leg.node) if isinstance(node, Stream)]
    types = {stream.schema[stream.time].dtype for stream in streams}
    if not types:
        updated = [inputs.streams[leg.stream.lower()] for leg in plan.legs if isinstance(leg, UpdateLeg)]
        types = {update_time(source.frame, source.time) for source in updated}
    if TIMESTAMP in types:
        return TIMESTAMP
    return TIMESTAMP_NTZ if types & {TIMESTAMP_NTZ, DATE} else BIGINT


def _layout(plan: PhysicalPlan, shards: int) -> ShardLayout:
    """Assign shards to stages. Stages with a single shard get different ones, so that they run in parallel."""
    every = shard_labels(shards)
    labels = tuple((every[stage.index % shards],) if stage.single else every for stage in plan.stages)
    readers: list[list[Target]] = [[] for _ in plan.stages]
    for stage in plan.stages:
        for index, given in enumerate(stage.inputs):
            if given.leaf.stage is not None:
                readers[given.leaf.stage].append(Target(stage.index, index, given.keys, labels[stage.index]))
    return ShardLayout(labels, tuple(tuple(targets) for targets in readers))


def _targets(plan: PhysicalPlan, layout: ShardLayout, leg: int) -> tuple[Target, ...]:
    """The stage inputs that read a leg."""
    return tuple(
        Target(stage.index, index, given.keys, layout.labels[stage.index])
        for stage in plan.stages
        for index, given in enumerate(stage.inputs)
        if given.leaf.leg == leg
    )


def _sources(
    plan: PhysicalPlan, layout: ShardLayout, inputs: QueryInputs, levels: list[tuple[int, ...]]
) -> list[tuple[int, DataFrame]]:
    """The packed messages of every leg, heartbeat and control stream, each with the first level that reads them."""
    level_of = {stage: number for number, stages in enumerate(levels) for stage in stages}
    found: list[tuple[int, DataFrame]] = []
    readers: dict[str, tuple[Target, ...]] = {}
    for number, leg in enumerate(plan.legs):
        targets = _targets(plan, layout, number)
        if isinstance(leg, RelationLeg) or not targets:
            continue
        name = leg.stream.lower()
        source = inputs.streams[name]
        first, lookups = name not in readers, None
        readers[name] = (*readers.get(name, ()), *targets)
        if isinstance(leg, StreamLeg):
            lookups = find_lookups(leg.node, inputs.relations)
            below = leg.node if lookups is None else lookups.below
            rows, schema = leg_frame(below, source.frame, source.time, inputs.relations), below.schema
        else:
            rows, schema = update_frame(leg, source.frame, source.time), leg.schema
        dtypes = tuple(f.dtype for f in schema)
        signed = isinstance(leg, UpdateLeg)
        scatter = Scatter(leg.stream, source.slack, source.drop_bad_rows, first, dtypes, targets, signed, lookups)
        found.append((_lowest(targets, level_of), rows.mapInArrow(scatter, DDL)))
    for name, targets in readers.items():
        source = inputs.streams[name]
        if source.heartbeat is not None:
            scatter_clock = ClockScatter(HEARTBEAT, source.slack, targets)
            found.append((_lowest(targets, level_of), heartbeats(source).mapInArrow(scatter_clock, DDL)))
        if inputs.control is not None:
            clocks = inputs.control.where(sf.col("stream") == name).selectExpr(f"ts AS {TIME}")
            found.append((_lowest(targets, level_of), clocks.mapInArrow(ClockScatter(CONTROL, 0, targets), DDL)))
    return found


def _lowest(targets: tuple[Target, ...], level_of: Mapping[int, int]) -> int:
    return min(level_of[target.stage] for target in targets)


def _rotate(value: int, by: int) -> int:
    return ((value << by) | (value >> (32 - by))) & _MASK


def _mix(state: int, word: int) -> int:
    word = _rotate((word * 0xCC9E2D51) & _MASK, 15) * 0x1B873593 & _MASK
    return (_rotate(state ^ word, 13) * 5 + 0xE6546B64) & _MASK


def spark_hash(value: int) -> int:
    """Spark SQL's hash(value) of a BIGINT: Murmur3 over its two halves.

    >>> spark_hash(0)
    -1670924195
    """
    state = _mix(_mix(_SEED, value & _MASK), (value >> 32) & _MASK) ^ 8
    state = ((state ^ (state >> 16)) * 0x85EBCA6B) & _MASK
    state = ((state ^ (state >> 13)) * 0xC2B2AE35) & _MASK
    state ^= state >> 16
    return state - 2**32 if state >= 2**31 else state


def shard_labels(shards: int) -> tuple[int, ...]:
    """The label of every shard: the smallest keys that Spark's hash partitioning puts in a partition each.

    Spark sends a key to partition pmod(hash(key), P). With the keys 0, 1, 2 ... several shards would share a partition
    while others stay empty.

    >>> shard_labels(4)
    (2, 0, 14, 3)
    """
    found: dict[int, int] = {}
    label = 0
    while len(found) < shards:
        found.setdefault(spark_hash(label) % shards, label)
        label += 1
    return tuple(found[shard] for shard in range(shards))
