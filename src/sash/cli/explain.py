"""`sash explain`: the plans of a query over declared streams, or of all queries of a job."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from sash.cli.catalog import declared_catalog
from sash.cli.check import INVALID, OK, located, positioned
from sash.errors import CatalogError, SashError, SqlSyntaxError
from sash.plan.options import Options, Strategy
from sash.planning import Planned, plan_query
from sash.script.dry_run import DryRunBackend
from sash.script.reader import read_script
from sash.script.session import Session
from sash.script.statements import CreateQuery, Explain, ExplainJob, Select, Statement


def explain_query(
    text: str, streams: Iterable[str], relations: Iterable[str], options: Options, *, every: bool = False
) -> str:
    """The plan of a query over the declared streams and relations; with `every`, also the rejected plans."""
    return plan_query(text, declared_catalog(streams, relations), options=options).explain(all=every)


def explain_job(
    path: Path, text: str, strategy: Strategy, partitions: int | None, *, every: bool = False, job: bool = False
) -> int:
    """Print the plans of all queries of a job, or its errors, and return the exit code.

    The job's own STRATEGY clauses have precedence over the strategy. With `job`, its dataflow is printed instead of the
    plan of each query alone.
    """
    backend = DryRunBackend()
    session, code = Session(backend), OK
    session.settings.options = replace(session.settings.options, strategy=strategy)
    explained = 0
    for statement in _statements(path, text):
        try:
            plan = _plan(session, backend, statement, partitions, every=every)
        except SashError as problem:
            print(located(path, text, positioned(problem, statement)), file=sys.stderr)
            code = INVALID
            continue
        if plan is not None and not (job and isinstance(statement, CreateQuery | ExplainJob)):
            print(f"{chr(10) if explained else ''}{_title(statement)}{plan.rstrip()}")
            explained += 1
    if job and code == OK and backend.checked:
        print(f"{chr(10) if explained else ''}{backend.explain_job().rstrip()}")
        explained += 1
    if not explained and code == OK:
        print(f"{path}: there is no query to explain", file=sys.stderr)
        code = INVALID
    return code


def _title(statement: Statement) -> str:
    match statement:
        case CreateQuery():
            return f"Query {statement.name}, into {statement.sink}\n\n"
        case ExplainJob():
            return ""
        case _:
            return "Query SELECT\n\n"


def _statements(path: Path, text: str) -> Iterator[Statement]:
    try:
        yield from read_script(text)
    except SqlSyntaxError as problem:
        raise SqlSyntaxError(f"{path}: {problem.message}", problem.line, problem.column) from None


def _plan(
    session: Session, backend: DryRunBackend, statement: Statement, partitions: int | None, *, every: bool
) -> str | None:
    """The plan of a statement that has a query; None for any other, which is executed."""
    planned: Planned | None
    if isinstance(statement, Select | Explain):
        with statement.query.position.relocate_errors():
            planned = backend.plan(statement.query.sql, session.settings.options)
    elif isinstance(statement, ExplainJob):
        return backend.explain_job()
    else:
        session.execute(statement)
        if not isinstance(statement, CreateQuery):
            return None
        planned = backend.checked[-1].planned
    if planned is None:
        assert isinstance(statement, CreateQuery)
        raise CatalogError(
            f"query {statement.name} cannot be explained without Spark: {backend.unchecked[statement.name]}"
        )
    if partitions is not None:
        chosen = replace(planned.options, partitions=partitions)
        planned = plan_query(planned.sql, backend.catalog, options=chosen)
    return planned.explain(all=every)
