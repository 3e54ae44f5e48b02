"""The first batch of a generation: each level is a stateful operator of Spark, as in every batch (`stage.py`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from sash.spark.handover import NOTICE, SNAPSHOT, Handover
from sash.spark.messages import METRICS, OUTPUT, Message, from_frame, to_frames
from sash.spark.seed_shard import SeedShard
from sash.spark.workers import freeze_loaded_objects

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql.streaming.stateful_processor import MapState


class SeedProcessor:
    """Seeds one level of the new generation."""

    def __init__(self, handover: Handover, level: int) -> None:
        self._handover = handover
        self._level = level

    def run(self, label: int, rows: Iterator[Any], chunks: MapState) -> Iterator[pd.DataFrame]:
        """Seed one shard, whose state is in the chunks."""
        freeze_loaded_objects()
        received: list[Message] = []
        for frame in rows:
            forwarded = []
            for message in from_frame(frame):
                levels = self._levels(message)
                if self._level in levels:
                    received.append(self._handover.files.get(message))
                if message.channel in (OUTPUT, METRICS) or any(level > self._level for level in levels):
                    forwarded.append(message)
            yield from to_frames(forwarded)
        if self._runs(label):
            yield from to_frames(SeedShard(self._handover, self._level, label, chunks).run(received))

    def _runs(self, label: int) -> bool:
        """Whether the shard has something to write, or something left of the old generation."""
        layout = self._handover.new
        reads = any(self._level == layout.levels[stage] and label in found for stage, found in enumerate(layout.labels))
        return reads or (self._handover.in_place and (self._level, label) in self._handover.headers)

    def _levels(self, message: Message) -> set[int]:
        layout = self._handover.new
        if message.channel == NOTICE:
            return set(range(layout.height))
        if message.channel == SNAPSHOT:
            return {layout.levels[message.output]}
        if message.channel < 0:
            return set()
        return layout.levels_of(layout.channels.channels[message.channel])
