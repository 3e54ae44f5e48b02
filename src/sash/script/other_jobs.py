"""Jobs of other processes, found by the index of this user's jobs and steered over their control sockets. Needs no Spark."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sash.control import request
from sash.errors import ControlError
from sash.file_lock import lock_holder
from sash.job_index import JobEntry, find_job, known_jobs
from sash.script.statements import JobAction

STOP_SECONDS = 120.0
_STATUS_SECONDS = 5.0
_POLL = 0.1


def control_other(action: JobAction, name: str) -> str:
    """Stop, pause or resume a job of another process, and return what became of it."""
    entry = find_job(name)
    match action:
        case "STOP":
            return stop_job(entry)
        case "PAUSE":
            return str(request_of(entry, "pause")["message"])
        case "RESUME":
            return str(request_of(entry, "resume")["message"])


def stop_job(entry: JobEntry, seconds: float = STOP_SECONDS) -> str:
    """Let a job stop after its current batch, and wait until its process has let go of the checkpoint."""
    request_of(entry, "stop")
    until = time.monotonic() + seconds
    while lock_holder(Path(entry.lock)) is not None:
        if time.monotonic() >= until:
            raise ControlError(
                f"{entry.name} was told to stop, but still runs after {seconds:g} seconds (process {entry.pid})"
            )
        time.sleep(_POLL)
    return f"stopped {entry.name}"


def request_of(entry: JobEntry, command: str) -> dict[str, Any]:
    """Send a command to a job; a job that does not run any more raises an error that says so."""
    state = entry.state
    if state != "running":
        raise ControlError(f"{entry.name} does not run: it has {state}; its log is in {entry.log}")
    found = request(entry.socket, command)
    assert isinstance(found, dict)
    return found


def status_of(entry: JobEntry) -> dict[str, Any] | None:
    """What a job tells about itself; None if it does not answer: it is being started, or does not run."""
    if entry.state != "running":
        return None
    try:
        found = request(entry.socket, "status", _STATUS_SECONDS)
    except ControlError:
        return None
    return found if isinstance(found, dict) else None


def other_jobs() -> Iterator[tuple[JobEntry, str, dict[str, Any] | None]]:
    """The jobs of other processes: their entries, states and what they tell about themselves."""
    for entry in known_jobs():
        status = status_of(entry)
        yield entry, str(status["state"]) if status is not None else silent_state(entry), status


def silent_state(entry: JobEntry) -> str:
    """The state of a job that does not answer."""
    state = entry.state
    return "starting" if state == "running" else state


def rows_of(table: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The rows of a table of a job's status, by column."""
    return (dict(zip(table["columns"], row, strict=True)) for row in table["rows"])
