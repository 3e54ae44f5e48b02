"""Simulates one processor that serves a live window with updates every t, periodic queries and snapshot queries.

Time is simulated: the workload defines the duration of each read, and the same `Scheduler` that serves real windows makes
the decisions. An update that falls due during a read is applied directly after the read (reads and updates are atomic,
section 1). The measures are those of section 5.1.
"""

from __future__ import annotations

import itertools
from bisect import insort
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import fmean

from sash.window_store.scheduling.levels import Isolation
from sash.window_store.scheduling.reader import Reader, Request
from sash.window_store.scheduling.recorder import Recorder
from sash.window_store.scheduling.scheduler import Scheduler


@dataclass(frozen=True)
class PeriodicLoad:
    """A query over `length` sub-windows that is executed every `every` updates, or as soon after as possible.

    `cost` is the factor by which its reads take longer than the plain cost of a sub-window.
    """

    length: int
    every: int = 1
    cost: float = 1.0
    priority: int = 0


@dataclass(frozen=True)
class SnapshotLoad:
    """A query that is executed once, at a given time."""

    at: float
    length: int
    cost: float = 1.0
    priority: int = 10


@dataclass(frozen=True)
class WindowWorkload:
    """The load of a window of n sub-windows: `reads[j]` is the time to read version j, `t` the time between updates."""

    n: int
    t: float
    until: float
    reads: Sequence[float]
    periodic: Sequence[PeriodicLoad] = ()
    snapshots: Sequence[SnapshotLoad] = ()
    update: float = 0.0


@dataclass(frozen=True)
class SimulatedExecution:
    """One committed query.

    `updated` is the due time of the last update that it reflects, even if that update had to wait. `aborts` is the number
    of its aborted attempts, `met` the number of updates between its begin and its end.
    """

    query: PeriodicLoad | SnapshotLoad
    due: float
    began: float
    committed: float
    updated: float
    as_of: int
    latest: int
    aborts: int
    met: int

    @property
    def freshness(self) -> float:
        """The age of the answer at its commit."""
        return self.committed - self.updated

    @property
    def response(self) -> float:
        """The response time."""
        return self.committed - self.due


@dataclass
class Measures:
    """The measures of a run. `aborts` includes those of queries that never committed."""

    until: float
    executions: list[SimulatedExecution] = field(default_factory=list)
    aborts: int = 0

    @property
    def aborted_share(self) -> float:
        """The share of aborted executions among all that ended."""
        return self.aborts / max(1, self.aborts + len(self.executions))

    @property
    def throughput(self) -> float:
        """Committed queries per second."""
        return len(self.executions) / self.until

    def freshness(self, kind: type[PeriodicLoad | SnapshotLoad]) -> float:
        """The average age of the answers of a kind of query."""
        return _mean([execution.freshness for execution in self.executions if isinstance(execution.query, kind)])

    @property
    def response(self) -> float:
        """The average response time of snapshot queries."""
        return _mean([execution.response for execution in self.executions if isinstance(execution.query, SnapshotLoad)])

    @property
    def inter_execution(self) -> float:
        """The average time between two answers of the same periodic query."""
        answers: dict[int, list[float]] = {}
        for execution in self.executions:
            if isinstance(execution.query, PeriodicLoad):
                answers.setdefault(id(execution.query), []).append(execution.committed)
        return _mean([later - earlier for times in answers.values() for earlier, later in itertools.pairwise(times)])


def _mean(values: list[float]) -> float:
    return fmean(values) if values else float("nan")


@dataclass(eq=False)
class _Job:
    query: PeriodicLoad | SnapshotLoad
    due: float
    arrival: int
    began: float = 0.0
    first: int = 0
    reader: Reader | None = None


def simulate(
    workload: WindowWorkload, isolation: Isolation, *, retain: int = 0, recorder: Recorder | None = None
) -> Measures:
    """Run a workload at an isolation level. The window is full at time 0, as of update n - 1."""
    return _Simulation(workload, isolation, retain, recorder).run()


class _Simulation:
    def __init__(self, workload: WindowWorkload, isolation: Isolation, retain: int, recorder: Recorder | None) -> None:
        self.workload = workload
        self.isolation = isolation
        self.scheduler = Scheduler(workload.n, workload.n - 1, retain=retain, isolation=isolation, recorder=recorder)
        self.now = 0.0
        self.next_update = workload.t
        self.updated = {workload.n - 1: 0.0}
        self.snapshots = sorted(workload.snapshots, key=lambda snapshot: snapshot.at, reverse=True)
        self.arrivals = itertools.count()
        self.jobs: list[_Job] = []
        self.waiting: dict[int, tuple[PeriodicLoad, int]] = {}
        self.measures = Measures(workload.until)
        for query in workload.periodic:
            self._add(query, 0.0)

    def run(self) -> Measures:
        while self.now < self.workload.until:
            self._arrive()
            if self._update():
                continue
            job = self._choose()
            if job is None:
                self.now = min(self.next_update, self.snapshots[-1].at if self.snapshots else self.next_update)
                continue
            self._read(job)
        self.measures.aborts += sum(job.reader.restarts for job in self.jobs if job.reader is not None)
        return self.measures

    def _add(self, query: PeriodicLoad | SnapshotLoad, due: float) -> None:
        self._queue(_Job(query, due, next(self.arrivals)))

    def _queue(self, job: _Job) -> None:
        """Insert a job into the queue: by priority if the level suspends, then by arrival."""
        suspends = self.isolation.suspends
        insort(self.jobs, job, key=lambda job: (-job.query.priority if suspends else 0, job.arrival))

    def _arrive(self) -> None:
        while self.snapshots and self.snapshots[-1].at <= self.now:
            snapshot = self.snapshots.pop()
            self._add(snapshot, snapshot.at)

    def _update(self) -> bool:
        """Apply an update that is due, unless it has to wait. Periodic queries may become due."""
        update = self.scheduler.update(wait=False) if self.next_update <= self.now else None
        if update is None:
            return False
        self.now += self.workload.update
        self.updated[update.number] = self.next_update
        self.next_update += self.workload.t
        for job in [job for job in self.jobs if job.reader in update.restarted]:
            self.jobs.remove(job)
            job.arrival = next(self.arrivals)
            self._queue(job)
        self._wake()
        return True

    def _wake(self) -> None:
        for query, last in list(self.waiting.values()):
            if self.scheduler.latest >= last + query.every:
                del self.waiting[id(query)]
                self._add(query, self.now)

    def _choose(self) -> _Job | None:
        """The first job that can run; if nothing may be suspended, the running one."""
        if self.isolation.holds_updates and self.scheduler.readers:
            return next(job for job in self.jobs if job.reader is not None)
        for job in self.jobs:
            if job.reader is None:
                job.reader = self.scheduler.begin(Request(job.query.length))
                if job.reader is None:
                    continue
                job.began, job.first = self.now, self.scheduler.latest
            return job
        return None

    def _read(self, job: _Job) -> None:
        reader = job.reader
        assert reader is not None
        read = self.scheduler.claim(reader)
        assert read is not None
        self.now += self.workload.reads[read.version] * job.query.cost
        self.scheduler.finish(reader, read)
        commit = self.scheduler.commit(reader)
        if commit is None:
            return
        self.jobs.remove(job)
        self.measures.aborts += reader.restarts
        self.measures.executions.append(
            SimulatedExecution(
                job.query,
                job.due,
                job.began,
                self.now,
                self.updated[commit.as_of],
                commit.as_of,
                self.scheduler.latest,
                reader.restarts,
                self.scheduler.latest - job.first,
            )
        )
        if isinstance(job.query, PeriodicLoad):
            self.waiting[id(job.query)] = (job.query, commit.as_of)
            self._wake()
