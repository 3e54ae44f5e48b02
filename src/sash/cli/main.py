"""The command `sash`: one function per subcommand, each implemented in a file of its own."""

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
    query: Annotated[
        Literal["q1", "q2", "q3", "q4", "q5"] | None,
        typer.Option(help="Instead of the story, run one query over the sales of some stores."),
    ] = None,
    strategy: Annotated[
        str | None,
        typer.Option(help=f"With --query: how operators detect expired rows: {', '.join(ENGINE_STRATEGIES)}."),
    ] = None,
    seconds: Annotated[int | None, typer.Option(min=15, help="With --query: how long to run; else 45.")] = None,
    rate: Annotated[
        int | None, typer.Option(min=1, max=20_000, help="With --query: sales per second; else 200.")
    ] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Also print the query and its plan.")] = False,
    plain: Annotated[bool, typer.Option("--plain", help="Print lines instead of a moving picture.")] = False,
) -> None:
    """Play a story of about a minute: rows that enter and expire, an alert on absence, and a driver that is killed.

    The story runs a job on Spark in a process of its own, and compares all answers with a recomputation.
    """
    plain = plain or not sys.stdout.isatty()
    if query is None:
        from sash.cli.demo.command import run_story

        for option, value in (("--strategy", strategy), ("--seconds", seconds), ("--rate", rate)):
            if value is not None:
                raise typer.BadParameter("it belongs to a query: add --query q1, for example", param_hint=option)
        raise typer.Exit(run_story(plain=plain, explain=explain))
    from sash.cli.demo.query_view import run_query

    run_query(query, check_strategy(strategy or "auto"), seconds or 45, rate or 200, plain=plain, explain=explain)


@app.command()
def explain(
    query: Annotated[str, typer.Argument(help="The query, or a file that contains it.")],
    stream: Annotated[
        list[str], typer.Option(help="A stream, as 'sales(ts TIMESTAMP, item_id INT, price DOUBLE)'. May be repeated.")
    ] = [],  # noqa: B006  (typer copies it)
    relation: Annotated[
        list[str], typer.Option(help="A relation, as 'items(item_id INT, name STRING)'. May be repeated.")
    ] = [],  # noqa: B006  (typer copies it)
    strategy: Annotated[
        str, typer.Option(help=f"How operators detect expired rows: {', '.join(ENGINE_STRATEGIES)}.")
    ] = "auto",
    partitions: Annotated[
        int | None, typer.Option(min=1, help="Partitions of calendar buffers; by default the planner chooses.")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Also show the rejected plans.")] = False,
) -> None:
    """Show the plan of a query: update patterns, estimates, stages, partition keys, buffers and time messages."""
    from sash.cli.catalog import declared_catalog
    from sash.planning import plan_query

    options = Options(check_strategy(strategy), partitions=partitions)
    planned = plan_query(_text(query), declared_catalog(stream, relation), options=options)
    typer.echo(planned.explain(all=every), nl=False)


Master = Annotated[
    str | None,
    typer.Option(help="The Spark master, such as local[4] or spark://host:7077; by default all local cores."),
]
Conf = Annotated[list[str], typer.Option(help="A Spark setting, as name=value. May be repeated.")]
Checkpoint = Annotated[
    str | None,
    typer.Option(help="The folder for the checkpoints of all queries, on any file system that Spark supports."),
]


@app.command()
def sql(
    command: Annotated[
        str | None, typer.Option("--command", "-c", help="Statements to execute instead of a prompt.")
    ] = None,
    plain: Annotated[bool, typer.Option("--plain", help="Print a line per change instead of a live table.")] = False,
    seconds: Annotated[
        float | None, typer.Option(min=0, help="Stop a SELECT after this time; by default at Ctrl-C.")
    ] = None,
    master: Master = None,
    conf: Conf = [],  # noqa: B006
    checkpoint: Checkpoint = None,
    as_json: AsJson = False,
) -> None:
    """Start a shell to declare streams, run continuous queries and watch their answers; or execute piped statements."""
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
    shards: Annotated[
        int | None, typer.Option(min=1, help="Parallel shards of a query; by default one per core.")
    ] = None,
    metrics_port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="Serve Prometheus metrics on this port.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Log JSON, one line per event and batch.")] = False,
) -> None:
    """Run a file of statements as a job, until its queries end or it is stopped (SIGTERM, Ctrl-C).

    Without --checkpoint, the checkpoints are beside the file, in a folder of its name that ends in .checkpoint. When you
    run the job again, it resumes from them. Exit codes: 0 the job ended or was stopped, 1 the file has errors, 2 the
    command line has errors, 3 a query failed.
    """
    from sash.cli.job import run_job

    settings = _settings(conf)
    raise typer.Exit(run_job(job, checkpoint, master, settings, shards, metrics_port, as_json=as_json))


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
    """The contents of the file of that name, or the argument itself if there is no such file."""
    try:
        path = Path(query)
        return path.read_text(encoding="utf-8") if path.is_file() else query
    except OSError:
        return query


def run() -> None:
    """The entry point: prints errors of Sash in one line."""
    try:
        app()
    except SashError as problem:
        typer.echo(f"sash: {problem}", err=True)
        sys.exit(1)
