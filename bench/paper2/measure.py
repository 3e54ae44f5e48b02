"""`python -m bench paper2`: the figures in simulation, the same workload in real time, and the claims they support."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rich.console import Console
from rich.table import Table

from bench.figures import Figure
from bench.paper2.claims import claims
from bench.paper2.live import live
from bench.paper2.realtime import realtime
from bench.paper2.sweep import figures
from sash.window_store.options import ReadOption

RATE = 20_000
EVERY = 500
ALONE = 10.0  # seconds of periodic queries without snapshot queries
READS: tuple[ReadOption, ...] = ("local",)


def measure(
    sizes: list[int], repeats: int, realtime_sizes: list[int], t: float, seconds: float, snapshots: int = 0
) -> dict[str, Any]:
    """Run all measurements. The real-time runs with snapshot queries use the largest of `realtime_sizes`.

    `snapshots` is the number of snapshot queries per level on Spark; 0 skips the runs on Spark.
    """
    progress: Callable[[str], None] = Console(stderr=True).print
    drawn = figures(sizes, repeats, progress)
    measured = [realtime(n, t, seconds, repeats, snapshots=False, progress=progress) for n in realtime_sizes]
    mixed = [realtime(n, t, seconds, repeats, snapshots=True, progress=progress) for n in realtime_sizes[-1:]]
    on_spark = [live(RATE, EVERY, ALONE, snapshots, reads, progress) for reads in READS] if snapshots else []
    results = {
        "repeats": repeats,
        "figures": [figure.as_json() for figure in drawn],
        "real time": measured,
        "real time with snapshot queries": mixed,
        "on Spark": on_spark,
    }
    return {**results, "claims": [{"claim": text, "held": held} for text, held in claims(results)]}


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
        for kept in results["figures"]
    ]


def table(results: dict[str, Any]) -> Table:
    """The claims and whether they hold, as a table."""
    shown = Table(title="Paper 2: isolation of queries over sliding windows")
    shown.add_column("claim")
    shown.add_column("held", justify="right")
    for claim in results["claims"]:
        shown.add_row(claim["claim"], "yes" if claim["held"] else "no")
    return shown
