"""Asks Spark for the answers to all queries, and rewrites the files."""

from __future__ import annotations

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tests.sql.spark_answers import SCHEMAS, TABLES, Pinned, as_text, read, topics, write
from tests.sql.spark_answers.session import batch_session


def main() -> None:
    spark = batch_session()
    for name, rows in TABLES.items():
        frame = spark.createDataFrame([tuple(row.values()) for row in rows], SCHEMAS[name])
        frame.coalesce(1).createOrReplaceTempView(name)
    for topic in topics():
        write(topic, [_asked(spark, pinned.sql) for pinned in read(topic)])


def _asked(spark: SparkSession, sql: str) -> Pinned:
    try:
        return Pinned(sql, as_text(spark.sql(sql).collect()))
    except PySparkException:
        return Pinned(sql, None)


main()
