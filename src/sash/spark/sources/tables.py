"""The refreshed tables of a query or job: read when it starts, and turned into streams of their updates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pyspark.sql import SparkSession

from sash.spark.sources.inputs import QueryInputs, StreamSource
from sash.spark.sources.refresh import READ_AT, READING, TableRefresh


def refresh_tables(
    spark: SparkSession, inputs: QueryInputs, changing: Sequence[str], streams: Sequence[str], checkpoint: str
) -> tuple[QueryInputs, dict[str, TableRefresh]]:
    """Read the changing relations that have a refresh interval.

    Returns the inputs with the streams of their updates, which are kept under the checkpoint, and the tables.
    """
    tables = _tables(spark, inputs, changing, checkpoint)
    for table in tables.values():
        table.read_at_start()
    return _with_updates(inputs, tables, streams), tables


def recorded_tables(
    spark: SparkSession, inputs: QueryInputs, changing: Sequence[str], streams: Sequence[str], checkpoint: str
) -> QueryInputs:
    """The inputs with the streams of updates as they were recorded so far; reads no table."""
    return _with_updates(inputs, _tables(spark, inputs, changing, checkpoint), streams)


def _tables(
    spark: SparkSession, inputs: QueryInputs, changing: Sequence[str], checkpoint: str
) -> dict[str, TableRefresh]:
    names = [name for name in map(str.lower, changing) if name in inputs.refreshed]
    folder = f"{checkpoint.rstrip('/')}/relations"
    return {name: TableRefresh(spark, inputs.refreshed[name], f"{folder}/{name}") for name in names}


def _with_updates(inputs: QueryInputs, tables: dict[str, TableRefresh], streams: Sequence[str]) -> QueryInputs:
    time = READING if streams else READ_AT
    found = {name: StreamSource(table.updates(), time=time) for name, table in tables.items()}
    return replace(inputs, streams={**inputs.streams, **found})
