"""Progress of the queries of a job: the metrics of a batch, attributed to the queries whose stages measured them.

A stage that several queries read counts whole for the state of each, and in equal parts for their shares of the batch's time.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sash.physical.nodes import PhysicalPlan
from sash.spark.batch_metrics import BatchMetrics, combined
from sash.spark.progress import Progress
from sash.time import BEGINNING, FOREVER, SECOND

_MAX_PENDING = 1_000
_MAX_UNREPORTED = 100
"""Batches whose report by Spark is awaited; a batch that Spark does not report has failed, and is repeated."""


@dataclass(frozen=True)
class Delivery:
    """What a query's sink got in a batch: the number of changes, and how long it took, in seconds."""

    rows: int = 0
    seconds: float = 0.0


@dataclass(frozen=True)
class QueryScope:
    """What of a plan belongs to a query: its stages, and the streams that it reads."""

    name: str
    stages: frozenset[int]
    streams: frozenset[str]
    output: int
    """The stage that outputs its changes."""


def scopes(plan: PhysicalPlan, streams: Mapping[str, Sequence[str]]) -> dict[str, QueryScope]:
    """The scope of each query, given the streams that each reads."""
    found = {}
    for output in plan.outputs:
        reached, open_ = {output.stage}, [output.stage]
        while open_:
            for given in plan.stages[open_.pop()].inputs:
                below = given.leaf.stage
                if below is not None and below not in reached:
                    reached.add(below)
                    open_.append(below)
        names = frozenset(name.lower() for name in streams[output.query])
        found[output.query] = QueryScope(output.query, frozenset(reached), names, output.stage)
    return found


class QueryProgress:
    """The progress of one query of a job; may be read from several threads."""

    def __init__(self, scope: QueryScope, operators: Sequence[str]) -> None:
        self.scope = scope
        self.progress = Progress(operators)
        self.lock = threading.Lock()
        self._pending: list[dict[str, Any]] = []

    def add(self, batch: int, millis: int, seen: BatchMetrics, more: Mapping[str, Any]) -> dict[str, Any]:
        """Count a batch."""
        with self.lock:
            self.progress.count(batch, millis, seen, **more)
            last = self.progress.last()
            self._pending = [*self._pending, last][-_MAX_PENDING:]
        return last

    def drain(self) -> list[dict[str, Any]]:
        """Return the progress of every batch since the last call."""
        with self.lock:
            pending, self._pending = self._pending, []
        return pending


class JobProgress:
    """The progress of a job's queries.

    The batch function records what was measured; the batch counts when Spark has reported its duration, so that batches that
    fail and are repeated count once.
    """

    def __init__(self, plan: PhysicalPlan, found: Mapping[str, QueryScope]) -> None:
        self.queries = {
            name: QueryProgress(scope, [o for s in sorted(scope.stages) for o in plan.stages[s].operator_names])
            for name, scope in found.items()
        }
        readers = [[name for name, scope in found.items() if stage.index in scope.stages] for stage in plan.stages]
        self._readers = {stage.index: names for stage, names in zip(plan.stages, readers, strict=True)}
        self._recorded: dict[int, tuple[list[BatchMetrics], dict[str, Delivery], float]] = {}
        self._last = -1
        self._lock = threading.Lock()
        self.on_batch: Callable[[str, dict[str, Any]], None] | None = None

    def record(self, batch: int, parts: Sequence[BatchMetrics], deliveries: Mapping[str, Delivery]) -> None:
        """Keep what was measured in a batch until Spark reports it."""
        with self._lock:
            self._recorded[batch] = list(parts), dict(deliveries), time.time()
            for old in sorted(self._recorded)[:-_MAX_UNREPORTED]:
                del self._recorded[old]

    def update(self, report: Any) -> bool:
        """Count a batch that Spark reports; return whether it is new."""
        if report is None:
            return False
        batch, millis = int(report["batchId"]), int(report["durationMs"].get("triggerExecution") or 0)
        with self._lock:
            if batch <= self._last or batch not in self._recorded:
                return False
            self._last = batch
            parts, deliveries, ended = self._recorded.pop(batch)
            fresh = [
                (name, query.add(batch, millis, *self._seen(query.scope, parts, deliveries, ended)))
                for name, query in self.queries.items()
            ]
        if self.on_batch is not None:
            for name, progress in fresh:
                self.on_batch(name, progress)
        return True

    def state_bytes(self, parts: Sequence[BatchMetrics]) -> dict[str, int]:
        """The bytes of state of each query in a batch."""
        by_stage: dict[int, int] = {}
        for part in parts:
            if part.stage is not None:
                by_stage[part.stage] = by_stage.get(part.stage, 0) + part.state_bytes
        return {name: sum(by_stage.get(s, 0) for s in query.scope.stages) for name, query in self.queries.items()}

    def _seen(
        self, scope: QueryScope, parts: Sequence[BatchMetrics], deliveries: Mapping[str, Delivery], ended: float
    ) -> tuple[BatchMetrics, dict[str, Any]]:
        """The metrics of one query in a batch, and what only a query of a job has: its share and its lag."""
        own = [part for part in parts if part.stage in scope.stages]
        seen = combined(
            [
                part
                if part.stage == scope.output
                else replace(part, clock=None, delays=[], delay_sum=0, delay_longest=0)
                for part in own
            ]
        )
        streams = combined([part for part in parts if part.streams]).streams
        streams = {name: counts for name, counts in streams.items() if name.lower() in scope.streams}
        delivery = deliveries.get(scope.name, Delivery())
        seen = replace(
            seen,
            rows_in=sum(counts.get("rows_in", 0) for counts in streams.values()),
            late=sum(counts.get("late", 0) for counts in streams.values()),
            rows_out=delivery.rows,
            streams=streams,
        )
        spent = self._spent(scope.name, parts, deliveries)
        everything = sum(part.busy for part in parts if part.stage is not None)
        everything += sum(1000 * given.seconds for given in deliveries.values())
        known = seen.clock is not None and BEGINNING < seen.clock < FOREVER
        return seen, {
            "share": round(spent / everything, 4) if everything else None,
            "lag_seconds": round(ended - seen.clock / SECOND, 3) if known and seen.clock is not None else None,
        }

    def _spent(self, name: str, parts: Sequence[BatchMetrics], deliveries: Mapping[str, Delivery]) -> float:
        """The milliseconds that a batch spent on a query."""
        busy = sum(
            part.busy / len(self._readers[part.stage])
            for part in parts
            if part.stage is not None and name in self._readers[part.stage]
        )
        return busy + 1000 * deliveries.get(name, Delivery()).seconds
