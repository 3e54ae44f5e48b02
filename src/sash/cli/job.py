"""Jobs: a file of statements, run as a long-lived process that is checkpointed and can be restarted.

Exit codes: 0 the job ended or was stopped, 1 the file has errors, 2 the command line has, 3 a query failed.
"""

from __future__ import annotations

import json
import logging
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sash.cli.check import INVALID, OK, check, described, located, positioned
from sash.cli.preflight import check_surroundings
from sash.cli.session import quiet_engine, stopped_by
from sash.errors import SashError, SqlSyntaxError
from sash.script.dry_run import DryRunBackend
from sash.script.reader import read_script
from sash.script.session import MessageReply, Reply, Session, TableReply
from sash.script.statements import CreateQuery, Statement
from sash.spark.java_process import discard

if TYPE_CHECKING:
    from sash.engine import Engine
    from sash.spark.handle import StreamingHandle

FAILED = 3
_POLL = 0.25
_INTERVAL = 10.0
"""Seconds between two lines of text about the batches of a query."""


@dataclass
class JobLog:
    """The log of a job on standard output, one line per event: text, or JSON for programs."""

    as_json: bool
    _printed: dict[str, float] = field(default_factory=dict)
    _pending: dict[str, dict[str, Any]] = field(default_factory=dict)

    def write(self, event: str, query: str | None = None, level: str = "info", **details: Any) -> None:
        """Write one line."""
        now = datetime.now(UTC)
        if self.as_json:
            named = {} if query is None else {"query": query}
            entry = {"time": now.isoformat(timespec="milliseconds"), "level": level, "event": event, **named, **details}
            print(json.dumps(entry, default=str), flush=True)
        else:
            words = " ".join(f"{name}={value}" for name, value in details.items() if value not in (None, ""))
            prefix = "" if query is None else f"{query}: "
            print(f"{now:%Y-%m-%dT%H:%M:%SZ} {prefix}{event}{' ' + words if words else ''}", flush=True)

    def write_warning(self, text: str, query: str | None = None) -> None:
        """Write a warning."""
        if self.as_json:
            self.write("warning", query, level="warning", message=text)
        else:
            self.write(f"warning: {text}", query)

    def fail(self, event: str, error: SashError, query: str) -> None:
        """Write why a query ended, and where the full trace is."""
        if self.as_json:
            self.write(event, query, level="error", reason=str(error), log=error.log)
        else:
            self.write(f"{event}: {error}", query)
            self.write(f"the full trace is in {error.log}", query)

    @contextmanager
    def warnings(self) -> Iterator[None]:
        """Write Sash's warnings, such as those of sinks that are retried, to this log."""
        handler = _WarningHandler(self)
        logger = logging.getLogger("sash")
        logger.addHandler(handler)
        try:
            yield
        finally:
            logger.removeHandler(handler)

    def add_batch(self, query: str, progress: dict[str, Any]) -> None:
        """Log a batch: at once in JSON; as text, `write_batch` logs the latest one from time to time."""
        if self.as_json:
            self.write("batch", query, **progress)
        else:
            self._pending[query] = progress

    def write_batch(self, query: str, *, at_once: bool = False) -> None:
        """Log the latest batch of the query as text, unless one was logged within the interval."""
        now = time.monotonic()
        if query in self._pending and (at_once or now - self._printed.get(query, -_INTERVAL) >= _INTERVAL):
            self._printed[query] = now
            progress = self._pending.pop(query)
            parts = ("batch", "batch_ms", "total_rows_in", "total_rows_out", "total_late", "total_bad", "state_rows")
            shown: dict[str, Any] = {part: progress.get(part) for part in parts}
            self.write("batch done", query, **shown)


class _WarningHandler(logging.Handler):
    """Passes warnings of Python's logging on to the log of a job."""

    def __init__(self, log: JobLog) -> None:
        super().__init__(logging.WARNING)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        self._log.write_warning(record.getMessage())


def run_job(
    path: Path,
    checkpoint: str | None,
    master: str | None,
    conf: dict[str, str],
    shards: int | None,
    metrics_port: int | None,
    *,
    as_json: bool,
) -> int:
    """Run a job until its queries end, one of them fails, or a signal stops it."""
    text, log = path.read_text(encoding="utf-8"), JobLog(as_json)
    with ExitStack() as stack:
        stack.callback(discard)
        stack.enter_context(log.warnings())
        stop = stack.enter_context(stopped_by(signal.SIGTERM, signal.SIGINT))
        folder = checkpoint or str(path.with_suffix(".checkpoint").resolve())

        @cache
        def engine_of() -> Engine:
            log.write("starting Spark", checkpoint=folder)
            engine = stack.enter_context(quiet_engine(master, conf, folder, shards))
            context = engine.spark.sparkContext
            log.write("Spark started", version=context.version, master=context.master, application=context.appName)
            return engine

        backend = DryRunBackend(conf)
        problems = check(text, backend)
        problems = problems or check_surroundings(backend, folder, metrics_port, conf, master)
        for problem in problems:
            _log_error(log, path, text, problem)
        if problems:
            return INVALID
        engine = engine_of()
        if metrics_port is not None:
            log.write("metrics", url=engine.metrics(metrics_port))
        session = Session.on(engine)
        for statement in read_script(text):
            if stop.is_set():
                break
            try:
                _log_reply(log, statement, session.execute(statement))
            except SashError as problem:
                _log_error(log, path, text, positioned(problem, statement))
                return INVALID
        return _wait(session, log, stop)


def _wait(session: Session, log: JobLog, stop: threading.Event) -> int:
    """Wait until all queries have ended, one has failed, or a signal stops the job."""
    from sash.spark.errors import to_sash_error

    running: dict[str, StreamingHandle] = {
        statement.name: query for statement, query in session.queries.values() if query is not None
    }
    running |= {f"window {keep.name}": kept for keep, kept in session.windows.values() if kept is not None}
    while running and not stop.wait(_POLL):
        for name, query in list(running.items()):
            try:
                _log_batches(log, name, query)
                if query.active:
                    continue
                query.await_termination()
                _log_batches(log, name, query, last=True)
            except Exception as problem:  # noqa: BLE001  (any error may have ended it)
                log.fail("failed", to_sash_error(problem), name)
                return FAILED
            log.write("ended", name)
            del running[name]
    if stop.is_set():
        log.write("stopping after the current batch")
        for name, query in running.items():
            try:
                query.finish()
                _log_batches(log, name, query, last=True)
                log.write("stopped", name)
            except Exception as problem:  # noqa: BLE001  (a JVM that has ended too fails in many ways)
                log.fail("Spark ended first; the next run repeats the last batch", to_sash_error(problem), name)
    return OK


def _log_batches(log: JobLog, name: str, query: StreamingHandle, *, last: bool = False) -> None:
    batches = query.drain_progress()
    for progress in batches:
        log.add_batch(name, progress)
    for text in query.stream_warnings(batches):
        log.write_warning(text, name)
    log.write_batch(name, at_once=last)


def _log_reply(log: JobLog, statement: Statement, reply: Reply) -> None:
    if isinstance(statement, CreateQuery):
        log.write("started", statement.name, sink=statement.sink)
    elif isinstance(reply, MessageReply):
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
