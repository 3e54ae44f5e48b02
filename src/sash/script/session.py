"""Statements, executed one after the other: what each has to say is returned, and queries that are started are kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from sash.errors import CatalogError
from sash.plan.types import type_name
from sash.script.backend import Ground, How
from sash.script.live import OnEngine
from sash.script.statements import (
    Analyze,
    Attach,
    CreateQuery,
    CreateRelation,
    CreateStream,
    Describe,
    Drop,
    Explain,
    Keep,
    Kind,
    Select,
    SetOption,
    Show,
    Snapshot,
    Statement,
)
from sash.sql.source import did_you_mean
from sash.window_store.scheduling.levels import level

if TYPE_CHECKING:
    from sash.engine import Engine
    from sash.query import Query
    from sash.running import RunningQuery
    from sash.spark.handle import StreamingHandle


@dataclass(frozen=True)
class Said:
    """A line or a few, to be shown."""

    text: str


@dataclass(frozen=True)
class Listed:
    """Rows, to be shown as a table."""

    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]
    note: str = ""


@dataclass(frozen=True)
class Asked:
    """A SELECT: whoever asked decides where its answer is to be shown, and until when."""

    query: Query


Reply = Said | Listed | Asked

_SETTINGS = ("strategy", "join", "tau", "trigger", "isolation")


@dataclass
class Settings:
    """What SET can set, besides Spark's own settings."""

    how: How = field(default_factory=How)
    trigger: str | None = None
    isolation: str = "latest"


@dataclass
class Session:
    """Executes statements on its ground; `queries` and `windows` are those that were started, by name."""

    ground: Ground
    queries: dict[str, tuple[CreateQuery, RunningQuery | None]] = field(default_factory=dict)
    windows: dict[str, tuple[Keep | Attach, StreamingHandle | None]] = field(default_factory=dict)
    settings: Settings = field(default_factory=Settings)

    @classmethod
    def on(cls, engine: Engine) -> Session:
        """A session in which statements have effect."""
        return cls(OnEngine(engine))

    def execute(self, statement: Statement) -> Reply:
        """Do what a statement says."""
        match statement:
            case CreateStream():
                self._claim(statement.input.name)
                self.ground.add_stream(statement)
                return Said(f"stream {statement.input.name} is there")
            case CreateRelation():
                self._claim(statement.input.name)
                self.ground.add_relation(statement)
                return Said(f"relation {statement.input.name} is there")
            case CreateQuery():
                return self._create_query(statement)
            case Select():
                with statement.query.place.of_errors():
                    return Asked(self.ground.query(statement.query.sql, self.settings.how))
            case Explain():
                with statement.query.place.of_errors():
                    return self._explain(statement)
            case Analyze():
                return self._analyze(statement.name)
            case Keep():
                return self._keep(statement)
            case Attach():
                return self._attach(statement)
            case Snapshot():
                with statement.query.place.of_errors():
                    return self._snapshot(statement)
            case Show():
                return self._show(statement.what)
            case Describe():
                return self._describe(statement.name)
            case Drop():
                return self._drop(statement)
            case SetOption():
                return self._set(statement)

    def _create_query(self, statement: CreateQuery) -> Said:
        name = statement.name
        if name.lower() in self.queries:
            raise CatalogError(f"query {name} is already there: DROP QUERY {name} stops it")
        self._claim(name)
        with statement.query.place.of_errors():
            running = self.ground.start(statement, self._how(statement), statement.trigger or self.settings.trigger)
        self.queries[name.lower()] = (statement, running)
        return Said(f"query {name} runs into {statement.sink}")

    def _how(self, statement: CreateQuery) -> How:
        """As the statement says, and else as it is set."""
        said = {part: value for part in ("strategy", "join", "tau") if (value := getattr(statement, part)) is not None}
        return replace(self.settings.how, **said)

    def _explain(self, statement: Explain) -> Said:
        sql, how = statement.query.sql, self.settings.how
        match statement.form:
            case "analyze":
                text = self.ground.analyze(sql, how)
            case "snapshot":
                text = self.ground.explain_snapshot(sql, self.settings.isolation)
            case form:
                text = self.ground.plan(sql, how).explain(all=form == "all")
        return Said(text.rstrip())

    def _analyze(self, name: str) -> Said:
        if name.lower() not in self.queries:
            raise self._unknown("query", name, list(self.queries))
        statement, running = self.queries[name.lower()]
        if running is None:
            return self._explain(Explain(statement.place, statement.query))
        return Said(running.explain().rstrip())

    def _keep(self, statement: Keep) -> Said:
        name, streams = statement.name, self.ground.catalog.streams
        if name.lower() not in streams:
            raise self._unknown("stream", name, list(streams))
        self._claim_window(name)
        self.windows[name.lower()] = (statement, self.ground.keep(statement, self.settings.trigger))
        return Said(f"the window of {name} is kept: SNAPSHOT SELECT asks it")

    def _attach(self, statement: Attach) -> Said:
        self._claim_window(statement.name)
        self.ground.attach(statement)
        self.windows[statement.name.lower()] = (statement, None)
        return Said(f"window {statement.name} is there: SNAPSHOT SELECT asks it")

    def _claim_window(self, name: str) -> None:
        if name.lower() in self.windows:
            raise CatalogError(f"the window of {name} is already kept: DROP WINDOW {name} stops it")

    def _snapshot(self, statement: Snapshot) -> Reply:
        answer = self.ground.snapshot(statement.query.sql, self.settings.isolation)
        if answer is None:
            return Said("the snapshot can be asked")
        return Listed(
            tuple(answer.table.column_names),
            [tuple(row.values()) for row in answer.to_pylist()],
            f"as of window update {answer.update}, {answer.freshness:.1f} s ago; answered in "
            f"{1000 * answer.response_time:.0f} ms",
        )

    def _show(self, what: Kind) -> Listed:
        catalog = self.ground.catalog
        match what:
            case "STREAM":
                streams = catalog.streams.values()
                return Listed(("stream", "time", "columns"), [(s.name, s.time, _columns(s.schema)) for s in streams])
            case "RELATION":
                relations = catalog.relations.values()
                return Listed(("relation", "columns"), [(r.name, _columns(r.schema)) for r in relations])
            case "QUERY":
                return Listed(
                    ("query", "sink", "state", "batch", "rows in", "rows out", "late"),
                    [_standing(statement, running) for statement, running in self.queries.values()],
                )
            case "WINDOW":
                return Listed(
                    ("window", "length", "every", "path", "updates", "rows", "late"),
                    [_kept(statement, running) for statement, running in self.windows.values()],
                )

    def _describe(self, name: str) -> Listed:
        catalog = self.ground.catalog
        entry = catalog.streams.get(name.lower()) or catalog.relations.get(name.lower())
        if entry is not None:
            return Listed(("column", "type"), [(f.name, type_name(f.dtype)) for f in entry.schema])
        if name.lower() in self.queries:
            statement, running = self.queries[name.lower()]
            progress = {} if running is None else running.progress()
            rows: list[tuple[Any, ...]] = [("query", statement.query.sql), ("sink", statement.sink)]
            plain = (str, int, float, type(None))
            return Listed(("what", "value"), rows + [(k, v) for k, v in progress.items() if isinstance(v, plain)])
        raise self._unknown("stream, relation or query", name, [*catalog.streams, *catalog.relations, *self.queries])

    def _drop(self, statement: Drop) -> Said:
        catalog, name = self.ground.catalog, statement.name
        known: dict[Kind, Any] = {
            "STREAM": catalog.streams,
            "RELATION": catalog.relations,
            "QUERY": self.queries,
            "WINDOW": self.windows,
        }
        what = statement.what.lower()
        if name.lower() not in known[statement.what]:
            if statement.if_exists:
                return Said(f"there was no {what} {name}")
            raise self._unknown(what, name, list(known[statement.what]))
        if statement.what in ("QUERY", "WINDOW"):
            dropped, running = known[statement.what].pop(name.lower())
            if running is not None:
                running.stop()
            elif isinstance(dropped, Keep | Attach):
                self.ground.detach(name)
        else:
            self.ground.drop(name)
        return Said(f"{what} {name} is gone")

    def _set(self, statement: SetOption) -> Said:
        name, value = statement.name.lower(), statement.value
        given = None if str(value).lower() in ("none", "") else str(value)
        match name:
            case "strategy" | "join":
                changed: dict[str, Any] = {name: given or "auto"}
                self.settings.how = replace(self.settings.how, **changed)
            case "tau":
                self.settings.how = replace(self.settings.how, tau=given)
            case "trigger":
                self.settings.trigger = given
            case "isolation":
                level(str(value))
                self.settings.isolation = str(value)
            case _ if name.startswith("spark."):
                self.ground.configure(statement.name, str(value).lower() if isinstance(value, bool) else str(value))
            case _:
                raise CatalogError(
                    f"there is no setting {statement.name}{did_you_mean(name, _SETTINGS)}; there are "
                    f"{', '.join(_SETTINGS)}, and Spark's own, which start with spark."
                )
        return Said(f"{statement.name} is {value}")

    def _claim(self, name: str) -> None:
        catalog = self.ground.catalog
        for what, known in (("stream", catalog.streams), ("relation", catalog.relations), ("query", self.queries)):
            if name.lower() in known:
                raise CatalogError(f"there is already a {what} {name}: DROP {what.upper()} {name} first")

    @staticmethod
    def _unknown(what: str, name: str, known: Sequence[str]) -> CatalogError:
        there = f"; there are {', '.join(known)}" if known else ""
        return CatalogError(f"there is no {what} {name}{did_you_mean(name, known)}{there}")


def _columns(schema: Any) -> str:
    return ", ".join(map(str, schema))


def _standing(statement: CreateQuery, running: RunningQuery | None) -> tuple[Any, ...]:
    progress: dict[str, Any] = {} if running is None else running.progress()
    state = "runs" if running is not None and running.active else "has ended"
    counts = [progress.get(f"total_{part}", 0) for part in ("rows_in", "rows_out", "late")]
    return statement.name, statement.sink, state, progress.get("batch"), *counts


def _kept(statement: Keep | Attach, running: StreamingHandle | None) -> tuple[Any, ...]:
    if isinstance(statement, Attach):
        return statement.name, None, None, statement.path, None, None, None
    progress: dict[str, Any] = {} if running is None else running.progress()
    counts = (progress.get(part) for part in ("updates", "rows", "late"))
    return statement.name, statement.window, statement.every, statement.path, *counts
