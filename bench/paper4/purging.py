"""Eager evaluation with lazy expiration (paper 4, 4.1 and 6.4): how often to remove expired rows, by hash size.

Rows per second of the operator for hash tables of several sizes and intervals. In the paper a removal visits every bucket, so larger tables want longer intervals. Here rows are removed in order of
expiration, each from its own list, and no bucket is visited in vain: there is nothing to save, and longer intervals only
lengthen the lists that new rows are joined with. So expired rows are removed at once unless `purge=` says otherwise.
"""

from __future__ import annotations

import time
from typing import Any

import pyarrow as pa

from bench.paper4.operator import first
from bench.paper4.streams import Streams
from sash.operators.base import Edge
from sash.operators.join_program import Graph
from sash.operators.multi_join import MultiJoin
from sash.state.memory import HeapMemory

STREAMS = Streams((1,) * 4, (100,) * 4, (50,) * 4)
BUCKETS = (2, 10, 30, None)
INTERVALS = (0, 100, 200, 300)
_BATCH = 400
"""Rows of a batch, of a hundred units of time: expired rows are removed once per batch at most."""


def measure_purging(rows: int, buckets: int | None, interval: float, seed: int = 0) -> tuple[float, float]:
    """Rows per second of processor time, and rows looked at per row, once windows are full."""
    count = len(STREAMS.rates)
    graph = Graph(count, (((0,),) * count,))
    edges = tuple(Edge((pa.int64(),), "fifo") for _ in range(count))
    tables = None if buckets is None else (buckets,) * count
    purge = round(interval * STREAMS.unit) or None
    orders = first(range(1, count + 1), count)
    join = MultiJoin(HeapMemory(), edges, graph, (), orders, None, tables, purge=purge)
    sizes = [STREAMS.filling] + [_BATCH] * (rows // _BATCH)
    seconds, taken, before = 0.0, 0, 0
    for number, (clock, given) in enumerate(STREAMS.batches(sizes, seed)):
        begun = time.process_time()
        join.process(given, clock)
        if number < len(sizes) // 4:
            before = join.rows_examined
            continue
        seconds += time.process_time() - begun
        taken += sizes[number]
    return taken / seconds, (join.rows_examined - before) / taken


def purging(rows: int, repeats: int) -> list[dict[str, Any]]:
    """Every run by the size of the hash tables (None: a list per key) and the interval in windows."""
    made = []
    for buckets in BUCKETS:
        for interval in INTERVALS:
            runs = [measure_purging(rows, buckets, interval, seed) for seed in range(repeats)]
            made.append(
                {
                    "buckets": buckets,
                    "windows": interval / STREAMS.windows[0],
                    "per_s": [round(speed) for speed, _ in runs],
                    "looked_at": [round(looked, 2) for _, looked in runs],
                }
            )
    return made
