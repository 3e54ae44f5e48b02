"""The command `sash`: one function per subcommand; what a subcommand does stands in a file of its own."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console

from sash.errors import SashError
from sash.plan.options import STRATEGIES, Options

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
    query: Annotated[Literal["q1", "q2", "q3", "q4", "q5"], typer.Option(help="Which of paper 1's queries.")] = "q4",
    strategy: Annotated[str, typer.Option(help=f"How operators learn of expiry: {', '.join(STRATEGIES)}.")] = "auto",
    seconds: Annotated[int, typer.Option(min=15, help="How long to show it.")] = 45,
    rate: Annotated[int, typer.Option(min=1, max=20_000, help="Sales per second.")] = 200,
    plain: Annotated[bool, typer.Option("--plain", help="Print lines instead of a live table.")] = False,
) -> None:
    """Run a continuous query over a stream of made-up sales and show its answer changing."""
    from sash.cli.demo import run_demo

    run_demo(query, Options(strategy).strategy, seconds, rate, plain=plain or not sys.stdout.isatty())


@app.command()
def explain(
    query: Annotated[str, typer.Argument(help="A file with a query, or the query itself.")],
    stream: Annotated[
        list[str], typer.Option(help="A stream, as 'sales(ts TIMESTAMP, item_id INT, price DOUBLE)'. May be repeated.")
    ] = [],  # noqa: B006  (typer copies it)
    relation: Annotated[
        list[str], typer.Option(help="A relation, as 'items(item_id INT, name STRING)'. May be repeated.")
    ] = [],  # noqa: B006  (typer copies it)
    strategy: Annotated[str, typer.Option(help=f"How operators learn of expiry: {', '.join(STRATEGIES)}.")] = "auto",
    partitions: Annotated[
        int | None, typer.Option(min=1, help="Partitions of calendar buffers; default: as the planner sets them.")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Show the plans that were considered, too.")] = False,
) -> None:
    """Show how a query would be run: update patterns, estimates, stages, partition keys, buffers, the clock's path."""
    from sash.cli.catalog import declared
    from sash.planning import plan_query

    options = Options(strategy, partitions=partitions)
    planned = plan_query(_text(query), declared(stream, relation), options=options)
    typer.echo(planned.explain(all=every), nl=False)


Master = Annotated[
    str | None, typer.Option(help="Where Spark runs, such as local[4] or spark://host:7077; default: all cores here.")
]
Conf = Annotated[list[str], typer.Option(help="One of Spark's settings, as name=value. May be repeated.")]
Checkpoint = Annotated[
    str | None, typer.Option(help="The folder in which every query keeps its state, on any file system of Spark's.")
]


@app.command()
def sql(
    command: Annotated[
        str | None, typer.Option("--command", "-c", help="Statements to execute, instead of asking.")
    ] = None,
    plain: Annotated[bool, typer.Option("--plain", help="Print changes as lines instead of a table in place.")] = False,
    seconds: Annotated[
        float | None, typer.Option(min=0, help="End a SELECT after so long; default: at Ctrl-C.")
    ] = None,
    master: Master = None,
    conf: Conf = [],  # noqa: B006
    checkpoint: Checkpoint = None,
    as_json: AsJson = False,
) -> None:
    """A shell: declare streams, ask standing queries and watch their answers; or execute what is piped in."""
    from sash.cli.shell import run_shell

    form = "json" if as_json else "plain" if plain or not sys.stdout.isatty() else "live"
    settings = _settings(conf)
    raise typer.Exit(
        run_shell(command, form=form, seconds=seconds, master=master, conf=settings, checkpoint=checkpoint)
    )


@app.command("run")
def run_file(
    job: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="A file of statements.")],
    checkpoint: Checkpoint = None,
    master: Master = None,
    conf: Conf = [],  # noqa: B006
    shards: Annotated[int | None, typer.Option(min=1, help="Parallel parts of a query; default: one per core.")] = None,
    metrics_port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="Serve metrics for Prometheus here.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Log in JSON, a line for every event and batch.")] = False,
) -> None:
    """Run a file of statements as a job, until its queries end or it is told to stop (SIGTERM, Ctrl-C).

    Without --checkpoint the state is beside the file, in a folder of its name that ends in .checkpoint; run it again, and
    it goes on where it was. Exit codes: 0 it ended or was stopped, 1 the job is wrong, 2 the command line is, 3 a query
    failed.
    """
    from sash.cli.job import run_job

    raise typer.Exit(
        run_job(
            job,
            checkpoint=checkpoint,
            master=master,
            conf=_settings(conf),
            shards=shards,
            as_json=as_json,
            metrics_port=metrics_port,
        )
    )


@app.command()
def validate(
    job: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="A file of statements.")],
    as_json: AsJson = False,
) -> None:
    """Check a file of statements, columns and types included, without running it."""
    from sash.cli.job import validate_job

    raise typer.Exit(validate_job(job, as_json=as_json))


def _settings(conf: list[str]) -> dict[str, str]:
    pairs = [entry.partition("=") for entry in conf]
    for name, equals, _ in pairs:
        if not equals or not name.strip():
            raise typer.BadParameter(f"{name!r} is not name=value", param_hint="--conf")
    return {name.strip(): value for name, _, value in pairs}


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
    batches: Annotated[int, typer.Option(min=1, help="Batches that are measured, after the window has filled.")] = 12,
    warm_up: Annotated[
        int, typer.Option(min=2, help="Batches before them, at least: Java compiles for about ten, of both runs.")
    ] = 10,
    baseline: Annotated[
        bool, typer.Option("--baseline", help="Also hand the rows one by one to transformWithStateInPandas.")
    ] = False,
    as_json: AsJson = False,
    save: Save = False,
) -> None:
    """Events per second of paper 1's queries, beside the limit that scan, filters and hand-over to Python set."""
    from sash.cli.bench.report import publish
    from sash.cli.bench.throughput import measure, table

    found = measure(queries, rows_per_batch, batches, warm_up, baseline=baseline)
    publish("throughput", found, table, as_json=as_json, save=save)


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
def paper1(
    rate: Annotated[float, typer.Option(min=1, help="Sales per second and stream.")] = 10,
    window: Annotated[int, typer.Option(min=1, help="The window, in seconds.")] = 20,
    length: Annotated[int, typer.Option(min=2, help="The length of a simulated run, in seconds.")] = 60,
    spark_seconds: Annotated[
        int, typer.Option(min=0, help="Seconds measured per query and strategy on Spark; 0: not at all.")
    ] = 15,
    as_json: AsJson = False,
    save: Save = False,
) -> None:
    """Output delay by strategy, rate, depth and selectivity, and throughput (paper 1, Figs 8-12)."""
    from sash.cli.bench.paper1 import figures, measure, page, table
    from sash.cli.bench.report import publish, write_page

    found = measure(rate, window, length, spark_seconds)
    publish("paper1", found, table, as_json=as_json, save=save)
    if save:
        write_page("paper1", page(found), figures(found))


@bench.command()
def paper3(
    window: Annotated[int, typer.Option(min=1, help="The window, in seconds.")] = 10,
    length: Annotated[int, typer.Option(min=2, help="The length of a simulated run, in seconds.")] = 30,
    as_json: AsJson = False,
    save: Save = False,
) -> None:
    """Rows through the pipeline and delays of negative tuples, time messages and piggybacking (paper 3)."""
    from sash.cli.bench.paper3 import figures, measure, page, table
    from sash.cli.bench.report import publish, write_page

    found = measure(window, length)
    publish("paper3", found, table, as_json=as_json, save=save)
    if save:
        write_page("paper3", page(found), figures(found))


@bench.command()
def paper4(
    experiments: Annotated[
        str, typer.Option(help="Which, comma-separated: table8, engine, fig2, fig3, fig4, spark.")
    ] = "all",
    rows: Annotated[int, typer.Option(min=1_000, help="Rows of the fastest runs; slower ones take fewer.")] = 200_000,
    repeats: Annotated[int, typer.Option(min=1, help="Runs of which the fastest counts.")] = 5,
    draw: Annotated[bool, typer.Option("--draw", help="Draw the figures into docs/experiments/figures.")] = False,
    as_json: AsJson = False,
    save: Save = False,
) -> None:
    """Multi-way joins: Table 8 and Figures 2, 3 and 4 of paper 4, and the rate of the whole engine."""
    from sash.cli.bench.paper4.command import measure, table
    from sash.cli.bench.report import publish

    made, drawn = measure(experiments, rows, repeats)
    publish("paper4", made, lambda figures: table(figures, drawn), as_json=as_json, save=save)
    for figure in drawn if draw else ():
        figure.draw()


@bench.command()
def paper2(
    sizes: Annotated[str, typer.Option(help="Sub-windows of the simulated windows, comma-separated.")] = (
        "10,20,40,60,80,100"
    ),
    repeats: Annotated[int, typer.Option(min=1, help="Runs per point, in simulation and in real time.")] = 5,
    realtime: Annotated[str, typer.Option(help="Sub-windows of the windows in real time; 'none' for none.")] = "20,100",
    t: Annotated[float, typer.Option(min=0.01, help="Seconds between updates in real time.")] = 0.1,
    seconds: Annotated[float, typer.Option(min=1, help="How long each run in real time takes.")] = 4,
    snapshots: Annotated[int, typer.Option(min=0, help="Snapshots of a window on Spark, per level; 0: none.")] = 10,
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


@bench.command()
def paper5(
    queries: Annotated[
        str,
        typer.Option(help="Which, comma-separated: q1-ftp, q1-telnet, q2-src, q2-pairs, q3, q4, q5-below, q5-above."),
    ] = "all",
    windows: Annotated[str, typer.Option(help="Rows per window of the generated trace, comma-separated.")] = (
        "2000,6000,20000,60000,200000"
    ),
    rows: Annotated[
        int, typer.Option(min=1_000, help="Rows per link that are measured once windows are full.")
    ] = 400_000,
    repeats: Annotated[int, typer.Option(min=1, help="Runs of which the median counts.")] = 5,
    data: Annotated[Path | None, typer.Option(help="The folder of recorded traces; default: ../shared/data.")] = None,
    state_rows: Annotated[int, typer.Option(min=1_000, help="Rows in the window of the group-by.")] = 1_000_000,
    checkpoint: Annotated[bool, typer.Option(help="Measure what batches write to a checkpoint, on Spark.")] = True,
    as_json: AsJson = False,
    save: Annotated[bool, typer.Option("--save", help="Keep the figures, the plots and docs/experiments.")] = False,
) -> None:
    """Update patterns: Queries 1 to 5 of paper 5 under three strategies, time and state by window (Figs 9-17)."""
    from sash.cli.bench.paper5.command import DATA, measure_all, plots, table
    from sash.cli.bench.paper5.page import write
    from sash.cli.bench.report import publish

    sizes = sorted(int(size) for size in windows.split(","))
    results = measure_all(queries, sizes, rows, repeats, data or DATA, state_rows, checkpoint)
    publish("paper5", results, table, as_json=as_json, save=save)
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
