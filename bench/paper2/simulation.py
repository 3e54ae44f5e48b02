"""A simulation of one processor that serves a live window: updates every t, periodic and snapshot queries.

Time is counted, not spent: a read takes as long as the workload says, and what happens next is decided by the same
`Scheduler` that serves real windows. An update that falls due during a read is applied when the read is over, before
anything else (reads and updates are atomic, section 1). The measures are those of section 5.1.
"""

from __future__ import annotations

import itertools
from bisect import insort
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import fmean

from sash.window_store.scheduling.isolation import Isolation
from sash.window_store.scheduling.reader import Reader, Request
from sash.window_store.scheduling.recorder import Recorder
from sash.window_store.scheduling.scheduler import Scheduler


@dataclass(frozen=True)
class Periodic:
    """A query over `length` sub-windows that is executed again every `every` updates, or as soon after as it can be.

    `cost` is how much longer than the plain cost of a sub-window its reads take.
    """

    length: int
    every: int = 1
    cost: float = 1.0
    priority: int = 0


@dataclass(frozen=True)
class Snapshot:
    """A query that is asked once, at a time."""

    at: float
    length: int
    cost: float = 1.0
    priority: int = 10


@dataclass(frozen=True)
class Workload:
    """What happens to a window of n sub-windows: `reads[j]` is the time to read version j; updates come every `t`."""

    n: int
    t: float
    until: float
    reads: Sequence[float]
    periodic: Sequence[Periodic] = ()
    snapshots: Sequence[Snapshot] = ()
    update: float = 0.0


@dataclass(frozen=True)
class Execution:
    """One committed query.

    `updated` is when the last update that it reflects was due: up to then its data reach, also where the update itself
    had to wait. `aborts` are its attempts before, `met` the updates between its beginning and its end.
    """

    query: Periodic | Snapshot
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
        """How old the answer was when it was given."""
        return self.committed - self.updated

    @property
    def response(self) -> float:
        """How long the answer took."""
        return self.committed - self.due


@dataclass
class Measures:
    """What a run came to. `aborts` also counts those of queries that never committed."""

    until: float
    executions: list[Execution] = field(default_factory=list)
    aborts: int = 0

    @property
    def aborted_share(self) -> float:
        """Aborted executions among all that ended."""
        return self.aborts / max(1, self.aborts + len(self.executions))

    @property
    def throughput(self) -> float:
        """Committed queries per second."""
        return len(self.executions) / self.until

    def freshness(self, kind: type[Periodic | Snapshot]) -> float:
        """The average of the queries of a kind."""
        return _mean([execution.freshness for execution in self.executions if isinstance(execution.query, kind)])

    @property
    def response(self) -> float:
        """The average of snapshot queries."""
        return _mean([execution.response for execution in self.executions if isinstance(execution.query, Snapshot)])

    @property
    def inter_execution(self) -> float:
        """The average time between two answers of the same periodic query."""
        answers: dict[int, list[float]] = {}
        for execution in self.executions:
            if isinstance(execution.query, Periodic):
                answers.setdefault(id(execution.query), []).append(execution.committed)
        return _mean([later - earlier for times in answers.values() for earlier, later in itertools.pairwise(times)])


def _mean(values: list[float]) -> float:
    return fmean(values) if values else float("nan")


@dataclass(eq=False)
class _Job:
    query: Periodic | Snapshot
    due: float
    arrival: int
    began: float = 0.0
    first: int = 0
    reader: Reader | None = None


def simulate(
    workload: Workload, isolation: Isolation, *, retain: int = 0, recorder: Recorder | None = None
) -> Measures:
    """Run a workload at a level of isolation; the window is full at time 0, as of update n - 1."""
    return _Simulation(workload, isolation, retain, recorder).run()


class _Simulation:
    def __init__(self, workload: Workload, isolation: Isolation, retain: int, recorder: Recorder | None) -> None:
        self.workload = workload
        self.isolation = isolation
        self.scheduler = Scheduler(workload.n, workload.n - 1, retain=retain, isolation=isolation, recorder=recorder)
        self.now = 0.0
        self.next_update = workload.t
        self.updated = {workload.n - 1: 0.0}
        self.snapshots = sorted(workload.snapshots, key=lambda snapshot: snapshot.at, reverse=True)
        self.arrivals = itertools.count()
        self.jobs: list[_Job] = []
        self.waiting: dict[int, tuple[Periodic, int]] = {}
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

    def _add(self, query: Periodic | Snapshot, due: float) -> None:
        self._queue(_Job(query, due, next(self.arrivals)))

    def _queue(self, job: _Job) -> None:
        """Put a job in its place: by priority where the level suspends, then by arrival."""
        suspends = self.isolation.suspends
        insort(self.jobs, job, key=lambda job: (-job.query.priority if suspends else 0, job.arrival))

    def _arrive(self) -> None:
        while self.snapshots and self.snapshots[-1].at <= self.now:
            snapshot = self.snapshots.pop()
            self._add(snapshot, snapshot.at)

    def _update(self) -> bool:
        """Apply an update that is due, unless it has to wait; periodic queries whose turn it is become due."""
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
        """The first job that may go on; where nothing is suspended, the one that is running."""
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
            Execution(
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
        if isinstance(job.query, Periodic):
            self.waiting[id(job.query)] = (job.query, commit.as_of)
            self._wake()
