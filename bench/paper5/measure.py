"""Measures a query under several strategies side by side: on the same micro-batches, by turns, in one process."""

from __future__ import annotations

import gc
import time
from collections.abc import Mapping, Sequence
from itertools import count, islice
from statistics import median
from typing import Any

import numpy as np

from bench.paper5.queries import CHOICES, STRATEGIES, PaperQuery
from bench.paper5.trace import Trace
from sash.plan.nodes import Except, Join, walk
from sash.plan.options import Options, check_strategy
from sash.planning import Planned, plan_query
from sash.runtime.local import LocalRun
from sash.state.changes import ChangeBatch
from sash.state.memory import Ints

BATCH, LEAST = 20_000, 5_000
"""The rows per link of a micro-batch (a second's, at the rate of the throughput benchmark), and the least for small
windows."""
_AWARE = Options("update-pattern-aware")
_GROUP = 4
"""Batches per turn. Their times are added before the median is taken, so that occasional work counts, and a run has the
processor's caches to itself during a turn."""


def batch_of(window_rows: int) -> int:
    """The rows per link of the micro-batches for a window of this many rows."""
    return max(LEAST, min(BATCH, window_rows))


class TimedRun:
    """A run with the times of its measured batches, and the counts of its output."""

    def __init__(self, planned: Planned) -> None:
        self.planned = planned
        self.run = LocalRun(planned.physical, {})
        self.times: list[float] = []
        self.rows: list[int] = []
        self.given = 0
        self.retractions: list[Ints] = []
        self.answer = 0
        self.bytes: list[int] = []
        self.measuring = False

    def advance(self, rows: dict[str, ChangeBatch], clocks: dict[str, int], *, measured: bool) -> None:
        """Run one batch."""
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
            self.retractions.append(changes.ts[negative])
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
    case: PaperQuery, trace: Trace, window: int, strategies: Sequence[str] = STRATEGIES, batch: int = BATCH
) -> list[dict[str, Any]]:
    """Measure the query over windows of this many microseconds, under each strategy: times, bytes, rows."""
    options = {name: Options(check_strategy(name)) for name in strategies}
    return measure_options(case, trace, window, options, batch)


def measure_options(
    case: PaperQuery, trace: Trace, window: int, options: Mapping[str, Options], batch: int = BATCH
) -> list[dict[str, Any]]:
    """Measure the query under several named options."""
    protocol = trace.unselective if case.unselective else trace.selective
    only = trace.only(case.links)
    disable = CHOICES if case.fixed else frozenset()
    text = case.text(window, protocol)
    runs = {
        name: TimedRun(plan_query(text, trace.catalog, disable=disable, shards=1, options=given))
        for name, given in options.items()
    }
    side_by_side(list(runs.values()), only, window, batch)
    return [_figures(name, run, case, only, window) for name, run in runs.items()]


def merged(runs: Sequence[Sequence[dict[str, Any]]]) -> list[dict[str, Any]]:
    """The results of several seeds as one: medians of the times, with those of every run, and the most that was kept."""
    made = []
    for same in zip(*runs, strict=True):
        times = [run["ms_per_1000"] for run in same]
        result = {**same[0], "ms_per_1000": median(times), "runs": times}
        del result["operator_rows"]
        for key in ("kept_per_output", "state_bytes"):
            if key in result:
                result[key] = max(run[key] for run in same)
        if "premature" in result:
            result["premature"] = median(run["premature"] for run in same)
        made.append(result)
    return made


def side_by_side(runs: Sequence[TimedRun], trace: Trace, window: int, batch: int) -> None:
    """Give every batch to each run. Runs take turns of some batches, with another run first in every turn."""
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
    forms: Sequence[PaperQuery], traces: Sequence[Trace], window: int, batch: int = BATCH
) -> dict[str, list[float]]:
    """Measure forms of a query side by side, update-pattern-aware: milliseconds per 1,000 rows of each, for every trace."""
    times: dict[str, list[float]] = {form.name: [] for form in forms}
    for trace in traces:
        runs = {
            form.name: TimedRun(
                plan_query(form.text(window, trace.selective), trace.catalog, disable=CHOICES, shards=1, options=_AWARE)
            )
            for form in forms
        }
        side_by_side(list(runs.values()), trace, window, batch)
        for name, run in runs.items():
            times[name].append(round(run.per_thousand, 4))
    return times


def _figures(strategy: str, run: TimedRun, case: PaperQuery, trace: Trace, window: int) -> dict[str, Any]:
    result: dict[str, Any] = {
        "query": case.name,
        "trace": trace.name,
        "strategy": strategy,
        "window_rows": trace.rows_in(window),
        "window_us": window,
        "ms_per_1000": round(run.per_thousand, 4),
        "state_bytes": max(run.bytes),
        "state_rows": run.run.state_rows,
        "answer_rows": run.answer,
        "changes": run.given,
        "measured_rows": sum(run.rows),
        "operator_rows": run.run.operator_rows,
    }
    distinct = [int(rows) for name, rows in run.run.operator_rows.items() if name.endswith(".Distinct")]
    if distinct:
        result["kept_per_output"] = round(sum(distinct) / max(1, run.answer), 4)
    if case.name == "q3":
        result["premature"] = round(premature(run.retractions, trace.links["link1"].ts, window), 4)
    return result


def premature(retractions: Sequence[Ints], left: Ints, window: int) -> float:
    """The share of retractions at an instant at which no row of the left input expires."""
    times = np.concatenate(retractions)
    return float((~np.isin(times - window, left)).mean()) if len(times) else 0.0


def chosen_form(trace: Trace, window: int, written: PaperQuery) -> str:
    """The form of Query 5 that the optimizer chooses by the trace's statistics: `q5-above` or `q5-below`."""
    planned = plan_query(written.text(window, trace.selective), trace.catalog)
    top = next(node for node in walk(planned.optimized) if isinstance(node, Join | Except))
    return "q5-above" if isinstance(top, Except) else "q5-below"
