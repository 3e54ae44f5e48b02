"""The subcommands about jobs that run elsewhere on the machine."""

from __future__ import annotations

from typing import Annotated

import typer

from sash.cli.options import AsJson

app = typer.Typer()


@app.command("ps")
def list_jobs(as_json: AsJson = False) -> None:
    """List your jobs on this machine: those that run, and those that failed or crashed and were not started again."""
    from sash.cli.remote import list_known

    list_known(as_json=as_json)


def _complete_job(incomplete: str) -> list[str]:
    """The names of known jobs that begin so, for the completion of shells."""
    from sash.job_index import known_jobs

    return [entry.name for entry in known_jobs() if entry.name.startswith(incomplete)]


JobNamed = Annotated[
    str,
    typer.Argument(
        help="The job: its file's name, with or without ending, or its checkpoint.", autocompletion=_complete_job
    ),
]


@app.command("status")
def job_status(job: JobNamed, as_json: AsJson = False) -> None:
    """Show a job with its queries and windows: state, rows, batch time, watermark, lag."""
    from sash.cli.remote import show_status

    show_status(job, as_json=as_json)


@app.command("logs")
def job_logs(
    job: JobNamed,
    lines: Annotated[int, typer.Option("--lines", "-n", min=0, help="How many lines to show.")] = 100,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on with new lines until the job ends.")] = False,
) -> None:
    """Show the log of a job, which may have ended."""
    from sash.cli.logs import show_log

    show_log(job, lines, follow=follow)


@app.command("stop")
def stop_running(
    job: JobNamed,
    seconds: Annotated[float, typer.Option(min=0, help="How long to wait until it has ended.")] = 120,
) -> None:
    """Stop a job after its current batch, and wait until it has ended. Run it again to go on."""
    from sash.job_index import find_job
    from sash.script.other_jobs import stop_job

    typer.echo(stop_job(find_job(job), seconds))


@app.command("pause")
def pause_running(job: JobNamed) -> None:
    """Pause a job after its current batch: it reads nothing until `sash resume`. Its windows and its process stay."""
    from sash.script.other_jobs import control_other

    typer.echo(control_other("PAUSE", job))


@app.command("resume")
def resume_running(job: JobNamed) -> None:
    """Let a paused job go on."""
    from sash.script.other_jobs import control_other

    typer.echo(control_other("RESUME", job))
