"""What flows under each strategy in micro-batches, and which batch releases a change: long runs, and the same on Spark.

The micro-batch that releases a change, and all counts, depend on the rows and the batches alone. So long runs, for averages
over many changes, are made in the local runtime; `compare_with_spark` runs shorter ones on both, and compares every change,
its batch and every count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import ceil
from typing import Any

import numpy as np
import pyarrow as pa

from bench.pipelines import Workload, rows_into_leg
from sash.physical.nodes import StreamLeg
from sash.planning import plan_query
from sash.runtime.counts import Counts
from sash.runtime.legs import static_tables
from sash.runtime.local import LocalRun
from sash.state.memory import Ints
from sash.testing import Result, replay_job
from sash.testing.inputs import Inputs, micro_batches
from sash.testing.replayed import query_options
from sash.testing.times import TimeUnit
from sash.time import BEGINNING, MILLISECOND, SECOND

NAMES = ("ts", "store_id", "item_id", "price")
SHARDS = 2
_COUNTED = ("taken", "taken_negative", "given", "given_negative", "messages", "time_probes", "switches")

Given = Mapping[str, Any]
Runs = dict[str, list[float]]


@dataclass(frozen=True)
class BatchedRun:
    """One run of a query under a strategy: for every change its time and its batch (-1: never), and what flowed.

    `clocks` has the watermark after each batch, `ends` the time at which each ended; `below` counts the rows into selections,
    projections and joins with tables at the scans, and `arrived` the rows that came.
    """

    ts: Ints
    batch: Ints
    clocks: Ints
    ends: Ints
    counts: Mapping[str, Counts]
    below: int
    arrived: int

    def figures(self, since: int) -> dict[str, float]:
        """What flowed per 1,000 rows that arrived; releases and delays of the changes from a time on."""
        full = self.ts >= since
        left = full & (self.batch >= 0)
        ts, batch = self.ts[left], self.batch[left]
        late = batch - np.searchsorted(self.clocks, ts, side="right")
        delays = (self.ends[batch] - ts) / MILLISECOND
        seen = [counts for name, counts in self.counts.items() if not name.endswith(".Expire")]
        per = 1000 / max(1, self.arrived)
        return {
            "rows": per * (self.below + sum(one.taken for one in seen)),
            "negatives": per * sum(one.taken_negative for one in seen),
            "messages": per * sum(one.messages for one in seen),
            "time_probes": per * sum(one.time_probes for one in seen),
            "switches": per * sum(one.switches for one in seen),
            "batches_late": float(late.mean()) if len(late) else 0.0,
            "delay_ms": float(delays.mean()) if len(delays) else 0.0,
            "longest_ms": float(delays.max()) if len(delays) else 0.0,
            "changes": len(ts),
            "never": int((full & (self.batch < 0)).sum()),
        }


def run_batches(workload: Workload, batch_s: float, name: str, given: Given) -> BatchedRun:
    """Run the query in micro-batches in the local runtime, to the end of its rows."""
    streams, tables = _streams(workload), _relations(workload)
    catalog, inputs, static = Inputs.of(streams, tables, {}).read(TimeUnit("us"), None, 0, None, None)
    options = query_options(TimeUnit("us"), **{"strategy": name, **given})
    planned = plan_query(workload.sql, catalog, shards=SHARDS, options=options)
    found = static_tables(planned.physical, static)
    run = LocalRun(planned.physical, found, SHARDS)
    until = max(int(rows.ts[-1]) for rows in workload.sales.values())
    parts, clocks, ends = [], [], []
    known = dict.fromkeys(streams, int(BEGINNING))
    for micro in micro_batches(inputs, batch_rows(workload, batch_s)):
        parts.append(run.advance(micro.rows, micro.clocks))
        known |= micro.clocks
        clocks.append(min(known.values()))
        ends.append(max(int(rows.ts[-1]) for rows in micro.rows.values()))
    parts += [*run.advance_all({}, dict.fromkeys(streams, until + 1), ended=True), run.flush()]
    numbers = np.repeat([*range(len(parts) - 1), -1], [len(part) for part in parts])
    below: Counter[str] = Counter()
    for leg in planned.physical.legs:
        if isinstance(leg, StreamLeg):
            below += rows_into_leg(leg.node, found, workload.sales[leg.stream])
    return BatchedRun(
        np.concatenate([part.ts for part in parts]),
        numbers,
        np.array([*clocks, until + 1]),
        np.array([*ends, until]),
        run.counts,
        sum(below.values()),
        sum(map(len, workload.sales.values())),
    )


def measure_releases(
    workload: Workload, batch_s: float, strategies: Mapping[str, Given], changes: int, seeds: int
) -> dict[str, Runs]:
    """The figures of every run by strategy: so many seeds, with so many changes each once the window is full."""
    prompt, since = "update-pattern-aware", workload.window * SECOND
    while True:
        least = min(
            run_batches(replace(workload, seed=seed), batch_s, prompt, {}).figures(since)["changes"]
            for seed in range(seeds)
        )
        if least >= changes:
            break
        span = (workload.length - workload.window) * 1.1 * changes / max(1, least)
        workload = replace(workload, length=workload.window + max(ceil(span), workload.length))
    made: dict[str, Runs] = {}
    for name, given in strategies.items():
        runs = [run_batches(replace(workload, seed=seed), batch_s, name, given).figures(since) for seed in range(seeds)]
        made[name] = {measure: [round(run[measure], 3) for run in runs] for measure in runs[0]}
    return made


def compare_with_spark(workload: Workload, batch_s: float, strategies: Mapping[str, Given]) -> dict[str, int]:
    """Run the query under all strategies as one job on Spark, and locally: how many changes, and counts, are the same."""
    queries = [(name, workload.sql, {"strategy": name, **given}) for name, given in strategies.items()]
    here, there = (
        replay_job(
            queries,
            _streams(workload),
            _relations(workload),
            runtime=runtime,
            unit="us",
            until=max(int(rows.ts[-1]) for rows in workload.sales.values()),
            batch=batch_rows(workload, batch_s),
            shards=SHARDS,
        )
        for runtime in ("local", "spark")
    )
    ours, theirs = (
        sum((_released(name, result) for name, result in found.items()), Counter()) for found in (here, there)
    )
    counts = [
        getattr(seen, measure) == getattr(there[query].counts[name], measure)
        for query, result in here.items()
        for name, seen in result.counts.items()
        for measure in _COUNTED
    ]
    return {
        "changes": ours.total(),
        "same_changes": (ours & theirs).total() if ours.total() == theirs.total() else 0,
        "counts": len(counts),
        "same_counts": sum(counts),
    }


def batch_rows(workload: Workload, batch_s: float) -> int:
    """The rows of a micro-batch of so many seconds."""
    return max(1, round(workload.rate * len(workload.sales) * batch_s))


def _released(name: str, result: Result) -> Counter[tuple[Any, ...]]:
    """The changes that a batch has released, each with its batch."""
    return Counter(
        (name, change.ts, change.op, *change.row.values(), change.batch)
        for change in result.changes
        if change.batch is not None
    )


def _streams(workload: Workload) -> dict[str, pa.Table]:
    return {name: pa.table(list(rows.columns), names=NAMES) for name, rows in workload.sales.items()}


def _relations(workload: Workload) -> dict[str, pa.Table]:
    return {name: table for name, table in workload.relations.items() if name in workload.sql}
