"""A Kafka topic: in mode upsert every message is a key's latest row, or a tombstone when it is gone; else every change.

A batch that is written again repeats its messages: per key the last one is the same, so an upsert topic stays right.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from sash.errors import CatalogError
from sash.spark.output import Mode
from sash.spark.stores.base import Answer, Store, Write
from sash.sql.render import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_SERVERS = "kafka.bootstrap.servers"


class KafkaTopic(Store):
    """`kafka.bootstrap.servers`, `topic`, and any other `kafka.` option of Spark's."""

    name = "kafka"
    needed = (_SERVERS, "topic")
    modes: ClassVar[tuple[Mode, ...]] = ("changes", "upsert")

    def accepts(self, option: str) -> bool:
        return option.startswith("kafka.")

    def open(self, answer: Answer) -> Write:
        options = {name: str(value) for name, value in self.options.items()}

        def write(batch: DataFrame, number: int) -> None:
            from py4j.protocol import Py4JJavaError
            from pyspark.errors import PySparkException

            try:
                messages(batch, answer).write.format("kafka").options(**options).save()
            except (PySparkException, Py4JJavaError) as problem:
                if "Failed to find" in str(problem) or "DATA_SOURCE_NOT_FOUND" in str(problem):
                    package = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{batch.sparkSession.version}"
                    raise CatalogError(
                        f"Spark's Kafka package is not there: start with --conf spark.jars.packages={package}"
                    ) from problem
                raise

        return write


def messages(batch: DataFrame, answer: Answer) -> DataFrame:
    """`key` and `value` as JSON: the key's columns (all, if there is no key), and the row; NULL for a row that is gone."""
    row = ", ".join(quoted(name) for name in answer.names)
    key = f"to_json(named_struct({_named(answer.key_names if answer.key is not None else answer.names)}))"
    if answer.mode != "upsert":
        return batch.selectExpr(f"{key} AS key", f"to_json(struct(_op, _ts, {row})) AS value")
    # Shards may both have a word on a key; a row that comes is after the one that goes at the same instant.
    last = f"max_by(named_struct('gone', _op = '-', 'row', struct({row})), struct(_ts, _op = '+'))"
    latest = batch.selectExpr("*", f"{key} AS _key").groupBy("_key")
    from pyspark.sql.functions import expr

    return latest.agg(expr(f"{last} AS _last")).selectExpr(
        "_key AS key", "CASE WHEN NOT _last.gone THEN to_json(_last.row) END AS value"
    )


def _named(names: list[str]) -> str:
    return ", ".join(f"'{name}', {quoted(name)}" for name in names)
