"""Commands for a job that another process runs, over its control socket: `sash ps`, `sash status`, `sash apply`, `sash sql --attach`.

They need no Spark.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from sash.cli.job_control import control_socket, decode_reply
from sash.cli.reply_view import ReplyView
from sash.control import request
from sash.errors import ControlError, SashError
from sash.job_index import JobEntry, find_job
from sash.script.other_jobs import other_jobs, rows_of, silent_state, status_of
from sash.script.replies import TableReply

_STATUS_SECONDS = 5.0
_PS_COLUMNS = ("job", "state", "pid", "since", "queries", "parked", "batch ms", "checkpoint")


def list_known(*, as_json: bool) -> None:
    """Print the jobs of this user on this machine: those that run, and those that failed or crashed."""
    found = list(other_jobs())
    if as_json:
        for entry, state, status in found:
            print(json.dumps({**asdict(entry), "state": state, "status": status}))
        return
    if not found:
        print("no jobs are running")
        return
    ReplyView(Console(), "plain").show(TableReply(_PS_COLUMNS, [_row(*one) for one in found]))


def _row(entry: JobEntry, state: str, status: dict[str, Any] | None) -> tuple[Any, ...]:
    if status is None:
        return entry.name, state, entry.pid, entry.since, None, None, None, entry.checkpoint
    jobs = list(rows_of(status["jobs"]))
    slowest = max((job["batch ms"] for job in jobs if job["batch ms"] is not None), default=None)
    counted = len(status["queries"]["rows"]), sum(job["parked"] for job in jobs)
    return entry.name, state, entry.pid, entry.since, *counted, slowest, entry.checkpoint


def show_status(name: str, *, as_json: bool) -> None:
    """Print what a job tells about itself, its queries and windows."""
    entry = find_job(name)
    status = status_of(entry)
    state = silent_state(entry) if status is None else status["state"]
    if as_json:
        print(json.dumps({**asdict(entry), "state": state, "status": status}))
        return
    console = Console()
    facts = {
        "state": state,
        "process": entry.pid,
        "since": entry.since,
        "checkpoint": entry.checkpoint,
        "log": entry.log,
    }
    console.print(f"{entry.name}", style="bold", highlight=False)
    for label, value in {**facts, "error": entry.error}.items():
        if value is not None:
            console.print(f"  {label:<11}{value}", highlight=False, soft_wrap=True, markup=False)
    for part in ("jobs", "queries", "windows") if status is not None else ():
        if status is not None and status[part]["rows"]:
            console.print()
            ReplyView(console, "plain").show(decode_reply(status[part]))


def default_checkpoint(path: Path) -> str:
    """The checkpoint of a job without --checkpoint: a folder beside the file."""
    return str(path.with_suffix(".checkpoint").resolve())


def is_running(checkpoint: str) -> bool:
    """Whether a job runs on the checkpoint and answers."""
    try:
        request(control_socket(checkpoint), "status", _STATUS_SECONDS)
    except ControlError:
        return False
    return True


def change_running(command: str, path: Path, checkpoint: str, *, as_json: bool) -> None:
    """Send a script to the job that runs on the checkpoint, to be compared (`diff`) or applied; print what it replies."""
    found = request(control_socket(checkpoint), command, text=path.read_text(encoding="utf-8"))
    print_change(found, as_json=as_json)


def print_change(found: dict[str, Any], *, as_json: bool) -> None:
    """Print a difference: for programs without its text."""
    print(json.dumps({name: value for name, value in found.items() if name != "text"}) if as_json else found["text"])


@dataclass
class AttachedShell:
    """A shell whose statements are executed by a running job, as `sash sql --attach` starts it."""

    checkpoint: str
    console: Console
    form: str

    def names(self) -> list[str]:
        """The names to complete: the job's queries."""
        try:
            status = request(control_socket(self.checkpoint), "status", _STATUS_SECONDS)
        except SashError:
            return []
        return [row["query"] for row in rows_of(status["queries"])]

    def run(self, text: str) -> bool:
        """Let the job execute the statements of a text; show its replies, and return whether there was no error."""
        view = ReplyView(self.console, self.form)
        try:
            replies = request(control_socket(self.checkpoint), "execute", text=text)
        except SashError as problem:
            self.show_error(str(problem))
            return False
        for reply in replies:
            view.show(decode_reply(reply))
        return True

    def show_error(self, message: str, log: str | None = None) -> None:
        """Show an error."""
        ReplyView(self.console, self.form).show_error(message, log)
