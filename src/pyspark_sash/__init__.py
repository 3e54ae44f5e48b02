"""Found by Spark, which looks for data sources in modules with names that begin so: the format `sash`."""

from sash.spark.data_source import SashSource as DefaultSource

__all__ = ["DefaultSource"]
