"""The HTTP interface: answers, changes as server-sent events, snapshots, metrics. Documented by OpenAPI."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, get_args

import pyarrow as pa
import pyarrow.csv
from fastapi import APIRouter, Header, HTTPException, Query, Request
from fastapi.responses import PlainTextResponse, Response, StreamingResponse
from pydantic import BaseModel, Field

from sash.console.exposition import joined
from sash.console.feed import Feeds, parse_position, position_text
from sash.console.job_view import JobView
from sash.console.kept import columns_of
from sash.console.values import rows_of
from sash.errors import ControlError, NotKeptError, OverloadedError, QueryTimeoutError, SashError
from sash.history.ring import KeptAnswer
from sash.time import SECOND
from sash.window_store.options import IsolationLevel

ARROW = "application/vnd.apache.arrow.stream"
_MOST_ROWS = 1_000_000
_ROWS = 10_000
_MOST_READERS = 1_000

Job = Annotated[str | None, Query(description="The job of the query, where several jobs have one of its name.")]


class SnapshotRequest(BaseModel):
    """A query over a kept window."""

    sql: str = Field(max_length=100_000)
    isolation: Literal["latest", "ttu", "latest-window-serializable", "window-serializable", "serial"] = "latest"
    timeout: float = Field(10, gt=0, le=30)
    limit: int = Field(1_000, ge=1, le=100_000)
    job: str | None = None


assert set(get_args(IsolationLevel)) == set(get_args(SnapshotRequest.model_fields["isolation"].annotation))


def api_routes(views: Mapping[str, JobView]) -> APIRouter:
    """The routes over the jobs that are served."""
    router = APIRouter()
    feeds: dict[str, Feeds] = {}

    @router.get("/health", summary="Whether the server runs; needs no token")
    def health() -> dict[str, str]:
        return {"status": "ok"}

    @router.get("/metrics", response_class=PlainTextResponse, summary="The metrics of all queries for Prometheus")
    def metrics() -> PlainTextResponse:
        texts = {}
        for name, view in views.items():
            try:
                texts[name] = view.metrics()
            except ControlError:
                continue
        return PlainTextResponse(joined(texts), media_type="text/plain; version=0.0.4")

    @router.get("/api/jobs", summary="The jobs with their state and figures")
    def jobs() -> list[dict[str, Any]]:
        return [{**view.status(), "job": name, "checkpoint": view.checkpoint} for name, view in views.items()]

    @router.get("/api/queries", summary="The queries of all jobs with their figures")
    def queries() -> list[dict[str, Any]]:
        return [{"job": name, **query} for name, view in views.items() for query in view.queries()]

    @router.get(
        "/api/queries/{name}/answer",
        summary="The answer of a query, now or at an instant",
        responses={
            200: {"content": {"text/csv": {}, ARROW: {}}},
            409: {"description": "The answer is not known, or not yet: the instant is at or past the watermark"},
            410: {"description": "The instant is no longer kept"},
        },
    )
    def answer(
        name: str,
        at: Annotated[str | None, Query(description="Microseconds since 1970, or 2026-01-31T12:00:00Z.")] = None,
        job: Job = None,
        limit: Annotated[int, Query(ge=1, le=_MOST_ROWS)] = _ROWS,
        accept: Annotated[str, Header()] = "application/json",
    ) -> Response:
        with_errors = _view(views, name, job)
        try:
            ring, kept = with_errors.history.ring(name)
            found = ring.answer(name, None if at is None else instant(at))
        except NotKeptError as problem:
            raise HTTPException(404, str(problem)) from None
        if found.reason is not None:
            gone = found.reason.startswith("no longer")
            facts = {"known": False, "reason": found.reason, "as_of": found.as_of, "watermark": found.watermark}
            return _json(facts, 410 if gone else 409)
        return _answered(found, kept.name, columns_of(kept), kept.mode, limit, accept)

    @router.get(
        "/api/queries/{name}/changes",
        summary="The changes of a query as server-sent events",
        response_class=StreamingResponse,
        responses={200: {"content": {"text/event-stream": {}}}},
    )
    async def changes(
        request: Request,
        name: str,
        after: Annotated[str | None, Query(description="The position after which to begin, as batch.index.")] = None,
        job: Job = None,
        last_event_id: Annotated[str | None, Header()] = None,
    ) -> StreamingResponse:
        view = _view(views, name, job)
        given = last_event_id or after
        try:
            position = None if given is None else parse_position(given)
            view.history.ring(name)
        except NotKeptError as problem:
            raise HTTPException(404 if given is None else 400, str(problem)) from None
        feed = feeds.setdefault(view.name, Feeds(view.history))
        if sum(one.readers for one in feeds.values()) >= _MOST_READERS:
            raise HTTPException(503, f"there are {_MOST_READERS} readers of changes already")
        headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
        return StreamingResponse(feed.events(name, position), media_type="text/event-stream", headers=headers)

    @router.post(
        "/api/snapshot",
        summary="The answer of a query over a kept window as of its last update",
        responses={
            503: {"description": "Too many snapshots wait already"},
            504: {"description": "The snapshot took longer than its timeout"},
        },
    )
    def snapshot(given: SnapshotRequest) -> dict[str, Any]:
        if given.job is None and len(views) > 1:
            raise HTTPException(409, f"name the job: one of {', '.join(views)}")
        view = views.get(given.job) if given.job is not None else next(iter(views.values()), None)
        if view is None:
            raise HTTPException(404, f"there is no job {given.job}")
        try:
            return view.snapshot(given.sql, given.isolation, given.timeout, given.limit)
        except OverloadedError as problem:
            raise HTTPException(503, str(problem)) from None
        except QueryTimeoutError as problem:
            raise HTTPException(504, str(problem)) from None
        except SashError as problem:
            raise HTTPException(400, str(problem)) from None

    return router


def instant(text: str) -> int:
    """The microseconds since 1970 of a number or a time, which is in UTC unless it says otherwise.

    >>> instant("1767225600000000") == instant("2026-01-01T00:00:00Z") == instant("2026-01-01 01:00:00+01:00")
    True
    """
    if re.fullmatch(r"-?\d{1,18}", text):
        return int(text)
    try:
        found = datetime.fromisoformat(text.strip())
    except ValueError:
        raise HTTPException(422, "at is microseconds since 1970, or a time such as 2026-01-31T12:00:00Z") from None
    found = found if found.tzinfo is not None else found.replace(tzinfo=UTC)
    whole = int(found.replace(microsecond=0).timestamp())
    return whole * SECOND + found.microsecond


def _view(views: Mapping[str, JobView], query: str, job: str | None) -> JobView:
    """The job that has a query."""
    if job is not None:
        if job not in views:
            raise HTTPException(404, f"there is no job {job}; there are {', '.join(views)}")
        return views[job]
    found = [name for name, view in views.items() if len(views) == 1 or query in view.history.queries()]
    if len(found) > 1:
        raise HTTPException(409, f"several jobs have a query {query}: add ?job= with one of {', '.join(found)}")
    if not found:
        raise HTTPException(404, f"no job has a query {query}")
    return views[found[0]]


def _answered(
    found: KeptAnswer, name: str, columns: list[dict[str, Any]], mode: str, limit: int, accept: str
) -> Response:
    """The answer in the form that the client prefers."""
    rows = None if found.rows is None else found.rows.drop_columns(found.rows.column_names[:2])
    total = 0 if rows is None else rows.num_rows
    facts = {
        "query": name,
        "known": True,
        "as_of": found.as_of,
        "watermark": found.watermark,
        "position": None if found.position is None else position_text(found.position),
        "granularity": "instant" if mode == "changes" else "batch",
        "total": total,
    }
    shown = {f"x-sash-{key.replace('_', '-')}": str(value) for key, value in facts.items() if key != "query"}
    match _preferred(accept):
        case "json":
            names = [column["name"] for column in columns]
            listed = (
                [] if rows is None else [dict(zip(names, row, strict=True)) for row in rows_of(rows.slice(0, limit))]
            )
            return _json({**facts, "columns": columns, "rows": listed}, 200, shown)
        case "csv":
            return Response(_csv(rows, columns, limit), media_type="text/csv; charset=utf-8", headers=_safe(shown))
        case _:
            if rows is None:
                raise HTTPException(406, "an answer that never had a row has no Arrow types: ask for JSON")
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, rows.schema) as writer:
                writer.write_table(rows.slice(0, limit))
            return Response(sink.getvalue().to_pybytes(), media_type=ARROW, headers=_safe(shown))


def _preferred(accept: str) -> str:
    """The form that an Accept header prefers; JSON if it leaves the choice."""
    kinds = {
        "application/json": "json",
        "text/csv": "csv",
        ARROW: "arrow",
        "*/*": "json",
        "application/*": "json",
        "text/*": "csv",
    }
    weighed = []
    for place, part in enumerate(accept.lower().split(",")):
        kind, *parameters = (piece.strip() for piece in part.split(";"))
        weight = next((one[2:] for one in parameters if one.startswith("q=")), "1")
        try:
            if kind in kinds and float(weight) > 0:
                weighed.append((-float(weight), place, kinds[kind]))
        except ValueError:
            continue
    if not weighed:
        raise HTTPException(406, f"answers are given as application/json, text/csv or {ARROW}")
    return min(weighed)[2]


def _csv(rows: pa.Table | None, columns: list[dict[str, Any]], limit: int) -> bytes:
    names = [column["name"] for column in columns]
    if rows is None:
        return (",".join(f'"{name}"' for name in names) + "\r\n").encode()
    flat = [
        column if not pa.types.is_nested(column.type) and not pa.types.is_binary(column.type) else _as_text(column)
        for column in rows.slice(0, limit).columns
    ]
    sink = pa.BufferOutputStream()
    pyarrow.csv.write_csv(pa.table(flat, names=names), sink)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def _as_text(column: pa.ChunkedArray) -> pa.Array:
    import json

    values = rows_of(pa.table({"": column}))
    return pa.array(
        [None if row[0] is None else row[0] if isinstance(row[0], str) else json.dumps(row[0]) for row in values],
        pa.string(),
    )


def _json(body: dict[str, Any], status: int, headers: dict[str, str] | None = None) -> Response:
    import json

    return Response(json.dumps(body), status, _safe(headers or {}), "application/json")


def _safe(headers: dict[str, str]) -> dict[str, str]:
    return {**headers, "cache-control": "no-store"}
