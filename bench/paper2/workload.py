"""The workloads of paper 2, section 5.1: packets whose rate changes, groups of periodic queries, snapshot queries."""

from __future__ import annotations

import random

from bench.paper2.simulation import Periodic, Snapshot, Workload

UPDATES = 100  # in a run, whatever the window: as many as the longest window has sub-windows
GROUP = 5  # queries that are evaluated in one pass
SCAN = 0.012  # seconds that a group of periodic queries takes for a sub-window of one second, on average
FIXED = 0.5  # the part of it that does not depend on the number of packets
COSTS = (0.75, 1.25)  # of a sub-window, from the simplest group of periodic queries to the dearest
UPDATE = 0.002  # of the time between two updates
SNAPSHOT = 0.2  # how much a sub-window costs a simple aggregate, against the hash table of a periodic query
SNAPSHOTS_PER_UPDATE = 5


def rates(rng: random.Random, count: int) -> list[float]:
    """How busy each sub-window is: up to ten times more or less than usual, usual on average."""
    drawn = [10 ** rng.uniform(-1, 1) for _ in range(count)]
    usual = sum(drawn) / count
    return [rate / usual for rate in drawn]


def workload(n: int, t: float, queries: int, seed: int, *, snapshots: bool = False, scan: float = SCAN) -> Workload:
    """A run of a hundred updates. A group of periodic queries scans all of it, a snapshot query its own length."""
    rng = random.Random(f"{n}/{t}/{queries}/{seed}")
    until = UPDATES * t
    groups = [Periodic(n, cost=rng.uniform(*COSTS)) for _ in range(queries // GROUP)]
    asked = []
    at = rng.expovariate(SNAPSHOTS_PER_UPDATE / t)
    while snapshots and at < until:
        asked.append(Snapshot(at, rng.randint(1, n), SNAPSHOT))
        at += rng.expovariate(SNAPSHOTS_PER_UPDATE / t)
    reads = [scan * (FIXED + (1 - FIXED) * rate * t) for rate in rates(rng, n + UPDATES + 2)]
    return Workload(n, t, until, reads, groups, asked, UPDATE * t)
