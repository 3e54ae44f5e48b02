"""What a session stands on: an engine, where things are real, or paper, where a script is only checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from sash.durations import microseconds
from sash.errors import CatalogError
from sash.plan.catalog import Catalog
from sash.plan.options import JoinForm, Options, Strategy
from sash.planning import Planned
from sash.script.statements import Attach, CreateQuery, CreateRelation, CreateStream, Keep, Value

if TYPE_CHECKING:
    from sash.query import Query
    from sash.running import RunningQuery
    from sash.spark.handle import StreamingHandle
    from sash.window_store.snapshot import Snapshot as Answer

_POLL = 0.1


@dataclass(frozen=True)
class How:
    """How a query is to be executed, as it is written."""

    strategy: Strategy = "auto"
    join: JoinForm = "auto"
    tau: str | None = None

    def __post_init__(self) -> None:
        self.options  # noqa: B018  (what cannot be is refused here)

    @property
    def options(self) -> Options:
        """As the planner takes it."""
        tau = None if self.tau is None else microseconds(self.tau, "tau")
        return Options(self.strategy, self.join, tau).for_engine()


class Ground(Protocol):
    """What differs between doing and checking."""

    @property
    def catalog(self) -> Catalog:
        """The streams and relations that there are."""

    def add_stream(self, statement: CreateStream) -> None:
        """Register a stream."""

    def add_relation(self, statement: CreateRelation) -> None:
        """Register a relation."""

    def drop(self, name: str) -> None:
        """Forget a stream or relation."""

    def plan(self, sql: str, how: How) -> Planned:
        """Plan a query."""

    def query(self, sql: str, how: How) -> Query:
        """A query that can be started or asked."""

    def analyze(self, sql: str, how: How) -> str:
        """The plan of a query with what it does over what is in its sources now."""

    def start(self, statement: CreateQuery, how: How, trigger: str | None) -> RunningQuery | None:
        """Start a standing query."""

    def keep(self, statement: Keep, trigger: str | None) -> StreamingHandle | None:
        """Keep the window of a stream."""

    def attach(self, statement: Attach) -> None:
        """Ask a window that another process keeps."""

    def detach(self, name: str) -> None:
        """Ask it no more."""

    def explain_snapshot(self, sql: str, isolation: str) -> str:
        """How a kept window would be read."""

    def snapshot(self, sql: str, isolation: str) -> Answer | None:
        """Ask a kept window."""

    def configure(self, name: str, value: str) -> None:
        """Set one of Spark's settings."""


def check_options(statement: CreateQuery) -> dict[str, Value]:
    """A sink's options; what has a clause of its own is none."""
    for name in statement.options:
        if name.lower() in ("mode", "key", "trigger", "strategy", "join", "tau", "name", "sink"):
            raise CatalogError(f"{name} is not an option of a sink: write {name.upper()} after the options")
    return dict(statement.options)


def check_relation(statement: CreateRelation) -> None:
    """Whether what is said of a relation goes together."""
    name = statement.input.name
    if statement.changes and statement.refresh is not None:
        raise CatalogError(
            f"relation {name}: CHANGES is for a source of updates, REFRESH for a table that is read again: leave one out"
        )
    if statement.refresh is not None and statement.key is None:
        raise CatalogError(f"relation {name} is read again, and what differs is found by key: say KEY (columns)")
    of_updates = {"TIME": statement.time, "HEARTBEAT": statement.heartbeat}
    for clause, value in of_updates.items() if not statement.changes else ():
        if value is not None:
            raise CatalogError(f"relation {name}: {clause} is of updates: it goes with CHANGES")
    if statement.bad_rows == "drop" and not statement.changes:
        raise CatalogError(f"relation {name}: BAD ROWS is of updates: it goes with CHANGES")
