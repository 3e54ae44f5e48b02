"""A session: executes statements one after the other on a backend, and returns a reply for each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, cast

from sash.errors import CatalogError, OptionError, SashError
from sash.plan.options import Trigger
from sash.script import statements
from sash.script.backend import Backend, QueryOptions
from sash.script.groups import check_job_clauses
from sash.script.listings import (
    describe_columns,
    describe_query,
    list_all_jobs,
    list_jobs,
    list_queries,
    list_relations,
    list_streams,
    list_windows,
)
from sash.script.live import LiveBackend
from sash.script.replies import MessageReply, QueryReply, Reply, TableReply
from sash.script.statements import ObjectKind, Statement
from sash.sql.source import did_you_mean
from sash.window_store.scheduling.levels import level

if TYPE_CHECKING:
    from sash.engine import Engine
    from sash.window_store.options import IsolationLevel


PutQuery = Callable[[statements.CreateQuery, QueryOptions, str | None], None]
"""Adds a query to a backend, or replaces one."""

_SETTINGS = ("strategy", "join", "tau", "trigger", "isolation")


@dataclass
class SessionSettings:
    """The values that SET changes, apart from Spark's settings."""

    options: QueryOptions = field(default_factory=QueryOptions)
    trigger: str | None = None
    isolation: IsolationLevel = "latest"


@dataclass
class Session:
    """Executes statements on a backend; `queries` and `windows` are those that exist, by lower-case name.

    Queries and windows are collected and started together by `launch`: at the end of a script, or before the first
    statement that needs them running.
    """

    backend: Backend
    queries: dict[str, statements.CreateQuery] = field(default_factory=dict)
    windows: dict[str, statements.Keep | statements.Attach] = field(default_factory=dict)
    settings: SessionSettings = field(default_factory=SessionSettings)

    @classmethod
    def on(cls, engine: Engine) -> Session:
        """A session that executes its statements on an engine."""
        return cls(LiveBackend(engine))

    def launch(self) -> None:
        """Start the queries and windows that were created, and apply the changes of those that run.

        If that fails, those that could not be started are dropped again.
        """
        try:
            self.backend.launch()
        except SashError:
            attached = {name: window for name, window in self.windows.items() if isinstance(window, statements.Attach)}
            self.queries, self.windows = self.backend.queries(), {**attached, **self.backend.windows()}
            raise

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
            case statements.CreateFunction():
                with statements.about("code"):
                    self.backend.add_function(statement)
                what = "aggregate" if statement.aggregate else "function"
                return MessageReply(f"Created {what} {statement.name}")
            case statements.CreateQuery():
                self._refuse_taken(statement.name)
                self._put(statement, self.backend.add_query)
                return MessageReply(f"Created query {statement.name}, into {statement.sink}")
            case statements.AlterQuery():
                self._put(statement.applied_to(self._query(statement.name)), self.backend.alter_query)
                return MessageReply(f"Altered query {statement.name}")
            case statements.ResumeQuery():
                self._query(statement.name)
                self.launch()
                self.backend.resume_query(statement.name)
                return MessageReply(f"Resumed query {statement.name}")
            case statements.ControlJob():
                return MessageReply(self.backend.control_job(statement.action, statement.name))
            case statements.Select():
                with statement.query.position.relocate_errors():
                    query = self.backend.query(statement.query.sql, self.settings.options)
                self.launch()
                return QueryReply(query)
            case statements.Explain():
                with statement.query.position.relocate_errors():
                    return self._explain(statement)
            case statements.ExplainJob():
                return MessageReply(self.backend.explain_job().rstrip())
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

    def _put(self, statement: statements.CreateQuery, put: PutQuery) -> None:
        """Add a query, or replace one, with the options of its clauses and of the session."""
        check_job_clauses(statement)
        given = {
            part: value
            for part in ("strategy", "join", "tau", "probe", "patience", "reorder")
            if (value := getattr(statement, part)) is not None
        }
        options, trigger = replace(self.settings.options, **given), statement.trigger or self.settings.trigger
        with statement.query.position.relocate_errors():
            put(statement, options, trigger)
        self.queries[statement.name.lower()] = statement

    def _query(self, name: str) -> statements.CreateQuery:
        if name.lower() not in self.queries:
            raise _unknown("query", name, [statement.name for statement in self.queries.values()])
        return self.queries[name.lower()]

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
        statement = self._query(name)
        self.launch()
        running = self.backend.running(name)
        if running is None:
            return self._explain(statements.Explain(statement.position, statement.query))
        return MessageReply(running.explain().rstrip())

    def _keep(self, statement: statements.Keep) -> MessageReply:
        name, streams = statement.name, self.backend.catalog.streams
        if name.lower() not in streams:
            raise _unknown("stream", name, list(streams))
        known = self.windows.get(name.lower())
        if isinstance(known, statements.Keep) and _differs_in_every(known, statement):
            self.backend.change_every(statement)
            self.windows[name.lower()] = statement
            return MessageReply(
                f"Changing the sub-windows of {name}: queries read those of the old length until the new ones cover the window"
            )
        self._refuse_kept(name)
        self.backend.keep(statement, self.settings.trigger)
        self.windows[name.lower()] = statement
        return MessageReply(f"Keeping the window of {name}: query it with SNAPSHOT SELECT")

    def _attach(self, statement: statements.Attach) -> MessageReply:
        self._refuse_kept(statement.name)
        self.backend.attach(statement)
        self.windows[statement.name.lower()] = statement
        return MessageReply(f"Attached window {statement.name}: query it with SNAPSHOT SELECT")

    def _snapshot(self, statement: statements.SnapshotStatement) -> Reply:
        self.launch()
        answer = self.backend.snapshot(statement.query.sql, self.settings.isolation)
        if answer is None:
            return MessageReply("Snapshot query: OK")
        return TableReply(
            tuple(answer.table.column_names),
            [tuple(row.values()) for row in answer.to_pylist()],
            f"as of window update {answer.update}, {answer.freshness:.1f} s ago; answered in "
            f"{1000 * answer.response_time:.0f} ms",
        )

    def _show(self, what: ObjectKind | Literal["JOB"]) -> TableReply:
        match what:
            case "STREAM":
                return list_streams(self.backend.catalog, self.backend)
            case "RELATION":
                return list_relations(self.backend.catalog)
            case "QUERY":
                return list_queries(self.queries.values(), self.backend)
            case "WINDOW":
                return list_windows(self.windows.values(), self.backend)
            case "JOB":
                return list_all_jobs(self.backend) if isinstance(self.backend, LiveBackend) else list_jobs(self.backend)

    def _describe(self, name: str) -> TableReply:
        catalog = self.backend.catalog
        entry = catalog.find(name)
        if entry is not None:
            return describe_columns(entry.schema)
        if name.lower() in self.queries:
            return describe_query(self.queries[name.lower()], self.backend.running(name))
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
        match statement.what:
            case "QUERY":
                self.backend.drop_query(name)
                del self.queries[name.lower()]
            case "WINDOW":
                self.backend.drop_window(name)
                del self.windows[name.lower()]
            case _:
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


def _differs_in_every(known: statements.Keep, statement: statements.Keep) -> bool:
    """Whether only the length of the sub-windows is another one."""
    return (
        known.every != statement.every
        and replace(known, every=statement.every, position=statement.position) == statement
    )


def _unknown(what: str, name: str, known: Sequence[str]) -> CatalogError:
    listed = f"; there are {', '.join(known)}" if known else ""
    return CatalogError(f"there is no {what} {name}{did_you_mean(name, known)}{listed}")
