"""Checks of a job: every statement, without Spark; and, before a run, what the job needs around it."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from sash.errors import CatalogError, SashError, SqlSyntaxError
from sash.script.dry_run import CheckedQuery, DryRunBackend
from sash.script.reader import read_script
from sash.script.session import Session
from sash.script.statements import CreateQuery, Select, Statement

OK, INVALID = 0, 1


def validate_job(path: Path, conf: Mapping[str, str] | None = None, *, as_json: bool) -> int:
    """Check every statement of a job, print the errors, and return the exit code."""
    text = path.read_text(encoding="utf-8")
    backend = DryRunBackend(conf)
    problems = check(text, backend)
    if as_json:
        found = {"problems": [described(problem) for problem in problems], "unchecked": backend.unchecked}
        print(json.dumps({"file": str(path), "ok": not problems, **found}))
        return INVALID if problems else OK
    for problem in problems:
        print(located(path, text, problem), file=sys.stderr)
    if problems:
        return INVALID
    for name, reason in backend.unchecked.items():
        print(f"{path}: query {name} is checked when it runs: {reason}", file=sys.stderr)
    statements = read_script(text)
    queries = sum(isinstance(statement, CreateQuery) for statement in statements)
    print(f"{path}: OK ({len(statements)} statements, {queries} of them queries)")
    return OK


def check(text: str, backend: DryRunBackend) -> list[SqlSyntaxError]:
    """The errors of a job. After a statement with an error, the following ones are checked too."""
    try:
        statements = read_script(text)
    except SqlSyntaxError as problem:
        return [problem]
    session, problems = Session(backend), list[SqlSyntaxError]()
    for statement in statements:
        try:
            if isinstance(statement, Select):
                raise CatalogError(
                    "a job needs a sink for every answer: write CREATE QUERY name AS SELECT ... INTO sink"
                )
            session.execute(statement)
        except SashError as problem:
            problems.append(positioned(problem, statement))
    try:
        session.launch()
    except SashError as problem:
        problems.append(SqlSyntaxError(str(problem)))
    problems += _shared_targets(backend.checked)
    if not problems and not session.queries and not session.windows:
        problems.append(SqlSyntaxError("the job starts no query: write CREATE QUERY name AS SELECT ... INTO sink"))
    return problems


def _shared_targets(queries: Sequence[CheckedQuery]) -> Iterator[SqlSyntaxError]:
    """Errors of queries that write to the target of one before them, where only one may write."""
    writers: dict[object, str] = {}
    for query in queries:
        sink, name = query.sink, query.statement.name
        if sink is None or not sink.exclusive or writers.setdefault(sink.target, name) == name:
            continue
        where = ", ".join(f"{option} {value}" for option, value in sink.target[1])
        message = f"query {writers[sink.target]} writes to {where} too: choose another for one of them"
        place = query.statement.place("sink")
        yield SqlSyntaxError(message, place.line, place.column)


def positioned(problem: SashError, statement: Statement) -> SqlSyntaxError:
    """The error with a position: its own, or that of the clause or the statement that it is about."""
    if isinstance(problem, SqlSyntaxError) and problem.line is not None:
        return problem
    message = problem.message if isinstance(problem, SqlSyntaxError) else str(problem)
    place = statement.place(problem.part)
    found = SqlSyntaxError(message, place.line, place.column)
    found.log = problem.log
    return found


def described(problem: SqlSyntaxError) -> dict[str, Any]:
    """The error for JSON."""
    log = {} if problem.log is None else {"log": problem.log}
    return {"message": problem.message, "line": problem.line, "column": problem.column, **log}


def located(path: Path, text: str, problem: SqlSyntaxError) -> str:
    """The error with the name of the file, and the line that it is about."""
    if problem.line is None:
        return f"{path}: {problem}"
    return f"{path}:{problem.line}:{problem.column}: {problem.marked(text)}"
