"""The interface between a session and what executes its statements: an engine (`live.py`), or checks only (`dry_run.py`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from sash.durations import microseconds
from sash.errors import OptionError
from sash.plan.catalog import Catalog, partition_names
from sash.plan.options import JoinForm, Options, Strategy
from sash.plan.types import Schema
from sash.planning import Planned
from sash.script.sources import bounded, is_change_events
from sash.script.statements import (
    Attach,
    CreateFunction,
    CreateQuery,
    CreateRelation,
    CreateStream,
    JobAction,
    Keep,
    Value,
    about,
)

if TYPE_CHECKING:
    from sash.query import Query
    from sash.running_job import RunningJob
    from sash.spark.handle import StreamingHandle
    from sash.window_store.options import IsolationLevel
    from sash.window_store.snapshot import Snapshot

_ALL = 100


@dataclass(frozen=True)
class QueryOptions:
    """How a query is executed, as a script writes it: `tau`, `probe` and `patience` are texts such as '5 seconds'."""

    strategy: Strategy = "auto"
    join: JoinForm = "auto"
    tau: str | None = None
    probe: str | None = None
    patience: str | None = None
    reorder: bool = True

    def __post_init__(self) -> None:
        self.options  # noqa: B018  (raises if they are invalid)

    @property
    def options(self) -> Options:
        """The same options in the planner's units."""
        tau, probe, patience = (
            None if text is None else microseconds(text, name)
            for name, text in (("tau", self.tau), ("probe", self.probe), ("patience", self.patience))
        )
        return Options(self.strategy, self.join, tau, probe=probe, patience=patience, reorder=self.reorder).for_engine()


class QueryHandle(Protocol):
    """A running query: one of a job, or a separate one."""

    @property
    def name(self) -> str:
        """The name of the query."""

    @property
    def active(self) -> bool:
        """Whether the query is running."""

    @property
    def state(self) -> str:
        """Its state in words, such as running or parked, with the reason."""

    def progress(self) -> dict[str, Any]:
        """Return numbers about the last batch."""

    def drain_progress(self) -> list[dict[str, Any]]:
        """Return the progress of every batch that ended since the last call."""

    def stream_warnings(self, batches: list[dict[str, Any]]) -> list[str]:
        """Return warnings that are due about its streams."""

    def explain(self) -> str:
        """Return the plan with the counts of the run."""


class WindowHandle(Protocol):
    """What keeps a window: a job, or a query of its own."""

    @property
    def active(self) -> bool:
        """Whether the window is being kept."""

    def progress(self) -> dict[str, Any]:
        """Return numbers about the window."""

    def change_every(self, every: str | int) -> None:
        """Change the length of the sub-windows."""


class Backend(Protocol):
    """Executes or checks statements. Methods that return an optional result return None if they only check."""

    @property
    def catalog(self) -> Catalog:
        """The registered streams and relations."""

    def add_stream(self, statement: CreateStream) -> None:
        """Register a stream."""

    def add_relation(self, statement: CreateRelation) -> None:
        """Register a relation."""

    def add_function(self, statement: CreateFunction) -> None:
        """Register a function or aggregate of the user's."""

    def drop(self, name: str) -> None:
        """Remove a stream or relation."""

    def plan(self, sql: str, options: QueryOptions) -> Planned:
        """Plan a query."""

    def query(self, sql: str, options: QueryOptions) -> Query:
        """Make a query that can be started."""

    def analyze(self, sql: str, options: QueryOptions) -> str:
        """Run a query over the present contents of its sources, and return its plan with what each operator did."""

    def add_query(self, statement: CreateQuery, options: QueryOptions, trigger: str | None) -> None:
        """Add a continuous query to the job of its trigger, which `launch` starts; a separate query is started at once."""

    def alter_query(self, statement: CreateQuery, options: QueryOptions, trigger: str | None) -> None:
        """Replace a query by another one of its name."""

    def drop_query(self, name: str) -> None:
        """Remove a query from its job, or stop a separate one."""

    def resume_query(self, name: str) -> None:
        """Let a parked query run again."""

    @property
    def paused(self) -> bool:
        """Whether everything that runs is paused."""

    def pause(self) -> None:
        """Stop everything that runs after its current batch, until `unpause`."""

    def unpause(self) -> None:
        """Let everything go on that `pause` has stopped."""

    def control_job(self, action: JobAction, name: str) -> str:
        """Stop, pause or resume a job, of this session or of another process, and return what became of it."""

    def launch(self) -> None:
        """Start the jobs that have not been started, and apply the changes that were made to those that run.

        Queries of a job that cannot be started, or changed, are dropped again.
        """

    def queries(self) -> dict[str, CreateQuery]:
        """The statements that created the queries, by lower-case name."""

    def windows(self) -> dict[str, Keep]:
        """The statements that created the kept windows, by lower-case name."""

    def running(self, name: str) -> QueryHandle | None:
        """The query of that name, if it has been started."""

    def job_of(self, name: str) -> str | None:
        """The name of the job to which a query belongs; None for a separate one."""

    def jobs(self) -> Mapping[str, RunningJob]:
        """The jobs that have been started, by name."""

    def separate(self) -> Mapping[str, StreamingHandle]:
        """The separate queries and windows that have been started, by name."""

    def explain_job(self) -> str:
        """Return the dataflow of the jobs, with what their queries share."""

    def keep(self, statement: Keep, trigger: str | None) -> None:
        """Add the window of a stream to the windows that are kept, from `launch` on."""

    def change_every(self, statement: Keep) -> None:
        """Change the length of the sub-windows of a window that is kept."""

    def keeping(self, name: str) -> WindowHandle | None:
        """What keeps the window of that name, if it has been started."""

    def attach(self, statement: Attach) -> None:
        """Open a window that another process keeps."""

    def drop_window(self, name: str) -> None:
        """Stop to keep a window, or close one that was attached."""

    def explain_snapshot(self, sql: str, isolation: IsolationLevel) -> str:
        """Return how a snapshot query would read its kept window."""

    def snapshot(self, sql: str, isolation: IsolationLevel) -> Snapshot | None:
        """Answer a snapshot query."""

    def configure(self, name: str, value: str) -> None:
        """Change a Spark setting."""


def check_sink_options(statement: CreateQuery) -> dict[str, Value]:
    """The options of a sink; options that are written as clauses of their own are refused."""
    for name in statement.options:
        if name.lower() in (
            "mode",
            "key",
            "trigger",
            "strategy",
            "join",
            "tau",
            "probe",
            "patience",
            "reorder",
            "name",
            "sink",
        ):
            raise OptionError(f"{name} is not an option of a sink: write {name.upper()} after the options")
    return dict(statement.options)


def check_kept_in(sink: str, options: Mapping[str, Value]) -> None:
    """Raise OptionError if dropped rows cannot be kept in a sink with these options."""
    from sash.spark.sources.inputs import kept_in

    kept_in((sink, options))


def check_partitions(statement: CreateStream, columns: Schema) -> None:
    """Raise an error if the clauses about the partitions of a stream, or about its dropped rows, are wrong."""
    name = statement.declaration.name
    with about("partition"):
        partition_names(name, columns, statement.partition_by)
    for part, kept in (("bad", statement.bad_rows_into), ("late", statement.late_rows_into)):
        if kept is not None:
            with about(part):
                check_kept_in(*kept)
    if statement.max_bad_rows is not None and not 0 <= statement.max_bad_rows <= _ALL:
        with about("max bad"):
            raise OptionError(f"stream {name}: MAX BAD ROWS is a share from 0 to 100 PERCENT")
    if statement.max_jump is not None:
        with about("max jump"):
            microseconds(statement.max_jump, "max_jump")
    with about("max rows"):
        bounded(statement.declaration, statement.max_rows_per_batch)
    if statement.idle_after is None:
        return
    with about("idle"):
        microseconds(statement.idle_after, "idle_after")
        if statement.partition_by is None and statement.declaration.source != "kafka":
            raise OptionError(f"stream {name}: IDLE AFTER is for streams with partitions: add PARTITION BY (column)")


def check_relation(statement: CreateRelation) -> None:
    """Raise OptionError if clauses of CREATE RELATION exclude each other, or one lacks another that it needs."""
    name = statement.declaration.name
    if statement.changes and statement.refresh is not None:
        raise OptionError(
            f"relation {name}: CHANGES is for a stream of updates, REFRESH for a table that is read periodically: "
            "leave one out"
        )
    if statement.refresh is not None and statement.key is None:
        raise OptionError(f"relation {name}: REFRESH compares rows by key: add KEY (columns)")
    declaration = statement.declaration
    if declaration.source == "postgres" and statement.refresh is None:
        for option in declaration.options:
            if option.lower() == "changes_by":
                raise OptionError(f"relation {name}: changes_by finds the rows to read again: add REFRESH '1 minute'")
    if statement.changes and is_change_events(statement.declaration) and not statement.key:
        raise OptionError(f"relation {name}: change events replace and delete rows by key: add KEY (columns)")
    for_updates = {
        "TIME": statement.time is not None,
        "HEARTBEAT": statement.heartbeat is not None,
        "BAD ROWS": statement.bad_rows == "drop",
    }
    for clause, given in for_updates.items() if not statement.changes else ():
        if given:
            raise OptionError(f"relation {name}: {clause} applies to updates: add CHANGES, or leave {clause} out")
