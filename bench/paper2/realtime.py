"""Paper 2's workload in real time: threads scan packets in memory while another thread updates the window."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf
from statistics import fmean
from typing import Any

import numpy as np

from bench.paper2.packets import Packets, answer, packets, packets_per_scan, passes_of, scan
from bench.paper2.workload import GROUP, SCAN, rates
from sash.errors import CancelledError
from sash.window_store.scheduling.levels import LEVELS, Isolation
from sash.window_store.scheduling.reader import CommittedReads, Read, ReadTransaction, Request
from sash.window_store.scheduling.runner import Runner
from sash.window_store.scheduling.scheduler import Scheduler

QUERIES = 40
SNAPSHOTS_PER_UPDATE = 1


class CallingRunner(Runner):
    """A runner that calls a function when a query has ended, in the thread that ended it."""

    def __init__(self) -> None:
        self._callbacks: dict[ReadTransaction, Callable[[ReadTransaction], None]] = {}
        super().__init__(parallel=1, capacity=10_000)

    def submit_then(
        self, scheduler: Scheduler, length: int, read: Callable[[Read], Any], then: Callable[[ReadTransaction], None]
    ) -> None:
        """Queue a query, and the function to call at its end."""
        with self._changed:
            self._callbacks[self.submit(scheduler, Request(length), read)] = then

    def _end(self, transaction: ReadTransaction, error: BaseException | None) -> None:
        super()._end(transaction, error)
        then = self._callbacks.pop(transaction, None)
        if then is not None:
            then(transaction)


@dataclass
class RealTimeRun:
    """One run of a window at an isolation level, with its committed queries and the due times of its updates."""

    n: int
    t: float
    level: Isolation
    windows: list[Packets]
    snapshots: bool = False
    runner: CallingRunner = field(default_factory=CallingRunner)
    due: dict[int, float] = field(default_factory=dict)
    periodic: list[ReadTransaction] = field(default_factory=list)
    submitted_snapshots: list[ReadTransaction] = field(default_factory=list)
    idle: list[int] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.scheduler = Scheduler(self.n, self.n - 1, isolation=self.level, retain=0 if self.level.follows else self.n)

    def go(self, seconds: float, seed: int) -> dict[str, Any]:
        """Update the window for this many seconds, then return the measures."""
        rng = random.Random(seed)
        self.started = self.due[self.n - 1] = time.monotonic()
        processor = time.process_time()
        for group in range(QUERIES // GROUP):
            self._submit(group)
        clients = threading.Thread(target=self._submit_snapshots, args=(rng, seconds))
        if self.snapshots:
            clients.start()
        pause = threading.Event()
        for number in range(self.n, self.n + int(seconds / self.t)):
            self.due[number] = self.started + (number - self.n + 1) * self.t
            pause.wait(max(0.0, self.due[number] - time.monotonic()))
            self.scheduler.update()
            self._resubmit_idle()
        if self.snapshots:
            clients.join()
        restarts = sum(reader.restarts for reader in self.scheduler.readers)
        self.runner.close()
        return self._measures(restarts, time.process_time() - processor)

    def _read(self, passes: int) -> Callable[[Read], Any]:
        return lambda read: scan(self.windows[read.version % len(self.windows)], passes)

    def _submit(self, group: int) -> None:
        def then(transaction: ReadTransaction) -> None:
            if transaction.committed is None:
                return
            answer(transaction.committed.partials)
            with self.lock:
                self.periodic.append(transaction)
                fresh = self.scheduler.latest > transaction.committed.commit.as_of
                if not fresh:
                    self.idle.append(group)
            if fresh:
                self._submit(group)

        try:
            self.runner.submit_then(self.scheduler, self.n, self._read(passes_of(group)), then)
        except CancelledError:
            return  # the run is over

    def _resubmit_idle(self) -> None:
        with self.lock:
            idle, self.idle = self.idle, []
        for group in idle:
            self._submit(group)

    def _submit_snapshots(self, rng: random.Random, seconds: float) -> None:
        pause = threading.Event()
        while time.monotonic() < self.started + seconds:
            pause.wait(rng.expovariate(SNAPSHOTS_PER_UPDATE / self.t))
            self.submitted_snapshots.append(
                self.runner.submit(self.scheduler, Request(rng.randint(1, self.n)), self._read(1), priority=10)
            )

    def _measures(self, restarts: int, processor: float) -> dict[str, Any]:
        answers = [transaction.committed for transaction in self.periodic if transaction.committed is not None]
        snapshots = [
            transaction.committed for transaction in self.submitted_snapshots if transaction.committed is not None
        ]
        aborts = restarts + sum(given.restarts for given in (*answers, *snapshots))
        last = max((given.committed for given in answers), default=self.started + 1.0)
        measures = {
            "aborted": aborts / max(1, aborts + len(answers) + len(snapshots)),
            "throughput": len(answers) / (last - self.started),
            "processor time": processor / max(1, len(answers) + len(snapshots)),
            "freshness": fmean(self._ages(answers) or [inf]),
            "freshness across an update": fmean(
                self._ages([given for given in answers if self._crossed(given)]) or [inf]
            ),
        }
        if snapshots:
            measures["response"] = fmean(given.committed - given.submitted for given in snapshots)
            measures["snapshot freshness"] = fmean(self._ages(snapshots))
        return measures

    def _crossed(self, given: CommittedReads) -> bool:
        """Whether an update fell due between a query's first read and its commit."""
        began, committed = ((at - self.started) // self.t for at in (given.began, given.committed))
        return committed > began

    def _ages(self, answers: list[CommittedReads]) -> list[float]:
        return [given.committed - self.due[given.commit.as_of] for given in answers]


def generated(n: int, count: int, seed: int) -> list[Packets]:
    """Sub-windows for two windows. Later versions reuse them from the start."""
    rng = np.random.default_rng(seed)
    return [packets(rng, max(1, round(rate * count))) for rate in rates(random.Random(seed), 2 * n)]


def calibrated(n: int, t: float) -> int:
    """The number of packets per sub-window for which a full scan takes as long as in the simulation."""
    wanted = SCAN * t
    count = packets_per_scan(wanted)
    for _ in range(2):
        run = RealTimeRun(n, t, LEVELS["serial"], generated(n, count, 0)).go(max(2.0, 10 * t), 0)
        count = max(10, round(count * wanted * n * run["throughput"]))
    return count


def realtime(
    n: int, t: float, seconds: float, repeats: int, *, snapshots: bool, progress: Callable[[str], None]
) -> dict[str, Any]:
    """The measures of each level in alternating runs; throughput also relative to that of `serial` in the same turn."""
    count = calibrated(n, t)
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in LEVELS}
    for repeat in range(repeats):
        windows = generated(n, count, repeat)
        for name, level in LEVELS.items():
            progress(f"n = {n}, run {repeat + 1} of {repeats}: {name}{', with snapshot queries' if snapshots else ''}")
            runs[name].append(RealTimeRun(n, t, level, windows, snapshots).go(seconds, repeat))
    levels: dict[str, dict[str, list[float]]] = {}
    for name, measured in runs.items():
        levels[name] = {key: [run[key] for run in measured] for key in measured[0]}
        for key in ("throughput", "processor time"):
            levels[name][f"{key} of serial"] = [
                run[key] / serial[key] for run, serial in zip(measured, runs["serial"], strict=True)
            ]
    return {"n": n, "t": t, "seconds": seconds, "repeats": repeats, "packets": count, "levels": levels}
