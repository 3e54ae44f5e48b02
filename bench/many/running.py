"""Queries that run for some time, as one job or each on its own, and what Spark and Sash report of their batches."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Protocol

from bench.many.workload import JobQuery, by_account
from bench.processor import ProcessorTime
from sash.errors import SashError
from sash.time import BEGINNING, FOREVER

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

    from sash.engine import Engine

_SAMPLING = 1.0
_STOPPING = 16


class Reported(Protocol):
    """A query that reports its batches: one of its own, or one of a job's."""

    def drain_progress(self) -> list[dict[str, Any]]: ...

    def exception(self) -> SashError | None: ...


@dataclass(frozen=True)
class Started:
    """A streaming query of Spark's since a moment of the wall clock, with the queries whose answers it maintains."""

    spark: StreamingQuery
    queries: Sequence[Reported]
    since: float


@dataclass(frozen=True)
class Batch:
    """A batch: when it ended by the wall clock, how many milliseconds it took, and the rows that it read."""

    end: float
    milliseconds: float
    rows: int


@dataclass(frozen=True)
class Measured:
    """What was measured while queries ran.

    `batch_ms` is the median over Spark's queries of the median time of their batches; `lag_ms` the median over queries and
    batches of how far the answer's time is behind the wall clock when the batch ends. A Spark query of which no batch ended
    while it was measured is `unfinished`: it counts with the time for which it has been working on one.
    """

    batch_ms: float
    longest_batch_ms: float
    cpu_seconds_per_s: float
    lag_ms: float | None
    worst_lag_ms: float | None
    batches: int
    unfinished: int
    events_per_s: int
    rows_out: int
    silent_queries: int
    late: int

    def as_json(self) -> dict[str, Any]:
        """The figures by name, milliseconds rounded."""
        rounded = {
            name: round(value, 1) for name, value in asdict(self).items() if name.endswith("_ms") and value is not None
        }
        return {**asdict(self), **rounded, "cpu_seconds_per_s": round(self.cpu_seconds_per_s, 3)}


def batches_of(reports: Sequence[Any]) -> dict[int, Batch]:
    """The batches by number in Spark's reports, without those that only say that there was nothing to do.

    >>> took = {"triggerExecution": 250}
    >>> batches_of([{"batchId": 3, "timestamp": "1970-01-01T00:00:01Z", "durationMs": took, "numInputRows": 9}])
    {3: Batch(end=1.25, milliseconds=250, rows=9)}
    """
    found = {}
    for report in reports:
        if report["numInputRows"] > 0:
            start, took = (
                datetime.fromisoformat(report["timestamp"]).timestamp(),
                report["durationMs"]["triggerExecution"],
            )
            found[report["batchId"]] = Batch(start + took / 1000, took, report["numInputRows"])
    return found


def measure(started: Sequence[Started], warm_up: float, seconds: float) -> Measured:
    """Let the queries run to warm up, then measure them; batches count if they end in that time.

    Everything is read at the end, because reading reports takes processor time, too.
    """
    _wait(started, warm_up)
    with ProcessorTime(_SAMPLING) as processor:
        start = time.time()
        _wait(started, seconds)
        end = time.time()
        batches = [{n: b for n, b in batches_of(each.spark.recentProgress).items() if b.end <= end} for each in started]
    return summarize(started, batches, start, end, processor.seconds_since(start))


def _wait(started: Sequence[Started], seconds: float) -> None:
    threading.Event().wait(seconds)
    for each in started:
        for query in each.queries:
            problem = query.exception()
            if problem is not None:
                raise problem


def summarize(
    started: Sequence[Started], batches: Sequence[Mapping[int, Batch]], start: float, end: float, processor: float
) -> Measured:
    """The figures of the batches that ended between two moments, given the processor seconds in between."""
    times, lags, longest, rows_in, rows_out, late, ended, unfinished, silent = [], [], 0.0, 0, 0, 0, 0, 0, 0
    for each, known in zip(started, batches, strict=True):
        counted = {number: batch for number, batch in known.items() if batch.end >= start}
        before = max((batch.end for batch in known.values()), default=each.since)
        took = [batch.milliseconds for batch in counted.values()] or [1000 * (end - before)]
        times.append(median(took))
        longest, ended = max(longest, *took), ended + len(counted)
        unfinished += not counted
        rows_in += sum(batch.rows for batch in counted.values())
        for query in each.queries:
            reports = [report for report in query.drain_progress() if report["batch"] in counted]
            made = sum(report["rows_out"] for report in reports)
            rows_out, silent = rows_out + made, silent + (made == 0)
            late += sum(report["late"] for report in reports)
            lags += [
                1000 * counted[report["batch"]].end - report["watermark"] / 1000
                for report in reports
                if report["watermark"] is not None and BEGINNING < report["watermark"] < FOREVER
            ]
    return Measured(
        batch_ms=median(times),
        longest_batch_ms=longest,
        cpu_seconds_per_s=processor / (end - start),
        lag_ms=median(lags) if lags else None,
        worst_lag_ms=max(lags, default=None),
        batches=ended,
        unfinished=unfinished,
        events_per_s=round(rows_in / (end - start)),
        rows_out=rows_out,
        silent_queries=silent,
        late=late,
    )


@contextmanager
def separate_queries(
    engine: Engine, queries: Sequence[JobQuery], trigger: float, home: Path
) -> Iterator[list[Started]]:
    """Start each query as a Spark query of its own, with a changelog; stop all of them afterwards."""
    running = []
    try:
        for query in queries:
            handle = engine.sql(query.sql).start(
                "changelog",
                mode="net",
                trigger=period(trigger),
                checkpoint=str(home / "checkpoints" / query.name),
                name=query.name,
                path=str(home / "logs" / query.name),
            )
            running.append((handle, time.time()))
        yield [Started(handle.query, [handle], since) for handle, since in running]
    finally:
        with ThreadPoolExecutor(_STOPPING) as pool:
            list(pool.map(_stop, [handle for handle, _ in running]))


@contextmanager
def one_job(
    engine: Any, queries: Sequence[JobQuery], trigger: float, home: Path
) -> Iterator[tuple[Any, list[Started]]]:
    """Start the queries as one job, each with a changelog; stop it afterwards."""
    job = engine.job(name="queries", trigger=period(trigger), checkpoint=str(home / "checkpoint"))
    for query in queries:
        job.add(query.name, query.sql, "changelog", mode="net", path=str(home / "logs" / query.name))
    running = job.start()
    since = time.time()
    try:
        yield running, [Started(running.query, list(running.queries.values()), since)]
    finally:
        _stop(running)


def add_one(running: Any, home: Path, trigger: float) -> dict[str, Any]:
    """Add a query like the others to a running job; count the batches up to the first whose changes it has logged.

    A batch may be running when the query is added, so a query that takes effect with the next batch needs one or two.
    """
    query, log = by_account(1), home / "logs" / "added"
    last, run, began = running.query.lastProgress["batchId"], running.query.runId, time.monotonic()
    running.add(query.name, query.sql, "changelog", mode="net", path=str(log))
    pause = threading.Event()
    while not (logged := [int(folder.name.partition("=")[2]) for folder in log.glob("batch=*")]):
        if time.monotonic() > began + 60 + 20 * trigger:
            raise SashError("the query that was added has logged nothing")
        pause.wait(0.05)
    return {
        "batches": min(logged) - last,
        "seconds": round(time.monotonic() - began, 2),
        "restarted": running.query.runId != run,
    }


def period(seconds: float) -> str:
    """A trigger.

    >>> period(2.5)
    '2500 milliseconds'
    """
    return f"{round(1000 * seconds)} milliseconds"


def _stop(handle: Any) -> None:
    with suppress(SashError):  # a query that works on a long batch may not stop in time; its session ends next
        handle.stop()
