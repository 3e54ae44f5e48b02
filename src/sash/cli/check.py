"""Checks of a job: every statement, without Spark; and, before a run, what the job needs around it."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sash.errors import CatalogError, SashError, SqlSyntaxError
from sash.script.dry_run import DryRunBackend
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
    if not problems and not session.queries and not session.windows:
        problems.append(SqlSyntaxError("the job starts no query: write CREATE QUERY name AS SELECT ... INTO sink"))
    return problems


def positioned(problem: SashError, statement: Statement) -> SqlSyntaxError:
    """The error with a position: its own, or that of the clause or the statement that it is about."""
    if isinstance(problem, SqlSyntaxError) and problem.line is not None:
        return problem
    message = problem.message if isinstance(problem, SqlSyntaxError) else str(problem)
    place = statement.place(problem.part)
    return SqlSyntaxError(message, place.line, place.column)


def described(problem: SqlSyntaxError) -> dict[str, Any]:
    """The error for JSON."""
    return {"message": problem.message, "line": problem.line, "column": problem.column}


def located(path: Path, text: str, problem: SqlSyntaxError) -> str:
    """The error with the name of the file, and the line that it is about."""
    if problem.line is None:
        return f"{path}: {problem}"
    return f"{path}:{problem.line}:{problem.column}: {problem.marked(text)}"
