"""Stores: sinks of Sash's own, which keep an answer current, or its history whole, in a place outside of Spark."""

from sash.spark.stores.base import Answer, Store
from sash.spark.stores.change_log import ChangeLog
from sash.spark.stores.kafka import KafkaTopic
from sash.spark.stores.postgres import PostgresTable

STORES: dict[str, type[Store]] = {"postgres": PostgresTable, "changelog": ChangeLog, "kafka": KafkaTopic}

__all__ = ["STORES", "Answer", "Store"]
