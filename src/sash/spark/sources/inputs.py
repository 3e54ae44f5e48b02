"""The inputs of a query: registered streams, relations, and tables that are refreshed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame

from sash.spark.scatter import TIME
from sash.time import SECOND

if TYPE_CHECKING:
    from sash.spark.sources.refresh import RefreshedTable


@dataclass(frozen=True)
class StreamSource:
    """A registered stream, or the updates of a relation. `slack` is the watermark delay, in microseconds.

    With a `heartbeat`, a period in microseconds, the wall clock advances the stream's clock while no rows arrive. `time`
    names the column with a row's time in microseconds, if that is not the stream's own time column; for updates it is the
    column with their times, of any type.
    """

    frame: DataFrame
    slack: int = 0
    heartbeat: int | None = None
    drop_bad_rows: bool = False
    time: str | None = None


@dataclass(frozen=True)
class QueryInputs:
    """The inputs of a query by name: streams and updates of relations, and relations that never change.

    `control` is a stream of (stream, ts) that sets clocks explicitly. `refreshed` are tables that are read periodically
    while a query runs.
    """

    streams: Mapping[str, StreamSource]
    relations: Mapping[str, DataFrame] = field(default_factory=dict)
    control: DataFrame | None = None
    refreshed: Mapping[str, RefreshedTable] = field(default_factory=dict)


def heartbeats(source: StreamSource) -> DataFrame:
    """A stream of the wall clock, with a row every `heartbeat` microseconds."""
    assert source.heartbeat is not None
    rate = source.frame.sparkSession.readStream.format("rate")
    per_second = max(1, SECOND // max(1, source.heartbeat))
    beats = rate.option("rowsPerSecond", per_second).option("numPartitions", 1).load()
    return beats.selectExpr(f"unix_micros(timestamp) AS {TIME}")
