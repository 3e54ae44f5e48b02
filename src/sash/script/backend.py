"""The interface between a session and what executes its statements: an engine (`live.py`), or checks only (`dry_run.py`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from sash.durations import microseconds
from sash.errors import OptionError
from sash.plan.catalog import Catalog
from sash.plan.options import JoinForm, Options, Strategy
from sash.planning import Planned
from sash.script.statements import Attach, CreateQuery, CreateRelation, CreateStream, Keep, Value

if TYPE_CHECKING:
    from sash.query import Query
    from sash.running import RunningQuery
    from sash.spark.handle import StreamingHandle
    from sash.window_store.options import IsolationLevel
    from sash.window_store.snapshot import Snapshot


@dataclass(frozen=True)
class QueryOptions:
    """How a query is executed, as a script writes it: `tau` is text such as '5 seconds'."""

    strategy: Strategy = "auto"
    join: JoinForm = "auto"
    tau: str | None = None

    def __post_init__(self) -> None:
        self.options  # noqa: B018  (raises if they are invalid)

    @property
    def options(self) -> Options:
        """The same options in the planner's units."""
        tau = None if self.tau is None else microseconds(self.tau, "tau")
        return Options(self.strategy, self.join, tau).for_engine()


class Backend(Protocol):
    """Executes or checks statements. Methods that return an optional result return None if they only check."""

    @property
    def catalog(self) -> Catalog:
        """The registered streams and relations."""

    def add_stream(self, statement: CreateStream) -> None:
        """Register a stream."""

    def add_relation(self, statement: CreateRelation) -> None:
        """Register a relation."""

    def drop(self, name: str) -> None:
        """Remove a stream or relation."""

    def plan(self, sql: str, options: QueryOptions) -> Planned:
        """Plan a query."""

    def query(self, sql: str, options: QueryOptions) -> Query:
        """Make a query that can be started."""

    def analyze(self, sql: str, options: QueryOptions) -> str:
        """Run a query over the present contents of its sources, and return its plan with what each operator did."""

    def start(self, statement: CreateQuery, options: QueryOptions, trigger: str | None) -> RunningQuery | None:
        """Start a continuous query."""

    def keep(self, statement: Keep, trigger: str | None) -> StreamingHandle | None:
        """Start to keep the window of a stream."""

    def attach(self, statement: Attach) -> None:
        """Open a window that another process keeps."""

    def detach(self, name: str) -> None:
        """Close a window that was attached."""

    def explain_snapshot(self, sql: str, isolation: IsolationLevel) -> str:
        """Return how a snapshot query would read its kept window."""

    def snapshot(self, sql: str, isolation: IsolationLevel) -> Snapshot | None:
        """Answer a snapshot query."""

    def configure(self, name: str, value: str) -> None:
        """Change a Spark setting."""


def check_sink_options(statement: CreateQuery) -> dict[str, Value]:
    """The options of a sink; options that are written as clauses of their own are refused."""
    for name in statement.options:
        if name.lower() in ("mode", "key", "trigger", "strategy", "join", "tau", "name", "sink"):
            raise OptionError(f"{name} is not an option of a sink: write {name.upper()} after the options")
    return dict(statement.options)


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
    for_updates = {
        "TIME": statement.time is not None,
        "HEARTBEAT": statement.heartbeat is not None,
        "BAD ROWS": statement.bad_rows == "drop",
    }
    for clause, given in for_updates.items() if not statement.changes else ():
        if given:
            raise OptionError(f"relation {name}: {clause} applies to updates: add CHANGES, or leave {clause} out")
