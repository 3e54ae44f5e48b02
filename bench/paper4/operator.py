"""Throughput of the multi-way join operator alone, with results counted (paper 4, 6.1)."""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import pyarrow as pa

from bench.paper4.costs import lazy_cost, naive_cost
from bench.paper4.streams import Streams
from sash.operators.base import Edge
from sash.operators.join_program import Graph
from sash.operators.multi_join import MultiJoin
from sash.operators.reordering import Orders
from sash.optimizer.cost import eager_cost
from sash.state.memory import HeapMemory

_SLICE = 1 << 14


@dataclass(frozen=True)
class Speed:
    """The rows per second of an operator, and its results and probes per row, of every run."""

    rates: tuple[float, ...]
    results: tuple[float, ...]
    counts: tuple[float, ...]

    @property
    def probes(self) -> float:
        """The median of the probes per row."""
        return median(self.counts)


@dataclass(frozen=True)
class Setting:
    """A form of the join: orders per origin from 0, the buckets of its hash tables (1: none), tau in units of time."""

    orders: Orders
    buckets: tuple[int, ...] | None
    tau: float | None = None


def first(order: Sequence[int], count: int) -> Orders:
    """The orders per origin of a global order, with the origin first in each."""
    numbers = [number - 1 for number in order]
    return tuple((origin, *(j for j in numbers if j != origin)) for origin in range(count))


def plans(streams: Streams, tau: float | None, naive: bool = False) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The best and the worst of all orders by their cost, streams from 1."""
    every = list(itertools.permutations(range(1, len(streams.rates) + 1)))

    def cost(order: tuple[int, ...]) -> float:
        if naive:
            return naive_cost(order, *streams.figures, tau=tau)
        return eager_cost(order, *streams.figures) if tau is None else lazy_cost(order, *streams.figures, tau)

    return min(every, key=cost), max(every, key=cost)


def measure(streams: Streams, setting: Setting, rows: int, repeats: int = 1) -> Speed:
    """The speed in as many runs, each over other rows, measured once windows are full."""
    rates, results, probes = zip(*(_run(streams, setting, rows, seed) for seed in range(repeats)), strict=True)
    return Speed(rates, results, probes)


def _run(streams: Streams, setting: Setting, rows: int, seed: int) -> tuple[float, float, float]:
    count = len(streams.rates)
    graph = Graph(count, (((0,),) * count,))
    edges = tuple(Edge((pa.int64(),), "fifo") for _ in range(count))
    tau = None if setting.tau is None else round(setting.tau * streams.unit)
    join = MultiJoin(HeapMemory(), edges, graph, (), setting.orders, tau, setting.buckets)
    size = min(rows, _SLICE)
    sizes = [streams.filling, size] + [size] * max(1, rows // size)
    seconds, taken, results, before = 0.0, 0, 0, 0
    for number, (clock, given) in enumerate(streams.batches(sizes, seed)):
        begun = time.process_time()
        made = join.process(given, clock)
        if number < 2:
            before = join.rows_examined
            continue
        seconds += time.process_time() - begun
        taken += sizes[number]
        results += len(made)
    return round(taken / seconds), round(results / taken, 3), round((join.rows_examined - before) / taken, 2)
