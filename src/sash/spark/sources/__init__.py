"""Sources: streams and relations as Spark reads them."""

from sash.spark.sources.declared import static_frame, stream_frame, struct

__all__ = ["static_frame", "stream_frame", "struct"]
