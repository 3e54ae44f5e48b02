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
from sash.plan.options import Mode, Trigger
from sash.plan.types import type_name
from sash.script.session import Session
from sash.time import BEGINNING, FOREVER, SECOND

if TYPE_CHECKING:
    from sash.engine import Engine
    from sash.job_query import JobQuery
    from sash.running_job import RunningJob

Values = dict[str, Any]

COMMANDS = ("report", "describe", "metrics")
_BATCHES = 120
_ERRORS = 50
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
            "plan": [self._plan(name, job) for name, job in jobs.items()],
            "queries": {
                query.name: self._described(session, name, job, query)
                for name, job in jobs.items()
                for query in job.queries.values()
            },
            "catalog": _catalog(session),
        }

    def report(self, after: Mapping[str, int]) -> Values:
        """How the jobs run; batches after those numbers, by the name of the job or query."""
        session, jobs = self._session(), self._jobs
        for name, job in jobs.items():
            for query in job.queries.values():
                self._note_state(name, query)
        with self._lock:
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
                query.name: _query_values(job, query) for job in jobs.values() for query in job.queries.values()
            },
            "windows": {window.name: window.facts() for job in jobs.values() for window in job.windows.values()},
            "batches": batches,
            "choices": choices,
            "errors": errors,
        }

    @property
    def _jobs(self) -> Mapping[str, RunningJob]:
        return self._session().backend.jobs()

    @property
    def _version(self) -> str:
        """A text that changes with the jobs."""
        return "-".join(f"{id(job.started):x}.{id(job.started.planned):x}" for job in self._jobs.values())

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

    def _note_state(self, job: str, query: JobQuery) -> None:
        """Keep why a query was parked or failed."""
        state = query.state
        with self._lock:
            if self._states.get(query.name) != state and state.startswith(("parked", "failed")):
                self._errors.append({"time": _now(), "query": query.name, "job": job, "text": state, "row": None})
            self._states[query.name] = state


def _job_values(job: RunningJob) -> Values:
    started, whole = job.started, job.started.progress.whole.last()
    period = started.alike.job.trigger
    plain = {part: whole.get(part) for part in (*_KEPT, "rows_per_second", "watermark", *_DROPPED)}
    return {
        **plain,
        "lag_seconds": _lag(whole, _now()),
        "state": job.state,
        "trigger_seconds": _seconds(period),
        "backlog_rows": started.progress.backlog,
        "operators": whole.get("operators", {}),
        "streams": whole.get("streams", {}),
        "stages": started.progress.shards,
    }


def _query_values(job: RunningJob, query: JobQuery) -> Values:
    progress = job.started.progress.of(query.name).last()
    parts = (*_KEPT, "watermark", "share", "total_rows_in", "total_rows_out", *_DROPPED)
    output = job.started.outputs[query.name]
    return {
        **{part: progress.get(part) for part in parts},
        "state": query.state,
        "complete": output.completion.reached,
        "error": query.state if query.parked else None,
        "output": output.runs_as,
    }


def _lag(progress: Mapping[str, Any], now: int) -> float | None:
    """How far the watermark of a batch that has just ended is behind the wall clock."""
    watermark = progress.get("watermark")
    known = progress.get("lag_seconds")
    if known is not None or watermark is None or not BEGINNING < watermark < FOREVER:
        return None if known is None else float(known)
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
