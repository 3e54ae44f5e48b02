"""A job over the checkpoint of another one: what differs, and the change of the checkpoint to the new job.

The checkpoint has the plan of the job that wrote it, besides the texts of its queries: a plan also depends on statistics.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from sash.alike import number_of
from sash.change.diff import JobDiff, diff_jobs
from sash.change.stored import AlikePlace, Answer, JobPlan, StoredState
from sash.errors import CheckpointError
from sash.physical.nodes import PhysicalPlan, UpdateLeg
from sash.physical.stored_plan import decode_plan, encode_plan
from sash.plan.nodes import ONE_ROW, Node, Relation
from sash.plan.nodes import walk as walk_logical
from sash.plan.types import Schema
from sash.runtime.legs import stage_tables
from sash.spark.backfill import reached
from sash.spark.dataflow import job_frame, job_sources, time_type
from sash.spark.errors import sash_errors
from sash.spark.folders import Folder
from sash.spark.generations import Change, Generations, Incomplete, JobShape, OnStep, compare, last_batch, survey
from sash.spark.job_manifest import read_manifest
from sash.spark.layout import Layout, Suspended, layout_of
from sash.spark.ledger import Ledger
from sash.spark.legs import relation_table
from sash.spark.messages import OUTPUT
from sash.spark.offsets import Sources
from sash.spark.outbox import Outbox
from sash.spark.output import OutputMode
from sash.spark.parking import Parking
from sash.spark.session import query_settings
from sash.spark.sinks.base import OutputSpec
from sash.spark.sinks.batch import ADDED, Unpack, split_answers
from sash.spark.sources.constants import constants_tables
from sash.spark.sources.inputs import QueryInputs
from sash.spark.sources.shared import shared_sources
from sash.spark.uncommitted import remove_uncommitted
from sash.state.changes import ChangeBatch

OnChange = Literal["refuse", "apply"]
"""What happens if a checkpoint belongs to another job."""

PLAN = "sash-plan.json"
_LIMIT = 64 << 20


def job_shape(
    plan: PhysicalPlan,
    manifest: Mapping[str, Any],
    inputs: QueryInputs,
    outputs: Mapping[str, OutputSpec],
    constants: Mapping[str, ChangeBatch],
    backfill: frozenset[str],
    waits: frozenset[str],
) -> JobShape:
    """The shape of a job over its inputs; `backfill` and `waits` are queries with BACKFILL and WHEN COMPLETE."""
    layout = layout_of(plan, int(manifest["shards"]), share=True)
    slack = {name: source.slack for name, source in inputs.streams.items() if source.slack}
    given = replace(_job_plan(layout, manifest), slack=slack, backfill=backfill, waits=waits)
    names = job_sources(layout, inputs)
    read = {name: inputs.streams[name] for name in sorted(set(names) & inputs.streams.keys())}
    sources = Sources(names, shared_sources(read))
    return JobShape(given, layout, partial(_tables, plan, inputs), sources, outputs, constants, inputs)


def _job_plan(layout: Layout, manifest: Mapping[str, Any]) -> JobPlan:
    """The plan of a job with the queries of its manifest."""
    queries = manifest["queries"]
    answers = {q["name"]: Answer(q["sql"], tuple(q["columns"]), f"{q['sink']} {q['sink_options']}") for q in queries}
    alike = {q["name"]: AlikePlace(q["alike"], number_of(q["name"])) for q in queries if q["alike"] is not None}
    return JobPlan(layout.plan, layout.channels, int(manifest["shards"]), answers, alike=alike)


def _tables(plan: PhysicalPlan, inputs: QueryInputs) -> dict[Node, pa.Table]:
    """The tables that the stages look up."""
    for node in stage_tables(plan):
        for below in walk_logical(node):
            if (
                isinstance(below, Relation)
                and below.name != ONE_ROW.name
                and below.name.lower() not in inputs.relations
            ):
                raise CheckpointError(
                    f"the change needs relation {below.name}, which the old job looked up: declare it until the job has changed"
                )
    return {node: relation_table(node, inputs.relations) for node in stage_tables(plan)}


def described_plan(shape: JobShape) -> dict[str, Any]:
    """What the manifest has of a job's plan: what its state holds, and the order of its sources."""
    return {
        "channels": {channel.identity: channel.description for channel in shape.layout.channels.channels},
        "stages": list(shape.layout.channels.stages),
        "sources": list(shape.sources.names),
    }


def save_plan(folder: Folder, plan: PhysicalPlan) -> None:
    """Keep the plan of the job that a generation belongs to."""
    folder.write(PLAN, encode_plan(plan))


def kept_plan(folder: Folder) -> PhysicalPlan | None:
    """The plan of the job that wrote a generation; None if it is not there."""
    found = folder.read(PLAN)
    return None if found is None else decode_plan(found)


def stored_shape(folder: Folder, manifest: Mapping[str, Any], inputs: QueryInputs) -> JobShape:
    """The shape of the job that wrote a generation; `inputs` are needed only for what its stages look up."""
    plan = kept_plan(folder)
    if plan is None:
        raise CheckpointError(
            f"{folder.location} does not have the plan of its job ({PLAN}), so its state cannot change: restore the file from "
            "a copy, or go on without a change"
        )
    layout = layout_of(plan, int(manifest["shards"]), share=True)
    known = manifest["plan"]
    names = [channel.identity for channel in layout.channels.channels], list(layout.channels.stages)
    if names != (list(known["channels"]), list(known["stages"])):
        raise CheckpointError(
            f"the plan in {folder.location} does not name its state as this version of Sash does, so the state cannot change: "
            "if the file was edited, restore it from a copy; otherwise run the version that wrote it, or start with a new "
            "checkpoint"
        )
    sources = Sources(known["sources"], manifest.get("shared_sources", {}))
    return JobShape(_job_plan(layout, manifest), layout, partial(_tables, plan, inputs), sources)


def has_changed(known: Mapping[str, Any], manifest: Mapping[str, Any]) -> bool:
    """Whether the job of a manifest needs another generation than the known one.

    It does not if alike queries come, go or get other constants, and others of their template stay.
    """
    if any(known.get(part, manifest[part]) != manifest[part] for part in ("shards", "plan", "shared_sources")):
        return True
    old, new = ({query["name"]: query for query in given["queries"]} for given in (known, manifest))
    moved = any(old[name][part] != new[name][part] for name in old.keys() & new.keys() for part in _PLACE)
    return moved or any((old.get(name) or new[name])["alike"] is None for name in old.keys() ^ new.keys())


_PLACE = ("columns", "sink", "sink_options", "alike")
"""What a query's sink gets, and where it is computed."""


@dataclass(frozen=True)
class JobChange:
    """The change of a job's checkpoint in `root` to a job of this shape."""

    spark: SparkSession
    root: str
    shape: JobShape
    manifest: Mapping[str, Any]
    inputs: QueryInputs
    limits: Mapping[str, int] = field(default_factory=dict)
    """The bounds of the queries' outboxes, in bytes."""
    seeds: Sequence[Callable[[], None]] = ()
    """Called when the state of the new generation has been written, and it has the constants of new alike queries."""
    on_step: OnStep = lambda _: None

    @property
    def _generations(self) -> Generations:
        return Generations(self.spark, self.root)

    def needed(self) -> bool:
        """Whether the checkpoint belongs to another job; not if it is new."""
        known = read_manifest(self._generations.current)
        return known is not None and has_changed(known, self.manifest)

    def diff(self) -> JobDiff:
        """What the change would keep, derive and begin anew. The job may be running."""
        folder = self._generations.current
        known = read_manifest(folder)
        if known is None:
            return diff_jobs(self.shape.plan, self.shape.plan, StoredState())
        old = stored_shape(folder, known, self.inputs)
        headers = survey(self.spark, folder, old)
        read = reached(folder, last_batch(folder)[0], old.sources)
        return compare(old, self.shape, headers, Incomplete.of(known).learnt(folder, old), read)

    def apply(self) -> JobDiff:
        """Change the checkpoint: then the new job goes on from it. The caller holds the checkpoint's lock."""
        folder = self._generations.current
        known = read_manifest(folder)
        assert known is not None
        old = stored_shape(folder, known, self.inputs)
        if last_batch(folder)[1]:
            self._finish(folder, old, known)
        change = Change(
            self.spark, self._generations, old, self.shape, self.manifest, max([_LIMIT, *self.limits.values()]),
            self._step,
        )  # fmt: skip
        diff = change.apply()
        logging.getLogger("sash").info("the job has changed: %s", "; ".join(diff.render().splitlines()))
        return diff

    def _step(self, step: Any) -> None:
        if step == "outbox":
            for seed in self.seeds:
                seed()
        if step == "manifest":
            save_plan(self._generations.following, self.shape.layout.plan)
        self.on_step(step)

    def _finish(self, folder: Folder, old: JobShape, known: Mapping[str, Any]) -> None:
        """Finish the batch that the old job has begun. What its sinks have not got goes to their outboxes."""
        plan = old.layout.plan
        inputs = self._with_constants(plan)
        missing = [name for name in old.sources.names if name.removeprefix("heartbeat of ") not in inputs.streams]
        if missing:
            raise CheckpointError(
                f"the job was interrupted in a batch that reads {missing[0]}, which is gone: declare it, or start the old "
                "job once more, so that the batch is finished"
            )
        first = int(known.get("first_batch", 0))
        ledger = Ledger(folder.inside("ledger"))
        queries: dict[str, list[Mapping[str, Any]]] = {}
        for query in known["queries"]:
            queries.setdefault(query["alike"] or query["name"], []).append(query)
        time = time_type(plan, inputs)

        def write(batch: DataFrame, number: int) -> None:
            done = ledger.begin(first + number)
            messages = batch.where(sf.col("channel") == OUTPUT).select("output", "sender", "seq", "blob").toArrow()
            ordered = messages.sort_by([("sender", "ascending"), ("seq", "ascending")])
            for position, output in enumerate(plan.outputs):
                blobs = [
                    blob.as_buffer()
                    for place, blob in zip(ordered["output"], ordered["blob"], strict=True)
                    if place.as_py() == position
                ]
                schema = plan.stages[output.stage].root.schema
                table = Unpack(schema, time).table(blobs)
                split = split_answers(table) if queries[output.query][0]["alike"] is not None else None
                for query in queries[output.query]:
                    if query["name"] in done:
                        continue
                    mine = table if split is None else split.get(number_of(query["name"]))
                    if mine is not None:
                        columns = schema if split is None else schema[1:]
                        spec = OutputSpec(_named(columns, query["columns"]), time, query["mode"], _key(query), "")
                        outbox = Outbox(folder.inside("outbox"), query["name"], spec, query["outbox"])
                        outbox.add(first + number, mine.rename_columns([*ADDED, *spec.names]))
                    ledger.commit(query["name"])

        modes = [_output_mode(queries[output.query][0]) for output in plan.outputs]
        suspended = Parking(folder).suspended
        standing = Suspended(suspended.standing, suspended.unevaluated)
        remove_uncommitted(folder.location)
        with query_settings(self.spark, old.plan.shards, folder.location), sash_errors():
            frame = job_frame(plan, inputs, old.plan.shards, modes, standing)
            writer = frame.writeStream.foreachBatch(write).option("checkpointLocation", folder.location)
            writer.trigger(once=True).start().awaitTermination()

    def _with_constants(self, plan: PhysicalPlan) -> QueryInputs:
        """The inputs with the constants of the alike queries of a plan."""
        tables = constants_tables(
            self.spark, [leg.relation for leg in plan.legs if isinstance(leg, UpdateLeg)], self.root
        )
        found = {name: table.source() for name, table in tables.items() if name not in self.inputs.streams}
        return replace(self.inputs, streams={**found, **self.inputs.streams})


def _key(query: Mapping[str, Any]) -> tuple[int, ...] | None:
    return None if query["key"] is None else tuple(query["key"])


def _output_mode(query: Mapping[str, Any]) -> OutputMode:
    """How the output of a query is reduced; alike queries share one, with the number of the query as its first column."""
    key = _key(query)
    return OutputMode(query["mode"], key if key is None or query["alike"] is None else (0, *(1 + n for n in key)))


def _named(schema: Schema, columns: Sequence[str]) -> Schema:
    """The columns of a stage under the names that a query has for them."""
    return tuple(replace(f, name=text.rsplit(":", 1)[0]) for f, text in zip(schema, columns, strict=True))


def rescale(spark: SparkSession, root: str, shards: int, on_step: OnStep = lambda _: None) -> JobDiff:
    """Move the state of a job that does not run to another number of shards; its streams are not needed.

    The plan stays. A job that was interrupted in a batch, or whose stages look up tables, is rescaled by starting it with
    the new number.
    """
    folder = Generations(spark, root).current
    known = read_manifest(folder)
    if known is None:
        raise CheckpointError(f"{root} has no job to rescale: give the folder of a job's checkpoint")
    if last_batch(folder)[1]:
        raise CheckpointError(
            "the job was interrupted in a batch: start it once so that the batch is finished, or start it with "
            f"--shards {shards} --on-change apply"
        )
    old = stored_shape(folder, known, QueryInputs({}))
    layout = layout_of(old.layout.plan, shards, share=True)
    manifest = {**known, "shards": shards}
    new = JobShape(_job_plan(layout, manifest), layout, old.tables, old.sources)
    return JobChange(spark, root, new, manifest, QueryInputs({}), on_step=on_step).apply()
