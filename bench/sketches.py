"""Sketches of counts by key: the frequent-items sketch, which APPROX_TOP_K uses, beside Count-Min at the same size.

Paper 2 (2.1) names Count-Min for approximate answers. Both are built per sub-window and merged over the window. For every
key of the window the count is estimated; a Count-Min sketch gets as many bytes as the merged frequent-items sketch, and is
measured with two and with four rows of counters, of which the better one counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any

import datasketches as ds
import numpy as np
import numpy.typing as npt
from rich.table import Table

from bench.report import Figures

SIZES = (7, 9, 11)
"""Logarithms of the largest number of keys that a frequent-items sketch keeps."""
WORKLOADS = (("Zipf, 1,000 keys", 1_000, 1.0), ("uniform, 1,000 keys", 1_000, 0.0),
             ("Zipf, 20,000 keys", 20_000, 1.0), ("uniform, 20,000 keys", 20_000, 0.0))  # fmt: skip
SUB_WINDOWS = 10
_HEADER = 40
"""Bytes of a Count-Min sketch before its counters."""

Counts = npt.NDArray[np.int64]


def measure(rows: int = 200_000, seeds: int = 5) -> Figures:
    """Errors of the estimated counts, as shares of the number of rows, by workload and size; one per seed."""
    found: list[dict[str, Any]] = []
    for name, keys, skew in WORKLOADS:
        parts = [_window(keys, skew, rows, seed) for seed in range(seeds)]
        for size in SIZES:
            runs = [_compare(part, size) for part in parts]
            found.append({"workload": name, "lg_size": size, **{key: [run[key] for run in runs] for key in runs[0]}})
    return {"rows": rows, "sub_windows": SUB_WINDOWS, "sketches": found}


def _window(keys: int, skew: float, rows: int, seed: int) -> list[Counts]:
    """The counts of every key in each sub-window."""
    shares = 1.0 / np.arange(1, keys + 1) ** skew
    rng = np.random.default_rng(seed)
    return [rng.multinomial(rows // SUB_WINDOWS, shares / shares.sum()) for _ in range(SUB_WINDOWS)]


def _compare(parts: Sequence[Counts], size: int) -> dict[str, float]:
    names = [f"10.0.{key // 256}.{key % 256}" for key in range(len(parts[0]))]
    exact, rows = sum(parts), float(sum(part.sum() for part in parts))
    frequent = _merged([_fill(ds.frequent_strings_sketch(size), part, names) for part in parts])
    bytes_used = len(frequent.serialize())
    errors = {"frequent": _errors(frequent, names, exact) / rows}
    for depth in (2, 4):
        width = max(3, (bytes_used - _HEADER) // 8 // depth)
        made = _merged([_fill(ds.count_min_sketch(depth, width), part, names) for part in parts])
        errors[f"count_min_{depth}"] = _errors(made, names, exact) / rows
    return {
        "bytes": float(bytes_used),
        "frequent_max": float(errors["frequent"].max()),
        "frequent_mean": float(errors["frequent"].mean()),
        "count_min_max": float(min(errors[f"count_min_{depth}"].max() for depth in (2, 4))),
        "count_min_mean": float(min(errors[f"count_min_{depth}"].mean() for depth in (2, 4))),
    }


def _fill(sketch: Any, part: Counts, names: Sequence[str]) -> Any:
    for key in np.flatnonzero(part).tolist():
        sketch.update(names[key], int(part[key]))
    return sketch


def _merged(sketches: Sequence[Any]) -> Any:
    first, *others = sketches
    for other in others:
        first.merge(other)
    return first


def _errors(sketch: Any, names: Sequence[str], exact: Any) -> npt.NDArray[np.float64]:
    estimates = np.array([sketch.get_estimate(name) for name in names], np.float64)
    found: npt.NDArray[np.float64] = np.abs(estimates - exact)
    return found


def table(figures: Figures) -> Table:
    """The medians over the seeds."""
    shown = Table(title="Error of a key's count, as a share of all rows: largest (mean), at the same size")
    for column in ("keys", "bytes", "frequent items", "Count-Min", "Count-Min / frequent items"):
        shown.add_column(column, justify="left" if column == "keys" else "right")
    for row in figures["sketches"]:
        cells = [f"{median(row[f'{kind}_max']):.5f} ({median(row[f'{kind}_mean']):.6f})" for kind in KINDS]
        low = median(row["frequent_max"])
        ratio = f"{median(row['count_min_max']) / low:.1f}" if low else "exact"
        shown.add_row(row["workload"], f"{median(row['bytes']):,.0f}", *cells, ratio)
    return shown


KINDS = ("frequent", "count_min")
