"""Starting a streaming query that writes changes to a sink."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from sash.plan.options import Trigger
from sash.spark.errors import sash_errors
from sash.spark.sinks.batch import Batch, WriteBatch, WriteFrame

_POLL_SECONDS = 0.005
_MAX_SECONDS = 10.0


@dataclass
class WriteFailure:
    """The error of the batch that a query failed to compute or write; Spark itself reports only its text."""

    problem: BaseException | None = None


def start_query(
    changes: DataFrame,
    sink: str | WriteFrame,
    options: Mapping[str, str],
    trigger: Trigger,
    checkpoint: str,
    name: str | None = None,
) -> StreamingQuery:
    """Start writing the changes to a format of Spark's, or to a function of each batch, which must compute it once."""
    writer = changes.writeStream.outputMode("append").option("checkpointLocation", checkpoint)
    if name is not None:
        writer = writer.queryName(name)
    writer = set_trigger(writer, trigger)
    writer = writer.foreachBatch(sink) if callable(sink) else writer.format(sink).options(**options)
    with sash_errors():
        return await_sources(writer.start())


def await_sources(query: StreamingQuery) -> StreamingQuery:
    """Wait until the query has made its sources, because they read the session's settings then, not when it is started.

    A source that takes longer, because its server does not respond, is not waited for.
    """
    until = time.monotonic() + _MAX_SECONDS
    while query.isActive and query.status["message"].startswith("Initializing") and time.monotonic() < until:
        time.sleep(_POLL_SECONDS)
    return query


def set_trigger(writer: DataStreamWriter, trigger: Trigger) -> DataStreamWriter:
    """Set the trigger of the writer; without a word or a period, batches run one after the other."""
    match trigger:
        case Trigger(word="available_now"):
            return writer.trigger(availableNow=True)
        case Trigger(word="once"):
            return writer.trigger(once=True)
        case Trigger(milliseconds=int(period)):
            return writer.trigger(processingTime=f"{period} milliseconds")
        case _:
            return writer


def compute_once(write: WriteBatch, failure: WriteFailure) -> WriteFrame:
    """Persist each batch before it is written, because every action of the sink would run the stages again."""

    def write_persisted(batch: DataFrame, number: int) -> None:
        persisted = batch.persist()
        try:
            write(Batch.of_frame(persisted, persisted.count()), number)
        except BaseException as problem:
            failure.problem = problem
            raise
        finally:
            persisted.unpersist()

    return write_persisted
