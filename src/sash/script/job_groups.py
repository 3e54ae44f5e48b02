"""The parts of a session's jobs: queries with one trigger, and queries and windows that run on their own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from sash.script.backend import check_sink_options
from sash.script.statements import CreateQuery, Keep, Position, QueryText, about_query

if TYPE_CHECKING:
    from sash.engine import Engine
    from sash.job import Job
    from sash.query import Query
    from sash.running import RunningQuery
    from sash.running_job import RunningJob
    from sash.spark.job_change import OnChange
    from sash.spark.kept_window import KeptWindow


@dataclass(frozen=True)
class JobMember:
    """A query of a job, and the statement that created it."""

    statement: CreateQuery
    query: Query
    trigger: str | None

    def is_like(self, other: JobMember) -> bool:
        """Whether both have the same text, options, trigger and sink."""
        mine, others = (
            replace(
                member.statement, position=Position(1, 1), query=QueryText(member.statement.query.sql, Position(1, 1))
            )
            for member in (self, other)
        )
        return (
            mine == others
            and self.trigger == other.trigger
            and self.query.planned.options == other.query.planned.options
        )


@dataclass
class SeparateQuery:
    """A query that is a Spark streaming query of its own."""

    member: JobMember
    running: RunningQuery | None = None

    def pause(self) -> None:
        """Stop the query after its current batch; `start` starts it again from its checkpoint."""
        if self.running is not None:
            self.running.finish()
            self.running = None

    def drop(self) -> None:
        """Stop the query for good."""
        if self.running is not None:
            self.running.stop()
            if self.running.history is not None:
                self.running.history.remove()

    def start(self) -> None:
        """Start the query, unless it has been started."""
        statement = self.member.statement
        if self.running is None:
            with about_query(statement.name):
                self.running = self.member.query.start(
                    statement.sink,
                    mode=statement.mode,
                    trigger=self.member.trigger,
                    key=statement.key,
                    name=statement.name,
                    **sink_options(statement),
                )


@dataclass
class SeparateWindow:
    """A window that a Spark streaming query of its own keeps."""

    statement: Keep
    trigger: str | None
    running: KeptWindow | None = None

    def pause(self) -> None:
        """Stop to keep the window after the current batch; `start` goes on."""
        if self.running is not None:
            self.running.finish()
            self.running = None

    def start(self, engine: Engine) -> None:
        """Start to keep the window, unless that has been done."""
        keep = self.statement
        if self.running is None:
            self.running = engine.keep(
                keep.name, keep.window, keep.every, path=keep.path, retain=keep.retain, trigger=self.trigger
            )


@dataclass
class JobGroup:
    """The queries and kept windows with one trigger, and the job that runs them.

    Its name is determined when it is started. It has `changed` if its queries are not those that run.
    """

    key: str
    trigger: str | None
    name: str | None = None
    members: dict[str, JobMember] = field(default_factory=dict)
    windows: dict[str, Keep] = field(default_factory=dict)
    running: RunningJob | None = None
    changed: bool = False
    launched: tuple[dict[str, JobMember], dict[str, Keep]] = field(default_factory=lambda: ({}, {}))

    def launch(self, define: Callable[[], Job], on_change: OnChange) -> None:
        """Start the job, or change the running one to it. If that fails, the queries are those of before."""
        before = self.running
        try:
            job = define()
            if before is not None and before.active:
                self.running = before.change(job)
            else:
                self.running = job.start(on_change=on_change)
        except BaseException:
            self.members, self.windows = dict(self.launched[0]), dict(self.launched[1])
            raise
        finally:
            self.changed = False
        self.launched = dict(self.members), dict(self.windows)

    @property
    def names(self) -> list[str]:
        """The names of its queries and windows."""
        windows = (f"window {window.name}" for window in self.windows.values())
        return [*(member.statement.name for member in self.members.values()), *windows]


def add_member(job: Job, member: JobMember) -> None:
    """Add a query to a job."""
    statement = member.statement
    job.add(
        statement.name,
        member.query,
        statement.sink,
        mode=statement.mode,
        key=statement.key,
        on_error=statement.on_error,
        max_state=statement.max_state,
        outbox=statement.outbox,
        when_complete=statement.when_complete,
        backfill=statement.backfill,
        **sink_options(statement),
    )


def sink_options(statement: CreateQuery) -> dict[str, Any]:
    """The options of the sink of a query, as keyword arguments."""
    return dict(check_sink_options(statement))
