"""The command `sash`: one function per subcommand; what a subcommand does stands in a file of its own."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from sash.errors import SashError

app = typer.Typer(
    name="sash",
    help="Continuous SQL over sliding windows, on Spark Structured Streaming.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
bench = typer.Typer(help="Measure this machine.", no_args_is_help=True)
app.add_typer(bench, name="bench")

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
Save = Annotated[
    bool, typer.Option("--save", help="Keep the figures in bench/results, with the machine's description.")
]


@app.command()
def demo(
    seconds: Annotated[int, typer.Option(min=15, help="How long to show it.")] = 45,
    rate: Annotated[int, typer.Option(min=1, max=20_000, help="Sales per second.")] = 200,
    plain: Annotated[bool, typer.Option("--plain", help="Print lines instead of a live table.")] = False,
) -> None:
    """Run a continuous query over a stream of made-up sales and show its answer changing."""
    from sash.cli.demo import run_demo

    run_demo(seconds, rate, plain=plain or not sys.stdout.isatty())


@app.command()
def explain(
    query: Annotated[str, typer.Argument(help="A file with a query, or the query itself.")],
    stream: Annotated[
        list[str], typer.Option(help="A stream, as 'sales(ts TIMESTAMP, item_id INT, price DOUBLE)'. May be repeated.")
    ] = [],  # noqa: B006  (typer copies it)
    relation: Annotated[
        list[str], typer.Option(help="A relation, as 'items(item_id INT, name STRING)'. May be repeated.")
    ] = [],  # noqa: B006  (typer copies it)
) -> None:
    """Show how a query would be run: update patterns, stages, partition keys, buffers."""
    from sash.cli.catalog import declared
    from sash.planning import plan_query

    typer.echo(plan_query(_text(query), declared(stream, relation)).explain(), nl=False)


def _text(query: str) -> str:
    """The contents of the file of that name, or, where there is none, the argument itself."""
    try:
        path = Path(query)
        return path.read_text(encoding="utf-8") if path.is_file() else query
    except OSError:
        return query


@bench.command()
def throughput(
    queries: Annotated[str, typer.Option(help="Which, comma-separated: q1, q2, q2-join-first, q3, q4, q5.")] = "all",
    rows_per_batch: Annotated[
        int, typer.Option(min=1_000, help="Rows per micro-batch, all streams together.")
    ] = 1_000_000,
    batches: Annotated[int, typer.Option(min=1, help="Batches that are measured, after the window has filled.")] = 6,
    baseline: Annotated[
        bool, typer.Option("--baseline", help="Also hand the rows one by one to transformWithStateInPandas.")
    ] = False,
    as_json: AsJson = False,
    save: Save = False,
) -> None:
    """Events per second of paper 1's queries, beside the limit that scan, filters and hand-over to Python set."""
    from sash.cli.bench.report import publish
    from sash.cli.bench.throughput import measure, table

    publish(
        "throughput", measure(queries, rows_per_batch, batches, baseline=baseline), table, as_json=as_json, save=save
    )


@bench.command()
def growth(
    windows: Annotated[str, typer.Option(help="Rows in the window, comma-separated.")] = "100000,1000000,5000000",
    operators: Annotated[str, typer.Option(help="Which, comma-separated: group-by, distinct, join.")] = "all",
    rows_per_batch: Annotated[
        int, typer.Option(min=1_000, help="Rows per micro-batch, all streams together.")
    ] = 100_000,
    batches: Annotated[int, typer.Option(min=1, help="Batches that are measured, after the window has filled.")] = 10,
    as_json: AsJson = False,
    save: Save = False,
) -> None:
    """How the time of a batch of fixed size grows with the window."""
    from sash.cli.bench.growth import measure, table
    from sash.cli.bench.report import publish

    publish("growth", measure(windows, operators, rows_per_batch, batches), table, as_json=as_json, save=save)


@bench.command()
def paper2(
    sizes: Annotated[str, typer.Option(help="Sub-windows of the simulated windows, comma-separated.")] = (
        "10,20,40,60,80,100"
    ),
    repeats: Annotated[int, typer.Option(min=1, help="Runs per point, in simulation and in real time.")] = 5,
    realtime: Annotated[str, typer.Option(help="Sub-windows of the windows in real time; 'none' for none.")] = "20,100",
    t: Annotated[float, typer.Option(min=0.01, help="Seconds between updates in real time.")] = 0.1,
    seconds: Annotated[float, typer.Option(min=1, help="How long each run in real time takes.")] = 5,
    snapshots: Annotated[int, typer.Option(min=0, help="Snapshots of a window on Spark, per level; 0: none.")] = 20,
    as_json: AsJson = False,
    save: Annotated[bool, typer.Option("--save", help="Keep the figures, the plots and docs/experiments.")] = False,
) -> None:
    """Isolation of queries over sliding windows: aborts, freshness, throughput, response times (paper 2, Figs 8-14)."""
    from sash.cli.bench.paper2.measure import measure, plots, table
    from sash.cli.bench.paper2.page import write
    from sash.cli.bench.report import publish

    timed = [] if realtime == "none" else [int(n) for n in realtime.split(",")]
    results = measure([int(n) for n in sizes.split(",")], repeats, timed, t, seconds, snapshots)
    if not as_json:
        for figure in plots(results):
            Console().print(figure.table())
    publish("paper2", results, table, as_json=as_json, save=save)
    if save:
        for figure in plots(results):
            figure.draw()
        write(results)


def run() -> None:
    """The entry point: errors that a user can put right are told in one line."""
    try:
        app()
    except SashError as problem:
        typer.echo(f"sash: {problem}", err=True)
        sys.exit(1)
