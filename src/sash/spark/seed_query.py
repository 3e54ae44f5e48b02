"""The Spark query that runs the first batch of a generation, and what it finds in the new folder when it begins in place."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import reduce
from operator import or_
from typing import Any
from uuid import uuid4

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from sash.spark.folders import Folder
from sash.spark.handover import Handover
from sash.spark.messages import DDL
from sash.spark.offsets import NOTHING
from sash.spark.packed_processor import PackedProcessor
from sash.spark.seed_processor import SeedProcessor
from sash.spark.seed_scatter import Notices, SeedScatter
from sash.spark.stored_state import state_frame
from sash.spark.uncommitted import remove_uncommitted


def adopt(current: Folder, made: Folder, committed: int) -> None:
    """Let a generation begin with the state of another one, as if it had run its batches.

    Spark's metadata name the files that describe the state by their whole paths.
    """
    old, new = (folder.location.rstrip("/").rsplit("/", 1)[1] for folder in (current, made))
    current.link("state", made, {"_metadata": lambda text: text.replace(f"/{old}/state/", f"/{new}/state/")})
    made.write("metadata", json.dumps({"id": str(uuid4())}))
    current.inside("commits").copy(str(committed), made.inside("commits"))
    remove_uncommitted(made.location)


def begin_unread(current: Folder, made: Folder, committed: int, sources: int) -> None:
    """Write that a generation which begins with the state of another one has read nothing of its first batch's sources."""
    settings = (current.inside("offsets").read(str(committed)) or "").split("\n")[:2]
    for number in {committed, max(committed - 1, 0)}:  # Spark also reads those of the batch before the last
        made.inside("offsets").write(str(number), "\n".join([*settings, *([NOTHING] * sources)]))


def seed_frame(
    spark: SparkSession, given: Handover, old: str, start: str, shards: int, filled: Sequence[DataFrame]
) -> tuple[DataFrame, int]:
    """The first batch of a generation: the old state, read as soon as the file in `start` is, through all levels.

    `filled` are messages with rows that are read from streams again. Returns the number of Spark's sources as well.
    """
    begin = spark.readStream.schema("go long").json(start)
    frame = begin.mapInArrow(Notices(shards), DDL)
    moving = moving_chunks(spark, given, old)
    if moving is not None:
        state = moving.crossJoin(sf.broadcast(begin)).drop("go")
        frame = frame.unionAll(state.mapInArrow(SeedScatter(given, shards), DDL))
    for messages in filled:
        frame = frame.unionAll(messages.crossJoin(sf.broadcast(begin)).drop("go"))
    for level in range(given.new.height):
        processor: Any = SeedProcessor(given, level)
        frame = frame.groupBy("label").transformWithStateInPandas(PackedProcessor(processor), DDL, "Append", "None")
    return frame, 1 + (moving is not None) + len(filled)


def moving_chunks(spark: SparkSession, given: Handover, old: str) -> DataFrame | None:
    """The chunks of the old state that must be read because their rows move; None if there are none."""
    state = state_frame(spark, old, given.old.height)
    if not given.in_place:
        return state
    ranges: dict[tuple[int, int], tuple[int, int]] = {}
    for level, label, number in given.chunk_uses():
        low, high = ranges.get((level, label), (number, number))
        ranges[level, label] = min(low, number), max(high, number)
    if not ranges:
        return None
    within = [
        (sf.col("level") == level) & (sf.col("label") == label) & sf.col("number").between(low, high)
        for (level, label), (low, high) in ranges.items()
    ]
    return state.where(reduce(or_, within))
