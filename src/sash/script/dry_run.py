"""The backend of `sash validate`: checks statements against the declared columns, and starts nothing."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from sash.durations import microseconds
from sash.errors import CatalogError, OptionError, TypeMismatchError
from sash.physical.output_times import output_time
from sash.plan.catalog import Catalog, update_columns
from sash.plan.options import Mode, Trigger
from sash.plan.types import TIMESTAMP, Schema
from sash.planning import Planned, PlannedJob, plan_query, plan_together
from sash.script.backend import (
    QueryHandle,
    QueryOptions,
    WindowHandle,
    check_partitions,
    check_relation,
    check_sink_options,
)
from sash.script.extensions import Extensions
from sash.script.groups import explain_jobs, job_names, trigger_key
from sash.script.sources import RELATIONS, STREAMS, check_options, relation_columns, stream_columns
from sash.script.statements import (
    Attach,
    CreateFunction,
    CreateQuery,
    CreateRelation,
    CreateStream,
    JobAction,
    Keep,
    about,
)
from sash.script.user_code import outlined_code
from sash.sql.spark_library import LibraryTyper
from sash.user_library import add_aggregate, add_function
from sash.window_store.options import IsolationLevel
from sash.window_store.parse import parse_queries
from sash.window_store.store.layout import StoreLayout, layout_of
from sash.window_store.store.sets import current_set

if TYPE_CHECKING:
    from sash.query import Query
    from sash.running_job import RunningJob
    from sash.spark.handle import StreamingHandle
    from sash.spark.sinks import OutputSpec, Sink
    from sash.window_store.snapshot import Snapshot

_FILES = ("csv", "json", "parquet", "orc", "xml", "avro")
"""Sinks of Spark's that write files, and so need a path."""


class UncheckedError(CatalogError):
    """A query cannot be planned without Spark, because only Spark knows a type or the columns of a relation."""


@dataclass(frozen=True)
class CheckedQuery:
    """A query that was checked; `planned` is None if it cannot be planned without Spark.

    `sink` and `output` are None for a sink of Spark's own, `group` is the key of its job's trigger; None if it is separate.
    """

    statement: CreateQuery
    planned: Planned | None
    group: str | None
    heartbeats: tuple[str, ...] = ()
    sink: Sink | None = None
    output: OutputSpec | None = None


class DryRunBackend:
    """Checks statements without executing them, and without Spark.

    Functions that Sash does not implement are checked by a list of Spark's. A query that reads a relation whose columns
    only Spark knows is not planned: it is in `checked` without a plan, and `unchecked` says why. `conf` are the settings
    with which Spark would be started, which may add functions and data sources.
    """

    def __init__(self, conf: Mapping[str, str] | None = None) -> None:
        self._extensions = Extensions.of(conf or {})
        self._typer = LibraryTyper(extended=self._extensions.functions)
        self._catalog = Catalog(spark_type=self._typer)
        self.declared: list[CreateStream | CreateRelation] = []
        self.checked: list[CheckedQuery] = []
        self.unchecked: dict[str, str] = {}
        self._undeclared: dict[str, str] = {}
        self._with_heartbeat: set[str] = set()
        self._update_times: dict[str, pa.DataType] = {}
        """The types of the times of updates, by relation."""
        self._layouts: dict[str, StoreLayout] = {}
        self._kept: dict[str, tuple[str, Planned]] = {}
        self._keeps: dict[str, Keep] = {}

    @property
    def catalog(self) -> Catalog:
        return self._catalog

    def add_stream(self, statement: CreateStream) -> None:
        declaration = statement.declaration
        self.declared.append(statement)
        with about("source"):
            self._extensions.check_stream(declaration.source, tuple(STREAMS))
        columns = stream_columns(declaration)
        check_options("stream", declaration)
        with about("slack"):
            microseconds(statement.slack, "slack")
        self._check_heartbeat(statement)
        check_partitions(statement, columns)
        self._catalog.add_stream(
            declaration.name,
            columns,
            statement.time,
            rate=statement.rate,
            distinct=statement.distinct,
            unbounded=statement.unbounded,
            peak=statement.peak,
        )

    def add_relation(self, statement: CreateRelation) -> None:
        check_relation(statement)
        declaration, name = statement.declaration, statement.declaration.name
        self.declared.append(statement)
        with about("source"):
            check = self._extensions.check_stream if statement.changes else self._extensions.check_table
            check(declaration.source, tuple(STREAMS if statement.changes else RELATIONS))
        check_options("relation", declaration)
        if statement.refresh is not None:
            with about("refresh"):
                microseconds(statement.refresh, "refresh")
        self._check_heartbeat(statement)
        columns = self._relation_columns(statement)
        if columns is None:
            self._catalog.add_relation(name, ())
            self._undeclared[name.lower()] = name
            return
        changes = statement.changes or statement.refresh is not None
        self._catalog.add_relation(
            name,
            columns,
            key=statement.key,
            retroactive=statement.retroactive,
            changes=changes,
            waits=not changes or statement.heartbeat is not None,
            timed=statement.refresh is None,
            rows=statement.rows,
            distinct=statement.distinct,
        )

    def _relation_columns(self, statement: CreateRelation) -> Schema | None:
        """The columns of a relation; None if only Spark knows them."""
        declaration = statement.declaration
        if statement.changes:
            given = stream_columns(declaration, updates=True)
            time, columns = update_columns(declaration.name, given, statement.time, statement.key)
            self._update_times[declaration.name.lower()] = next(one.dtype for one in given if one.name == time)
            return columns
        return relation_columns(declaration)

    def add_function(self, statement: CreateFunction) -> None:
        add = add_aggregate if statement.aggregate else add_function
        add(self._catalog, statement.name, outlined_code(statement), statement.returns, statement.version)

    def drop(self, name: str) -> None:
        self._undeclared.pop(name.lower(), None)
        self._catalog.drop(name)

    def plan(self, sql: str, options: QueryOptions) -> Planned:
        for name in self._undeclared.values():
            if re.search(rf"\b{re.escape(name)}\b", sql, re.IGNORECASE):
                raise UncheckedError(
                    f"only Spark knows the columns of relation {name}: declare them, as {name} (column TYPE, ...)"
                )
        self._typer.unsure = False
        try:
            return plan_query(sql, self._catalog, options=options.options)
        except TypeMismatchError as problem:
            if self._typer.unsure:
                raise UncheckedError(
                    f"only Spark knows the type of a function in the query: cast it ({problem})"
                ) from problem
            raise

    def query(self, sql: str, options: QueryOptions) -> Query:
        raise AssertionError("a dry run makes no query that could be started")

    def analyze(self, sql: str, options: QueryOptions) -> str:
        return self.plan(sql, options).explain()

    def add_query(self, statement: CreateQuery, options: QueryOptions, trigger: str | None) -> None:
        self.checked.append(self._check(statement, options, trigger))

    def alter_query(self, statement: CreateQuery, options: QueryOptions, trigger: str | None) -> None:
        checked = self._check(statement, options, trigger)
        self.checked = [checked if is_named(query, statement.name) else query for query in self.checked]

    def drop_query(self, name: str) -> None:
        self.checked = [query for query in self.checked if not is_named(query, name)]

    def resume_query(self, name: str) -> None:
        """Do nothing: no query runs that could be parked."""

    @property
    def paused(self) -> bool:
        return False

    def pause(self) -> None:
        """Do nothing: nothing runs."""

    def unpause(self) -> None:
        """Do nothing: nothing runs."""

    def control_job(self, action: JobAction, name: str) -> str:
        raise CatalogError(f"{action} JOB is a statement of the shell: a script cannot steer jobs")

    def launch(self) -> None:
        """Plan the queries of each job together, and start nothing."""
        self.planned_jobs()

    def planned_jobs(self) -> dict[str, PlannedJob]:
        """The jobs by name, each with its queries and kept windows planned together; unchecked queries are left out."""
        groups: dict[str, dict[str, Planned]] = {}
        for query in self.checked:
            if query.planned is not None and query.group is not None:
                groups.setdefault(query.group, {})[query.statement.name] = query.planned
        for name, (group, planned) in self._kept.items():
            groups.setdefault(group, {})[f"window {name}"] = planned
        names = self.job_names({})
        return {names[group]: plan_together(queries) for group, queries in groups.items()}

    def queries(self) -> dict[str, CreateQuery]:
        return {query.statement.name.lower(): query.statement for query in self.checked}

    def windows(self) -> dict[str, Keep]:
        return dict(self._keeps)

    def running(self, name: str) -> QueryHandle | None:
        return None

    def job_of(self, name: str) -> str | None:
        group = next((query.group for query in self.checked if is_named(query, name)), None)
        return None if group is None else self.job_names({})[group]

    def job_names(self, stored: Mapping[str, Collection[str]]) -> dict[str, str]:
        """The names of the jobs by the keys of their triggers, given the jobs in the checkpoint."""
        groups: dict[str, list[str]] = {}
        for query in self.checked:
            if query.group is not None:
                groups.setdefault(query.group, []).append(query.statement.name)
        for name, (group, _) in self._kept.items():
            groups.setdefault(group, []).append(f"window {name}")
        return job_names(groups, stored)

    def jobs(self) -> Mapping[str, RunningJob]:
        return {}

    def separate(self) -> Mapping[str, StreamingHandle]:
        return {}

    def explain_job(self) -> str:
        jobs = self.planned_jobs()
        if self.unchecked:
            name, reason = next(iter(self.unchecked.items()))
            raise UncheckedError(f"query {name} cannot be explained without Spark: {reason}")
        return explain_jobs({name: job.explain() for name, job in jobs.items()})

    def _check(self, statement: CreateQuery, options: QueryOptions, trigger: str | None) -> CheckedQuery:
        """Check a query; raise an error if it, its sink or its trigger is wrong."""
        from sash.spark.sinks import SINKS
        from sash.spark.sinks.base import ADDED, refuse_added

        given = check_sink_options(statement)
        with about("sink"):
            sink = SINKS[statement.sink](given) if statement.sink in SINKS else None
        if sink is None:
            with about("sink"):
                self._extensions.check_sink(statement.sink, tuple(SINKS))
                check_file_sink(statement)
        with about("trigger"):
            parsed = Trigger.parse(trigger)
        group = None if statement.separate else trigger_key(trigger)
        self.unchecked.pop(statement.name, None)
        try:
            with about("query"):
                planned = self.plan(statement.query.sql, options)
        except UncheckedError as problem:
            self.unchecked[statement.name] = str(problem)
            return CheckedQuery(statement, None, group)
        with about("key"):
            key = planned.key(statement.key, needed=statement.key is not None)
        with about("mode"):
            mode = (statement.mode or "changes") if sink is None else sink.mode(statement.mode, keyed=key is not None)
            if mode == "upsert":
                key = planned.key(statement.key, needed=True)
        if statement.sink.lower() in _FILES:
            refuse_added(statement.sink, [field.name for field in planned.schema], ADDED)
        heartbeats = tuple(n for n in (*planned.streams, *planned.changing) if n.lower() in self._with_heartbeat)
        with about("trigger"):
            parsed.check_heartbeats(heartbeats)
        output = None if sink is None else self._output(planned, mode, key)
        if sink is not None and output is not None:
            with about("sink"):
                sink.check(output)
        return CheckedQuery(statement, planned, group, heartbeats, sink, output)

    def _output(self, planned: Planned, mode: Mode, key: tuple[int, ...] | None) -> OutputSpec:
        from sash.spark.sinks import OutputSpec

        time = output_time(planned.physical, lambda relation: self._update_times.get(relation, TIMESTAMP))
        return OutputSpec(planned.schema, time, mode, key, identity="")

    def keep(self, statement: Keep, trigger: str | None) -> None:
        entry = self._catalog.streams[statement.name.lower()]
        self._layouts[entry.name.lower()] = layout_of(
            entry.name, entry.schema, entry.time, statement.window, statement.every, statement.retain
        )
        Trigger.parse(trigger).check_heartbeats([entry.name] if entry.name.lower() in self._with_heartbeat else [])
        self._keeps[entry.name.lower()] = statement
        self._kept[entry.name] = trigger_key(trigger), plan_query(f"SELECT * FROM `{entry.name}`", self._catalog)

    def change_every(self, statement: Keep) -> None:
        entry = self._catalog.streams[statement.name.lower()]
        self._layouts[entry.name.lower()] = layout_of(
            entry.name, entry.schema, entry.time, statement.window, statement.every, statement.retain
        )
        self._keeps[entry.name.lower()] = statement

    def keeping(self, name: str) -> WindowHandle | None:
        return None

    def attach(self, statement: Attach) -> None:
        self._layouts[statement.name.lower()] = StoreLayout.load(current_set(Path(statement.path)))

    def drop_window(self, name: str) -> None:
        self._layouts.pop(name.lower(), None)
        self._keeps.pop(name.lower(), None)
        self._kept = {kept: planned for kept, planned in self._kept.items() if kept.lower() != name.lower()}

    def explain_snapshot(self, sql: str, isolation: IsolationLevel) -> str:
        parse_queries([sql], self._layouts, self._catalog.streams)
        return sql

    def snapshot(self, sql: str, isolation: IsolationLevel) -> Snapshot | None:
        parse_queries([sql], self._layouts, self._catalog.streams)
        return None

    def configure(self, name: str, value: str) -> None:
        """Do nothing: only Spark can check its settings."""

    def _check_heartbeat(self, statement: CreateStream | CreateRelation) -> None:
        if statement.heartbeat is not None:
            with about("heartbeat"):
                microseconds(statement.heartbeat, "heartbeat")
            self._with_heartbeat.add(statement.declaration.name.lower())


def is_named(query: CheckedQuery, name: str) -> bool:
    """Whether this is the name of the query, in any case."""
    return query.statement.name.lower() == name.lower()


def check_file_sink(statement: CreateQuery) -> None:
    """Raise OptionError if a sink of files lacks its path."""
    if statement.sink.lower() in _FILES and "path" not in map(str.lower, statement.options):
        raise OptionError(f"{statement.sink} needs the option path: INTO {statement.sink} (path '...')")
