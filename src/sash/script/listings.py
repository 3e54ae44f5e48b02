"""The tables of SHOW and DESCRIBE."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from sash.plan.catalog import Catalog
from sash.plan.types import Schema, type_name
from sash.script.replies import TableReply
from sash.script.statements import Attach, CreateQuery, Keep
from sash.time import BEGINNING, FOREVER, SECOND

if TYPE_CHECKING:
    from sash.script.backend import Backend, QueryHandle

_PRECISE = 1_000
"""Lags of so many seconds are shown without fractions."""

QUERY_COLUMNS = (
    "query", "job", "sink", "state", "batch", "rows in", "rows out", "late", "share", "state bytes", "watermark", "lag seconds",
)  # fmt: skip
STREAM_COLUMNS = ("stream", "time", "columns", "rows in", "bad", "ahead", "late")
WINDOW_COLUMNS = ("window", "length", "every", "path", "updates", "rows", "late")
JOB_COLUMNS = ("job", "state", "queries", "parked", "batch", "batch ms", "rows in", "state bytes")


def list_streams(catalog: Catalog, backend: Backend) -> TableReply:
    """The table of SHOW STREAMS, with the rows that each stream brought to the running jobs and those that these dropped.

    A job reads a stream once for all of its queries; every other job reads it anew, and counts it anew.
    """
    running = [*backend.jobs().values(), *backend.separate().values()]
    counts = _stream_counts([one.progress().get("total_streams", {}) for one in running])
    rows = []
    for entry in catalog.streams.values():
        found = counts.get(entry.name.lower(), {})
        totals = (found.get(part) for part in ("rows_in", "bad", "ahead", "late"))
        rows.append((entry.name, entry.time, _columns(entry.schema), *totals))
    return TableReply(STREAM_COLUMNS, rows)


def _stream_counts(parts: Iterable[Mapping[str, Mapping[str, int]]]) -> dict[str, dict[str, int]]:
    """The counts of all parts added up, by the lower-case names of streams."""
    found: dict[str, dict[str, int]] = {}
    for part in parts:
        for name, counts in part.items():
            known = found.setdefault(name.lower(), {})
            for what, count in counts.items():
                known[what] = known.get(what, 0) + count
    return found


def list_relations(catalog: Catalog) -> TableReply:
    """The table of SHOW RELATIONS."""
    rows = [(entry.name, _columns(entry.schema)) for entry in catalog.relations.values()]
    return TableReply(("relation", "columns"), rows)


def list_queries(queries: Iterable[CreateQuery], backend: Backend) -> TableReply:
    """The table of SHOW QUERIES; the share is that of the time of its job's last batch, the lag is in seconds."""
    return TableReply(QUERY_COLUMNS, [_query_row(statement, backend) for statement in queries])


def list_windows(windows: Iterable[Keep | Attach], backend: Backend) -> TableReply:
    """The table of SHOW WINDOWS."""
    return TableReply(WINDOW_COLUMNS, [_window_row(statement, backend) for statement in windows])


def list_jobs(backend: Backend) -> TableReply:
    """The table of SHOW JOBS."""
    rows = []
    for name, job in backend.jobs().items():
        progress = job.progress()
        parked = sum(query.state.startswith("parked") for query in job.queries.values())
        state = "ended" if not job.active else "paused" if job.paused else "running"
        numbers = (progress.get(part) for part in ("batch", "batch_ms", "rows_in", "state_bytes"))
        rows.append((name, state, len(job.queries), parked, *numbers))
    return TableReply(JOB_COLUMNS, rows)


def list_all_jobs(backend: Backend) -> TableReply:
    """The table of SHOW JOBS in the shell: the jobs of this session, and those of other processes of this user."""
    from sash.script.other_jobs import other_jobs, rows_of

    rows = list(list_jobs(backend).rows)
    for entry, state, status in other_jobs():
        if entry.pid != os.getpid():
            parts = [] if status is None else list(rows_of(status["jobs"]))
            totals = (_total(part[column] for part in parts) for column in ("queries", "parked"))
            slowest = max((part["batch ms"] for part in parts if part["batch ms"] is not None), default=None)
            rest = (_total(part[column] for part in parts) for column in ("rows in", "state bytes"))
            rows.append((entry.name, f"{state}, process {entry.pid}", *totals, None, slowest, *rest))
    return TableReply(JOB_COLUMNS, rows)


def _total(values: Iterable[int | None]) -> int | None:
    """The sum of those that are known; None if none is."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def describe_columns(schema: Schema) -> TableReply:
    """The table of DESCRIBE for a stream or relation."""
    return TableReply(("column", "type"), [(field.name, type_name(field.dtype)) for field in schema])


def describe_query(statement: CreateQuery, running: QueryHandle | None) -> TableReply:
    """The table of DESCRIBE for a query: its text, its sink, its state and the plain numbers of its progress."""
    rows: list[tuple[Any, ...]] = [("query", statement.query.sql), ("sink", statement.sink)]
    if running is not None:
        plain = (str, int, float, type(None))
        rows += [("state", running.state)]
        rows += [(name, value) for name, value in running.progress().items() if isinstance(value, plain)]
    return TableReply(("property", "value"), rows)


def _query_row(statement: CreateQuery, backend: Backend) -> tuple[Any, ...]:
    running = backend.running(statement.name)
    if running is None:
        return statement.name, None, statement.sink, "not started", *[None] * (len(QUERY_COLUMNS) - 4)
    progress = running.progress()
    totals = (progress.get(f"total_{part}", 0) for part in ("rows_in", "rows_out", "late"))
    share = progress.get("share")
    watermark, lag = progress.get("watermark"), progress.get("lag_seconds")
    return (
        statement.name,
        backend.job_of(statement.name),
        statement.sink,
        running.state,
        progress.get("batch"),
        *totals,
        None if share is None else f"{share:.0%}",
        progress.get("state_bytes"),
        None if watermark is None else time_text(watermark),
        lag if lag is None or lag < _PRECISE else round(lag),
    )


def time_text(instant: int) -> str | None:
    """An instant in UTC; None before the first row and after the end of the input.

    >>> time_text(1_767_225_600_500_000)
    '2026-01-01 00:00:00.500'
    """
    if not BEGINNING < instant < FOREVER:
        return None
    try:
        return f"{datetime.fromtimestamp(instant / SECOND, UTC):%Y-%m-%d %H:%M:%S.%f}"[:-3]
    except (OverflowError, ValueError, OSError):  # beyond the calendar
        return str(instant)


def _window_row(statement: Keep | Attach, backend: Backend) -> tuple[Any, ...]:
    if isinstance(statement, Attach):
        return statement.name, None, None, statement.path, None, None, None
    running = backend.keeping(statement.name)
    progress: dict[str, Any] = {} if running is None else running.progress()
    counts = (progress.get(part) for part in ("updates", "rows", "late"))
    return statement.name, statement.window, statement.every, statement.path, *counts


def _columns(schema: Sequence[Any]) -> str:
    return ", ".join(map(str, schema))
