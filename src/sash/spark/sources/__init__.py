"""Sources: streams and relations as Spark reads them."""

from sash.spark.sources.declared import Updates, static_frame, stream_frame, stream_rereading, struct
from sash.spark.sources.postgres import PostgresRelation

__all__ = ["PostgresRelation", "Updates", "static_frame", "stream_frame", "stream_rereading", "struct"]
