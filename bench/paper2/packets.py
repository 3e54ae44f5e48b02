"""Packets in sub-windows, and queries over them: top-k lists and percentiles of the bandwidth of every address."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bench.paper2.workload import COSTS, GROUP

ADDRESSES = 1_000
LARGEST = 100  # bytes of data in a packet
PERCENTILES = (25, 50, 75, 90, 95, 99)
Totals = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Packets:
    """One sub-window: source and destination addresses and sizes, a row each."""

    source: npt.NDArray[np.int64]
    destination: npt.NDArray[np.int64]
    size: npt.NDArray[np.int64]


def packets(rng: np.random.Generator, count: int) -> Packets:
    """Random packets."""
    return Packets(
        rng.integers(0, ADDRESSES, count), rng.integers(0, ADDRESSES, count), rng.integers(1, LARGEST + 1, count)
    )


def scan(window: Packets, passes: int) -> Totals:
    """The bytes of each address in a sub-window, computed with one hash table per pass."""
    totals = np.zeros(ADDRESSES, np.int64)
    for turn in range(passes):
        address = window.source if turn % 2 else window.destination
        found, position = np.unique(address, return_inverse=True)
        totals[found] += np.bincount(position, weights=window.size).astype(np.int64)
    return totals


def answer(partials: tuple[Totals, ...]) -> tuple[list[int], list[float]]:
    """The ten busiest addresses, and percentiles of the bandwidth."""
    totals = np.sum(partials, axis=0)
    return np.argsort(totals)[-10:].tolist(), np.percentile(totals, PERCENTILES).tolist()


def passes_of(group: int) -> int:
    """The number of hash tables that a group of queries builds: about one per query."""
    low, high = (round(cost * GROUP) for cost in COSTS)
    return low + group % (high - low + 1)


def packets_per_scan(seconds: float) -> int:
    """The number of packets that a typical group scans in that time on this machine."""
    rng = np.random.default_rng(0)
    count = 1_000
    while True:
        window = packets(rng, count)
        scan(window, GROUP)
        taken = min(_time(window) for _ in range(15))
        if taken >= seconds / 2 or count > 10_000_000:
            return max(10, round(count * seconds / taken))
        count *= 2


def _time(window: Packets) -> float:
    start = time.perf_counter()
    scan(window, GROUP)
    return time.perf_counter() - start
