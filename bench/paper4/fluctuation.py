"""A stream that fluctuates, in an order that does not change (paper 4, 5.4): where it costs least.

For several keys and bursts, the rows that a join of three streams looks at with the fluctuating stream first, second and last.
All streams have the same average rate; between
its bursts, the first one is silent. A burst lasts for a share of the window. Then, for joins of two streams at a time, the
rows that they take in and output, and the most rows that they keep, with that stream in the first join and in the last.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from bench.paper4.operator import first
from sash.operators.base import Edge
from sash.operators.join_program import Graph
from sash.operators.multi_join import MultiJoin
from sash.plan.catalog import Catalog, StreamEntry
from sash.plan.options import Options
from sash.planning import plan_query
from sash.rows import parse_schema
from sash.runtime.local import LocalRun
from sash.state.changes import ChangeBatch
from sash.state.memory import HeapMemory
from sash.time import FOREVER

WINDOW = 1000
RATE = 0.1
"""The average rate of each stream, in rows per unit of time."""

SCHEMA = parse_schema("ts BIGINT, k BIGINT")
ORDERS = ((1, 2, 3), (2, 1, 3), (2, 3, 1))
PLACES = ("first", "second", "last")
KEYS = ((50, 50, 50), (200, 20, 20), (20, 50, 50), (20, 200, 200))
BURSTS = ((10, 0.25), (10, 1.0), (10, 4.0), (30, 1.0))
"""The peak rate as a multiple of the average, and the length of a burst in windows."""


def batches(
    keys: tuple[int, ...], burst: float, length: float, seed: int = 0
) -> Iterator[tuple[int, list[ChangeBatch]]]:
    """Batches of a window's length, with some four bursts: the clock after each one, and its rows by stream."""
    random = np.random.default_rng(seed)
    lasts = round(WINDOW * length)
    period = round(lasts * burst)
    end = max(4 * period, 20 * WINDOW) // period * period
    times = [
        np.sort(
            np.concatenate(
                [
                    random.integers(at, at + lasts, random.poisson(lasts * RATE * burst))
                    for at in range(period - lasts, end, period)
                ]
            )
        )
    ]
    times += [np.sort(random.integers(0, end, random.poisson(end * RATE))) for _ in keys[1:]]
    values = [random.integers(0, count, len(ts)) for count, ts in zip(keys, times, strict=True)]
    for begun in range(0, end, WINDOW):
        given = []
        for ts, found in zip(times, values, strict=True):
            mine = slice(*np.searchsorted(ts, [begun, begun + WINDOW]))
            given.append(ChangeBatch.stamped(ts[mine], ts[mine] + WINDOW, (pa.array(found[mine]),)))
        yield begun + WINDOW, given


def looked_at(order: tuple[int, ...], keys: tuple[int, ...], burst: float, length: float, seed: int = 0) -> int:
    """The rows that the nested-loop join looks at in this order."""
    count = len(keys)
    edges = tuple(Edge((pa.int64(),), "fifo") for _ in keys)
    join = MultiJoin(HeapMemory(), edges, Graph(count, (((0,),) * count,)), (), first(order, count), None, (1,) * count)
    for clock, given in batches(keys, burst, length, seed):
        join.process(given, clock)
    return join.rows_examined


def in_pairs(
    order: tuple[int, ...], keys: tuple[int, ...], burst: float, length: float, seed: int = 0
) -> tuple[int, int]:
    """The rows into and out of two joins in this order, and the most rows that they keep."""
    catalog = Catalog({f"s{number}": StreamEntry(f"s{number}", SCHEMA, "ts") for number in order})
    window = f"[RANGE {WINDOW} MICROSECONDS]"
    a, b, c = (f"s{number}" for number in order)
    text = f"SELECT {a}.k FROM {a} {window} JOIN {b} {window} ON {a}.k = {b}.k JOIN {c} {window} ON {b}.k = {c}.k"
    plan = plan_query(text, catalog, {"order_joins"}, shards=1, options=Options(join="binary")).physical
    run, most = LocalRun(plan, {}), 0
    for clock, given in batches(keys, burst, length, seed):
        rows = {
            f"s{number}": ChangeBatch.stamped(one.ts, np.full(len(one), FOREVER), (pa.array(one.ts), *one.columns))
            for number, one in enumerate(given, 1)
        }
        run.advance(rows, dict.fromkeys(rows, clock))
        most = max(most, run.state_rows)
    return sum(seen.taken + seen.given for name, seen in run.counts.items() if name.endswith("Join")), most


def fluctuation(repeats: int) -> list[dict[str, Any]]:
    """Every run by keys and bursts: rows that the join looks at; of joins of two at a time, their rows and largest state."""
    made = []
    for keys in KEYS:
        for burst, length in BURSTS:
            looked = {
                place: [looked_at(order, keys, burst, length, seed) for seed in range(repeats)]
                for place, order in zip(PLACES, ORDERS, strict=True)
            }
            pairs = {
                place: [in_pairs(order, keys, burst, length, seed) for seed in range(repeats)]
                for place, order in zip(PLACES, ORDERS, strict=True)
                if place != "second"
            }
            made.append(
                {
                    "keys": list(keys),
                    "peak": burst,
                    "windows": length,
                    "looked_at": looked,
                    "pair_rows": {place: [rows for rows, _ in runs] for place, runs in pairs.items()},
                    "pair_state": {place: [most for _, most in runs] for place, runs in pairs.items()},
                }
            )
    return made
