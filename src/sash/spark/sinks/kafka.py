"""A Kafka topic: in mode upsert a message is the latest row of a key, or a tombstone; in mode changes it is a change.

A repeated batch repeats its messages. The last message of every key is the same, so an upsert topic stays correct.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from sash.errors import CatalogError
from sash.plan.options import Mode
from sash.spark.sinks.base import Batch, Guarantee, OutputSpec, Sink, WriteBatch
from sash.sql.render import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_SERVERS = "kafka.bootstrap.servers"


class KafkaTopic(Sink):
    """Writes to `topic` at `kafka.bootstrap.servers`; takes any other `kafka.` option of Spark's."""

    name = "kafka"
    needed = (_SERVERS, "topic")
    modes: ClassVar[tuple[Mode, ...]] = ("changes", "upsert")
    guarantee: Guarantee = "at least once"

    def accepts(self, option: str) -> bool:
        return option.startswith("kafka.")

    def open(self, output: OutputSpec) -> WriteBatch:
        options = {name: str(value) for name, value in self.options.items()}

        def write(batch: Batch, number: int) -> None:
            from py4j.protocol import Py4JJavaError
            from pyspark.errors import PySparkException

            try:
                messages(batch.frame, output).write.format("kafka").options(**options).save()
            except (PySparkException, Py4JJavaError) as problem:
                if "Failed to find" in str(problem) or "DATA_SOURCE_NOT_FOUND" in str(problem):
                    package = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{batch.spark.version}"
                    raise CatalogError(
                        f"Spark's Kafka package is missing: start with --conf spark.jars.packages={package}"
                    ) from problem
                raise

        return write


def messages(batch: DataFrame, output: OutputSpec) -> DataFrame:
    """Return `key` and `value` as JSON: the key's columns (all columns without a key), and the row, or NULL for a tombstone."""
    row = ", ".join(quoted(name) for name in output.names)
    key = f"to_json(named_struct({_named(output.key_names if output.key is not None else output.names)}))"
    if output.mode != "upsert":
        return batch.selectExpr(f"{key} AS key", f"to_json(struct(_op, _ts, {row})) AS value")
    # Two shards may change the same key; at the same instant, a row is added after its predecessor is retracted.
    last = f"max_by(named_struct('gone', _op = '-', 'row', struct({row})), struct(_ts, _op = '+'))"
    latest = batch.selectExpr("*", f"{key} AS _key").groupBy("_key")
    from pyspark.sql.functions import expr

    return latest.agg(expr(f"{last} AS _last")).selectExpr(
        "_key AS key", "CASE WHEN NOT _last.gone THEN to_json(_last.row) END AS value"
    )


def _named(names: list[str]) -> str:
    return ", ".join(f"'{name}', {quoted(name)}" for name in names)
