"""`sash console`, and the console beside a job: a process of its own, whose end the job does not notice."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from sash.console.serve import ServerSettings, check_extra, serve

if TYPE_CHECKING:
    from sash.cli.job_log import JobLog
    from sash.job_index import JobEntry

_NICE = 5
_END_SECONDS = 10


@dataclass(frozen=True)
class ConsoleSettings:
    """The console beside a job."""

    port: int = 0
    allow_changes: bool = False

    def check(self) -> None:
        """Raise an error if the console cannot be started."""
        check_extra()


def run_console(jobs: list[str], settings: ServerSettings, *, attended: bool, as_json: bool) -> None:
    """Serve jobs until Ctrl-C, and print the URL."""

    def started(url: str) -> None:
        typer.echo(json.dumps({"url": url}) if as_json else f"sash: console at {url}")

    if attended:
        import os

        os.nice(_NICE)
    serve(jobs, settings, started, attended=attended)


@contextmanager
def console_beside(entry: JobEntry, settings: ConsoleSettings, log: JobLog) -> Iterator[threading.Thread]:
    """A console of the job in a process of its own as long as this lasts. It is not started again if it ends."""
    command = [sys.executable, "-m", "sash.cli", "console", entry.checkpoint, "--port", str(settings.port)]
    command += ["--attended", "--json"] + (["--allow-changes"] if settings.allow_changes else [])
    errors = Path(entry.log).with_name("console.log")
    errors.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with errors.open("wb") as written:
        process = subprocess.Popen(  # noqa: S603  (our own command)
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=written,
            text=True,
            start_new_session=True,
        )
    watching = threading.Thread(target=_watch, args=(process, log, errors), name="sash-console", daemon=True)
    watching.start()
    try:
        yield watching
    finally:
        assert process.stdin is not None
        with suppress(OSError):
            process.stdin.close()
        try:
            process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _watch(process: subprocess.Popen[str], log: JobLog, errors: Path) -> None:
    """Log the URL of the console, and why it ended. All that it writes is read, so that it never waits."""
    assert process.stdout is not None
    for line in process.stdout:
        with suppress(ValueError, KeyError, TypeError):
            found: dict[str, Any] = json.loads(line)
            log.write("console", url=found["url"])
    code = process.wait()
    if code < 0:
        log.write_warning(f"the console was ended by signal {-code}; the job goes on")
    elif code > 0:
        lines = errors.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        log.write_warning(
            f"the console ended: {lines[-1] if lines else f'exit code {code}'}; its errors are in {errors}"
        )
