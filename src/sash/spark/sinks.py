"""Starting a query: its sink, its trigger, and the handle on it while it runs."""

from __future__ import annotations

import math
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

import sash.errors
from sash.errors import CatalogError, SashError
from sash.spark.plan import METRICS
from sash.spark.reread import Reread

Sink = str | Callable[[DataFrame, int], None]

_RAISED = re.compile(r"sash\.errors\.(\w+): (.*)")


def start_query(
    changes: DataFrame,
    sink: Sink,
    options: Mapping[str, str],
    trigger: str | None,
    checkpoint: str,
    name: str | None,
    temporary: bool,
) -> Running:
    """Start writing the changes to the sink."""
    writer = changes.writeStream.outputMode("append").option("checkpointLocation", checkpoint)
    if name is not None:
        writer = writer.queryName(name)
    writer = _triggered(writer, trigger)
    writer = writer.foreachBatch(_once(sink)) if callable(sink) else writer.format(sink).options(**options)
    with sash_errors():
        return Running(writer.start(), checkpoint if temporary else None)


def _once(sink: Callable[[DataFrame, int], None]) -> Callable[[DataFrame, int], None]:
    """The batch is computed once, whatever the sink does with it: each of its actions would run the stages again."""

    def write(batch: DataFrame, number: int) -> None:
        kept = batch.persist()
        try:
            kept.count()
            sink(kept, number)
        finally:
            kept.unpersist()

    return write


def _triggered(writer: DataStreamWriter, trigger: str | None) -> DataStreamWriter:
    match trigger:
        case None:
            return writer
        case "available_now":
            return writer.trigger(availableNow=True)
        case "once":
            return writer.trigger(once=True)
        case _:
            if not re.fullmatch(r"\s*\d+\s*[a-z]+\s*", trigger.lower()):
                raise CatalogError(
                    f'trigger must be None, "available_now", "once" or a time such as "500 milliseconds", not {trigger!r}'
                )
            return writer.trigger(processingTime=trigger)


class Running:
    """A query that runs."""

    def __init__(self, query: StreamingQuery, temporary: str | None) -> None:
        self._query = query
        self._temporary = temporary
        self._totals = dict.fromkeys(("rows_in", "rows_out", "late", "bad", "rebuilt"), 0)
        self._counted = -1
        self._tables: dict[str, Reread] = {}

    def reading(self, tables: dict[str, Reread], *, again: bool) -> Running:
        """Take charge of the tables that the query reads, and read them again and again where that is wanted."""
        self._tables = tables
        for table in tables.values() if again else ():
            table.start()
        return self

    def refresh(self) -> int:
        """Read the relations that are read again now, not only at their times; how many updates that gave."""
        return sum(table.refresh() for table in self._tables.values())

    @property
    def query(self) -> StreamingQuery:
        """Spark's own handle."""
        return self._query

    @property
    def active(self) -> bool:
        """Whether it still runs."""
        return bool(self._query.isActive)

    def stop(self) -> None:
        """Stop it; its checkpoint stays, unless it was a temporary one."""
        for table in self._tables.values():
            table.stop()
        self._query.stop()
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)

    def await_termination(self, timeout: float | None = None) -> bool:
        """Wait until it has stopped by itself; False if the timeout, in seconds, came first."""
        with sash_errors():
            if timeout is None:
                self._query.awaitTermination()
                return True
            return bool(self._query.awaitTermination(max(1, math.ceil(timeout))))

    def process_all(self) -> None:
        """Wait until everything that is in the sources now has been processed."""
        with sash_errors():
            self._query.processAllAvailable()

    def progress(self) -> dict[str, Any]:
        """The last batch: its number and time, rows in and out, late and bad rows, the clock, the state's size.

        The `total_...` numbers are of all batches since the start that Spark still remembers.
        """
        recent = [entry for entry in self._query.recentProgress if METRICS in entry["observedMetrics"]]
        for entry in recent:
            if entry["batchId"] > self._counted:
                self._counted = entry["batchId"]
                for part in self._totals:
                    self._totals[part] += entry["observedMetrics"][METRICS][part] or 0
        totals = {f"total_{part}": count for part, count in self._totals.items()}
        if not recent:
            return {"batch": None, **totals}
        last = recent[-1]
        seen = last["observedMetrics"][METRICS]
        return {
            "batch": last["batchId"],
            "batch_ms": last["durationMs"].get("triggerExecution"),
            "clock": seen["clock"],
            **{part: seen[part] or 0 for part in (*self._totals, "state_rows", "state_bytes")},
            **totals,
        }


@contextmanager
def sash_errors() -> Iterator[None]:
    """Errors that Sash raised in a worker come out of Spark as what they were."""
    try:
        yield
    except PySparkException as problem:
        found = _RAISED.search(str(problem))
        kind = getattr(sash.errors, found[1], None) if found else None
        if found and isinstance(kind, type) and issubclass(kind, SashError):
            raise kind(found[2].strip()) from problem
        raise
