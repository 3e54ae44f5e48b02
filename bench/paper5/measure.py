"""Measures a query under several strategies side by side: the same micro-batches, in turn, in one process."""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Sequence
from itertools import count, islice
from statistics import median
from typing import Any

import numpy as np

from bench.paper5.queries import CHOICES, STRATEGIES, Case
from bench.paper5.trace import Trace
from sash.plan.nodes import Except, Join, walk
from sash.plan.options import Options, check_strategy
from sash.planning import Planned, plan_query
from sash.runtime.local import LocalRun
from sash.state.changes import ChangeBatch
from sash.state.memory import Ints

BATCH, LEAST = 20_000, 5_000
"""Rows per link of a micro-batch: a second's, at the rate of the throughput benchmark; not more than a window has, but so
many at least."""
_AWARE = Options("update-pattern-aware")
_GROUP = 4
"""Batches of a turn. Their times are added up before the median is taken, so that what happens now and then counts; and a
run has the processor's caches to itself for so long, as it would have alone."""


def batch_of(window_rows: int) -> int:
    """The rows per link of the micro-batches that a window of so many rows is measured with."""
    return max(LEAST, min(BATCH, window_rows))


class Timed:
    """A run, with the times of its batches after the window has filled, and its output, positive and negative."""

    def __init__(self, planned: Planned) -> None:
        self.planned = planned
        self.run = LocalRun(planned.physical, {})
        self.times: list[float] = []
        self.rows: list[int] = []
        self.given = 0
        self.taken_back: list[Ints] = []
        self.answer = 0
        self.bytes: list[int] = []
        self.measuring = False

    def advance(self, rows: dict[str, ChangeBatch], clocks: dict[str, int], *, measured: bool) -> None:
        """One batch."""
        self.measuring = measured
        before = time.process_time()
        changes = self.run.advance(rows, clocks)
        taken = time.process_time() - before
        negative = changes.sign < 0
        self.answer += len(changes) - 2 * int(negative.sum())
        if measured:
            self.times.append(taken)
            self.rows.append(sum(len(batch) for batch in rows.values()))
            self.given += len(changes)
            self.taken_back.append(changes.ts[negative])
            self.bytes.append(sum(self.run.stage_bytes.values()))

    @property
    def per_thousand(self) -> float:
        """Milliseconds per 1,000 rows of input."""
        groups = [
            sum(self.times[start : start + _GROUP]) / max(1, sum(self.rows[start : start + _GROUP]))
            for start in range(0, len(self.times), _GROUP)
        ]
        return 1e6 * median(groups)


def measure(
    case: Case, trace: Trace, window: int, strategies: Sequence[str] = STRATEGIES, batch: int = BATCH
) -> list[dict[str, Any]]:
    """The query over windows of so many microseconds, under each strategy: times, bytes, rows."""
    protocol = trace.unselective if case.unselective else trace.selective
    only = trace.only(case.links)
    disable = CHOICES if case.fixed else frozenset()
    catalog = trace.catalog
    text = case.text(window, protocol)
    runs = {
        name: Timed(plan_query(text, catalog, disable=disable, shards=1, options=Options(check_strategy(name))))
        for name in strategies
    }
    side_by_side(list(runs.values()), only, window, batch)
    return [_figures(name, run, case, only, window) for name, run in runs.items()]


def side_by_side(runs: Sequence[Timed], trace: Trace, window: int, batch: int) -> None:
    """Give every batch to each of the runs, which take turns of some batches, another one first every time."""
    begun = int(min(rows.ts[0] for rows in trace.links.values() if len(rows))) + window
    gc.collect()
    gc.disable()
    try:
        coming = trace.batches(batch)
        for turn in count():
            batches = list(islice(coming, _GROUP))
            if not batches:
                break
            first = turn % len(runs)
            for run in (*runs[first:], *runs[:first]):
                for rows, clocks in batches:
                    run.advance(rows, clocks, measured=min(clocks.values()) > begun)
    finally:
        gc.enable()


def measure_forms(
    forms: Sequence[Case], trace: Trace, window: int, repeats: int, batch: int = BATCH
) -> dict[str, float]:
    """Forms of a query beside one another, update-pattern-aware: milliseconds per 1,000 rows, of each the best run."""
    times: dict[str, float] = {}
    for _ in range(repeats):
        runs = {
            form.name: Timed(
                plan_query(form.text(window, trace.selective), trace.catalog, disable=CHOICES, shards=1, options=_AWARE)
            )
            for form in forms
        }
        side_by_side(list(runs.values()), trace, window, batch)
        times = {name: min(times.get(name, math.inf), run.per_thousand) for name, run in runs.items()}
    return {name: round(taken, 4) for name, taken in times.items()}


def _figures(strategy: str, run: Timed, case: Case, trace: Trace, window: int) -> dict[str, Any]:
    result: dict[str, Any] = {
        "query": case.name,
        "trace": trace.name,
        "strategy": strategy,
        "window_rows": round(window * trace.rows / max(trace.span, 1)),
        "window_us": window,
        "ms_per_1000": round(run.per_thousand, 4),
        "state_bytes": max(run.bytes),
        "state_rows": run.run.state_rows,
        "answer_rows": run.answer,
        "changes": run.given,
        "measured_rows": sum(run.rows),
        "operator_bytes": run.run.operator_bytes,
        "operator_rows": run.run.operator_rows,
    }
    if case.name == "q3":
        result["premature"] = round(premature(run.taken_back, trace.links["link1"].ts, window), 4)
    return result


def premature(taken_back: Sequence[Ints], left: Ints, window: int) -> float:
    """The share of rows that are taken back at an instant at which no row of the left input expires."""
    times = np.concatenate(taken_back)
    return float((~np.isin(times - window, left)).mean()) if len(times) else 0.0


def chosen_form(trace: Trace, window: int, written: Case) -> str:
    """Which form of Query 5 the optimizer takes, given what the trace tells: `q5-above` or `q5-below`."""
    planned = plan_query(written.text(window, trace.selective), trace.catalog)
    top = next(node for node in walk(planned.optimized) if isinstance(node, Join | Except))
    return "q5-above" if isinstance(top, Except) else "q5-below"
