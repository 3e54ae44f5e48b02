"""Jobs: a file of statements, run as a long-lived process that is checkpointed and can be restarted.

Exit codes: 0 the job ended or was stopped, 1 the file has errors, 2 the command line has, 3 a query failed.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from sash.cli.check import INVALID, check, described, located, positioned
from sash.cli.job_control import JobControl, ScriptChange, job_entry
from sash.cli.job_log import JobLog
from sash.cli.preflight import check_surroundings
from sash.cli.script_change import RunningScript
from sash.cli.session import quiet_engine, stopped_by
from sash.cli.supervise import Supervisor
from sash.errors import ControlError, SashError, SqlSyntaxError
from sash.script.dry_run import DryRunBackend
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
    on_change: OnChange = "refuse"
    as_json: bool = False


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
        problems = problems or check_surroundings(backend, folder, settings.metrics_port, conf, master)
        for problem in problems:
            _log_error(log, path, text, problem)
        if problems:
            return INVALID
        engine = engine_of()
        if settings.metrics_port is not None:
            log.write("metrics", url=engine.metrics(settings.metrics_port))
        script = RunningScript(path, engine, Session.on(engine), conf)
        if not stop.is_set() and not _start(path, text, script.session, log):
            return INVALID
        control = JobControl(
            lambda: script.session, ScriptChange(script.diff, script.apply), stop, job_entry(path.name, folder)
        )
        stack.callback(control.close)
        try:
            stack.callback(control.serve().close)
        except ControlError as problem:
            log.write_warning(f"{problem}: sash apply, sash ps and sash sql --attach cannot reach this job")
        return Supervisor(lambda: script.session, log, control.attend).watch(stop)


def default_checkpoint(path: Path) -> str:
    """The checkpoint of a job without --checkpoint: a folder beside the file."""
    return str(path.with_suffix(".checkpoint").resolve())


def _start(path: Path, text: str, session: Session, log: JobLog) -> bool:
    """Execute the statements and start the queries; log the first error, and return whether there was none."""
    for statement in read_script(text):
        try:
            _log_reply(log, statement, session.execute(statement))
        except SashError as problem:
            _log_error(log, path, text, positioned(problem, statement))
            return False
    try:
        session.launch()
    except SashError as problem:
        about = session.queries.get((problem.query or "").lower())
        error = SqlSyntaxError(str(problem)) if about is None else positioned(problem, about)
        error.log = problem.log
        _log_error(log, path, text, error)
        return False
    for query in session.queries.values():
        log.write("started", query.name, sink=query.sink)
    return True


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
        print(located(path, text, problem), file=sys.stderr)
        if problem.log is not None:
            print(f"{path}: the full trace is in {problem.log}", file=sys.stderr)
