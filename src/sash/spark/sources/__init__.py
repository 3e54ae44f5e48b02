"""Sources: streams and relations as Spark reads them."""

from sash.spark.sources.declared import static_frame, stream_frame, stream_rereading, struct

__all__ = ["static_frame", "stream_frame", "stream_rereading", "struct"]
