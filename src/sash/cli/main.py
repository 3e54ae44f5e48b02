"""The command `sash`: one function per subcommand; what a subcommand does stands in a file of its own."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from sash.errors import SashError
from sash.plan.options import ENGINE_STRATEGIES, Options, check_strategy

app = typer.Typer(
    name="sash",
    help="Continuous SQL over sliding windows, on Spark Structured Streaming.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]


@app.command()
def demo(
    query: Annotated[Literal["q1", "q2", "q3", "q4", "q5"], typer.Option(help="Which of paper 1's queries.")] = "q4",
    strategy: Annotated[
        str, typer.Option(help=f"How operators learn of expiry: {', '.join(ENGINE_STRATEGIES)}.")
    ] = "auto",
    seconds: Annotated[int, typer.Option(min=15, help="How long to show it.")] = 45,
    rate: Annotated[int, typer.Option(min=1, max=20_000, help="Sales per second.")] = 200,
    plain: Annotated[bool, typer.Option("--plain", help="Print lines instead of a live table.")] = False,
) -> None:
    """Run a continuous query over a stream of made-up sales and show its answer changing."""
    from sash.cli.demo import run_demo

    run_demo(query, check_strategy(strategy), seconds, rate, plain=plain or not sys.stdout.isatty())


@app.command()
def explain(
    query: Annotated[str, typer.Argument(help="A file with a query, or the query itself.")],
    stream: Annotated[
        list[str], typer.Option(help="A stream, as 'sales(ts TIMESTAMP, item_id INT, price DOUBLE)'. May be repeated.")
    ] = [],  # noqa: B006  (typer copies it)
    relation: Annotated[
        list[str], typer.Option(help="A relation, as 'items(item_id INT, name STRING)'. May be repeated.")
    ] = [],  # noqa: B006  (typer copies it)
    strategy: Annotated[
        str, typer.Option(help=f"How operators learn of expiry: {', '.join(ENGINE_STRATEGIES)}.")
    ] = "auto",
    partitions: Annotated[
        int | None, typer.Option(min=1, help="Partitions of calendar buffers; default: as the planner sets them.")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Show the plans that were considered, too.")] = False,
) -> None:
    """Show how a query would be run: update patterns, estimates, stages, partition keys, buffers, the clock's path."""
    from sash.cli.catalog import declared
    from sash.planning import plan_query

    options = Options(check_strategy(strategy), partitions=partitions)
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


def run() -> None:
    """The entry point: errors that a user can put right are told in one line."""
    try:
        app()
    except SashError as problem:
        typer.echo(f"sash: {problem}", err=True)
        sys.exit(1)
