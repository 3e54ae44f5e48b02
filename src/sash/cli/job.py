"""Jobs: a file of statements, run as a long-lived process that is checkpointed and can be restarted.

Exit codes: 0 the job ended or was stopped, 1 the file has errors, 2 the command line has, 3 a query failed.
"""

from __future__ import annotations

import shutil
import signal
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from urllib.parse import quote

from sash.cli.check import INVALID, check, described, located, positioned
from sash.cli.console import ConsoleSettings, console_beside
from sash.cli.job_control import JobControl, ScriptChange
from sash.cli.job_log import JobLog, JobName
from sash.cli.preflight import check_surroundings
from sash.cli.presence import present
from sash.cli.remote import default_checkpoint
from sash.cli.script_change import RunningScript
from sash.cli.session import quiet_engine, stopped_by
from sash.cli.supervise import Supervisor
from sash.console.report import JobReport
from sash.errors import ControlError, SashError, SqlSyntaxError
from sash.history.limits import HistoryLimits
from sash.script.dry_run import DryRunBackend
from sash.script.live import LiveBackend
from sash.script.reader import read_script
from sash.script.replies import MessageReply, Reply, TableReply
from sash.script.session import Session
from sash.script.statements import CreateQuery, Statement
from sash.spark.java_process import discard

if TYPE_CHECKING:
    from sash.engine import Engine


OnChange = Literal["ask", "apply", "refuse"]
"""What to do if the checkpoint was written by another script."""


@dataclass(frozen=True)
class JobSettings:
    """How `sash run` runs a job: the options of the command line."""

    checkpoint: str | None = None
    master: str | None = None
    conf: Mapping[str, str] = field(default_factory=dict)
    shards: int | None = None
    metrics_port: int | None = None
    metrics_host: str = "127.0.0.1"
    on_change: OnChange = "refuse"
    as_json: bool = False
    history: HistoryLimits | None = None
    console: ConsoleSettings | None = None


def run_job(path: Path, settings: JobSettings) -> int:
    """Run a job until its queries end, one of them fails, or a signal stops it."""
    text, log = path.read_text(encoding="utf-8"), JobLog(settings.as_json)
    conf, master = dict(settings.conf), settings.master
    with ExitStack() as stack:
        stack.callback(discard)
        stack.enter_context(log.warnings())
        stop = stack.enter_context(stopped_by(signal.SIGTERM, signal.SIGINT))
        folder = settings.checkpoint or default_checkpoint(path)

        @cache
        def engine_of() -> Engine:
            log.write("starting Spark", checkpoint=folder)
            engine = stack.enter_context(quiet_engine(master, conf, folder, settings.shards))
            context = engine.spark.sparkContext
            log.write("Spark started", version=context.version, master=context.master, application=context.appName)
            return engine

        backend = DryRunBackend(conf)
        problems = check(text, backend)
        problems = problems or check_surroundings(
            backend, folder, settings.metrics_port, conf, master, settings.metrics_host
        )
        for problem in problems:
            _log_error(log, path, text, problem)
        if problems:
            return INVALID
        entry = stack.enter_context(present(path.name, folder, log))
        engine = engine_of()
        if settings.metrics_port is not None:
            log.write("metrics", url=engine.metrics(settings.metrics_port, settings.metrics_host))
        script = RunningScript(path, engine, Session.on(engine), conf, text)
        run_files = Path(entry.log).parent
        if settings.history is not None:
            engine.history = run_files, settings.history
        else:
            shutil.rmtree(run_files / "history", ignore_errors=True)
        if not stop.is_set() and not _start(path, text, script.session, log, settings.on_change):
            return INVALID
        _forget_others(run_files / "history", script.session)
        report = JobReport(engine, lambda: script.session, lambda: script.text)
        change = ScriptChange(script.diff, script.apply)
        control = JobControl(lambda: script.session, change, stop, entry, log.write, report)
        stack.callback(control.close)
        try:
            stack.callback(control.serve().close)
        except ControlError as problem:
            log.write_warning(f"{problem}: other commands cannot reach this job")
        if settings.console is not None:
            stack.enter_context(console_beside(entry, settings.console, log))
        return Supervisor(lambda: script.session, log, control.attend).watch(stop)


def _forget_others(histories: Path, session: Session) -> None:
    """Remove the histories of jobs and separate queries that the script no longer has."""
    kept = {quote(name, safe="") for name in (*session.backend.jobs(), *session.backend.separate())}
    for folder in histories.iterdir() if histories.is_dir() else ():
        if folder.name not in kept:
            shutil.rmtree(folder, ignore_errors=True)


def _start(path: Path, text: str, session: Session, log: JobLog, on_change: OnChange) -> bool:
    """Execute the statements and start the queries; log the first error, and return whether there was none."""
    for statement in read_script(text):
        try:
            _log_reply(log, statement, session.execute(statement))
        except SashError as problem:
            _log_error(log, path, text, positioned(problem, statement))
            return False
    if not _may_start(session, log, on_change):
        return False
    created = dict(session.queries)
    try:
        session.launch()
    except SashError as problem:
        about = created.get((problem.query or "").lower())
        error = SqlSyntaxError(str(problem)) if about is None else positioned(problem, about)
        error.log = problem.log
        _log_error(log, path, text, error)
        return False
    for query in session.queries.values():
        log.write("started", query.name, sink=query.sink)
    return True


def _may_start(session: Session, log: JobLog, on_change: OnChange) -> bool:
    """Whether the jobs may be started: if that changes the checkpoint of one, the difference is logged, and `on_change` decides."""
    backend = session.backend
    assert isinstance(backend, LiveBackend)
    changes = backend.session_jobs.changes()
    for name, diff in changes.items():
        if log.as_json:
            log.write("change", JobName(name), **diff.to_json())
        else:
            log.write(f"the script is not the one that wrote the checkpoint:\n{diff.render()}", JobName(name))
    if not changes or on_change == "apply" or (on_change == "ask" and _confirmed()):
        backend.session_jobs.on_change = "apply"
        return True
    log.write("refused: run with --on-change apply to change the job, or restore the script", level="error")
    return False


def _confirmed() -> bool:
    """Whether the user, if there is one at a terminal, agrees to the change."""
    return sys.stdin.isatty() and input("Apply this change? [y/N] ").strip().lower() in ("y", "yes")


def _log_reply(log: JobLog, statement: Statement, reply: Reply) -> None:
    if isinstance(statement, CreateQuery):
        return  # it is logged when it is started
    if isinstance(reply, MessageReply):
        log.write(reply.text)
    elif isinstance(reply, TableReply):
        for row in reply.rows:
            named = dict(zip(reply.columns, row, strict=True))
            log.write(
                "row", row=named if log.as_json else ", ".join(f"{name} {value}" for name, value in named.items())
            )


def _log_error(log: JobLog, path: Path, text: str, problem: SqlSyntaxError) -> None:
    if log.as_json:
        log.write("error", level="error", **described(problem))
    else:
        log.write_error(located(path, text, problem))
        if problem.log is not None:
            log.write_error(f"{path}: the full trace is in {problem.log}")
