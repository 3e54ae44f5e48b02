"""Starting a job: its checkpoint is locked and checked, its sinks are opened, and its Spark query is started."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.query import StreamingQuery

from sash.change.diff import JobDiff
from sash.errors import CatalogError, CheckpointError, JobChangedError, SashError
from sash.optimizer.widen_joins import JoinColumns
from sash.physical.state_names import value_text
from sash.plan.nodes import Relation, Stream, walk
from sash.planning import PlannedJob, PlannedTemplate
from sash.spark.alike_run import AlikeRun, described
from sash.spark.checkpoint_lock import CheckpointLock, lock_checkpoint
from sash.spark.dataflow import job_frame, time_type
from sash.spark.diagnosis import locate_bad_row
from sash.spark.file_batches import FileBatches
from sash.spark.fingerprint import remove_drafts
from sash.spark.folders import Folder
from sash.spark.generations import Generations, last_batch
from sash.spark.header import FORMAT
from sash.spark.job_batch import BatchFunction
from sash.spark.job_change import JobChange, OnChange, described_plan, job_shape, kept_plan, save_plan
from sash.spark.job_history import JobHistory, history_folder, kept_outputs
from sash.spark.job_manifest import (
    DEFAULT_NAME,
    check_manifest,
    first_batch,
    generation_folder,
    read_manifest,
)
from sash.spark.job_output import JobOutput
from sash.spark.job_outputs import JobOutputs, completeness, open_windows
from sash.spark.job_progress import JobProgress, scopes
from sash.spark.job_run import JobRun, leg_suspects
from sash.spark.layout import Suspended
from sash.spark.ledger import Ledger
from sash.spark.output import OutputMode
from sash.spark.parking import Parking
from sash.spark.rejected import bad_row_limits
from sash.spark.resumption import Resumption, forget_answers
from sash.spark.session import query_settings
from sash.spark.sinks.base import OutputSpec
from sash.spark.sinks.start import WriteFailure, start_query
from sash.spark.sources.constants import ConstantsTable, constants_tables
from sash.spark.sources.inputs import QueryInputs
from sash.spark.sources.observation import StreamObservation, observe_streams
from sash.spark.sources.refresh import TableRefresh
from sash.spark.sources.tables import recorded_tables, refresh_tables
from sash.spark.stream_watch import StreamWatch
from sash.spark.temporary import TemporaryFolder
from sash.spark.topics import Ids, check_topics, keep_topics
from sash.spark.uncommitted import remove_uncommitted
from sash.window_store.store.sets import WindowSets

if TYPE_CHECKING:
    from sash.job import Job, JobMember


@dataclass
class StartedJob:
    """A job that has been started, with all that its handle needs."""

    name: str
    planned: PlannedJob
    run: JobRun
    outputs: Mapping[str, JobOutput]
    progress: JobProgress
    parking: Parking
    tables: Mapping[str, TableRefresh]
    watch: StreamWatch
    lock: CheckpointLock
    root: str
    folder: Folder
    observation: StreamObservation | None = None
    temporary: TemporaryFolder | None = None
    windows: dict[str, WindowSets] = field(default_factory=dict)
    on_stop: ExitStack = field(default_factory=ExitStack)
    history: JobHistory | None = None
    alike: AlikeRun = field(init=False)
    """Adds and removes alike queries."""


class JobStart:
    """Starts one job."""

    def __init__(self, job: Job, observe: bool = False, on_change: OnChange = "refuse") -> None:
        self._job = job
        self._observe = observe
        self._on_change = on_change
        self._spark = job.engine.spark

    def run(self) -> StartedJob:
        """Start the job."""
        job = self._job
        job.trigger.check_heartbeats(self._heartbeats(job.planned()))
        with ExitStack() as undo:
            root, temporary = self._root()
            if temporary is not None:
                undo.callback(temporary.remove)
            lock = lock_checkpoint(self._spark, root, job.name)
            undo.callback(lock.release)
            folder = generation_folder(self._spark, root)
            planned, shards = self._planned(folder)
            plans = [query.planned for query in planned.queries]
            inputs, tables = refresh_tables(self._spark, self._inputs(root), planned.changing, planned.streams, root)
            constants = self._constants(root, planned)
            begun = self._new_templates(folder, planned)
            for template in begun:
                constants[template.name].clear()
            inputs = with_constants(inputs, planned.templates, constants)
            topics = self._topics(folder, planned, inputs)
            change = self._change(root, planned, shards, inputs, {one.name: constants[one.name] for one in begun})
            before = folder
            folder = self._changed(change, folder)
            keep_topics(folder, topics)
            for template in planned.templates:
                constants[template.name].replace(template.rows)
            identity = check_manifest(folder, change.manifest)
            save_plan(folder, planned.physical)
            remove_drafts(folder.location)
            inputs = observe_streams(inputs, plans) if self._observe else inputs
            on_stop = undo.enter_context(ExitStack())
            parking = Parking(folder)
            parking.keep_only(frozenset((*planned.names, *(member.name for member in self._members))))
            windows = open_windows(job, identity, on_stop)
            history = self._history()
            if history is not None:
                undo.callback(history.close)
            made = JobOutputs(
                self._spark, inputs, identity, folder, parking, windows, completeness(folder, planned.physical), history
            )
            outputs = [made.output(member, planned) for member in self._members]
            rejected = made.rejected(planned)
            if history is not None:
                self._open_history(history, folder, before, outputs)
            for output in (*outputs, *rejected):
                output.open()
                output.catch_up()
            streams = {query.name: query.planned.streams for query in planned.queries}
            progress = JobProgress(planned.physical, scopes(planned.physical, streams), first_batch(folder))
            for output in outputs:
                if output.template is not None:
                    progress.add_alike(output.name, output.template)
            if history is not None:
                progress.on_committed = history.commit
            run = self._run(planned, shards, inputs, folder, outputs, progress, parking, history)
            run.batches.rejected = rejected
            run.batches.limits = bad_row_limits(planned.streams, inputs)
            undo.pop_all()
        started = StartedJob(
            job.name, planned, run, {o.name: o for o in outputs}, progress, parking, tables,
            StreamWatch({n: s.watched for n in planned.streams if (s := inputs.streams.get(n.lower()))}),
            lock, root, folder, StreamObservation(plans) if self._observe else None, temporary, windows, on_stop, history,
        )  # fmt: skip
        if history is not None:
            on_stop.callback(history.close)
        started.alike = AlikeRun(job, started, constants, made.output)
        for table in tables.values() if job.trigger.word is None else ():
            table.start()
        return started

    @property
    def _members(self) -> list[JobMember]:
        return list(self._job.members.values())

    def _root(self) -> tuple[str, TemporaryFolder | None]:
        """The job's folder, and the temporary folder that has it, if nobody named one."""
        base, temporary = self._job.checkpoint, None
        if base is None:
            temporary = TemporaryFolder("checkpoint")
            base = str(temporary.path)
        return f"{base.rstrip('/')}/{self._job.name}", temporary

    def _planned(self, folder: Folder) -> tuple[PlannedJob, int]:
        """The job planned for the number of shards of its checkpoint, unless the user chose another."""
        known = read_manifest(folder) or {}
        given = known.get("shards")
        shards = self._job.shards if given is None or self._job.shards_chosen else int(given)
        unwidened: Mapping[str, JoinColumns] = {query["name"]: {} for query in known.get("queries", ())}
        planned = self._job.planned(shards, known.get("templates"), known.get("joins", unwidened))
        # A plan also depends on statistics, and on the number of shards it was made for: queries that stay keep theirs.
        if given == shards and known["definitions"] == self._definitions(planned):
            with suppress(CheckpointError):  # of a plan that this version cannot read: it is planned anew, and compared
                planned = replace(planned, physical=kept_plan(folder) or planned.physical)
        return planned, shards

    def _definitions(self, planned: PlannedJob) -> dict[str, str]:
        """What the plans of the queries depend on, besides estimates: their texts and options, streams and relations."""
        texts = {
            m.name: f"{m.query.planned.sql.strip()} {m.query.planned.options}"
            for m in self._members
            if m.name not in planned.members
        }
        texts |= {template.name: "" for template in planned.templates}
        sources = {
            node.name: f"{type(node).__name__} {[str(field) for field in node.schema]} {value_text(node)}"
            for query in planned.queries
            for node in walk(query.planned.written)
            if isinstance(node, Stream | Relation)
        }
        return {**{f"query {name}": text for name, text in texts.items()}, **sources}

    def diff(self) -> JobDiff:
        """Compare the job with the one that its checkpoint belongs to."""
        return self._change_now().diff()

    def manifest(self) -> Mapping[str, Any]:
        """What the checkpoint would record of the job, which may be running in another definition."""
        return self._change_now().manifest

    def _change_now(self) -> JobChange:
        """The change of the checkpoint as it would be now, to be looked at only."""
        root, temporary = self._root()
        if temporary is not None:
            temporary.remove()
            raise CheckpointError("a job without a checkpoint has nothing to be compared with: give it a checkpoint")
        planned, shards = self._planned(generation_folder(self._spark, root))
        inputs = recorded_tables(self._spark, self._inputs(root), planned.changing, planned.streams, root)
        inputs = with_constants(inputs, planned.templates, self._constants(root, planned))
        return self._change(root, planned, shards, inputs, {})

    def _constants(self, root: str, planned: PlannedJob) -> dict[str, ConstantsTable]:
        """The tables of the constants of alike queries, by the names of the templates."""
        found = constants_tables(self._spark, [one.template.relation for one in planned.templates], root)
        return {one.name: found[one.template.relation.name.lower()] for one in planned.templates}

    @staticmethod
    def _new_templates(folder: Folder, planned: PlannedJob) -> list[PlannedTemplate]:
        """The templates of alike queries that the job of the generation in use does not have."""
        known = (read_manifest(folder) or {}).get("templates", {})
        return [template for template in planned.templates if template.name not in known]

    def _change(
        self, root: str, planned: PlannedJob, shards: int, inputs: QueryInputs, begun: Mapping[str, ConstantsTable]
    ) -> JobChange:
        """The change of the checkpoint to this job; `begun` are the tables of constants of templates that it does not have."""
        outputs = {}
        for member in self._members:
            time = time_type(member.query.planned.physical, inputs)
            outputs[member.name] = OutputSpec(planned.columns(member.name), time, member.mode, member.key, "")
        limits = {member.name: member.outbox for member in self._members}
        rows = {one.name: one.rows for one in planned.templates}
        relations = {one.name: one.template.relation.name.lower() for one in planned.templates}
        constants = {relations[name]: table.changes(rows[name]) for name, table in begun.items()}
        seeds = [partial(table.seed, rows[name]) for name, table in begun.items()]
        manifest = self._manifest(planned, shards)
        backfill = frozenset(member.name for member in self._members if member.backfill)
        waits = frozenset(member.name for member in self._members if member.when_complete)
        shape = job_shape(planned.physical, manifest, inputs, outputs, constants, backfill, waits)
        manifest |= {"plan": described_plan(shape), "shared_sources": dict(shape.sources.shared)}
        return JobChange(self._spark, root, shape, manifest, inputs, limits, seeds)

    def _topics(self, folder: Folder, planned: PlannedJob, inputs: QueryInputs) -> Ids:
        """The identities of the topics that are read. A job that goes on with another topic reads it from its beginning."""
        sources = (read_manifest(folder) or {}).get("plan", {}).get("sources", [])
        read = {name.lower() for name in (*planned.streams, *planned.changing)}
        streams = {name: source for name, source in inputs.streams.items() if name in read}
        return check_topics(self._spark, folder, sources, streams, self._on_change)

    def _changed(self, change: JobChange, folder: Folder) -> Folder:
        """The generation to run: that of the checkpoint, or, if the job has changed, the next one."""
        if not change.needed():
            return folder
        if self._on_change == "refuse":
            raise JobChangedError(
                f"the job has changed since it wrote checkpoint {folder.location}:\n{change.diff().render()}\n"
                'Start it with on_change="apply" (sash run --on-change apply), restore it, or use a new checkpoint'
            )
        change.apply()
        return generation_folder(self._spark, change.root)

    def _manifest(self, planned: PlannedJob, shards: int) -> dict[str, Any]:
        return {
            "version": version("sash"),
            "state": FORMAT,
            "shards": shards,
            "streams": list(planned.streams),
            "relations": list(planned.changing),
            "heartbeats": self._heartbeats(planned),
            "queries": described(self._members, planned),
            "templates": {one.name: list(one.template.parameters) for one in planned.templates},
            "definitions": self._definitions(planned),
            "joins": planned.joins.columns,
        }

    def _heartbeats(self, planned: PlannedJob) -> list[str]:
        sources = self._inputs().streams
        names = (*planned.streams, *planned.changing)
        return [name for name in names if (s := sources.get(name.lower())) is not None and s.heartbeat is not None]

    def _inputs(self, root: str | None = None) -> QueryInputs:
        """The inputs of all queries of the job in `root`; a name must stand for the same stream or relation in each."""
        merged = QueryInputs({}, {}, refreshed={}, home=root)
        for member in self._members:
            given = member.query.inputs
            used = {name.lower() for name in (*member.query.planned.streams, *member.query.planned.changing)}
            for name in used & merged.streams.keys() & given.streams.keys():
                if merged.streams[name] is not given.streams[name]:
                    raise CatalogError(f"{name} was registered again after a query of the job was made: make it anew")
            merged = replace(
                merged,
                streams={**given.streams, **merged.streams},
                relations={**given.relations, **merged.relations},
                refreshed={**given.refreshed, **merged.refreshed},
            )
        return merged

    def _history(self) -> JobHistory | None:
        """The history of the job, if its engine keeps any."""
        kept = self._job.engine.history
        return None if kept is None else JobHistory(history_folder(kept[0], self._job.name), kept[1])

    @staticmethod
    def _open_history(history: JobHistory, folder: Folder, before: Folder, outputs: Sequence[JobOutput]) -> None:
        """Continue the history, given the generation to run and the one that was in use before this start."""
        committed, _ = last_batch(folder)
        fresh = committed is None and first_batch(folder) == 0
        switched = None
        if folder.location != before.location:
            switched = first_batch(folder) + int((read_manifest(folder) or {}).get("seed", 0))
        history.open(kept_outputs(outputs), fresh=fresh, switched=switched)

    def _run(
        self,
        planned: PlannedJob,
        shards: int,
        inputs: QueryInputs,
        folder: Folder,
        outputs: list[JobOutput],
        progress: JobProgress,
        parking: Parking,
        history: JobHistory | None,
    ) -> JobRun:
        job, path = self._job, folder.location
        modes_of = {output.name: OutputMode(output.spec.mode, output.spec.key) for output in outputs}
        modes_of |= {template.name: OutputMode(template.mode, template.key) for template in planned.templates}
        modes = [modes_of[output.query] for output in planned.physical.outputs]
        limits = {member.name: member.max_state for member in self._members if member.max_state is not None}
        ledger, failure = Ledger(folder.inside("ledger")), WriteFailure()
        generations = Generations(self._spark, folder.location.rstrip("/").rsplit("/", 1)[0])
        forget_answers(folder, parking.names)
        resumption = Resumption(folder, parking, planned.physical, modes, outputs)
        batches = BatchFunction(
            outputs, ledger, progress, parking, resumption, failure, limits, generations.clean, first_batch(folder)
        )
        batches.history = history

        read = replace(inputs, bounded=job.trigger.word is not None)

        def start(suspended: Suspended) -> StreamingQuery:
            remove_uncommitted(path)
            with query_settings(self._spark, shards, path):
                frame = job_frame(planned.physical, read, shards, modes, suspended)
                return start_query(
                    frame, batches, {}, job.trigger, path, None if job.name == DEFAULT_NAME else job.name
                )

        def diagnose(error: SashError) -> SashError:
            for query in planned.queries:
                error = locate_bad_row(error, inputs=inputs, planned=query.planned, checkpoint=path)
            return error

        on_error = {name: output.on_error for output in outputs for name in (output.name, output.runs_as)}
        limits = dict(source.batch_limit for source in inputs.streams.values() if source.batch_limit is not None)
        files = FileBatches(self._spark, folder.inside("sources"), limits) if limits else None
        return JobRun(start, batches, progress, parking, on_error, leg_suspects(planned.physical), diagnose, files)


def with_constants(
    inputs: QueryInputs, templates: Sequence[PlannedTemplate], tables: Mapping[str, ConstantsTable]
) -> QueryInputs:
    """The inputs with the constants of alike queries, whose tables are given by the names of the templates."""
    found = {one.template.relation.name.lower(): tables[one.name].source() for one in templates}
    return replace(inputs, streams={**inputs.streams, **found})
