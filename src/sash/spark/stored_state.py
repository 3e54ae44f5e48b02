"""Reads the state of a job's checkpoint: the headers of all shards on the driver, their chunks in parallel tasks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import reduce
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql import functions as sf

from sash.change.stored import Completeness, StoredLog, StoredStage, StoredState
from sash.physical.channels import Channel
from sash.spark.layout import Layout
from sash.time import BEGINNING

HEADER = -1
"""The number of the header among the chunks."""

_CHUNK = ("level", "key.label AS label", "user_map_key.number AS number", "user_map_value.data AS data")

Headers = Mapping[tuple[int, int], dict[str, Any]]
"""The headers of a checkpoint, by level and label."""


def state_frame(spark: SparkSession, checkpoint: str, levels: int) -> DataFrame:
    """The chunks of all shards, as the last committed batch left them: level, label, number, data.

    Spark numbers the operators of a query from the last to the first.
    """
    found = _by_level(spark.read.format("statestore").option("stateVarName", "chunks"), checkpoint, levels)
    return found.selectExpr(*_CHUNK)


def _by_level(reader: DataFrameReader, checkpoint: str, levels: int) -> DataFrame:
    parts = [
        reader.option("operatorId", levels - 1 - level).load(checkpoint).selectExpr(f"{level} AS level", "*")
        for level in range(levels)
    ]
    return reduce(DataFrame.unionAll, parts)


def read_headers(spark: SparkSession, checkpoint: str, layout: Layout, batch: int | None) -> Headers:
    """Read the headers of all shards, as the last committed batch left them.

    A shard writes its header with every batch, so they are among the changes of the last one, which are few. The whole state
    is read only if a shard had nothing to do in that batch, or if it is not known what the batch has changed (None: it wrote
    the state as a whole).
    """
    shards = {(layout.levels[stage], label) for stage, labels in enumerate(layout.labels) for label in labels}
    with suppress(PySparkException):
        found = {} if batch is None else _headers(_changed(spark, checkpoint, layout.height, batch))
        if shards <= found.keys():
            return found
    return _headers(state_frame(spark, checkpoint, layout.height))


def _headers(state: DataFrame) -> Headers:
    found = state.where(sf.col("number") == HEADER)
    return {(row["level"], row["label"]): json.loads(bytes(row["data"])) for row in found.collect()}


def _changed(spark: SparkSession, checkpoint: str, levels: int, batch: int) -> DataFrame:
    """The chunks that a batch has written."""
    reader = spark.read.format("statestore").option("stateVarName", "chunks").option("readChangeFeed", "true")
    reader = reader.option("changeStartBatchId", batch).option("changeEndBatchId", batch)
    return _by_level(reader, checkpoint, levels).where("change_type = 'update'").selectExpr(*_CHUNK)


@dataclass(frozen=True)
class LogPlace:
    """Where the whole log of a channel is: a level, and the labels of its parts."""

    level: int
    labels: tuple[int, ...]


def log_place(layout: Layout, channel: Channel) -> LogPlace:
    """Where to read a channel's log. It is in every level that reads it; without keys, each label has all of its rows."""
    level = min(layout.levels_of(channel))
    here = [reader for reader in channel.readers if layout.levels[reader.stage] == level]
    labels = tuple(dict.fromkeys(label for reader in here for label in layout.labels[reader.stage]))
    return LogPlace(level, labels if channel.keys else labels[:1])


def stored_state(
    layout: Layout, headers: Headers, since: Mapping[str, int], complete: Mapping[str, Completeness]
) -> StoredState:
    """Add up what the headers say; `since` and `complete` are what earlier changes of the job left incomplete."""
    logs: dict[str, StoredLog] = {}
    for channel in layout.channels.channels:
        place = log_place(layout, channel)
        found = [header_part(headers, place.level, label, "channels", channel.identity) for label in place.labels]
        known = [one for one in found if one is not None]
        if known:
            size = sum(chunk[2] for one in known for chunk in one["log"]["chunks"])
            clock = min(int(one["clock"]) for one in known)
            logs[channel.identity] = StoredLog(clock, size, since.get(channel.identity, int(BEGINNING)))
    stages: dict[str, StoredStage] = {}
    for index, identity in enumerate(layout.channels.stages):
        found = [
            header_part(headers, layout.levels[index], label, "stages", identity) for label in layout.labels[index]
        ]
        snapshots = [one["snapshot"] for one in found if one is not None and one.get("snapshot")]
        size = sum(int(one["size"]) for one in snapshots)
        stages[identity] = StoredStage(bool(snapshots), size, complete.get(identity))
    return StoredState(logs, stages, fastest=_fastest(layout, headers))


def _fastest(layout: Layout, headers: Headers) -> dict[str, int]:
    """The largest mark of the partitions of every stream that has any, by lower-case name."""
    streams = {channel.identity: (channel.stream or "").lower() for channel in layout.channels.channels}
    found: dict[str, int] = {}
    for header in headers.values():
        for identity, record in header.get("channels", {}).items():
            for mark, _ in record.get("marks", {}).values():
                name = streams.get(identity, "")
                found[name] = max(mark, found.get(name, mark))
    return found


def header_part(headers: Headers, level: int, label: int, kind: str, identity: str) -> dict[str, Any] | None:
    """What a shard's header says of a channel or a stage."""
    found: dict[str, Any] | None = headers.get((level, label), {}).get(kind, {}).get(identity)
    return found
