"""Starting a query: its sink, its trigger, and the handle on it while it runs."""

from __future__ import annotations

import math
import re
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

import sash.errors
from sash.errors import CatalogError, QueryFailedError, SashError
from sash.plan.statistics import Statistics
from sash.planning import Planned
from sash.spark.progress import Progress
from sash.spark.reread import Reread

if TYPE_CHECKING:
    from sash.spark.observation import Observation

Sink = str | Callable[[DataFrame, int], None]

_POLL = 0.05
_SOON = 0.005
_PATIENCE = 10.0
_REMEMBERED = 1_000
_EXCEPTION = re.compile(r"[\w.]*(Error|Exception)\b.*: ")
_RAISED = re.compile(r"sash\.errors\.(\w+): (.*)")


def start_query(
    changes: DataFrame,
    sink: Sink,
    options: Mapping[str, str],
    trigger: str | None,
    checkpoint: str,
    name: str | None,
    temporary: bool,
    operators: Sequence[str] = (),
) -> Running:
    """Start writing the changes to the sink."""
    writer = changes.writeStream.outputMode("append").option("checkpointLocation", checkpoint)
    if name is not None:
        writer = writer.queryName(name)
    writer = triggered(writer, trigger)
    writer = writer.foreachBatch(_once(sink)) if callable(sink) else writer.format(sink).options(**options)
    with sash_errors():
        return Running(under_way(writer.start()), checkpoint if temporary else None, operators)


def under_way(query: StreamingQuery) -> StreamingQuery:
    """The query, once it has made its sources: these look at the session's settings then, not when it was started.

    A source that takes long, because its server does not answer, is not waited for.
    """
    until = time.monotonic() + _PATIENCE
    while query.isActive and query.status["message"].startswith("Initializing") and time.monotonic() < until:
        time.sleep(_SOON)
    return query


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


def triggered(writer: DataStreamWriter, trigger: str | None) -> DataStreamWriter:
    """The writer with the trigger that was asked for."""
    match trigger:
        case None:
            return writer
        case "available_now":
            return writer.trigger(availableNow=True)
        case "once":
            return writer.trigger(once=True)
        case _:
            return writer.trigger(processingTime=trigger)


def check_trigger(trigger: str | None, beating: Sequence[str]) -> None:
    """Whether there is such a trigger, and streams with a heartbeat can have it."""
    if trigger in ("available_now", "once"):
        if beating:
            raise CatalogError(
                f"stream {beating[0]} has a heartbeat, so its input has no end: trigger {trigger!r} cannot be"
            )
    elif trigger is not None and not re.fullmatch(r"\s*\d+\s*[a-z]+\s*", trigger.lower()):
        raise CatalogError(
            f'trigger must be None, "available_now", "once" or a time such as "500 milliseconds", not {trigger!r}'
        )


class Running:
    """A query that runs."""

    def __init__(self, query: StreamingQuery, temporary: str | None, operators: Sequence[str] = ()) -> None:
        self._query = query
        self._temporary = temporary
        self._progress = Progress(operators)
        self.planned: Planned | None = None
        self.observation: Observation | None = None
        self.told: Callable[[dict[str, Any]], object] | None = None
        self._untold: list[dict[str, Any]] = []
        self._lock = threading.Lock()
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
    def id(self) -> str:
        """The query's id, which its checkpoint keeps."""
        return str(self._query.id)

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

    def finish(self, timeout: float = 60) -> None:
        """Stop it after the batch that runs now, if that ends in time; a batch that is cut off is run again next time."""
        begun = self._query.lastProgress
        until = time.monotonic() + timeout
        while self._query.isActive and self._query.status["isTriggerActive"] and time.monotonic() < until:
            last = self._query.lastProgress
            if last is not None and (begun is None or last["batchId"] > begun["batchId"]):
                break
            time.sleep(_POLL)
        self.stop()

    def progress(self) -> dict[str, Any]:
        """The last batch: its number and time, rows and rates, late and bad rows, the clock, the state's size, the delay
        of the output, and what each operator did. The `total_...` numbers are of all batches since the start.
        """
        self.count()
        with self._lock:
            return self._progress.last()

    def operators(self) -> dict[str, dict[str, int]]:
        """What each operator did since the start: rows in and out, negative ones, expirations; its rows and bytes in state
        now."""
        self.count()
        with self._lock:
            return self._progress.operators()

    def explain(self) -> str:
        """The plan as it runs (EXPLAIN ANALYZE): rows, rates and expirations of every operator beside the estimates.

        Rates are of the stream time since the end of the first batch.
        """
        if self.planned is None:
            raise CatalogError("only queries that were started by Query.start can be explained")
        self.count()
        with self._lock:
            return self.planned.explain(actual=self._progress.actual())

    def statistics(self) -> Mapping[str, Statistics]:
        """What was seen of every stream since the start, by name: rates, numbers of values, frequent values.

        To be given to `Engine.stream` as `statistics`, so that queries are planned by it. The query must have been started
        with `observe=True`.
        """
        if self.observation is None:
            raise CatalogError("the streams of this query are not observed: start it with observe=True")
        self.count()
        with self._lock:
            return self.observation.statistics()

    def delays(self) -> tuple[int, ...]:
        """The histogram of output delays since the start; its edges are `sash.spark.counts.EDGES`."""
        self.count()
        with self._lock:
            return self._progress.delays

    @property
    def delay_sum(self) -> float:
        """All output delays since the start together, in seconds; of changes older than a day, a day each."""
        with self._lock:
            return self._progress.delay_sum

    def drain_progress(self) -> list[dict[str, Any]]:
        """The progress of every batch that ended since this was last asked."""
        self.count()
        with self._lock:
            fresh, self._untold = self._untold, []
        return fresh

    def count(self, batches: Sequence[Any] | None = None) -> None:
        """Take in these batches; without them, or if some before them are missing, what Spark remembers: the last 100."""
        with self._lock:
            whole = batches is not None and self._progress.follows(batches)
            told = batches if batches is not None and whole else self._query.recentProgress
            fresh = self._progress.take(told)
            if self.observation is not None:
                self.observation.take(told)
            self._untold = [*self._untold, *fresh][-_REMEMBERED:]
        for progress in fresh:
            if self.told is not None:
                self.told(progress)


@contextmanager
def sash_errors() -> Iterator[None]:
    """Errors that Sash raised in a worker come out of Spark as what they were, others with the reason that is innermost."""
    try:
        yield
    except PySparkException as problem:
        found = _RAISED.search(str(problem))
        kind = getattr(sash.errors, found[1], None) if found else None
        if found and isinstance(kind, type) and issubclass(kind, SashError):
            raise kind(found[2].strip()) from problem
        raise QueryFailedError(_reason(problem)) from problem


def _reason(problem: BaseException) -> str:
    """What the innermost cause says; of a traceback, its last word."""
    while (cause := getattr(problem, "_cause", None)) is not None:
        problem = cause
    lines = [line.strip() for line in str(problem).splitlines() if line.strip()]
    raised = [line for line in lines if _EXCEPTION.match(line)]
    chosen = raised[-1:] if "Traceback" in str(problem) and raised else lines[:5]
    return "; ".join(line.rstrip(".") for line in chosen) or type(problem).__name__
