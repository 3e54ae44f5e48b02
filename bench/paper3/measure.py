"""Paper 3's measurements: rows through the pipeline and delay of negative tuples, time messages and piggybacking, by rate.

With Q2 (a join, then DISTINCT) and Q3 (a join with a table, then COUNT(DISTINCT)) of paper 1, whose operators take no time
here. Re-evaluation, the baseline, is run in the local runtime, by the rows in its window.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from rich.console import Console
from rich.table import Table

from bench.paper3.claims import claims
from bench.pipelines import SimulatedRun, Workload
from bench.report import Figures
from bench.spread import shown
from sash.errors import SashError
from sash.testing.simulation import SimulationSettings

STRATEGIES = ("input-triggered", "negative-tuple", "time-message", "piggyback")
QUERIES = ("q2", "q3")
RATES = (2, 10, 50, 200, 1000)
WINDOW_ROWS = (50, 100, 200, 400)
BASELINES = ("re-evaluation", "negative-tuple", "input-triggered", "update-pattern-aware")
EXPERIMENTS = ("simulated", "baseline")
PATIENCE = 100_000
_BASELINE_WINDOW = 4


def measure(
    window: int,
    rows: int,
    changes: int,
    seeds: int,
    rates: Sequence[float] = RATES,
    window_rows: Sequence[int] = WINDOW_ROWS,
    experiments: str = "all",
) -> Figures:
    """Run the experiments. A stream has at most `rows` rows in a window: at higher rates windows are shorter."""
    wanted = EXPERIMENTS if experiments == "all" else tuple(experiments.split(","))
    if unknown := [name for name in wanted if name not in EXPERIMENTS]:
        raise SashError(f"unknown experiment {unknown[0]!r}; use one of {', '.join(EXPERIMENTS)}")
    found: Figures = {}
    with Console(stderr=True).status("paper 3") as status:
        if "simulated" in wanted:
            found["settings"] = {"window_seconds": window, "rows": rows, "seeds": seeds, "patience_ms": PATIENCE / 1000}
            found |= {query: _by_rate(query, window, rows, changes, seeds, rates, status.update) for query in QUERIES}
        if "baseline" in wanted:
            status.update("re-evaluation")
            found["baseline"] = {query: _baseline(query, seeds, window_rows) for query in QUERIES}
    return found


def judged(found: Figures) -> Figures:
    """The figures with the claims that they support."""
    return {**found, "claims": [vars(claim) for claim in claims(found)]}


def _by_rate(
    query: str, window: int, rows: int, changes: int, seeds: int, rates: Sequence[float], report: Callable[[str], None]
) -> dict[str, Any]:
    """Every run is as long as it needs for so many changes, and all strategies of a seed have the same arrivals."""
    made = {}
    for rate in rates:
        report(f"{query} at {rate} tuples/s")
        span = max(1, min(window, round(rows / rate)))
        runs: dict[str, list[SimulatedRun]] = {name: [] for name in STRATEGIES}
        for seed in range(seeds):
            mine = Workload(query, rate, span, 3 * span, seed=seed).with_changes(changes, "time-probing", {})
            for name in STRATEGIES:
                runs[name].append(_run(mine, name))
        made[str(rate)] = {name: _figures(done) for name, done in runs.items()}
    return made


def _run(workload: Workload, strategy: str) -> SimulatedRun:
    """Rows without messages are computed at once; what messages do depends on the history of each edge."""
    if strategy in ("time-message", "piggyback"):
        return workload.simulate(strategy, settings=SimulationSettings(patience=PATIENCE))
    return workload.compute(strategy, {})


def _figures(runs: Sequence[SimulatedRun]) -> dict[str, Any]:
    return {
        "rows": [run.work for run in runs],
        "first_kind": [run.first_kind for run in runs],
        "messages": [sum(seen.messages for seen in run.counts.values()) for run in runs],
        "negatives_below_second_kind": [run.negatives for run in runs],
        "average_ms": [round(1000 * run.average, 3) for run in runs],
        "longest_ms": [round(1000 * run.longest, 3) for run in runs],
        "changes": sum(len(run.delays) for run in runs),
        "never": sum(run.unreleased for run in runs),
        "switches": [sum(run.switches.values()) for run in runs],
    }


def _baseline(query: str, seeds: int, window_rows: Sequence[int]) -> dict[str, Any]:
    """Rows into all operators, and milliseconds, per arriving row, in every run; strategies take turns."""
    made = {}
    for rows in window_rows:
        workload = Workload(query, rows / _BASELINE_WINDOW, _BASELINE_WINDOW, 4 * _BASELINE_WINDOW)
        found: dict[str, dict[str, list[float]]] = {name: {"rows": [], "ms": []} for name in BASELINES}
        for name in BASELINES:
            replace(workload, length=2 * _BASELINE_WINDOW + 1).run_batches(name)  # loads and compiles
        for seed in range(seeds):
            for name, into in found.items():
                done = replace(workload, seed=seed).run_batches(name)
                into["rows"].append(round(done.taken / max(1, done.arrived), 2))
                into["ms"].append(round(1000 * done.seconds / max(1, done.arrived), 4))
        made[str(rows)] = found
    return made


def table(found: Figures) -> Table:
    """Rows and delays as a table."""
    made = Table(title="Rows and messages (times input-triggered); average delay in ms")
    made.add_column("query, tuples/s")
    for name in STRATEGIES:
        made.add_column(name, justify="right")
    for query in QUERIES:
        for rate, at in found.get(query, {}).items():
            base = at["input-triggered"]["rows"]
            cells = [
                f"{shown([one / two for one, two in zip(at[n]['rows'], base, strict=True)])}; {shown(at[n]['average_ms'])}"
                for n in STRATEGIES
            ]
            made.add_row(f"{query}, {rate}", *cells)
    return made
