"""`python -m bench paper2`: the figures in simulation, the same workload in real time, and the claims they support."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.table import Table

from bench.figures import Figure
from bench.paper2.claims import claims
from bench.paper2.live import live
from bench.paper2.realtime import realtime
from bench.paper2.sweep import figures
from sash.errors import SashError
from sash.window_store.options import ReadOption

RATE = 20_000
EVERY = 500
ALONE = 3.0  # seconds of periodic queries without snapshot queries
READS: tuple[ReadOption, ...] = ("local",)
EXPERIMENTS = ("simulated", "realtime", "spark")


@dataclass(frozen=True)
class Plan:
    """What to measure: sizes of windows in simulation and in real time, and how often and how long."""

    sizes: Sequence[int]
    repeats: int
    timed: Sequence[int]
    t: float
    seconds: float
    snapshots: int


def measure(plan: Plan, experiments: str = "all") -> dict[str, Any]:
    """Run the experiments. The real-time runs with snapshot queries use the largest of the timed sizes."""
    wanted = EXPERIMENTS if experiments == "all" else tuple(experiments.split(","))
    if unknown := [name for name in wanted if name not in EXPERIMENTS]:
        raise SashError(f"unknown experiment {unknown[0]!r}; use one of {', '.join(EXPERIMENTS)}")
    progress: Callable[[str], None] = Console(stderr=True).print
    results: dict[str, Any] = {"repeats": plan.repeats}
    if "simulated" in wanted:
        results["figures"] = [figure.as_json() for figure in figures(plan.sizes, plan.repeats, progress)]
    if "realtime" in wanted:
        for key, sizes in (("real time", plan.timed), ("real time with snapshot queries", plan.timed[-1:])):
            mixed = key != "real time"
            results[key] = [
                realtime(n, plan.t, plan.seconds, plan.repeats, snapshots=mixed, progress=progress) for n in sizes
            ]
    if "spark" in wanted:
        results["on Spark"] = [
            live(RATE, EVERY, ALONE, plan.snapshots, plan.repeats, reads, progress) for reads in READS
        ]
    return results


def judged(results: dict[str, Any]) -> dict[str, Any]:
    """The results with the claims that they support."""
    return {**results, "claims": [vars(claim) for claim in claims(results)]}


def plots(results: dict[str, Any]) -> list[Figure]:
    """The figures of saved results."""
    return [
        Figure(
            kept["name"],
            kept["title"],
            kept["x"],
            kept["y"],
            {name: [(x, y) for x, y in points] for name, points in kept["series"].items()},
        )
        for kept in results.get("figures", ())
    ]


def table(results: dict[str, Any]) -> Table:
    """The claims and whether they hold, as a table."""
    shown = Table(title="Paper 2: isolation of queries over sliding windows")
    for column in ("claim", "figures", "held"):
        shown.add_column(column)
    for claim in results["claims"]:
        shown.add_row(claim["text"], claim["found"], "yes" if claim["held"] else "no")
    return shown
