"""Figures of an experiment: sets of lines over a common axis, drawn as PNG and SVG, and saved as JSON.

>>> delay = Figure("paper1-fig8", "Output delay by rate", "tuples/s", "seconds", {"direct": [(5, 0.1), (10, 0.2)]})
>>> delay.as_json()["series"]
{'direct': [[5, 0.1], [10, 0.2]]}
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from rich.table import Table

PLOTS = Path("docs") / "experiments" / "figures"


@dataclass(frozen=True)
class Figure:
    """Lines of (x, y) points by name. `name` is the file name, such as `paper1-fig8`."""

    name: str
    title: str
    x_label: str
    y_label: str
    series: Mapping[str, Sequence[tuple[float, float]]]
    log_x: bool = False
    log_y: bool = False

    def as_json(self) -> dict[str, Any]:
        """The figure as data."""
        return {
            "name": self.name,
            "title": self.title,
            "x": self.x_label,
            "y": self.y_label,
            "series": {name: [list(point) for point in points] for name, points in self.series.items()},
        }

    def table(self) -> Table:
        """The figure for a terminal: a row per x, a column per line."""
        shown = Table(title=f"{self.title} ({self.y_label})")
        shown.add_column(self.x_label, justify="right")
        for name in self.series:
            shown.add_column(name, justify="right")
        lines = [dict(points) for points in self.series.values()]
        for x in dict.fromkeys(x for points in self.series.values() for x, _ in points):
            shown.add_row(f"{x:g}", *(f"{line[x]:,.4g}" if x in line else "" for line in lines))
        return shown

    def draw(self, directory: Path = PLOTS) -> list[Path]:
        """Write the plot as PNG and SVG."""
        import matplotlib as mpl

        mpl.use("Agg")
        mpl.rcParams["svg.hashsalt"] = self.name  # equal figures give equal files
        from matplotlib import pyplot

        drawing, axes = pyplot.subplots(figsize=(6.4, 4.0), layout="constrained")
        for (name, points), marker in zip(self.series.items(), "osv^Dx+*p<>hd|_1234" * 3, strict=False):
            axes.plot([x for x, _ in points], [y for _, y in points], marker=marker, label=name)
        axes.set(title=self.title, xlabel=self.x_label, ylabel=self.y_label)
        if self.log_x:
            axes.set_xscale("log")
        if self.log_y:
            axes.set_yscale("log")
        axes.grid(alpha=0.3)
        axes.legend()
        directory.mkdir(parents=True, exist_ok=True)
        paths = [directory / f"{self.name}.{kind}" for kind in ("png", "svg")]
        for path in paths:
            drawing.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None, dpi=110)
        pyplot.close(drawing)
        return paths


@dataclass(frozen=True)
class Measured:
    """A figure with all runs of every point; its lines are their medians."""

    name: str
    title: str
    x_label: str
    y_label: str
    runs: Mapping[str, Sequence[tuple[float, Sequence[float]]]]
    log_x: bool = False
    log_y: bool = False

    @property
    def figure(self) -> Figure:
        """The figure of the medians."""
        series = {name: [(x, median(values)) for x, values in points] for name, points in self.runs.items()}
        return Figure(self.name, self.title, self.x_label, self.y_label, series, self.log_x, self.log_y)

    def as_json(self) -> dict[str, Any]:
        """The figure as data: medians as its series, and the runs."""
        runs = {name: [[x, list(values)] for x, values in points] for name, points in self.runs.items()}
        return {**self.figure.as_json(), "runs": runs}
