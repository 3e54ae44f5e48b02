"""`python -m bench paper4`: runs the chosen experiments and shows their results."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from rich.console import Console, Group
from rich.table import Table

from bench.figures import Figure, Measured
from bench.paper4 import experiments
from bench.paper4.claims import claims
from bench.paper4.engine import local_rates, spark_rates
from bench.paper4.fluctuation import fluctuation
from bench.paper4.purging import purging
from bench.report import Figures
from bench.spread import shown as spread_of
from sash.cli.session import quiet_engine
from sash.errors import SashError

EXPERIMENTS = ("table8", "engine", "fig2", "fig3", "fig4", "purging", "fluctuation", "spark")


def measure(names: str, rows: int, repeats: int) -> Figures:
    """Run the experiments; returns their results."""
    wanted = EXPERIMENTS if names == "all" else tuple(name.strip().lower() for name in names.split(","))
    for name in wanted:
        if name not in EXPERIMENTS:
            raise SashError(f"unknown experiment {name!r}; use one of {', '.join(EXPERIMENTS)}")
    console = Console(stderr=True)
    with console.status("paper 4") as status:
        return _run(wanted, rows, repeats, status.update)


def _run(wanted: tuple[str, ...], rows: int, repeats: int, report: Callable[[str], None]) -> Figures:
    made: Figures = {"rows": rows, "repeats": repeats}
    drawn: list[Measured] = []
    if "table8" in wanted:
        made["table8"] = experiments.table_8(rows, repeats, report)
    if "engine" in wanted:
        made["local"] = local_rates(max(1, rows // 4), 2, repeats, report)
    if "fig2" in wanted:
        drawn.append(experiments.figure_2(max(1, rows // 50), 6, repeats, report))
    if "fig3" in wanted:
        drawn += [experiments.figure_3(max(1, rows // 20), fast, repeats, report) for fast in (1, 10)]
    if "fig4" in wanted:
        drawn.append(experiments.figure_4a(max(1, rows // 4), repeats, report))
        drawn.append(experiments.figure_4b(max(1, rows // 4), repeats, report))
    if "purging" in wanted:
        report("the interval of lazy expiration")
        made["purging"] = purging(max(1, rows // 5), repeats)
    if "fluctuation" in wanted:
        report("a stream that fluctuates")
        made["fluctuation"] = fluctuation(repeats)
    if "spark" in wanted:
        with quiet_engine() as engine:
            made["spark"] = spark_rates(engine.spark, max(1, rows // 8), repeats, report)
            made["spark_batches"] = repeats
    if drawn:
        made["figures"] = [figure.as_json() for figure in drawn]
    return made


def judged(found: Figures) -> Figures:
    """The figures with the claims that they support."""
    return {**found, "claims": [vars(claim) for claim in claims(found)]}


def plots(found: Figures) -> list[Figure]:
    """The figures of results: the medians of the runs."""
    return [
        Figure(
            kept["name"],
            kept["title"],
            kept["x"],
            kept["y"],
            {name: [(x, y) for x, y in points] for name, points in kept["series"].items()},
        )
        for kept in found.get("figures", ())
    ]


def table(found: Figures) -> Group:
    """The claims and the figures as tables."""
    shown = Table(title="Paper 4: claims")
    for column in ("claim", "figures", "held"):
        shown.add_column(column)
    for claim in found["claims"]:
        shown.add_row(claim["text"], claim["found"], "yes" if claim["held"] else "no")
    return Group(*(figure.table() for figure in plots(found)), *_rates(found), shown)


def _rates(found: Figures) -> Iterator[Table]:
    for key, title in (
        ("table8", "the operator"),
        ("local", "the engine in one process"),
        ("spark", "the engine on Spark"),
    ):
        if key in found:
            made = Table(title=f"Rows/s of {title}: median and range")
            for column in ("form", "best plan", "worst plan"):
                made.add_column(column, justify="left" if column == "form" else "right")
            for row in found[key]:
                made.add_row(row["form"], *(spread_of(row[k]) for k in ("best_per_s", "worst_per_s") if k in row))
            yield made
