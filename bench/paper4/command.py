"""`python -m bench paper4`: runs the chosen experiments and shows their results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rich.console import Console, Group
from rich.table import Table

from bench.figures import Figure
from bench.paper4 import experiments
from bench.paper4.engine import local_rates, spark_rates
from bench.report import Figures
from sash.cli.session import quiet_engine
from sash.errors import SashError

EXPERIMENTS = ("table8", "engine", "fig2", "fig3", "fig4", "spark")


def measure(names: str, rows: int, repeats: int) -> tuple[Figures, list[Figure]]:
    """Run the experiments; returns their results and the figures to draw."""
    wanted = EXPERIMENTS if names == "all" else tuple(name.strip().lower() for name in names.split(","))
    for name in wanted:
        if name not in EXPERIMENTS:
            raise SashError(f"unknown experiment {name!r}; use one of {', '.join(EXPERIMENTS)}")
    console = Console(stderr=True)
    with console.status("paper 4") as status:
        return _run(wanted, rows, repeats, status.update)


def _run(
    wanted: tuple[str, ...], rows: int, repeats: int, report: Callable[[str], None]
) -> tuple[Figures, list[Figure]]:
    made: Figures = {"rows": rows, "repeats": repeats}
    drawn: list[Figure] = []
    if "table8" in wanted:
        made["table8"] = experiments.table_8(rows, repeats, report)
    if "engine" in wanted:
        made["local"] = local_rates(max(1, rows // 4), 2, report)
    if "fig2" in wanted:
        drawn.append(experiments.figure_2(max(1, rows // 50), 6, report))
    if "fig3" in wanted:
        drawn += [experiments.figure_3(max(1, rows // 10), fast, report) for fast in (1, 10)]
    if "fig4" in wanted:
        drawn.append(experiments.figure_4a(max(1, rows // 2), repeats, report))
        drawn.append(experiments.figure_4b(max(1, rows // 2), repeats, report))
    if "spark" in wanted:
        with quiet_engine() as engine:
            made["spark"] = spark_rates(engine.spark, max(1, rows // 4), 2, report)
    made["figures"] = [figure.as_json() for figure in drawn]
    return made, drawn


def table(made: Figures, drawn: list[Figure]) -> Group:
    """The results as tables."""
    parts: list[Table] = []
    if "table8" in made:
        parts.append(_table_8(made["table8"]))
    for where, title in (("local", "in one process"), ("spark", "on Spark")):
        if where in made:
            parts.append(_rates(made[where], f"The whole engine {title}, with every change in the output (rows/s)"))
    return Group(*parts, *(figure.table() for figure in drawn))


def _table_8(results: list[dict[str, Any]]) -> Table:
    shown = Table(title="Table 8: highest input rate of the operator, results counted (tuples/s)")
    columns = ("form", "best plan", "worst plan", "ratio", "probes, best", "worst", "paper: best", "worst", "ratio")
    for column in columns:
        shown.add_column(column, justify="left" if column == "form" else "right")
    keys = ["best_per_s", "worst_per_s", "ratio", "best_probes", "worst_probes"]
    keys += ["paper_best_per_s", "paper_worst_per_s", "paper_ratio"]
    for result in results:
        shown.add_row(result["form"], *(f"{result[key]:,}" if key in result else "" for key in keys))
    return shown


def _rates(results: list[dict[str, Any]], title: str) -> Table:
    shown = Table(title=title)
    for column in ("form", "best plan", "worst plan"):
        shown.add_column(column, justify="left" if column == "form" else "right")
    for result in results:
        shown.add_row(result["form"], f"{result['best_per_s']:,}", f"{result['worst_per_s']:,}")
    return shown
