"""The Spark session that gives the pinned answers."""

from __future__ import annotations

from pyspark.sql import SparkSession

_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.codegen.wholeStage": "false",
    "spark.driver.extraJavaOptions": "-Duser.timezone=UTC -XX:TieredStopAtLevel=1",
}
"""Queries are small and run once: compiling them better takes longer than running them."""


def batch_session() -> SparkSession:
    """A local session in UTC, with one partition, so that rows keep their order where an answer depends on it."""
    spark = SparkSession.builder.master("local[1]").config(map=_SETTINGS).getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark
