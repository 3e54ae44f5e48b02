"""A Kafka topic: in mode upsert a message is the latest row of a key, or a tombstone; in mode changes it is a change.

Spark's writer has no transactions: a repeated batch repeats its messages. The last message of every key is the same, so an
upsert topic stays correct. Every message has the headers `sash-query`, `sash-batch` and, if it is a change,
`sash-sequence`; they identify it, so that a topic without repeated messages has every change once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from sash.errors import CatalogError
from sash.plan.options import Mode
from sash.spark.packages import missing_kafka
from sash.spark.sinks.base import Batch, Guarantee, OutputSpec, Sink, WriteBatch
from sash.sql.render import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_SERVERS = "kafka.bootstrap.servers"
_BUCKETS = 64
"""Changes are numbered within so many parts of a batch, by the hash of their keys, so that no sort is of a whole batch."""


class KafkaTopic(Sink):
    """Writes to `topic` at `kafka.bootstrap.servers`; takes any other `kafka.` option of Spark's."""

    name = "kafka"
    needed = (_SERVERS, "topic")
    modes: ClassVar[tuple[Mode, ...]] = ("changes", "upsert")
    guarantee: Guarantee = "at least once"

    def accepts(self, option: str) -> bool:
        return option.startswith("kafka.")

    def open(self, output: OutputSpec) -> WriteBatch:
        options = {**self.resolved, "includeHeaders": "true"}

        def write(batch: Batch, number: int) -> None:
            from py4j.protocol import Py4JJavaError
            from pyspark.errors import PySparkException

            try:
                # Changes of one partition are put in order without a shuffle.
                frame = batch.frame.coalesce(1) if batch.small else batch.frame
                messages(frame, output, number).write.format("kafka").options(**options).save()
            except (PySparkException, Py4JJavaError) as problem:
                if "Failed to find" in str(problem) or "DATA_SOURCE_NOT_FOUND" in str(problem):
                    raise CatalogError(missing_kafka()) from problem
                raise

        return write


def messages(batch: DataFrame, output: OutputSpec, number: int) -> DataFrame:
    """Return `key`, `value` and `headers`: the key's columns (all columns without a key) and the row as JSON, a NULL as tombstone.

    The messages of a key are in the order of time. A change has the same number in its bucket whenever the batch is
    computed: equal changes are interchangeable.
    """
    from pyspark.sql.functions import expr

    row = ", ".join(quoted(name) for name in output.names)
    key = f"to_json(named_struct({_named(output.key_names if output.key is not None else output.names)}))"
    origin = {"sash-query": f"'{output.identity}'", "sash-batch": f"'{number}'"}
    if output.mode != "upsert":
        change = f"to_json(struct(_op, _ts, {row})) AS _value"
        numbered = batch.selectExpr(f"{key} AS _key", change, "_ts", "_op").selectExpr(
            "*", f"pmod(xxhash64(_key), {_BUCKETS}) AS _bucket"
        )
        order = "row_number() OVER (PARTITION BY _bucket ORDER BY _ts, _op = '+', _value) AS _number"
        sequence = {"sash-sequence": "concat(_bucket, '.', _number)"}
        return numbered.selectExpr("*", order).selectExpr(
            "_key AS key", "_value AS value", f"{_headers({**origin, **sequence})} AS headers"
        )
    # Two shards may change the same key; at the same instant, a row is added after its predecessor is retracted.
    last = f"max_by(named_struct('gone', _op = '-', 'row', struct({row})), struct(_ts, _op = '+'))"
    latest = batch.selectExpr("*", f"{key} AS _key").groupBy("_key").agg(expr(f"{last} AS _last"))
    value = "CASE WHEN NOT _last.gone THEN to_json(_last.row) END AS value"
    return latest.selectExpr("_key AS key", value, f"{_headers(origin)} AS headers")


def _headers(values: dict[str, str]) -> str:
    entries = (f"named_struct('key', '{name}', 'value', CAST({text} AS BINARY))" for name, text in values.items())
    return f"array({', '.join(entries)})"


def _named(names: list[str]) -> str:
    return ", ".join(f"'{name}', {quoted(name)}" for name in names)
