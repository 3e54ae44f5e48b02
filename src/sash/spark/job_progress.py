"""Progress of the queries of a job: the metrics of a batch, attributed to the queries whose stages measured them.

A stage that several queries read counts whole for the state of each, and in equal parts for their shares of the batch's time.
"""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sash.physical.nodes import PhysicalPlan
from sash.spark.batch_metrics import EDGES, BatchMetrics
from sash.spark.progress import Progress
from sash.time import BEGINNING, FOREVER, SECOND

_MAX_PENDING = 1_000
_MAX_UNREPORTED = 100
"""Batches whose report by Spark is awaited; a batch that Spark does not report has failed, and is repeated."""


@dataclass(frozen=True)
class Delivery:
    """The writing of a query's changes of a batch: how many there were, and how long it took, in seconds."""

    rows: int = 0
    seconds: float = 0.0


@dataclass(frozen=True)
class QueryScope:
    """What of a plan belongs to a query: its stages, the streams that it reads, and its place among the outputs."""

    name: str
    stages: frozenset[int]
    streams: frozenset[str]
    position: int
    operators: tuple[str, ...]


def scopes(plan: PhysicalPlan, streams: Mapping[str, Sequence[str]]) -> dict[str, QueryScope]:
    """The scope of each query, given the streams that each reads."""
    return {
        output.query: QueryScope(
            output.query,
            frozenset(stage.index for stage in plan.stages_of(output)),
            frozenset(name.lower() for name in streams[output.query]),
            position,
            tuple(name for stage in plan.stages_of(output) for name in stage.operator_names),
        )
        for position, output in enumerate(plan.outputs)
    }


class QueryProgress:
    """The progress of one query of a job; may be read from several threads."""

    def __init__(self, scope: QueryScope) -> None:
        self.scope = scope
        self.progress = Progress(scope.operators)
        self.lock = threading.Lock()
        self._pending: list[dict[str, Any]] = []

    def add(self, batch: int, millis: int, seen: BatchMetrics, more: Mapping[str, Any]) -> dict[str, Any]:
        """Count a batch."""
        with self.lock:
            self.progress.count(batch, millis, seen, **more)
            last = self.progress.last()
            self._pending = [*self._pending, last][-_MAX_PENDING:]
        return last

    def last(self) -> dict[str, Any]:
        """Return the numbers of the last batch, and the totals."""
        with self.lock:
            return self.progress.last()

    def since(self, batch: int) -> list[dict[str, Any]]:
        """Return the progress of the batches after this one that `drain` has not returned."""
        with self.lock:
            return [one for one in self._pending if one["batch"] > batch]

    def drain(self) -> list[dict[str, Any]]:
        """Return the progress of every batch since the last call."""
        with self.lock:
            pending, self._pending = self._pending, []
        return pending


class AlikeProgress:
    """The progress of one of alike queries: that of all of them together, with its own number of rows and share.

    Its share is an equal part of the time of their operators, and the time of its own sink.
    """

    def __init__(self, together: QueryProgress) -> None:
        self._together = together
        self._rows: dict[int, int] = {}
        self._shares: dict[int, float | None] = {}
        self._total = 0
        self._drained = -1

    def record(self, batch: int, rows: int) -> None:
        """Count the rows of a batch; one that is repeated counts once."""
        self._total += rows - self._rows.get(batch, 0)
        self._rows[batch] = rows
        _bound(self._rows)

    def attribute(self, batch: int, share: float | None) -> None:
        """Note the query's share of the work in a batch."""
        self._shares[batch] = share
        _bound(self._shares)

    @property
    def output(self) -> str:
        """The output of the plan that has its changes."""
        return self._together.scope.name

    @property
    def progress(self) -> Progress:
        """The counts of all alike queries."""
        return self._together.progress

    @property
    def lock(self) -> threading.Lock:
        """The lock of these counts."""
        return self._together.lock

    def last(self) -> dict[str, Any]:
        """Return the numbers of the last batch, and the totals."""
        return self._own(self._together.last())

    def drain(self) -> list[dict[str, Any]]:
        """Return the progress of every batch since the last call."""
        found = self._together.since(self._drained)
        if found:
            self._drained = found[-1]["batch"]
        return [self._own(one) for one in found]

    def _own(self, progress: dict[str, Any]) -> dict[str, Any]:
        batch = progress.get("batch", -1)
        own = {"rows_out": self._rows.get(batch, 0), "total_rows_out": self._total, "share": self._shares.get(batch)}
        return {**progress, **own} if progress else progress


class JobProgress:
    """The progress of a job's queries.

    The batch function records what was measured; the batch counts when Spark has reported its duration, so that batches that
    fail and are repeated count once. `first` is the number that sinks get for Spark's batch 0.
    """

    def __init__(self, plan: PhysicalPlan, found: Mapping[str, QueryScope], first: int = 0) -> None:
        self._first = first
        self.queries = {name: QueryProgress(scope) for name, scope in found.items()}
        self.alike: dict[str, AlikeProgress] = {}
        every = frozenset(name for scope in found.values() for name in scope.streams)
        names = tuple(name for stage in plan.stages for name in stage.operator_names)
        self.whole = QueryProgress(QueryScope("", frozenset(range(len(plan.stages))), every, -1, names))
        self._readers = {
            stage.index: sum(stage.index in scope.stages for scope in found.values()) for stage in plan.stages
        }
        self._recorded: dict[
            int, tuple[BatchMetrics, list[BatchMetrics], dict[str, Delivery], dict[str, float], float]
        ] = {}
        self._last = -1
        self._lock = threading.Lock()
        self.on_batch: Callable[[str, dict[str, Any]], None] | None = None
        self.shards: dict[str, list[Mapping[str, Any]]] = {}
        """The figures of every shard in the last batch, by stage."""
        self.operator_shards: dict[str, list[Mapping[str, Any]]] = {}
        """The counts of every shard in the last batch, by operator."""
        self.backlog: int | None = None
        """The rows that the sources have and the job has not read, after the last batch, where the sources tell."""
        self.on_committed: Callable[[int], None] = lambda _: None
        """Called with the number of a batch that Spark reports, which it does once the batch is committed."""

    def record(
        self,
        batch: int,
        total: BatchMetrics,
        parts: Sequence[BatchMetrics],
        deliveries: Mapping[str, Delivery],
        outputs: Mapping[str, str],
    ) -> None:
        """Keep what was measured in a batch, in parts and in total, until Spark reports it.

        `outputs` has the output of the plan that each query's changes are in; alike queries count together.
        """
        together: dict[str, Delivery] = {}
        for name, one in deliveries.items():
            known = together.get(outputs[name], Delivery())
            together[outputs[name]] = Delivery(known.rows + one.rows, known.seconds + one.seconds)
        with self._lock:
            for name, query in self.alike.items():
                query.record(self._first + batch, deliveries.get(name, Delivery()).rows)
            sinks = {name: one.seconds for name, one in deliveries.items() if name in self.alike}
            self._recorded[batch] = total, list(parts), together, sinks, time.time()
            for old in sorted(self._recorded)[:-_MAX_UNREPORTED]:
                del self._recorded[old]

    def of(self, query: str) -> QueryProgress | AlikeProgress:
        """The progress of a query."""
        return self.alike[query] if query in self.alike else self.queries[query]

    def add_alike(self, query: str, output: str) -> None:
        """Count the rows of one of the alike queries whose changes are in an output."""
        with self._lock:
            self.alike = {**self.alike, query: AlikeProgress(self.queries[output])}

    def remove_alike(self, query: str) -> None:
        """Forget one of the alike queries."""
        with self._lock:
            self.alike = {name: one for name, one in self.alike.items() if name != query}

    def update(self, report: Any) -> bool:
        """Count a batch that Spark reports; return whether it is new."""
        if report is None:
            return False
        batch, millis = int(report["batchId"]), int(report["durationMs"].get("triggerExecution") or 0)
        with self._lock:
            if batch <= self._last or batch not in self._recorded:
                return False
            self._last = batch
            total, parts, deliveries, sinks, ended = self._recorded.pop(batch)
            number, fresh = self._first + batch, []
            self._attribute(number, total, deliveries, sinks)
            self.operator_shards = _by_operator(parts)
            self.shards, self.backlog = _by_shard(parts), backlog(report.get("sources") or ())
            for name, query in self.queries.items():
                seen = self._seen(query.scope, total, parts, deliveries.get(name, Delivery()))
                more = {
                    "share": self._spent(query.scope, total, deliveries),
                    "lag_seconds": _lag(seen, ended),
                    "backlog_rows": self.backlog,
                }
                fresh.append((name, query.add(number, millis, seen, more)))
            whole = _whole(total, deliveries)
            late = {"lag_seconds": _lag(whole, ended), "backlog_rows": self.backlog}
            self.whole.add(number, millis, whole, late)
        self.on_committed(number)
        if self.on_batch is not None:
            for name, progress in fresh:
                self.on_batch(name, progress)
        return True

    def state_bytes(self, total: BatchMetrics) -> dict[str, int]:
        """The bytes of state of each query in a batch."""
        return {name: _sum(total, query.scope, "state_bytes") for name, query in self.queries.items()}

    @staticmethod
    def _seen(
        scope: QueryScope, total: BatchMetrics, parts: Sequence[BatchMetrics], delivery: Delivery
    ) -> BatchMetrics:
        """The metrics of one query in a batch."""
        streams = {name: counts for name, counts in total.streams.items() if name.lower() in scope.streams}
        output = total.outputs.get(str(scope.position), {})
        return BatchMetrics(
            rows_in=sum(counts.get("rows_in", 0) for counts in streams.values()),
            rows_out=delivery.rows,
            late=sum(counts.get("late", 0) for counts in streams.values()),
            bad=sum(p.bad for p in parts if not p.stages and any(name.lower() in scope.streams for name in p.streams)),
            ahead=sum(counts.get("ahead", 0) for counts in streams.values()),
            state_rows=_sum(total, scope, "state_rows"),
            state_bytes=_sum(total, scope, "state_bytes"),
            clock=output.get("clock"),
            operators={name: total.operators[name] for name in scope.operators if name in total.operators},
            delays=output.get("delays", [0] * (len(EDGES) + 1)),
            delay_sum=output.get("delay_sum", 0),
            delay_longest=output.get("delay_longest", 0),
            current_choice={n: total.current_choice[n] for n in scope.operators if n in total.current_choice},
            streams=streams,
        )

    def _spent(self, scope: QueryScope, total: BatchMetrics, deliveries: Mapping[str, Delivery]) -> float | None:
        """The share of the batch's work that was done for a query."""
        everything = _work(total, deliveries)
        own = self._operators(scope, total) + deliveries.get(scope.name, Delivery()).seconds
        return round(own / everything, 4) if everything else None

    def _operators(self, scope: QueryScope, total: BatchMetrics) -> float:
        """The seconds of a batch that operators worked for a query."""
        return sum(_seconds(total).get(stage, 0.0) / self._readers[stage] for stage in scope.stages)

    def _attribute(
        self, number: int, total: BatchMetrics, deliveries: Mapping[str, Delivery], sinks: Mapping[str, float]
    ) -> None:
        """Divide the work for alike queries among them, given the seconds of each one's sink."""
        everything, counts = _work(total, deliveries), Counter(one.output for one in self.alike.values())
        parts = {name: self._operators(self.queries[name].scope, total) / count for name, count in counts.items()}
        for name, one in self.alike.items():
            own = parts[one.output] + sinks.get(name, 0.0)
            one.attribute(number, round(own / everything, 6) if everything else None)


def _bound(by_batch: dict[int, Any]) -> None:
    """Forget the oldest batch if there are too many."""
    if len(by_batch) > _MAX_PENDING:
        del by_batch[min(by_batch)]


def _seconds(total: BatchMetrics) -> dict[int, float]:
    """The seconds that each stage worked in a batch."""
    return {int(stage): figures.get("seconds", 0.0) for stage, figures in total.stages.items()}


def _work(total: BatchMetrics, deliveries: Mapping[str, Delivery]) -> float:
    """The seconds that all stages and sinks worked in a batch."""
    return sum(_seconds(total).values()) + sum(delivery.seconds for delivery in deliveries.values())


def _whole(total: BatchMetrics, deliveries: Mapping[str, Delivery]) -> BatchMetrics:
    """The metrics of the job as a whole: its clock is that of the slowest query."""
    clocks = [output["clock"] for output in total.outputs.values() if output.get("clock") is not None]
    return replace(total, rows_out=sum(one.rows for one in deliveries.values()), clock=min(clocks, default=None))


def _by_shard(parts: Sequence[BatchMetrics]) -> dict[str, list[Mapping[str, Any]]]:
    """What every shard of a stage measured, by the number of the stage."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    for part in parts:
        for stage, figures in part.stages.items():
            found.setdefault(stage, []).append(figures)
    return found


def _by_operator(parts: Sequence[BatchMetrics]) -> dict[str, list[Mapping[str, Any]]]:
    """What every shard measured of an operator, by its name."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    for part in parts:
        for name, counts in part.operators.items():
            found.setdefault(name, []).append(counts)
    return found


def backlog(sources: Sequence[Mapping[str, Any]]) -> int | None:
    """The rows that sources with numbered rows, such as Kafka, have after what was read; None without such a source.

    >>> backlog([{"endOffset": '{"sales": {"0": 7, "1": 5}}', "latestOffset": '{"sales": {"0": 9, "1": 5}}'}])
    2
    """
    found = [
        latest[topic][partition] - ends.get(topic, {}).get(partition, 0)
        for source in sources
        if (latest := _offsets(source.get("latestOffset"))) is not None
        if (ends := _offsets(source.get("endOffset"))) is not None
        for topic in latest
        for partition in latest[topic]
    ]
    return sum(found) if found else None


def _offsets(given: Any) -> dict[str, dict[str, int]] | None:
    """Offsets by topic and partition; None if the source has others."""
    try:
        known = json.loads(given) if isinstance(given, str) else given
    except ValueError:
        return None
    whole = isinstance(known, dict) and all(
        isinstance(one, dict) and all(isinstance(place, int) for place in one.values()) for one in known.values()
    )
    return known if whole and known else None


def _sum(total: BatchMetrics, scope: QueryScope, part: str) -> int:
    return sum(int(total.stages.get(str(stage), {}).get(part, 0)) for stage in scope.stages)


def _lag(seen: BatchMetrics, ended: float) -> float | None:
    """How far the answer is behind the wall clock, in seconds."""
    known = seen.clock is not None and BEGINNING < seen.clock < FOREVER
    return round(ended - seen.clock / SECOND, 3) if known and seen.clock is not None else None
