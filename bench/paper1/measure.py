"""Paper 1's measurements: output delay by strategy, rate, depth and selectivity (Figs 8-11), and throughput (Fig 12).

Delays are computed for servers with the service times that operators have on this machine (`bench/queueing.py`). On Spark
they are measured by the wall clock, beside the times of the batches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

from bench.paper1.claims import claims
from bench.pipelines import SimulatedRun, Workload
from bench.report import Figures
from bench.spark_delays import measure_delays
from bench.spread import shown
from sash.errors import SashError
from sash.time import SECOND

STRATEGIES = ("input-triggered", "time-probing", "negative-tuple", "hybrid")
QUERIES = ("q1", "q2", "q3", "q4", "q5")
RATES = (5, 10, 20, 40)
DEPTHS = (2, 3, 4, 5)
SELECTIVITIES = (0.1, 0.25, 0.5, 0.75, 1.0)
PERIODS_MS = (1, 10, 100, 1000)
THROUGHPUT_RATE, THROUGHPUT_WINDOW = 2056, 10
_SHORT_WINDOW, _SHORT_LENGTH = 4, 9
"""Window and length, in seconds, of the run in which service times are measured."""

Report = Callable[[str], None]


EXPERIMENTS = ("delays", "rows", "throughput", "spark")


def measure(
    rate: float, window: int, changes: int, seeds: int, spark_seconds: int, experiments: str = "all"
) -> Figures:
    """Run the experiments with `seeds` seeds, each until it has `changes` changes."""
    wanted = EXPERIMENTS if experiments == "all" else tuple(experiments.split(","))
    if unknown := [name for name in wanted if name not in EXPERIMENTS]:
        raise SashError(f"unknown experiment {unknown[0]!r}; use one of {', '.join(EXPERIMENTS)}")
    found: Figures = {}
    with Console(stderr=True).status("paper 1") as status:
        if "delays" in wanted:
            found["settings"] = {"rate": rate, "window_seconds": window, "changes": changes, "seeds": seeds}
            found |= _delays(rate, window, changes, seeds, status.update)
        if "rows" in wanted:
            status.update("rows through the pipelines")
            found["rows"] = {
                query: rows(Workload(query, rate, window, 2 * window), changes, seeds) for query in QUERIES
            }
        if "throughput" in wanted:
            status.update("throughput (Fig 12)")
            found["fig12"] = {query: _throughput(query, seeds) for query in ("q1", "q4")}
        if "spark" in wanted:
            status.update("output delay on Spark")
            found["spark"] = measure_delays(("q2", "q4"), STRATEGIES, rate, spark_seconds, seeds)
    return found


def judged(found: Figures) -> Figures:
    """The figures with the claims that they support."""
    return {**found, "claims": [vars(claim) for claim in claims(found)]}


def _delays(rate: float, window: int, changes: int, seeds: int, report: Report) -> Figures:
    found: Figures = {}

    def point(query: str, **given: Any) -> dict[str, Any]:
        report(f"output delay: {query}, {given or 'as in the paper'}")
        return by_strategy(
            Workload(query, **{"rate": rate, "window": window, "length": 2 * window, **given}), changes, seeds
        )

    found["fig8"] = {query: point(query) for query in QUERIES}
    found["fig9"] = {query: {str(x): point(query, rate=x) for x in RATES} for query in ("q3", "q4")}
    found["fig10"] = {str(x): point("q2", streams=x) for x in DEPTHS}
    found["fig11"] = {str(x): point("q1", selectivity=x) for x in SELECTIVITIES}
    report("time probing by period")
    found["probing"] = {
        query: {str(x): _probed(Workload(query, rate, window, 2 * window), changes, seeds, x) for x in PERIODS_MS}
        for query in ("q2", "q4")
    }
    return found


def strategies_of(query: str) -> list[str]:
    """The strategies of a query; without a join, hybrid is the same as negative tuples."""
    return [name for name in STRATEGIES if not (query == "q1" and name == "hybrid")]


def by_strategy(workload: Workload, changes: int, seeds: int) -> dict[str, Any]:
    """Average and longest delay in milliseconds of every run, by strategy.

    All strategies of a seed have the same arrivals.
    """
    runs: dict[str, list[SimulatedRun]] = {name: [] for name in strategies_of(workload.query)}
    taken: dict[str, list[dict[str, float]]] = {name: [] for name in runs}
    for seed in range(seeds):
        mine = replace(workload, seed=seed)
        services = {name: _service(mine, name) for name in runs}
        mine = mine.with_changes(changes, "time-probing", services["time-probing"])
        for name, made in runs.items():
            made.append(mine.compute(name, services[name]))
            taken[name].append(services[name])
    return {
        name: {
            **_summary(made),
            "service_us": {
                part: median(times[part] for times in taken[name] if part in times)
                for part in sorted({part for times in taken[name] for part in times})
            },
        }
        for name, made in runs.items()
    }


def rows(workload: Workload, changes: int, seeds: int) -> dict[str, dict[str, list[int]]]:
    """Rows into all operators, and into selections and joins, of every run, by strategy. They depend on no service time."""
    found: dict[str, dict[str, list[int]]] = {
        name: {"rows": [], "first_kind": []} for name in strategies_of(workload.query)
    }
    for seed in range(seeds):
        mine = replace(workload, seed=seed).with_changes(changes, "time-probing", {})
        for name, into in found.items():
            run = mine.compute(name, {})
            into["rows"].append(run.work)
            into["first_kind"].append(run.first_kind)
    return found


def _service(workload: Workload, strategy: str) -> dict[str, float]:
    short = replace(workload, selectivity=0.25, rate=10, window=_SHORT_WINDOW, length=_SHORT_LENGTH)
    return short.service_times(strategy)


def _summary(runs: Sequence[SimulatedRun]) -> dict[str, Any]:
    return {
        "average_ms": [round(1000 * run.average, 4) for run in runs],
        "longest_ms": [round(1000 * run.longest, 4) for run in runs],
        "changes": sum(len(run.delays) for run in runs),
        "never": sum(run.unreleased for run in runs),
    }


def _probed(workload: Workload, changes: int, seeds: int, period_ms: int) -> dict[str, Any]:
    """Time probing at a period."""
    runs = []
    for seed in range(seeds):
        mine = replace(workload, seed=seed)
        service = _service(mine, "time-probing")
        mine = mine.with_changes(changes, "time-probing", service)
        runs.append(mine.compute("time-probing", service, period_ms * SECOND // 1000))
    return _summary(runs)


def _throughput(query: str, seeds: int) -> dict[str, list[float]]:
    """Changes per second of the local runtime in every run. Strategies take turns, each of them first in some turn."""
    names = strategies_of(query)
    found: dict[str, list[float]] = {name: [] for name in names}
    workload = Workload(query, THROUGHPUT_RATE, THROUGHPUT_WINDOW, 5 * THROUGHPUT_WINDOW)
    for name in names:
        replace(workload, length=2 * THROUGHPUT_WINDOW + 2).throughput(name)  # loads and compiles
    for seed in range(seeds):
        for name in names[seed % len(names) :] + names[: seed % len(names)]:
            found[name].append(round(replace(workload, seed=seed).throughput(name)))
    return found


def table(found: Figures) -> Table:
    """Figs 8 and 12 as a table; the others are drawn."""
    shown_table = Table(title="Average output delay in ms (median of the seeds, range); changes per second")
    shown_table.add_column("query")
    for name in STRATEGIES:
        shown_table.add_column(name, justify="right")
    for query, by in found.get("fig8", {}).items():
        shown_table.add_row(query, *(shown(by[n]["average_ms"]) if n in by else "" for n in STRATEGIES))
    for query, by in found.get("fig12", {}).items():
        shown_table.add_row(f"{query}, changes/s", *(shown(by[n]) if n in by else "" for n in STRATEGIES))
    return shown_table
