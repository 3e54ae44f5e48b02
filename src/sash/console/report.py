"""What a running job tells the console, on its control socket: `describe` what it is, `report` how it runs.

The job's side of the console. It reads counts that the job has anyway, waits for no batch, and starts nothing in Spark.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from sash.console.plan_values import plan_values
from sash.metrics import exposition
from sash.operators.scalar.failing_row import split_row
from sash.plan.options import Mode, Trigger
from sash.plan.types import type_name
from sash.script.session import Session
from sash.spark.folders import local_path
from sash.time import BEGINNING, FOREVER, SECOND

if TYPE_CHECKING:
    from sash.engine import Engine
    from sash.job_query import JobQuery
    from sash.running import RunningQuery
    from sash.running_job import RunningJob

Values = dict[str, Any]

COMMANDS = ("report", "describe", "metrics")
_BATCHES = 120
_ERRORS = 50
_OF_SHARD = ("rows_in", "rows_out", "state_rows", "state_bytes", "microseconds")
_FLOW = ("batch_ms", "operators", "streams")
_DROPPED = ("total_late", "total_bad", "total_ahead")
_KEPT = ("batch", "batch_ms", "rows_in", "rows_out", "state_rows", "state_bytes", "lag_seconds")


class JobReport:
    """Reports on the jobs of a session, which may be replaced. Its methods may be called from several threads."""

    def __init__(self, engine: Engine, session: Callable[[], Session], script: Callable[[], str]) -> None:
        self._engine, self._session, self._script = engine, session, script
        self._lock = threading.Lock()
        self._batches: dict[str, deque[Values]] = {}
        self._choices: dict[str, deque[Values]] = {}
        self._chosen: dict[tuple[str, str], Any] = {}
        self._errors: deque[Values] = deque(maxlen=_ERRORS)
        self._states: dict[str, str] = {}
        self._separate: dict[str, Mapping[str, Any]] = {}
        engine.on_batch(self._on_batch)

    def handle(self, command: str, arguments: Mapping[str, Any]) -> Any:
        """Execute one of the commands."""
        match command:
            case "metrics":
                return exposition(self._engine.running)
            case "describe":
                return self.describe()
            case _:
                return self.report(arguments.get("after") or {})

    def describe(self) -> Values:
        """What changes only with the job: its plan, the texts and columns of queries, and what is declared."""
        session, jobs = self._session(), self._jobs
        return {
            "version": self._version,
            "script": self._script(),
            "plan": [
                *(self._plan(name, job) for name, job in jobs.items()),
                *(_plan_of(session, name, query) for name, query in self._own_queries.items()),
            ],
            "queries": {
                **{
                    query.name: self._described(session, name, job, query)
                    for name, job in jobs.items()
                    for query in job.queries.values()
                },
                **{name: _separate_described(session, name, query) for name, query in self._own_queries.items()},
            },
            "catalog": _catalog(session),
            "sources": {name: _sources(job) for name, job in jobs.items() if local_path(job.started.folder.location)},
        }

    def report(self, after: Mapping[str, int]) -> Values:
        """How the jobs run; batches after those numbers, by the name of the job or query."""
        session, jobs = self._session(), self._jobs
        for name, job in jobs.items():
            for query in job.queries.values():
                self._note_state(name, query.name, query.state)
        separate = self._own_queries
        for name, running in separate.items():
            self._note_state(name, name, running.state)
        with self._lock:
            seen = {name: self._separate.get(name, {}) for name in separate}
            batches = {
                name: [one for one in kept if one["batch"] > after.get(name, -1)]
                for name, kept in self._batches.items()
            }
            choices = {name: list(kept) for name, kept in self._choices.items()}
            errors = list(self._errors)
        return {
            "version": self._version,
            "state": "paused" if session.backend.paused else "running",
            "jobs": {name: _job_values(job) for name, job in jobs.items()},
            "queries": {
                **{query.name: _query_values(job, query) for job in jobs.values() for query in job.queries.values()},
                **{name: _separate_values(name, running, seen[name]) for name, running in separate.items()},
            },
            "separate": {name: {part: seen[name].get(part) for part in _FLOW} for name in separate},
            "windows": {window.name: window.facts() for job in jobs.values() for window in job.windows.values()},
            "batches": batches,
            "choices": choices,
            "errors": errors,
        }

    @property
    def _jobs(self) -> Mapping[str, RunningJob]:
        return self._session().backend.jobs()

    @property
    def _own_queries(self) -> dict[str, RunningQuery]:
        """The queries that are Spark queries of their own, by name."""
        from sash.running import RunningQuery

        found = self._session().backend.separate()
        return {name: query for name, query in found.items() if isinstance(query, RunningQuery)}

    @property
    def _version(self) -> str:
        """A text that changes with the jobs and separate queries."""
        jobs = [f"{id(job.started):x}.{id(job.started.planned):x}" for job in self._jobs.values()]
        return "-".join([*jobs, *(f"{id(query):x}" for query in self._own_queries.values())])

    def _plan(self, name: str, job: RunningJob) -> Values:
        started = job.started
        sinks: dict[str, tuple[str, Mode]] = {
            output.name: (output.sink.name, output.spec.mode) for output in started.outputs.values()
        }
        return {"name": name, **plan_values(started.planned.physical, sinks)}

    @staticmethod
    def _described(session: Session, name: str, job: RunningJob, query: JobQuery) -> Values:
        output = job.started.outputs[query.name]
        columns = [{"name": field.name, "type": type_name(field.dtype)} for field in output.spec.schema]
        statement = session.queries.get(query.name.lower())
        sql = job.started.planned.planned(query.name).sql.strip() if statement is None else statement.query.sql
        return {
            "job": name,
            "sql": sql,
            "sink": output.sink.name,
            "mode": output.spec.mode,
            "columns": columns,
            "explain": query.explain(),
        }

    def _on_batch(self, query: str, progress: Mapping[str, Any]) -> None:
        """Keep the figures of a batch of a query, and of its job as a whole."""
        with self._lock:
            self._add(query, progress)
            self._separate[query] = progress
            for name, job in self._jobs.items():
                whole = job.started.progress.whole.last()
                if whole.get("batch") is not None:
                    self._add(f"job {name}", whole)
                    self._note_choices(name, whole.get("current_choices", {}))

    def _add(self, name: str, progress: Mapping[str, Any]) -> None:
        kept = self._batches.setdefault(name, deque(maxlen=_BATCHES))
        if not kept or kept[-1]["batch"] != progress["batch"]:
            now = _now()
            kept.append(
                {"time": now, **{part: progress.get(part) for part in _KEPT}, "lag_seconds": _lag(progress, now)}
            )

    def _note_choices(self, job: str, found: Mapping[str, Any]) -> None:
        for operator, choices in found.items():
            if self._chosen.get((job, operator)) != choices:
                self._chosen[job, operator] = choices
                kept = self._choices.setdefault(job, deque(maxlen=_BATCHES))
                kept.extend(
                    {"time": _now(), "operator": operator, "choice": one["what"], "reason": one["why"]}
                    for one in choices
                )

    def _note_state(self, job: str, query: str, state: str) -> None:
        """Keep why a query was parked or failed."""
        with self._lock:
            if self._states.get(query) != state and state.startswith(("parked", "failed")):
                text, row = split_row(state)
                self._errors.append({"time": _now(), "query": query, "job": job, "text": text, "row": row})
            self._states[query] = state


def _job_values(job: RunningJob) -> Values:
    started, whole = job.started, job.started.progress.whole.last()
    period = started.alike.job.trigger
    plain = {part: whole.get(part) for part in (*_KEPT, "rows_per_second", "watermark", *_DROPPED)}
    return {
        **plain,
        "lag_seconds": _behind(whole, _now()),
        "state": job.state,
        "trigger_seconds": _seconds(period),
        "backlog_rows": started.progress.backlog,
        "operators": whole.get("operators", {}),
        "streams": whole.get("streams", {}),
        "stages": started.progress.shards,
        "shards": {
            name: [{part: counts.get(part, 0) for part in _OF_SHARD} for counts in shards]
            for name, shards in started.progress.operator_shards.items()
        },
    }


def _query_values(job: RunningJob, query: JobQuery) -> Values:
    progress = job.started.progress.of(query.name).last()
    parts = (*_KEPT, "watermark", "share", "total_rows_in", "total_rows_out", *_DROPPED)
    output = job.started.outputs[query.name]
    return {
        **{part: progress.get(part) for part in parts},
        "lag_seconds": _behind(progress, _now()),
        "state": query.state,
        "complete": output.completion.reached,
        "error": query.state if query.parked else None,
        "output": output.runs_as,
    }


def _sources(job: RunningJob) -> Values:
    """Where the checkpoint says which files have been read, and the streams that the job reads."""
    local = local_path(job.started.folder.location)
    return {"folder": str(local and local / "sources"), "streams": [s.lower() for s in job.started.planned.streams]}


def _separate_values(name: str, query: RunningQuery, progress: Mapping[str, Any]) -> Values:
    """The figures of a query that is a Spark query of its own."""
    parts = (*_KEPT, "watermark", "total_rows_in", "total_rows_out", *_DROPPED)
    return {
        **{part: progress.get(part) for part in parts},
        "lag_seconds": _behind(progress, _now()),
        "share": None,
        "state": query.state,
        "complete": True,
        "error": None,
        "output": name,
    }


def _separate_described(session: Session, name: str, query: RunningQuery) -> Values:
    statement = session.queries[name.lower()]
    columns = [{"name": field.name, "type": type_name(field.dtype)} for field in query.planned.output]
    return {
        "job": None, "sql": query.planned.sql.strip(), "sink": statement.sink, "mode": statement.mode or "changes",
        "columns": columns, "explain": query.planned.explain(),
    }  # fmt: skip


def _plan_of(session: Session, name: str, query: RunningQuery) -> Values:
    statement = session.queries[name.lower()]
    sinks: dict[str, tuple[str, Mode]] = {
        output.query: (statement.sink, "changes") for output in query.planned.physical.outputs
    }
    plan = plan_values(query.planned.physical, sinks)
    plan["nodes"] = [{**node, "label": name} if node["kind"] == "output" else node for node in plan["nodes"]]
    return {"name": name, **plan}


def _lag(progress: Mapping[str, Any], now: int) -> float | None:
    """How far the watermark of a batch that has just ended is behind the wall clock."""
    known = progress.get("lag_seconds")
    return _behind(progress, now) if known is None else float(known)


def _behind(progress: Mapping[str, Any], now: int) -> float | None:
    """How far the watermark is behind the wall clock now, which grows while no batch comes."""
    watermark = progress.get("watermark")
    if watermark is None or not BEGINNING < watermark < FOREVER:
        return None
    return float(round((now - watermark) / SECOND, 3))


def _seconds(trigger: Trigger) -> float | None:
    return None if trigger.milliseconds is None else trigger.milliseconds / 1000


def _catalog(session: Session) -> list[Values]:
    catalog = session.backend.catalog
    listed = [("stream", entry.name, entry.schema) for entry in catalog.streams.values()]
    listed += [("relation", entry.name, entry.schema) for entry in catalog.relations.values()]
    return [
        {
            "name": name,
            "kind": kind,
            "columns": [{"name": field.name, "type": type_name(field.dtype)} for field in schema],
        }
        for kind, name, schema in listed
    ]


def _now() -> int:
    return round(time.time() * SECOND)
