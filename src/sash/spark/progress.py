"""Progress of a running query: the counts of each batch, read from Spark's progress reports, and their totals."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.listener import StreamingQueryListener

from sash.errors import OptionError
from sash.plan.statistics import Statistics
from sash.runtime.analyze import Actual
from sash.runtime.counts import Counts
from sash.runtime.current_choice import over_shards
from sash.spark.batch_metrics import EDGES, METRICS_COLUMN, PARTS, BatchMetrics, added, counts_of, percentile, total
from sash.spark.connect import refuse_connect
from sash.spark.gather import OBSERVATION_NAME
from sash.time import BEGINNING, FOREVER

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

    from sash.spark.sources.observation import StreamObservation

_SUMMED = ("rows_in", "rows_out", "late", "bad", "ahead", "rebuilt")
_STREAM_TOTALS = ("rows_in", "bad", "ahead", "late")
_PERCENTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
_MAX_PENDING = 1_000


class Progress:
    """Adds up the batches of one query with these operators."""

    def __init__(self, operators: Sequence[str]) -> None:
        self._names = list(operators)
        self._totals = dict.fromkeys(_SUMMED, 0)
        self._streams: dict[str, dict[str, int]] = {}
        self._operators = {name: dict.fromkeys(PARTS, 0) for name in operators}
        self._current_choices: dict[str, dict[int, tuple[str, str]]] = {}
        self._last_batch = -1
        self._last: dict[str, Any] = {"batch": None}
        self._first: tuple[int, dict[str, Counts]] | None = None
        self.delays: tuple[int, ...] = (0,) * (len(EDGES) + 1)
        self.delay_sum = 0.0

    def add(self, reports: Sequence[Any]) -> list[dict[str, Any]]:
        """Count the batches that are new among Spark's reports, and return the progress of each."""
        fresh = []
        for report in reports:
            if OBSERVATION_NAME in report["observedMetrics"] and report["batchId"] > self._last_batch:
                seen = total(report["observedMetrics"][OBSERVATION_NAME][METRICS_COLUMN] or (), self._names)
                self.count(report["batchId"], report["durationMs"].get("triggerExecution") or 0, seen)
                fresh.append(self.last())
        return fresh

    def is_continued_by(self, reports: Sequence[Any]) -> bool:
        """Whether no batch is missing between the last one counted and these reports."""
        return all(report["batchId"] <= self._last_batch + 1 for report in reports)

    def last(self) -> dict[str, Any]:
        """Return the numbers of the last batch, and the totals."""
        streams = {name: dict(counts) for name, counts in self._streams.items()}
        return {**self._last, **{f"total_{part}": n for part, n in self._totals.items()}, "total_streams": streams}

    def operators(self) -> dict[str, dict[str, int]]:
        """Return the totals of every operator, and the size of its state now."""
        return {name: dict(counts) for name, counts in self._operators.items()}

    def actual(self) -> Actual:
        """Return the operators' counts for EXPLAIN ANALYZE."""
        counts = {name: counts_of(seen, self._current_choices.get(name, {})) for name, seen in self._operators.items()}
        rows = {name: seen["state_rows"] for name, seen in self._operators.items()}
        held, watermark = self._last.get("state_bytes", 0), self._last.get("watermark")
        if self._first is None or watermark is None or watermark <= self._first[0]:
            return Actual(counts, rows, held)
        return Actual(counts, rows, held, seconds=(watermark - self._first[0]) / 1e6, before=self._first[1])

    def count(self, batch: int, millis: int, seen: BatchMetrics, **more: Any) -> None:
        """Count a batch that took so many milliseconds; `more` is added to its progress."""
        self._last_batch = batch
        for part in _SUMMED:
            self._totals[part] += getattr(seen, part)
        for name, shards in seen.current_choice.items():
            self._current_choices.setdefault(name, {}).update(
                {int(shard): (what, why) for shard, (what, why) in shards.items()}
            )
        before = self._last.get("state_rows")
        chosen = {name: [one.as_json for one in over_shards(shards)] for name, shards in self._current_choices.items()}
        self._last = {
            "batch": batch,
            "batch_ms": millis,
            "watermark": seen.clock,
            **({"current_choices": chosen} if chosen else {}),
            **{part: getattr(seen, part) for part in (*_SUMMED, "state_rows", "state_bytes")},
            **({} if before is None else {"state_growth": seen.state_rows - before}),
            "rows_per_second": _rate(seen.rows_in, millis),
        }
        self._last["expired"] = sum(counts["expired"] for counts in seen.operators.values())
        self._last["delay_seconds"] = {
            "average": seen.delay_average,
            **{name: percentile(seen.delays, share) for name, share in _PERCENTILES.items()},
            "max": seen.delay_longest / 1000 if any(seen.delays) else None,
        }
        self._last |= more
        self._last["switches"] = seen.switches
        self._last["streams"] = seen.streams
        for name, counted in seen.streams.items():
            known = self._streams.setdefault(name, dict.fromkeys(_STREAM_TOTALS, 0))
            self._streams[name] = {part: count + counted.get(part, 0) for part, count in known.items()}
        self._last["operators"] = {
            name: {**counts, "rows_per_second": _rate(counts["rows_in"], millis)}
            for name, counts in seen.operators.items()
        }
        self.delay_sum += seen.delay_sum / 1000
        self.delays = tuple(a + b for a, b in zip(self.delays, seen.delays, strict=True))
        for name, counts in seen.operators.items():
            self._operators[name] = added(self._operators.get(name, dict.fromkeys(PARTS, 0)), counts)
        clock = seen.clock  # None until every stream has brought a row
        if self._first is None and clock is not None and BEGINNING < clock < FOREVER:
            self._first = clock, {name: counts_of(counts) for name, counts in self._operators.items()}


class ProgressTracker:
    """Progress of one query while it runs; may be read and updated from several threads."""

    def __init__(
        self, query: StreamingQuery, operators: Sequence[str], observation: StreamObservation | None = None
    ) -> None:
        self.query = query
        self._progress = Progress(operators)
        self._observation = observation
        self._pending: list[dict[str, Any]] = []
        self._callbacks: list[Callable[[dict[str, Any]], None]] = []
        self._lock = threading.Lock()

    def subscribe(self, callback: Callable[[dict[str, Any]], None]) -> None:
        """Call a function with the progress of every batch from now on."""
        self._callbacks.append(callback)

    def update(self, reports: Sequence[Any] | None = None) -> None:
        """Count these reports; without them, or if batches before them are missing, the last 100, which Spark keeps."""
        refuse_connect(self.query, "the progress of a query")
        with self._lock:
            if reports is None or not self._progress.is_continued_by(reports):
                reports = self.query.recentProgress
            fresh = self._progress.add(reports)
            if self._observation is not None:
                self._observation.take(reports)
            self._pending = [*self._pending, *fresh][-_MAX_PENDING:]
        for progress in fresh:
            for callback in self._callbacks:
                callback(progress)

    def drain(self) -> list[dict[str, Any]]:
        """Return the progress of every batch that ended since the last call."""
        self.update()
        with self._lock:
            pending, self._pending = self._pending, []
        return pending

    @contextmanager
    def updated(self) -> Iterator[Progress]:
        """Yield the progress with all batches that have ended, locked against further updates."""
        self.update()
        with self._lock:
            yield self._progress

    @property
    def delay_sum(self) -> float:
        """The sum of the delays that are in the histogram as last returned, in seconds."""
        with self._lock:
            return self._progress.delay_sum

    def statistics(self) -> Mapping[str, Statistics]:
        """Return the observed statistics of every stream."""
        if self._observation is None:
            raise OptionError("the streams of this query are not observed: start it with observe=True")
        self.update()
        with self._lock:
            return self._observation.statistics()


def _rate(rows: int, millis: int) -> float | None:
    return round(1000 * rows / millis, 1) if millis else None


class BatchListener(StreamingQueryListener):
    """Calls a function with a query's id and Spark's report whenever a batch of the query has ended."""

    def __init__(self, on_batch: Callable[[str, Sequence[Any]], None]) -> None:
        self._on_batch = on_batch

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802  (Spark's names)
        """Do nothing: no batch has ended."""

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802
        """Pass on the report of the batch that has ended."""
        self._on_batch(str(event.progress.id), [event.progress])

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802
        """Do nothing: no batch has ended."""

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
        """Do nothing: the last batch has been reported."""
