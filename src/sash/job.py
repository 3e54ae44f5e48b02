"""A job: queries that run as one dataflow, each with a sink of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sash.alike import Candidate, Kept, plan_alike
from sash.arguments import check_flag, check_path, check_text, check_word
from sash.display import counted
from sash.errors import CatalogError, OptionError
from sash.plan.catalog import check_identifier
from sash.plan.options import Mode, StartOptions, Trigger
from sash.planning import PlannedJob, plan_together
from sash.query import Query
from sash.sizes import size_in_bytes

if TYPE_CHECKING:
    from sash.change.diff import JobDiff
    from sash.engine import Engine
    from sash.optimizer.widen_joins import JoinColumns
    from sash.running_job import RunningJob
    from sash.spark.job_change import OnChange
    from sash.spark.job_output import OnError
    from sash.spark.sinks import Sink, WriteFrame
    from sash.window_store.scheduling.recorder import Recorder
    from sash.window_store.store.layout import StoreLayout

_ON_ERROR: tuple[OnError, ...] = ("fail", "suspend")
_ON_CHANGE: tuple[OnChange, ...] = ("refuse", "apply")
_OUTBOX = "64 MB"
_SUSPEND_AFTER = "15 seconds"
"""How long the sink of a query that is then suspended is retried by default: the other queries of the job wait meanwhile."""


@dataclass(frozen=True)
class JobMember:
    """A query of a job, as it was added."""

    name: str
    query: Query
    sink: Sink
    mode: Mode
    key: tuple[int, ...] | None
    on_error: OnError
    max_state: int | None
    outbox: int
    when_complete: bool
    backfill: bool
    window: KeptOutput | None = None

    @property
    def candidate(self) -> Candidate | None:
        """The query as one that may run with others that differ in constants; None if it must run on its own."""
        alone = self.window is not None or self.max_state is not None or self.when_complete or self.backfill
        return None if alone else Candidate(self.name, self.query.planned, self.mode, self.key, self.on_error)

    def described(self) -> dict[str, Any]:
        """What the checkpoint records of it."""
        from dataclasses import asdict

        from sash.spark.job_manifest import without_secrets

        return {
            "name": self.name,
            "sql": self.query.planned.sql.strip(),
            "options": asdict(self.query.planned.options),
            "sink": self.sink.name,
            "sink_options": without_secrets(self.sink.options),
            "mode": self.mode,
            "key": None if self.key is None else list(self.key),
            "on_error": self.on_error,
            "max_state": self.max_state,
            "outbox": self.outbox,
            "when_complete": self.when_complete,
            "backfill": self.backfill,
        }


@dataclass(frozen=True)
class KeptOutput:
    """A kept window that a query of a job fills: its layout, its path if one was given, and whether it keeps a stream."""

    layout: StoreLayout
    path: str | None
    recorder: Recorder | None
    of_stream: bool


class Job:
    """Queries that are started together, as one Spark streaming query; made by `Engine.job`.

    `name` names the job's folder in the checkpoint directory `checkpoint`; without either, the checkpoint is temporary.
    """

    def __init__(
        self,
        engine: Engine,
        name: str | None = None,
        trigger: str | None = None,
        checkpoint: str | None = None,
        shards: int | None = None,
    ) -> None:
        from sash.spark.job_manifest import DEFAULT_NAME

        self.engine = engine
        self.name = DEFAULT_NAME if name is None else check_text("name", name)
        if "/" in self.name or self.name.startswith("."):
            raise OptionError(f"the name of a job is that of a folder, and {self.name!r} cannot be one")
        self.trigger = Trigger.parse(trigger)
        self.checkpoint = engine.checkpoint if checkpoint is None else check_path("checkpoint", checkpoint)
        self.shards = engine.shards if shards is None else shards
        self.shards_chosen = shards is not None or engine.shards_chosen
        self.members: dict[str, JobMember] = {}

    def add(
        self,
        name: str,
        query: str | Query,
        sink: str | WriteFrame | Sink = "console",
        mode: Mode | None = None,
        key: Sequence[str] | None = None,
        on_error: OnError = "fail",
        max_state: str | int | None = None,
        outbox: str | int | None = None,
        when_complete: bool = False,
        backfill: bool = False,
        **options: Any,
    ) -> None:
        """Add a query, given as text or as made by `Engine.sql`, whose changes go to a sink.

        `sink`, `mode`, `key` and `options` are those of `Query.start`. In a job a file format of Spark's gets a folder
        `batch=N` per batch; other formats, and functions, may get a batch again after a failure.

        If its sink fails, after retries, or its operators do, the job fails; with `on_error="suspend"` the query is parked
        instead, and the others go on. What its sink misses is kept up to `outbox` ("64 MB"), and beyond that as the net
        difference between its answers. A query whose state grows past `max_state`, such as "1 GB", is parked, too.
        `RunningJob.queries[name].resume()` lets it go on. With `when_complete`, the sink of a query that is new in a job
        gets nothing before its windows are full. With `backfill`, its windows are filled at once, by reading its streams
        again; `Engine.stream` says which of them can be.
        """
        from sash.spark.sinks.choice import job_sink
        from sash.spark.sinks.retry import RETRY

        self._check_free(check_text("name", name))
        planned_query = self.engine.sql(query) if isinstance(query, str) else query
        if not isinstance(planned_query, Query):
            raise CatalogError(f"a job takes the text of a query, or a query of engine.sql, not {query!r}")
        check_word("on_error", on_error, _ON_ERROR)
        given = StartOptions.parse(mode, None, options)
        chosen = dict(given.sink)
        if on_error == "suspend":
            chosen.setdefault(RETRY, _SUSPEND_AFTER)
        target = job_sink(sink, chosen, name)
        keyed = key is not None or planned_query.planned.key(None, needed=False) is not None
        written = target.mode(given.mode, keyed)
        if target.exclusive:
            same = [member.name for member in self.members.values() if member.sink.target == target.target]
            if same:
                raise CatalogError(f"{name} would write to the {target.name} of {same[0]}: choose another one")
        self.members[name.lower()] = JobMember(
            name,
            planned_query,
            target,
            written,
            planned_query.planned.key(key, needed=written == "upsert"),
            on_error,
            None if max_state is None else size_in_bytes(max_state, "max_state"),
            size_in_bytes(_OUTBOX if outbox is None else outbox, "outbox"),
            check_flag("when_complete", when_complete),
            check_flag("backfill", backfill),
        )

    def keep(
        self,
        what: str | Query,
        window: str | int,
        every: str | int,
        name: str | None = None,
        path: str | None = None,
        retain: int = 0,
        recorder: Recorder | None = None,
    ) -> None:
        """Keep the window of a stream, or the answer of a query, as an output of the job; the arguments are `Engine.keep`'s."""
        from sash.spark.sinks.function import WindowSink
        from sash.sql.render import quoted
        from sash.window_store.store.layout import layout_of

        path = None if path is None else check_path("path", path)
        if isinstance(what, str):
            entry = self.engine.catalog.streams.get(check_identifier(what).lower())
            if entry is None:
                raise CatalogError(f"there is no stream {what} to keep: register it with engine.stream first")
            name = check_identifier(name or entry.name)
            unkept = self.engine.catalog.not_carried.get(what.lower())
            layout = layout_of(name, entry.schema, entry.time, window, every, retain, not_carried=unkept)
            columns = ", ".join(quoted(field.name) for field in entry.schema)
            query = self.engine.sql(f"SELECT {columns} FROM {quoted(entry.name)}")
        elif isinstance(what, Query):
            if name is None:
                raise CatalogError("the answer of a query needs a name: job.keep(query, ..., name=...)")
            premature = self._keeps_ends(path, check_identifier(name))
            query = replace(what, planned=what.planned.with_expiration(self.shards, premature=premature))
            ends = query.planned.has_expiration
            layout = layout_of(check_identifier(name), query.schema, "", window, every, retain, result=True, ends=ends)
        else:
            raise CatalogError(f"keep needs the name of a stream, or a query of engine.sql, not {what!r}")
        label = f"window {name}"
        self._check_free(label)
        kept = KeptOutput(layout, path, recorder, isinstance(what, str))
        sink, outbox = WindowSink(), size_in_bytes(_OUTBOX, "outbox")
        member = JobMember(label, query, sink, "changes", None, "fail", None, outbox, False, False, kept)
        self.members[label.lower()] = member

    def _keeps_ends(self, path: str | None, name: str) -> bool:
        """Whether an answer that is kept there has expiration times, also where rows may be retracted before."""
        from sash.spark.kept_window import StoreFolder
        from sash.window_store.store.layout import keeps_ends

        if path is None and (self.checkpoint is None or "://" in self.checkpoint):
            return True
        return keeps_ends(StoreFolder.of(path, self.checkpoint, name).root)

    def planned(
        self,
        shards: int | None = None,
        kept: Kept | None = None,
        joins: Mapping[str, JoinColumns] | None = None,
    ) -> PlannedJob:
        """The queries planned together, for a number of shards.

        `kept` are templates of alike queries in a checkpoint, and `joins` the columns that the joins of its queries have.
        """
        if not self.members:
            raise OptionError(f"job {self.name} has no queries: add one with job.add")
        width = self.shards if shards is None else shards
        members = self.members.values()
        ending = [m.name for m in members if m.window is not None and m.query.planned.has_expiration]
        alike = plan_alike([found for m in members if (found := m.candidate) is not None], width, kept)
        return plan_together({m.name: m.query.planned for m in members}, width, ending, alike, joins)

    def copied(self) -> Job:
        """The same job, to which queries can be added."""
        made = copy(self)
        made.members = dict(self.members)
        return made

    def on_checkpoint(self, checkpoint: str, name: str) -> Job:
        """The same job under another name, in another checkpoint directory."""
        made = self.copied()
        made.checkpoint, made.name = checkpoint, name
        return made

    def explain(self) -> str:
        """Return the plan of the job as text: what its queries share, what that saves, and how often sinks get a change."""
        lines = [f"Outputs: {counted(len(self.members), 'sink', 'sinks')}"]
        for member in self.members.values():
            failing = "; suspended if it fails" if member.on_error == "suspend" else ""
            lines.append(f"  {member.name}: {member.sink.name}, mode {member.mode}, {member.sink.guarantee}{failing}")
        return f"{self.planned().explain().rstrip()}\n\n" + "\n".join(lines) + "\n"

    def diff(self) -> JobDiff:
        """Compare the job with the one that its checkpoint belongs to: what starting it with `on_change="apply"` would keep.

        The other job may be running.
        """
        from sash.spark.job_start import JobStart

        return JobStart(self).diff()

    def start(self, observe: bool = False, on_change: OnChange = "refuse") -> RunningJob:
        """Start the job. With `observe`, statistics of the streams are collected for `RunningJob.statistics`.

        If its checkpoint belongs to a job with other queries, options or shards, `on_change="refuse"` raises a
        JobChangedError that says what a change would keep; with "apply" the checkpoint is changed, and the job goes on.
        """
        from sash.running_job import RunningJob
        from sash.spark.connect import refuse_connect
        from sash.spark.job_start import JobStart

        refuse_connect(self.engine.spark, "a job")
        check_flag("observe", observe)
        check_word("on_change", on_change, _ON_CHANGE)
        running = RunningJob(JobStart(self, observe, on_change).run())
        self.engine.register_job(running)
        return running

    def __repr__(self) -> str:
        return f"Job({self.name!r}, queries: {', '.join(m.name for m in self.members.values()) or 'none'})"

    def _check_free(self, name: str) -> None:
        if name.lower() in self.members:
            raise CatalogError(f"the job already has a query {name}: choose another name")


__all__ = ["Job", "JobMember", "KeptOutput"]
