"""An engine, jobs and running queries in memory, for tests of sessions and of the command line without Spark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sash.errors import CatalogError, SashError, SinkError
from sash.script.backend import QueryHandle, QueryOptions, WindowHandle
from sash.script.dry_run import DryRunBackend
from sash.script.live_jobs import SessionJobs
from sash.script.reader import read_script
from sash.script.session import Session
from sash.script.statements import CreateQuery, Keep


@dataclass
class FakeHandle:
    """A running query, with batches that the test adds."""

    name: str
    state: str = "running"
    active: bool = True
    batches: list[dict[str, Any]] = field(default_factory=list)
    numbers: dict[str, Any] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    error: SashError | None = None
    resumed: int = 0
    log: list[str] = field(default_factory=list)
    history: None = None

    def progress(self) -> dict[str, Any]:
        return {"batch": None, **self.numbers}

    def drain_progress(self) -> list[dict[str, Any]]:
        found, self.batches = self.batches, []
        return found

    def stream_warnings(self, batches: list[dict[str, Any]]) -> list[str]:
        found, self.warnings = self.warnings, []
        return found

    def explain(self) -> str:
        return f"plan of {self.name}"

    def resume(self) -> None:
        self.resumed += 1
        self.state = "running"

    def await_termination(self) -> None:
        if self.error is not None:
            raise self.error

    def stop(self) -> None:
        self.log.append(f"stop {self.name}")
        self.active = False

    def finish(self) -> None:
        self.stop()


@dataclass
class FakeDiff:
    """A difference between two jobs: the names that were added and dropped."""

    added: list[str]
    dropped: list[str]

    @property
    def changed(self) -> bool:
        return bool(self.added or self.dropped)

    def to_json(self) -> dict[str, Any]:
        return {"changed": self.changed, "added": self.added, "dropped": self.dropped}

    def render(self) -> str:
        return f"added {self.added}, dropped {self.dropped}" if self.changed else "no change"


@dataclass
class FakeRunningJob(FakeHandle):
    """A running job."""

    queries: dict[str, FakeHandle] = field(default_factory=dict)
    windows: dict[str, FakeHandle] = field(default_factory=dict)
    paused: bool = False

    def pause(self) -> None:
        self.paused = True
        self.log.append(f"pause {self.name}")

    def resume(self) -> None:
        self.paused = False
        self.log.append(f"resume {self.name}")

    def diff(self, job: FakeJob) -> FakeDiff:
        added = [name for name in job.queries if name not in self.queries]
        return FakeDiff(added, [name for name in self.queries if name not in job.queries])

    def change(self, job: FakeJob) -> FakeRunningJob:
        if any("refused" in query["sql"] for query in job.queries.values()):
            self.active = False
            raise SinkError("the sink cannot be opened")
        self.log.append(f"apply {self.name}: {', '.join(job.queries)}")
        kept = {name: self.queries.get(name) or FakeHandle(name) for name in job.queries}
        return replace(self, queries=kept, windows={name: FakeHandle(name) for name in job.windows})


@dataclass
class FakeJob:
    """A job that is not started."""

    name: str
    trigger: str | None
    log: list[str]
    queries: dict[str, dict[str, Any]] = field(default_factory=dict)
    windows: list[str] = field(default_factory=list)

    def keep(self, name: str, window: str | int, every: str | int, path: str | None, retain: int) -> None:
        self.windows.append(name)

    @property
    def members(self) -> dict[str, FakeHandle]:
        return {name.lower(): FakeHandle(name) for name in self.queries}

    def add(self, name: str, query: FakeQuery, sink: str, **options: Any) -> None:
        if any(other["sink"] == sink == "memory" for other in self.queries.values()):
            raise CatalogError(f"{name} would write to the same target")
        self.queries[name] = {"sink": sink, "sql": query.sql, **options}

    def explain(self) -> str:
        return f"dataflow of {', '.join(self.queries)}\n"

    def start(self, on_change: str = "refuse") -> FakeRunningJob:
        if any("refused" in query["sql"] for query in self.queries.values()):
            raise SinkError("the sink cannot be opened")
        kept = [f"window {name}" for name in self.windows]
        self.log.append(f"start {self.name}: {', '.join([*self.queries, *kept])}")
        queries = {name: FakeHandle(name) for name in self.queries}
        windows = {name: FakeHandle(name) for name in self.windows}
        return FakeRunningJob(self.name, queries=queries, windows=windows, log=self.log)


@dataclass(frozen=True)
class FakeQuery:
    """A query that is not started."""

    sql: str
    options: dict[str, Any]
    log: list[str]

    @property
    def planned(self) -> FakeQuery:
        return self

    def start(self, sink: str, *, name: str, trigger: str | None, **options: Any) -> FakeHandle:
        self.log.append(f"start separate {name} into {sink}")
        return FakeHandle(name, log=self.log)


@dataclass
class FakeEngine:
    """Makes queries and jobs; `log` says what was started, applied and stopped."""

    checkpoint: str | None = None
    spark: Any = None
    log: list[str] = field(default_factory=list)
    history: None = None
    made: list[FakeJob] = field(default_factory=list)

    def sql(self, text: str, **options: Any) -> FakeQuery:
        return FakeQuery(text, options, self.log)

    def keep(self, name: str, *lengths: str | int, **options: Any) -> FakeHandle:
        self.log.append(f"keep {name} alone")
        return FakeHandle(name, log=self.log)

    def job(self, name: str | None = None, trigger: str | None = None) -> FakeJob:
        job = FakeJob(name or "job", trigger, self.log)
        if name is not None:
            self.made.append(job)
        return job


class FakeBackend(DryRunBackend):
    """Checks statements as a dry run does, and runs their queries on a fake engine."""

    def __init__(self, engine: FakeEngine) -> None:
        super().__init__()
        self.session_jobs = SessionJobs(engine)  # type: ignore[arg-type]

    def add_query(self, statement: CreateQuery, options: QueryOptions, trigger: str | None) -> None:
        super().add_query(statement, options, trigger)
        self.session_jobs.add(statement, options, trigger)

    def alter_query(self, statement: CreateQuery, options: QueryOptions, trigger: str | None) -> None:
        super().alter_query(statement, options, trigger)
        self.session_jobs.alter(statement, options, trigger)

    def drop_query(self, name: str) -> None:
        super().drop_query(name)
        self.session_jobs.drop(name)

    def keep(self, statement: Keep, trigger: str | None) -> None:
        super().keep(statement, trigger)
        self.session_jobs.keep(statement, trigger)

    def drop_window(self, name: str) -> None:
        super().drop_window(name)
        self.session_jobs.drop_window(name)

    def keeping(self, name: str) -> WindowHandle | None:
        return self.session_jobs.keeping(name)

    @property
    def paused(self) -> bool:
        return self.session_jobs.paused

    def pause(self) -> None:
        self.session_jobs.pause()

    def unpause(self) -> None:
        self.session_jobs.unpause()

    def resume_query(self, name: str) -> None:
        self.session_jobs.resume(name)

    def launch(self) -> None:
        self.session_jobs.launch()

    def queries(self) -> dict[str, CreateQuery]:
        return self.session_jobs.queries

    def windows(self) -> dict[str, Keep]:
        return self.session_jobs.windows

    def running(self, name: str) -> QueryHandle | None:
        return self.session_jobs.running(name)

    def job_of(self, name: str) -> str | None:
        return self.session_jobs.job_of(name)

    def jobs(self) -> Mapping[str, Any]:
        return self.session_jobs.started

    def separate(self) -> Mapping[str, Any]:
        return self.session_jobs.separate

    def explain_job(self) -> str:
        return self.session_jobs.explain()


SALES = "CREATE STREAM sales (ts TIMESTAMP, item INT, price DOUBLE) USING csv OPTIONS (path 'x');\n"
TOTALS = "SELECT item, SUM(price) AS total FROM sales [RANGE 1 MINUTE] GROUP BY item"


def query(name: str, clauses: str = "") -> str:
    """A statement that creates a query."""
    return f"CREATE QUERY {name} AS {TOTALS} INTO noop {clauses};\n"


def fake_session(text: str = "", engine: FakeEngine | None = None) -> tuple[Session, FakeEngine]:
    """A session that has executed a text, and its engine."""
    engine = engine or FakeEngine()
    session = Session(FakeBackend(engine))
    for statement in read_script(text):
        session.execute(statement)
    return session, engine
