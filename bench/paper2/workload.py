"""The workloads of paper 2, section 5.1: packets at varying rates, groups of periodic queries, and snapshot queries."""

from __future__ import annotations

import random

from bench.paper2.simulation import PeriodicLoad, SnapshotLoad, WindowWorkload

UPDATES = 100  # per run: as many as the longest window has sub-windows
GROUP = 5  # queries evaluated in one pass
SCAN = 0.012  # seconds that a group of periodic queries takes for a sub-window of one second, on average
FIXED = 0.5  # the part of it that does not depend on the number of packets
COSTS = (0.75, 1.25)  # relative cost of a sub-window, from the cheapest group of periodic queries to the most expensive
UPDATE = 0.002  # cost of an update, as a share of the time between two updates
SNAPSHOT = 0.2  # cost of a sub-window for a simple aggregate, relative to the hash table of a periodic query
SNAPSHOTS_PER_UPDATE = 5


def rates(rng: random.Random, count: int) -> list[float]:
    """The relative rate of each sub-window: between a tenth and ten times a typical rate, 1 on average."""
    drawn = [10 ** rng.uniform(-1, 1) for _ in range(count)]
    mean = sum(drawn) / count
    return [rate / mean for rate in drawn]


def workload(
    n: int, t: float, queries: int, seed: int, *, snapshots: bool = False, scan: float = SCAN
) -> WindowWorkload:
    """A run of a hundred updates. Groups of periodic queries scan the whole window, snapshot queries a random length."""
    rng = random.Random(f"{n}/{t}/{queries}/{seed}")
    until = UPDATES * t
    groups = [PeriodicLoad(n, cost=rng.uniform(*COSTS)) for _ in range(queries // GROUP)]
    snapshot_loads = []
    at = rng.expovariate(SNAPSHOTS_PER_UPDATE / t)
    while snapshots and at < until:
        snapshot_loads.append(SnapshotLoad(at, rng.randint(1, n), SNAPSHOT))
        at += rng.expovariate(SNAPSHOTS_PER_UPDATE / t)
    reads = [scan * (FIXED + (1 - FIXED) * rate * t) for rate in rates(rng, n + UPDATES + 2)]
    return WindowWorkload(n, t, until, reads, groups, snapshot_loads, UPDATE * t)
