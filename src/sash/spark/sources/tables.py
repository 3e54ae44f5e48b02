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
    found, tables = dict(inputs.streams), {}
    for name in map(str.lower, changing):
        if name in inputs.refreshed:
            folder = f"{checkpoint.rstrip('/')}/relations/{name}"
            tables[name] = TableRefresh(spark, inputs.refreshed[name], folder)
            tables[name].refresh()
            found[name] = StreamSource(tables[name].updates(), time=READING if streams else READ_AT)
    return replace(inputs, streams=found), tables
