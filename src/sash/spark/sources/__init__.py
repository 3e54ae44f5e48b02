"""Sources: streams and relations as Spark reads them."""

from sash.spark.sources.declared import Updates, static_frame, stream_frame, stream_rereading, struct

__all__ = ["Updates", "static_frame", "stream_frame", "stream_rereading", "struct"]
