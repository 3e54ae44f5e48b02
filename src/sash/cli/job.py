"""A job: the statements of a file as a long-running process that is checkpointed, can be restarted, and ends cleanly.

Exit codes: 0 it ended, or was told to; 1 the job is wrong; 3 a query failed while it ran. (2 is a wrong command line.)
"""

from __future__ import annotations

import json
import signal
import sys
import threading
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sash.cli.session import quiet_engine, stopped_by
from sash.errors import CatalogError, SashError, SqlSyntaxError
from sash.script.dry_run import OnPaper
from sash.script.reader import read_script
from sash.script.session import Asked, Listed, Said, Session
from sash.script.statements import CreateQuery, Select, Statement

if TYPE_CHECKING:
    from sash.engine import Engine
    from sash.spark.handle import StreamingHandle

ENDED, WRONG, FAILED = 0, 1, 3
_POLL = 0.25
_QUIET = 10.0
"""Seconds between two lines about a query that is doing well."""


@dataclass
class Log:
    """What happens, a line each: for people, or as JSON for programs."""

    as_json: bool
    _spoken: dict[str, float] = field(default_factory=dict)
    _untold: dict[str, dict[str, Any]] = field(default_factory=dict)

    def say(self, event: str, query: str | None = None, level: str = "info", **details: Any) -> None:
        """Write one line."""
        now = datetime.now(UTC)
        if self.as_json:
            named = {} if query is None else {"query": query}
            entry = {"time": now.isoformat(timespec="milliseconds"), "level": level, "event": event, **named, **details}
            print(json.dumps(entry, default=str), flush=True)
        else:
            words = " ".join(f"{name}={value}" for name, value in details.items() if value not in (None, ""))
            whose = "" if query is None else f"{query}: "
            print(f"{now:%H:%M:%S} {whose}{event}{' ' + words if words else ''}", flush=True)

    def progress(self, query: str, progress: dict[str, Any]) -> None:
        """A batch is done. Programs are told at once, people of the latest now and then."""
        if self.as_json:
            self.say("batch", query, **progress)
        else:
            self._untold[query] = progress

    def tell(self, query: str, *, at_once: bool = False) -> None:
        """Tell people of the latest batch, if they have not been told of one just now."""
        now = time.monotonic()
        if query in self._untold and (at_once or now - self._spoken.get(query, -_QUIET) >= _QUIET):
            self._spoken[query] = now
            progress = self._untold.pop(query)
            parts = ("batch", "batch_ms", "total_rows_in", "total_rows_out", "total_late", "state_rows")
            shown: dict[str, Any] = {part: progress.get(part) for part in parts}
            self.say("batch done", query, **shown)


def validate_job(path: Path, *, as_json: bool) -> int:
    """Check every statement, and start nothing."""
    text = path.read_text(encoding="utf-8")
    ground = OnPaper()
    try:
        problems = check(text, ground)
    finally:
        if ground.started:
            ground.spark.stop()
    if as_json:
        print(json.dumps({"file": str(path), "ok": not problems, "problems": [_described(p) for p in problems]}))
    else:
        for problem in problems:
            print(_located(path, text, problem), file=sys.stderr)
        if not problems:
            print(f"{path} is right: {_counted(read_script(text))}")
    return WRONG if problems else ENDED


def check(text: str, ground: OnPaper) -> list[SashError]:
    """What is wrong with a job; a statement that is wrong does not keep the ones after it from being checked."""
    try:
        statements = read_script(text)
    except SqlSyntaxError as problem:
        return [problem]
    session, problems = Session(ground), list[SashError]()
    for statement in statements:
        try:
            _refuse_select(statement)
            session.execute(statement)
        except SqlSyntaxError as problem:
            problems.append(problem)
        except SashError as problem:
            problems.append(SqlSyntaxError(str(problem), statement.place.line, statement.place.column))
    if not problems and not session.queries and not session.windows:
        problems.append(CatalogError("the job starts no query: write CREATE QUERY name AS SELECT ... INTO sink"))
    return problems


def _refuse_select(statement: Statement) -> None:
    if isinstance(statement, Select):
        place = statement.place
        message = "a job's answers go somewhere: write CREATE QUERY name AS SELECT ... INTO sink"
        raise SqlSyntaxError(message, place.line, place.column)


def run_job(
    path: Path,
    *,
    checkpoint: str | None,
    master: str | None,
    conf: dict[str, str],
    shards: int | None,
    as_json: bool,
    metrics_port: int | None,
) -> int:
    """Run the job until its queries end, one of them fails, or it is told to stop."""
    text, log = path.read_text(encoding="utf-8"), Log(as_json)
    with ExitStack() as stack:
        stop = stack.enter_context(stopped_by(signal.SIGTERM, signal.SIGINT))
        place = checkpoint or str(path.with_suffix(".checkpoint").resolve())

        @cache
        def engine_of() -> Engine:
            log.say("starting Spark", checkpoint=place)
            engine = stack.enter_context(quiet_engine(master, conf, place, shards))
            context = engine.spark.sparkContext
            log.say("Spark is there", version=context.version, master=context.master, application=context.appName)
            return engine

        problems = check(text, OnPaper(lambda: engine_of().spark))
        for problem in problems:
            _complain(log, path, text, problem)
        if problems:
            return WRONG
        engine = engine_of()
        if metrics_port is not None:
            log.say("metrics", url=engine.metrics(metrics_port))
        session = Session.on(engine)
        for statement in read_script(text):
            if stop.is_set():
                break
            try:
                _tell(log, statement, session.execute(statement))
            except SqlSyntaxError as problem:
                _complain(log, path, text, problem)
                return WRONG
            except SashError as problem:
                placed = SqlSyntaxError(str(problem), statement.place.line, statement.place.column)
                _complain(log, path, text, placed)
                return WRONG
        return _wait(session, log, stop)


def _wait(session: Session, log: Log, stop: threading.Event) -> int:
    """Until all queries have ended, one has failed, or the signal to stop."""
    names = {name: statement.name for name, (statement, _) in session.queries.items()}
    running: dict[str, StreamingHandle] = {
        names[name]: query for name, (_, query) in session.queries.items() if query is not None
    }
    kept = {f"window {keep.name}": keeping for keep, keeping in session.windows.values() if keeping is not None}
    running |= kept
    while running and not stop.wait(_POLL):
        for name, query in list(running.items()):
            _news(log, name, query)
            if query.active:
                continue
            try:
                query.await_termination()
            except Exception as problem:  # noqa: BLE001  (whatever ended the query is what the log must say)
                log.say("failed", name, level="error", reason=_reason(problem))
                return FAILED
            _news(log, name, query, last=True)
            log.say("ended", name)
            del running[name]
    if stop.is_set():
        log.say("stopping after the batch that runs")
        for name, query in running.items():
            try:
                query.finish()
                _news(log, name, query, last=True)
                log.say("stopped", name)
            except Exception as problem:  # noqa: BLE001  (a JVM that was ended too has many ways not to answer)
                log.say("Spark ended first; the batch that ran is run again next time", name, reason=_reason(problem))
    return ENDED


def _news(log: Log, name: str, query: StreamingHandle, *, last: bool = False) -> None:
    for progress in query.drain_progress():
        log.progress(name, progress)
    log.tell(name, at_once=last)


def _reason(problem: Exception) -> str:
    """What a person can use of what was raised."""
    if isinstance(problem, SashError):
        return str(problem)
    lines = [line.strip() for line in str(problem).splitlines() if line.strip()]
    return lines[0] if lines else type(problem).__name__


def _tell(log: Log, statement: Statement, reply: Said | Listed | Asked) -> None:
    if isinstance(statement, CreateQuery):
        log.say("started", statement.name, sink=statement.sink)
    elif isinstance(reply, Said):
        log.say(reply.text)
    elif isinstance(reply, Listed):
        for row in reply.rows:
            named = dict(zip(reply.columns, row, strict=True))
            log.say("row", row=named if log.as_json else ", ".join(f"{name} {value}" for name, value in named.items()))


def _complain(log: Log, path: Path, text: str, problem: SashError) -> None:
    if log.as_json:
        log.say("error", level="error", **_described(problem))
    else:
        print(_located(path, text, problem), file=sys.stderr)


def _described(problem: SashError) -> dict[str, Any]:
    if isinstance(problem, SqlSyntaxError):
        return {"message": problem.message, "line": problem.line, "column": problem.column}
    return {"message": str(problem), "line": None, "column": None}


def _located(path: Path, text: str, problem: SashError) -> str:
    if isinstance(problem, SqlSyntaxError) and problem.line is not None:
        return f"{path}:{problem.line}:{problem.column}: {problem.marked(text)}"
    return f"{path}: {problem}"


def _counted(statements: list[Statement]) -> str:
    queries = sum(isinstance(statement, CreateQuery) for statement in statements)
    return f"{len(statements)} statements, {queries} of them queries"
