"""A session: executes statements one after the other on a backend, and returns a reply for each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

from sash.errors import CatalogError, OptionError
from sash.plan.options import Trigger
from sash.plan.types import type_name
from sash.script import statements
from sash.script.backend import Backend, QueryOptions
from sash.script.live import LiveBackend
from sash.script.statements import ObjectKind, Statement
from sash.sql.source import did_you_mean
from sash.window_store.scheduling.levels import level

if TYPE_CHECKING:
    from sash.engine import Engine
    from sash.query import Query
    from sash.running import RunningQuery
    from sash.spark.handle import StreamingHandle
    from sash.window_store.options import IsolationLevel


@dataclass(frozen=True)
class MessageReply:
    """Text to show."""

    text: str


@dataclass(frozen=True)
class TableReply:
    """Rows to show as a table, and a line to show below it."""

    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]
    note: str = ""


@dataclass(frozen=True)
class QueryReply:
    """The query of a SELECT, not started yet: the caller decides where to show its answer, and how long."""

    query: Query


Reply = MessageReply | TableReply | QueryReply

_SETTINGS = ("strategy", "join", "tau", "trigger", "isolation")


@dataclass
class SessionSettings:
    """The values that SET changes, apart from Spark's settings."""

    options: QueryOptions = field(default_factory=QueryOptions)
    trigger: str | None = None
    isolation: IsolationLevel = "latest"


@dataclass
class Session:
    """Executes statements on a backend; `queries` and `windows` are those that were started, by lower-case name."""

    backend: Backend
    queries: dict[str, tuple[statements.CreateQuery, RunningQuery | None]] = field(default_factory=dict)
    windows: dict[str, tuple[statements.Keep | statements.Attach, StreamingHandle | None]] = field(default_factory=dict)
    settings: SessionSettings = field(default_factory=SessionSettings)

    @classmethod
    def on(cls, engine: Engine) -> Session:
        """A session that executes its statements on an engine."""
        return cls(LiveBackend(engine))

    def execute(self, statement: Statement) -> Reply:
        """Execute one statement."""
        match statement:
            case statements.CreateStream():
                self._refuse_taken(statement.declaration.name)
                self.backend.add_stream(statement)
                return MessageReply(f"Created stream {statement.declaration.name}")
            case statements.CreateRelation():
                self._refuse_taken(statement.declaration.name)
                self.backend.add_relation(statement)
                return MessageReply(f"Created relation {statement.declaration.name}")
            case statements.CreateQuery():
                return self._create_query(statement)
            case statements.Select():
                with statement.query.position.relocate_errors():
                    return QueryReply(self.backend.query(statement.query.sql, self.settings.options))
            case statements.Explain():
                with statement.query.position.relocate_errors():
                    return self._explain(statement)
            case statements.Analyze():
                return self._analyze(statement.name)
            case statements.Keep():
                return self._keep(statement)
            case statements.Attach():
                return self._attach(statement)
            case statements.SnapshotStatement():
                with statement.query.position.relocate_errors():
                    return self._snapshot(statement)
            case statements.Show():
                return self._show(statement.what)
            case statements.Describe():
                return self._describe(statement.name)
            case statements.Drop():
                return self._drop(statement)
            case statements.SetOption():
                with statements.about("value"):
                    return self._set(statement)

    def _create_query(self, statement: statements.CreateQuery) -> MessageReply:
        name = statement.name
        self._refuse_taken(name)
        given = {part: value for part in ("strategy", "join", "tau") if (value := getattr(statement, part)) is not None}
        options, trigger = replace(self.settings.options, **given), statement.trigger or self.settings.trigger
        with statement.query.position.relocate_errors():
            running = self.backend.start(statement, options, trigger)
        self.queries[name.lower()] = (statement, running)
        return MessageReply(f"Query {name} is running into {statement.sink}")

    def _explain(self, statement: statements.Explain) -> MessageReply:
        sql, options = statement.query.sql, self.settings.options
        match statement.form:
            case "analyze":
                text = self.backend.analyze(sql, options)
            case "snapshot":
                text = self.backend.explain_snapshot(sql, self.settings.isolation)
            case form:
                text = self.backend.plan(sql, options).explain(all=form == "all")
        return MessageReply(text.rstrip())

    def _analyze(self, name: str) -> MessageReply:
        if name.lower() not in self.queries:
            raise _unknown("query", name, list(self.queries))
        statement, running = self.queries[name.lower()]
        if running is None:
            return self._explain(statements.Explain(statement.position, statement.query))
        return MessageReply(running.explain().rstrip())

    def _keep(self, statement: statements.Keep) -> MessageReply:
        name, streams = statement.name, self.backend.catalog.streams
        if name.lower() not in streams:
            raise _unknown("stream", name, list(streams))
        self._refuse_kept(name)
        self.windows[name.lower()] = (statement, self.backend.keep(statement, self.settings.trigger))
        return MessageReply(f"Keeping the window of {name}: query it with SNAPSHOT SELECT")

    def _attach(self, statement: statements.Attach) -> MessageReply:
        self._refuse_kept(statement.name)
        self.backend.attach(statement)
        self.windows[statement.name.lower()] = (statement, None)
        return MessageReply(f"Attached window {statement.name}: query it with SNAPSHOT SELECT")

    def _snapshot(self, statement: statements.SnapshotStatement) -> Reply:
        answer = self.backend.snapshot(statement.query.sql, self.settings.isolation)
        if answer is None:
            return MessageReply("Snapshot query: OK")
        return TableReply(
            tuple(answer.table.column_names),
            [tuple(row.values()) for row in answer.to_pylist()],
            f"as of window update {answer.update}, {answer.freshness:.1f} s ago; answered in "
            f"{1000 * answer.response_time:.0f} ms",
        )

    def _show(self, what: ObjectKind) -> TableReply:
        catalog = self.backend.catalog
        match what:
            case "STREAM":
                streams = catalog.streams.values()
                rows = [(s.name, s.time, _columns(s.schema)) for s in streams]
                return TableReply(("stream", "time", "columns"), rows)
            case "RELATION":
                relations = catalog.relations.values()
                return TableReply(("relation", "columns"), [(r.name, _columns(r.schema)) for r in relations])
            case "QUERY":
                return TableReply(
                    ("query", "sink", "state", "batch", "rows in", "rows out", "late"),
                    [_query_row(statement, running) for statement, running in self.queries.values()],
                )
            case "WINDOW":
                return TableReply(
                    ("window", "length", "every", "path", "updates", "rows", "late"),
                    [_window_row(statement, running) for statement, running in self.windows.values()],
                )

    def _describe(self, name: str) -> TableReply:
        catalog = self.backend.catalog
        entry = catalog.find(name)
        if entry is not None:
            return TableReply(("column", "type"), [(f.name, type_name(f.dtype)) for f in entry.schema])
        if name.lower() in self.queries:
            statement, running = self.queries[name.lower()]
            progress = {} if running is None else running.progress()
            rows: list[tuple[Any, ...]] = [("query", statement.query.sql), ("sink", statement.sink)]
            plain = (str, int, float, type(None))
            rows += [(k, v) for k, v in progress.items() if isinstance(v, plain)]
            return TableReply(("property", "value"), rows)
        raise _unknown("stream, relation or query", name, [*catalog.streams, *catalog.relations, *self.queries])

    def _drop(self, statement: statements.Drop) -> MessageReply:
        catalog, name = self.backend.catalog, statement.name
        known: dict[ObjectKind, Any] = {
            "STREAM": catalog.streams,
            "RELATION": catalog.relations,
            "QUERY": self.queries,
            "WINDOW": self.windows,
        }
        what = statement.what.lower()
        if name.lower() not in known[statement.what]:
            if statement.if_exists:
                return MessageReply(f"There is no {what} {name} to drop")
            raise _unknown(what, name, list(known[statement.what]))
        if statement.what in ("QUERY", "WINDOW"):
            dropped, running = known[statement.what].pop(name.lower())
            if running is not None:
                running.stop()
            elif isinstance(dropped, statements.Keep | statements.Attach):
                self.backend.detach(name)
        else:
            self.backend.drop(name)
        return MessageReply(f"Dropped {what} {name}")

    def _set(self, statement: statements.SetOption) -> MessageReply:
        name, value = statement.name.lower(), statement.value
        given = None if str(value).lower() in ("none", "") else str(value)
        match name:
            case "strategy" | "join":
                changed: dict[str, Any] = {name: given or "auto"}
                self.settings.options = replace(self.settings.options, **changed)
            case "tau":
                self.settings.options = replace(self.settings.options, tau=given)
            case "trigger":
                Trigger.parse(given)
                self.settings.trigger = given
            case "isolation":
                level(str(value))
                self.settings.isolation = cast("IsolationLevel", value)
            case _ if name.startswith("spark."):
                self.backend.configure(statement.name, str(value).lower() if isinstance(value, bool) else str(value))
            case _:
                raise OptionError(
                    f"there is no setting {statement.name}{did_you_mean(name, _SETTINGS)}; there are "
                    f"{', '.join(_SETTINGS)}, and Spark's settings, which start with spark."
                )
        return MessageReply(f"Set {statement.name} to {value}")

    def _refuse_taken(self, name: str) -> None:
        catalog = self.backend.catalog
        for what, known in (("stream", catalog.streams), ("relation", catalog.relations), ("query", self.queries)):
            if name.lower() in known:
                raise CatalogError(f"there is already a {what} {name}: DROP {what.upper()} {name} first")

    def _refuse_kept(self, name: str) -> None:
        if name.lower() in self.windows:
            raise CatalogError(f"there is already a window {name}: DROP WINDOW {name} first")


def _unknown(what: str, name: str, known: Sequence[str]) -> CatalogError:
    listed = f"; there are {', '.join(known)}" if known else ""
    return CatalogError(f"there is no {what} {name}{did_you_mean(name, known)}{listed}")


def _columns(schema: Any) -> str:
    return ", ".join(map(str, schema))


def _query_row(statement: statements.CreateQuery, running: RunningQuery | None) -> tuple[Any, ...]:
    progress: dict[str, Any] = {} if running is None else running.progress()
    state = "running" if running is not None and running.active else "ended"
    counts = [progress.get(f"total_{part}", 0) for part in ("rows_in", "rows_out", "late")]
    return statement.name, statement.sink, state, progress.get("batch"), *counts


def _window_row(statement: statements.Keep | statements.Attach, running: StreamingHandle | None) -> tuple[Any, ...]:
    if isinstance(statement, statements.Attach):
        return statement.name, None, None, statement.path, None, None, None
    progress: dict[str, Any] = {} if running is None else running.progress()
    counts = (progress.get(part) for part in ("updates", "rows", "late"))
    return statement.name, statement.window, statement.every, statement.path, *counts
