"""Growth: the time of a batch of fixed size by the size of the window.

The number of keys grows with the window, so that a batch gives the same number of results for any window.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from bench.data import Sales, write_stream
from bench.queries import WINDOW, WINDOW_SECONDS
from bench.report import Figures
from bench.runs import run_sash, scratch
from sash.cli.session import quiet_engine
from sash.errors import SashError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LARGEST_FILE = 1_000_000
_SETTLING = 3
"""The batches after the window has filled that are not measured."""


@dataclass(frozen=True)
class GrowthCase:
    """A query, its streams, and the number of rows of the window per key."""

    name: str
    sql: str
    streams: tuple[str, ...]
    rows_per_key: int


CASES = (
    GrowthCase(
        "group-by",
        f"SELECT item_id, COUNT(*) AS n, SUM(price) AS total FROM sales GROUP BY item_id WINDOW {WINDOW}",
        ("sales",),
        rows_per_key=10,
    ),
    GrowthCase("distinct", f"SELECT DISTINCT item_id FROM sales WINDOW {WINDOW}", ("sales",), rows_per_key=10),
    GrowthCase(
        "join",
        "SELECT a.item_id, a.price, b.store_id FROM sales_a AS a JOIN sales_b AS b ON a.item_id = b.item_id "
        f"WINDOW {WINDOW}",
        ("sales_a", "sales_b"),
        rows_per_key=2,
    ),
)


def measure(windows: str, operators: str, rows_per_batch: int, batches: int) -> Figures:
    """Measure the median time of a batch for every operator and window."""
    sizes = sorted(int(size) for size in windows.split(","))
    cases = _chosen(operators)
    console = Console(stderr=True)
    results = []
    with quiet_engine() as engine:
        for case in cases:
            times = {}
            for size in sizes:
                with console.status(f"{case.name}: a window of {size:,} rows"):
                    times[size] = _batch_seconds(engine.spark, case, size, rows_per_batch, batches)
            results.append(
                {
                    "operator": case.name,
                    "batch_rows": rows_per_batch,
                    "batch_seconds": {str(size): round(seconds, 3) for size, seconds in times.items()},
                    "ratio": round(times[sizes[-1]] / times[sizes[0]], 3),
                }
            )
    return {"growth": results}


def _chosen(names: str) -> tuple[GrowthCase, ...]:
    if names == "all":
        return CASES
    known = {case.name: case for case in CASES}
    wanted = [name.strip().lower() for name in names.split(",")]
    for name in wanted:
        if name not in known:
            raise SashError(f"unknown operator {name!r}; use one of {', '.join(known)}")
    return tuple(known[name] for name in wanted)


def _batch_seconds(spark: SparkSession, case: GrowthCase, window: int, rows_per_batch: int, batches: int) -> float:
    """Fill the window with large files, then time batches of the given size."""
    streams = len(case.streams)
    per_stream, in_batch = window // streams, rows_per_batch // streams
    fill = ceil(per_stream / _LARGEST_FILE)
    sizes = [ceil(per_stream / fill)] * fill + [in_batch] * (_SETTLING + batches)
    sales = Sales(rate=per_stream / WINDOW_SECONDS, items=max(1, window // case.rows_per_key))
    with scratch() as directory:
        directories: dict[str, Path] = {}
        for number, name in enumerate(case.streams):
            directories[name] = directory / name
            write_stream(directories[name], sales, sizes, seed=number)
        timing = run_sash(spark, case.sql, directories, {})
    return median(timing.steady(fill + _SETTLING))


def table(figures: Figures) -> Table:
    """The figures as a table."""
    results: list[dict[str, Any]] = figures["growth"]
    shown = Table(title=f"Seconds for a batch of {results[0]['batch_rows']:,} rows, by rows in the window")
    shown.add_column("operator")
    for size in results[0]["batch_seconds"]:
        shown.add_column(f"{int(size):,}", justify="right")
    shown.add_column("largest / smallest", justify="right")
    for result in results:
        times = [f"{seconds:.2f}" for seconds in result["batch_seconds"].values()]
        shown.add_row(result["operator"], *times, f"{result['ratio']:.2f}")
    return shown
