"""Assembly: a physical plan over registered streams becomes one streaming DataFrame.

Stages are laid out in rounds: a stage is in the round after the last stage that it reads, and all stages of a round are
one stateful operator of Spark. The rounds form a chain, so that every DataFrame is used once and nothing runs twice; a
source joins the chain at the first round that reads it, and messages for later rounds pass through.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import reduce

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from sash.physical.nodes import PhysicalPlan, RelationLeg, StreamLeg, UpdateLeg
from sash.plan.nodes import Stream
from sash.plan.nodes import walk as walk_logical
from sash.plan.options import Mode
from sash.plan.types import BIGINT, DATE, TIMESTAMP, TIMESTAMP_NTZ, Schema
from sash.runtime.build import Relations
from sash.runtime.legs import stage_tables
from sash.spark.gather import Gather
from sash.spark.labels import shard_labels
from sash.spark.legs import leg_frame, relation_table
from sash.spark.lookups import lookups_of
from sash.spark.messages import CONTROL, DDL, HEARTBEAT
from sash.spark.reread import Table
from sash.spark.scatter import TIME, Beat, Scatter, Target
from sash.spark.stage import Layout, Round
from sash.spark.updates import update_frame, update_time


@dataclass(frozen=True)
class Source:
    """A registered stream: its rows, how long they are held back, and how its clock moves while it is idle.

    `time` is the column with a row's time in microseconds, where that is not the stream's own time column. Of a relation's
    updates it is the column with their times, of any type.
    """

    frame: DataFrame
    slack: int = 0
    heartbeat: int | None = None
    drop_bad_rows: bool = False
    time: str | None = None


@dataclass(frozen=True)
class Inputs:
    """Everything that a query reads: streams and relations' updates, and relations that never change, by name.

    `control` is a stream of (stream, ts): clocks set by hand. `reread` are tables that a query reads again while it runs.
    """

    streams: Mapping[str, Source]
    relations: Mapping[str, DataFrame] = field(default_factory=dict)
    control: DataFrame | None = None
    reread: Mapping[str, Table] = field(default_factory=dict)


def change_frame(
    plan: PhysicalPlan,
    schema: Schema,
    inputs: Inputs,
    shards: int,
    mode: Mode = "changes",
    key: tuple[int, ...] | None = None,
) -> DataFrame:
    """The change stream of a plan: `_op`, `_ts` and the query's columns."""
    layout = _layout(plan, shards)
    rounds = rounds_of(plan)
    joining: dict[int, list[DataFrame]] = {}
    for number, frame in _sources(plan, layout, inputs, rounds):
        joining.setdefault(number, []).append(frame)
    tables = _tables(plan, inputs)
    gather = Gather(schema, time_type(plan, inputs))
    packed: DataFrame | None = None
    for number, stages in enumerate(rounds):
        frames = [*([] if packed is None else [packed]), *joining.get(number, ())]
        last = number == len(rounds) - 1
        processor = Round(plan, stages, layout, tables, mode, key, gather if last else None)
        together = reduce(DataFrame.unionAll, frames).groupBy("label")
        packed = together.transformWithStateInPandas(processor, gather.ddl if last else DDL, "Append", "None")
    assert packed is not None
    return gather.typed(packed)


def rounds_of(plan: PhysicalPlan) -> list[tuple[int, ...]]:
    """The stages by round."""
    depth: list[int] = []
    for stage in plan.stages:
        before = [depth[given.leaf.stage] for given in stage.inputs if given.leaf.stage is not None]
        depth.append(max(before, default=-1) + 1)
    return [tuple(i for i, d in enumerate(depth) if d == number) for number in range(max(depth) + 1)]


def time_type(plan: PhysicalPlan, inputs: Inputs) -> pa.DataType:
    """The type of `_ts`: that of the streams' times (without streams: of the updates'), or BIGINT microseconds."""
    sources = [node for leg in plan.legs for node in walk_logical(leg.node) if isinstance(node, Stream)]
    types = {source.schema[source.time].dtype for source in sources}
    if not types:
        updated = [inputs.streams[leg.stream.lower()] for leg in plan.legs if isinstance(leg, UpdateLeg)]
        types = {update_time(source.frame, source.time) for source in updated}
    if TIMESTAMP in types:
        return TIMESTAMP
    return TIMESTAMP_NTZ if types & {TIMESTAMP_NTZ, DATE} else BIGINT


def _layout(plan: PhysicalPlan, shards: int) -> Layout:
    """Single stages stand in different shards, so that they do not wait for one another."""
    every = shard_labels(shards)
    labels = tuple((every[stage.index % shards],) if stage.single else every for stage in plan.stages)
    readers: list[list[Target]] = [[] for _ in plan.stages]
    for stage in plan.stages:
        for index, given in enumerate(stage.inputs):
            if given.leaf.stage is not None:
                readers[given.leaf.stage].append(Target(stage.index, index, given.keys, labels[stage.index]))
    return Layout(labels, tuple(tuple(targets) for targets in readers))


def _targets(plan: PhysicalPlan, layout: Layout, leg: int) -> tuple[Target, ...]:
    """The stage inputs that read a leg."""
    return tuple(
        Target(stage.index, index, given.keys, layout.labels[stage.index])
        for stage in plan.stages
        for index, given in enumerate(stage.inputs)
        if given.leaf.leg == leg
    )


def _sources(
    plan: PhysicalPlan, layout: Layout, inputs: Inputs, rounds: list[tuple[int, ...]]
) -> list[tuple[int, DataFrame]]:
    """The packed rows of every leg, heartbeat and control stream, each with the round where it joins in."""
    place = {stage: number for number, stages in enumerate(rounds) for stage in stages}
    found: list[tuple[int, DataFrame]] = []
    reading: dict[str, tuple[Target, ...]] = {}
    for number, leg in enumerate(plan.legs):
        targets = _targets(plan, layout, number)
        if isinstance(leg, RelationLeg) or not targets:
            continue
        name = leg.stream.lower()
        source = inputs.streams[name]
        first, lookups = name not in reading, None
        reading[name] = (*reading.get(name, ()), *targets)
        if isinstance(leg, StreamLeg):
            lookups = lookups_of(leg.node, inputs.relations)
            below = leg.node if lookups is None else lookups.below
            rows, schema = leg_frame(below, source.frame, source.time, inputs.relations), below.schema
        else:
            rows, schema = update_frame(leg, source.frame, source.time), leg.schema
        dtypes = tuple(f.dtype for f in schema)
        signed = isinstance(leg, UpdateLeg)
        scatter = Scatter(leg.stream, source.slack, source.drop_bad_rows, first, dtypes, targets, signed, lookups)
        found.append((_first(targets, place), rows.mapInArrow(scatter, DDL)))
    for name, targets in reading.items():
        source = inputs.streams[name]
        if source.heartbeat is not None:
            beats = Beat(HEARTBEAT, source.slack, targets)
            found.append((_first(targets, place), heartbeats(source).mapInArrow(beats, DDL)))
        if inputs.control is not None:
            said = inputs.control.where(sf.col("stream") == name).selectExpr(f"ts AS {TIME}")
            found.append((_first(targets, place), said.mapInArrow(Beat(CONTROL, 0, targets), DDL)))
    return found


def _first(targets: tuple[Target, ...], place: Mapping[int, int]) -> int:
    return min(place[target.stage] for target in targets)


def heartbeats(source: Source) -> DataFrame:
    """The wall clock, said every `heartbeat` microseconds."""
    assert source.heartbeat is not None
    spark = source.frame.sparkSession
    rate = spark.readStream.format("rate")
    per_second = max(1, 1_000_000 // max(1, source.heartbeat))
    beats = rate.option("rowsPerSecond", per_second).option("numPartitions", 1).load()
    return beats.selectExpr(f"unix_micros(timestamp) AS {TIME}")


def _tables(plan: PhysicalPlan, inputs: Inputs) -> Relations:
    """The contents of the relations that stages need; legs look theirs up in Spark."""
    return {node: relation_table(node, inputs.relations) for node in stage_tables(plan)}
