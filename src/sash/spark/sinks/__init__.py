"""Sinks of Sash's own: a table that holds the current answer, or a log of all of its changes, outside of Spark."""

from sash.spark.sinks.base import OutputSpec, Sink
from sash.spark.sinks.batch import Batch, WriteBatch, WriteFrame
from sash.spark.sinks.catalog import CatalogTable
from sash.spark.sinks.changelog import ChangeLog
from sash.spark.sinks.delta import Delta
from sash.spark.sinks.iceberg import Iceberg
from sash.spark.sinks.kafka import KafkaTopic
from sash.spark.sinks.postgres import PostgresTable

SINKS: dict[str, type[Sink]] = {
    "postgres": PostgresTable,
    "changelog": ChangeLog,
    "kafka": KafkaTopic,
    "delta": Delta,
    "iceberg": Iceberg,
    "table": CatalogTable,
}

__all__ = ["SINKS", "Batch", "OutputSpec", "Sink", "WriteBatch", "WriteFrame"]
