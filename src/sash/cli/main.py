"""The command `sash`: one function per subcommand, each implemented in a file of its own."""

from __future__ import annotations

import sys
from importlib.metadata import version
from itertools import zip_longest
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from sash.cli import job_commands
from sash.cli.options import AsJson
from sash.errors import SashError
from sash.plan.options import MOST_SHARDS, Options, check_strategy

app = typer.Typer(
    name="sash",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)
app.add_typer(job_commands.app)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"sash {version('sash')}")
        raise typer.Exit


@app.callback()
def main(
    show_version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Continuous SQL over sliding windows, on Spark Structured Streaming."""


@app.command()
def demo(
    query: Annotated[
        Literal["q1", "q2", "q3", "q4", "q5"] | None,
        typer.Option(help="Instead of the story, run one query over the sales of some stores."),
    ] = None,
    strategy: Annotated[
        str | None,
        typer.Option(help="With --query: how expired rows are detected (docs/strategies.md)."),
    ] = None,
    seconds: Annotated[int | None, typer.Option(min=15, help="With --query: how long to run; else 45.")] = None,
    rate: Annotated[
        int | None, typer.Option(min=1, max=20_000, help="With --query: sales per second; else 200.")
    ] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Also print the query and its plan.")] = False,
    plain: Annotated[bool, typer.Option("--plain", help="Print lines instead of a moving picture.")] = False,
    console: Annotated[
        int | None,
        typer.Option(
            min=0, max=65535, metavar="[PORT]", help="Show a job over the story's readings in the web console."
        ),
    ] = None,
) -> None:
    """Play a story of about a minute: rows that enter and expire, an alert on absence, and a driver that is killed.

    The story runs a job on Spark in a process of its own, and compares all answers with a recomputation.
    """
    plain = plain or not sys.stdout.isatty()
    if console is not None:
        from sash.cli.demo.command import run_console
        from sash.console.serve import check_extra

        check_extra()
        raise typer.Exit(run_console(console))
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
    query: Annotated[str, typer.Argument(help="A query, or a file with a query or a job.")],
    stream: Annotated[
        list[str], typer.Option(help="A stream, as 'sales(ts TIMESTAMP, item_id INT, price DOUBLE)'. May be repeated.")
    ] = [],  # noqa: B006  (typer copies it)
    relation: Annotated[
        list[str], typer.Option(help="A relation, as 'items(item_id INT, name STRING)'. May be repeated.")
    ] = [],  # noqa: B006  (typer copies it)
    strategy: Annotated[
        str, typer.Option(help="How the query is executed; docs/strategies.md lists the choices.")
    ] = "auto",
    partitions: Annotated[
        int | None, typer.Option(min=1, hidden=True, help="Partitions of calendar buffers (docs/strategies.md).")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Also show the rejected plans.")] = False,
    job: Annotated[
        bool,
        typer.Option("--job", help="Show the dataflow of a job, with what its queries share, instead of each query."),
    ] = False,
) -> None:
    """Show the plan of a query, or of every query of a job, without running it. Nothing is started, not even Java."""
    from sash.cli.explain import explain_job, explain_query

    path, chosen = _file(query), check_strategy(strategy)
    text = query if path is None else path.read_text(encoding="utf-8")
    if path is not None and not stream and not relation:
        raise typer.Exit(explain_job(path, text, chosen, partitions, every=every, job=job))
    if job:
        raise typer.BadParameter("it explains a job: give a file of statements", param_hint="--job")
    options = Options(chosen, partitions=partitions)
    typer.echo(explain_query(text, stream, relation, options, every=every), nl=False)


Master = Annotated[
    str | None,
    typer.Option(help="The Spark master, such as local[4] or spark://host:7077; by default all local cores."),
]
Conf = Annotated[list[str], typer.Option(help="A Spark setting, as name=value. May be repeated.")]
With = Annotated[
    list[str],
    typer.Option("--with", metavar="kafka", help="A package that Spark needs for another system. May be repeated."),
]
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
        float | None,
        typer.Option(
            min=0, help="Stop a SELECT this long after its first row; by default at Ctrl-C, or when its input ends."
        ),
    ] = None,
    master: Master = None,
    conf: Conf = [],  # noqa: B006
    packages: With = [],  # noqa: B006
    checkpoint: Checkpoint = None,
    attach: Annotated[
        str | None,
        typer.Option(
            help="Let the job that runs on this checkpoint execute the statements, instead of a Spark of its own."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Start a shell to declare streams, run continuous queries and watch their answers; or execute piped statements."""
    from sash.spark.session import launch_java

    settings = _settings(conf, packages)
    if attach is None:
        launch_java(master, settings)
    form = "json" if as_json else "plain" if plain or not sys.stdout.isatty() else "live"
    options: dict[str, Any] = {
        "form": form,
        "seconds": seconds,
        "master": master,
        "conf": settings,
        "checkpoint": checkpoint,
    }
    if command is None and sys.stdin.isatty():
        from sash.cli.prompt import run_prompt

        run_prompt(attach, **options)
        return
    text = sys.stdin.read() if command is None else command
    if attach is not None:
        from rich.console import Console

        from sash.cli.remote import AttachedShell

        raise typer.Exit(0 if AttachedShell(attach, Console(), form).run(text) else 1)
    from sash.cli.shell import run_script

    raise typer.Exit(run_script(text, **options))


Console = Annotated[
    int | None,
    typer.Option(
        min=0, max=65535, metavar="[PORT]", help="Serve the web console of the job; by default on any free port."
    ),
]
AllowChanges = Annotated[
    bool, typer.Option("--allow-changes", help="Let the console add queries; otherwise it only shows.")
]


@app.command("run")
def run_file(
    job: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="A file of statements.")],
    checkpoint: Checkpoint = None,
    master: Master = None,
    conf: Conf = [],  # noqa: B006
    packages: With = [],  # noqa: B006
    shards: Annotated[
        int | None,
        typer.Option(min=1, help="Parallel shards of a query; by default those of its checkpoint, or one per core."),
    ] = None,
    metrics_port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="Serve Prometheus metrics on this port.")
    ] = None,
    metrics_host: Annotated[
        str, typer.Option(help="The address that serves them; 0.0.0.0 is every one, as a container needs.")
    ] = "127.0.0.1",
    on_change: Annotated[
        Literal["ask", "apply", "refuse"],
        typer.Option(
            help="What to do if the checkpoint was written by another script, or with another number of shards."
        ),
    ] = "refuse",
    as_json: Annotated[bool, typer.Option("--json", help="Log JSON, one line per event and batch.")] = False,
    console: Console = None,
    allow_changes: AllowChanges = False,
    history: Annotated[
        str,
        typer.Option(
            help="How much of the changes is kept for the console and for answers over HTTP: a time, a size, or off."
        ),
    ] = "10 minutes, 64 MB",
) -> None:
    """Run a file of statements as a job, until its queries end or it is stopped (SIGTERM, Ctrl-C).

    The queries with the same trigger are one dataflow. Without --checkpoint, the checkpoints of JOB.sql are in JOB.checkpoint, beside the file. When you
    run the job again, it resumes from them. Exit codes: 0 the job ended or was stopped, 1 the file has errors, 2 the
    command line has errors, 3 a query failed.
    """
    from sash.cli.console import ConsoleSettings
    from sash.history.limits import HistoryLimits
    from sash.spark.session import launch_java

    settings = _settings(conf, packages)
    beside = None if console is None else ConsoleSettings(console, allow_changes)
    if beside is not None:
        beside.check()
    launch_java(master, settings)
    from sash.cli.job import JobSettings, run_job

    options = JobSettings(
        checkpoint,
        master,
        settings,
        shards,
        metrics_port,
        metrics_host,
        on_change,
        as_json,
        HistoryLimits.parse(history),
        beside,
    )
    raise typer.Exit(run_job(job, options))


JobFile = Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="A file of statements.")]


@app.command("diff")
def diff_file(
    job: JobFile,
    checkpoint: Checkpoint = None,
    shards: Annotated[
        int | None, typer.Option(min=1, max=MOST_SHARDS, help="Compare with this number of shards.")
    ] = None,
    master: Master = None,
    conf: Conf = [],  # noqa: B006
    packages: With = [],  # noqa: B006
    as_json: AsJson = False,
) -> None:
    """Show what would become of every query if a file of statements replaced the job on the checkpoint.

    A query is kept, derived from rows that are kept, or new: then it is complete from a given instant on. If the job is
    running, it is asked; otherwise Spark is started to read the checkpoint.
    """
    from sash.cli.remote import change_running, default_checkpoint, is_running, print_change

    where = checkpoint or default_checkpoint(job)
    if is_running(where):
        change_running("diff", job, where, as_json=as_json)
        return
    from sash.cli.script_change import diff_checkpoint

    print_change(diff_checkpoint(job, where, shards, master, _settings(conf, packages)), as_json=as_json)


@app.command("apply")
def apply_file(job: JobFile, checkpoint: Checkpoint = None, as_json: AsJson = False) -> None:
    """Change the job that runs on the checkpoint to a file of statements, without stopping it.

    It prints what became of every query: kept, derived from rows that are kept, new, or dropped.
    """
    from sash.cli.remote import change_running, default_checkpoint

    change_running("apply", job, checkpoint or default_checkpoint(job), as_json=as_json)


@app.command("rescale")
def rescale_file(
    checkpoint: Annotated[str, typer.Argument(help="The checkpoint of a job that does not run.")],
    shards: Annotated[int, typer.Option(min=1, max=MOST_SHARDS, help="The new number of shards.")],
    master: Master = None,
    conf: Conf = [],  # noqa: B006
    packages: With = [],  # noqa: B006
) -> None:
    """Distribute the state of the jobs in a checkpoint over another number of shards; their change streams go on."""
    from sash.cli.rescale import rescale_checkpoint

    rescale_checkpoint(checkpoint, shards, master, _settings(conf, packages), typer.echo)


@app.command("console")
def serve_console(
    jobs: Annotated[list[str], typer.Argument(metavar="CHECKPOINT...", help="The checkpoints or names of your jobs.")],
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 is any free one.")] = 0,
    host: Annotated[
        str, typer.Option(help="The address to listen on. More than this machine's own needs --cert and --key.")
    ] = "127.0.0.1",
    cert: Annotated[Path | None, typer.Option(exists=True, dir_okay=False, help="A TLS certificate, as PEM.")] = None,
    key: Annotated[Path | None, typer.Option(exists=True, dir_okay=False, help="The certificate's key.")] = None,
    allow_changes: AllowChanges = False,
    attended: Annotated[bool, typer.Option("--attended", hidden=True)] = False,
    as_json: Annotated[bool, typer.Option("--json", hidden=True)] = False,
) -> None:
    """Serve the web console, and answers over HTTP, of jobs that run on this machine. It prints a URL with a token."""
    from sash.cli.console import run_console
    from sash.console.serve import ServerSettings

    settings = ServerSettings(port, host, cert, key, allow_changes)
    run_console(jobs, settings, attended=attended, as_json=as_json)


@app.command()
def validate(
    job: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="A file of statements.")],
    conf: Conf = [],  # noqa: B006
    packages: With = [],  # noqa: B006
    as_json: AsJson = False,
) -> None:
    """Check a file of statements without running it: names, columns, types, options. Nothing is started, not even Java.

    Give the Spark settings of the run that add data sources or functions with --conf, such as spark.jars.packages.
    """
    from sash.cli.check import validate_job

    raise typer.Exit(validate_job(job, _settings(conf, packages), as_json=as_json))


@app.command("init")
def init_folder(
    folder: Annotated[Path, typer.Argument(file_okay=False, help="The folder, which is made if it does not exist.")],
) -> None:
    """Start a job of your own: write a job, a generator of data for it, and tests of its queries, which pass."""
    from sash.cli.init import init

    typer.echo(init(folder))


@app.command("prepare")
def prepare_caches() -> None:
    """Make the caches with which later commands start in seconds: compiled loops, and an archive of Java classes."""
    from sash.cli.prepare import prepare

    prepare(lambda line: typer.echo(f"sash: {line}", err=True))


def _settings(conf: list[str], packages: list[str]) -> dict[str, str]:
    pairs = [entry.partition("=") for entry in conf]
    for name, equals, _ in pairs:
        if not equals or not name.strip():
            raise typer.BadParameter(f"{name!r} is not name=value", param_hint="--conf")
    settings = {name.strip(): value for name, _, value in pairs}
    if not packages:
        return settings
    from sash.spark.packages import package_settings

    return package_settings(packages, settings)


def _file(query: str) -> Path | None:
    """The file of that name; None if there is none, and the argument is a query itself."""
    try:
        return Path(query) if Path(query).is_file() else None
    except OSError:
        return None


def with_ports(arguments: list[str]) -> list[str]:
    """The arguments with a port after every --console that has none: 0, which is any free one.

    >>> with_ports(["run", "job.sql", "--console", "--json"])
    ['run', 'job.sql', '--console', '0', '--json']
    """
    found: list[str] = []
    for argument, following in zip_longest(arguments, arguments[1:], fillvalue=""):
        found.append(argument)
        if argument == "--console" and not following.isdigit():
            found.append("0")
    return found


def run() -> None:
    """The entry point: prints errors in one line; the full trace of errors that come out of Spark is in a log file."""
    try:
        app(with_ports(sys.argv[1:]))
    except SashError as problem:
        _fail(problem)
    except Exception as problem:  # noqa: BLE001  (whatever it is, its trace belongs in the log)
        from sash.spark.errors import to_sash_error

        _fail(to_sash_error(problem))


def _fail(problem: SashError) -> None:
    typer.echo(f"sash: {problem}", err=True)
    if problem.log is not None:
        typer.echo(f"sash: the full trace is in {problem.log}", err=True)
    sys.exit(1)
