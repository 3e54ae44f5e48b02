"""The outputs of a job: of its queries, with their sinks, outboxes and kept windows, and of rows that are dropped and kept."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession

from sash.change.stored import AT_ONCE, Completeness
from sash.errors import StoreError
from sash.physical.nodes import PhysicalPlan
from sash.physical.plan_channels import channels_of
from sash.plan.types import TIMESTAMP
from sash.planning import PlannedJob
from sash.private_folders import make_private
from sash.spark.completion import Completion
from sash.spark.dataflow import time_type
from sash.spark.folders import Folder
from sash.spark.generations import Incomplete
from sash.spark.job_history import JobHistory
from sash.spark.job_manifest import read_manifest
from sash.spark.job_output import JobOutput
from sash.spark.kept_window import StoreFolder
from sash.spark.outbox import Outbox
from sash.spark.parking import Parking
from sash.spark.rejected import COLUMNS, rejected_outputs
from sash.spark.sinks.base import OutputSpec
from sash.spark.sinks.batch import Batch
from sash.spark.sinks.function import WindowSink
from sash.spark.sources.inputs import QueryInputs
from sash.spark.window_store import ApplyChanges, ApplyInsertions
from sash.window_store.store.sets import WindowSets

if TYPE_CHECKING:
    from sash.job import Job, JobMember

_OWNER = "job.json"
"""The file of a store with the identity of the job that fills it."""


@dataclass(frozen=True)
class JobOutputs:
    """Makes the outputs of one run of a job. `windows` are its open stores of kept windows, and `complete` has from when
    stages are complete, of those that are not."""

    spark: SparkSession
    inputs: QueryInputs
    identity: str
    folder: Folder
    parking: Parking
    windows: Mapping[str, WindowSets]
    complete: Mapping[int, Completeness]
    history: JobHistory | None = None

    def output(self, member: JobMember, planned: PlannedJob) -> JobOutput:
        """The output of a query."""
        time = time_type(member.query.planned.physical, self.inputs)
        spec = OutputSpec(planned.columns(member.name), time, member.mode, member.key, f"{self.identity}-{member.name}")
        sink = member.sink
        if member.window is not None:
            writer = self.windows[member.name]
            sink = WindowSink(ApplyInsertions(writer) if member.window.of_stream else ApplyChanges(writer))
        sink.check(spec)
        outbox = Outbox(self.folder.inside("outbox"), member.name, spec, member.outbox)
        to_batch = partial(Batch.of_table, schema=spec.schema, time=spec.time, spark=self.spark)
        output = planned.output(member.name)
        position = planned.physical.outputs.index(output)
        completion = Completion(
            self.complete.get(output.stage, AT_ONCE), member.when_complete, member.name, self.folder
        )
        made = JobOutput(
            member.name, position, spec, sink, member.on_error, outbox, self.parking, to_batch, completion=completion
        )
        if member.name in planned.members:
            template, query = planned.members[member.name]
            made.template, made.number = template.name, query.number
        if self.history is not None and member.window is None:
            made.record, made.settle = self.history.record(member.name, spec), self.history.settle
        return made

    def rejected(self, planned: PlannedJob) -> list[JobOutput]:
        """The outputs of rows that are dropped."""
        made = []
        for one in rejected_outputs(planned.streams, self.inputs, len(planned.physical.outputs)):
            spec = OutputSpec(COLUMNS, TIMESTAMP, "changes", None, f"{self.identity}-{one.name}")
            outbox = Outbox(self.folder.inside("outbox"), one.name, spec, 0)
            to_batch = partial(Batch.of_table, schema=spec.schema, time=spec.time, spark=self.spark)
            made.append(JobOutput(one.name, one.position, spec, one.sink, "fail", outbox, self.parking, to_batch))
        return made


def open_windows(job: Job, identity: str, on_stop: ExitStack) -> dict[str, WindowSets]:
    """Open the stores of kept windows, by the names of their outputs."""
    writers: dict[str, WindowSets] = {}
    queries = job.engine.windows
    for member in job.members.values():
        if member.window is None:
            continue
        layout = member.window.layout
        folder = StoreFolder.of(member.window.path, job.checkpoint, layout.name)
        _claim(folder.root, identity)
        writer = queries.write(folder.root, layout, member.window.recorder)
        if folder.temporary is not None:
            on_stop.callback(folder.temporary.remove)
        on_stop.callback(writer.close)
        on_stop.callback(queries.detach, layout.name)
        writers[member.name] = writer
    return writers


def completeness(folder: Folder, plan: PhysicalPlan) -> dict[int, Completeness]:
    """From when the stages of a plan are complete, of those that were not when the generation began."""
    known = Incomplete.of(read_manifest(folder) or {}).stages
    identities = channels_of(plan, share=True).stages
    return {stage: known[identity] for stage, identity in enumerate(identities) if identity in known}


def _claim(root: Path, identity: str) -> None:
    """Let only one job, or one query of `Engine.keep`, fill a store: it recognizes repeated batches by their numbers."""
    owner = root / _OWNER
    known = owner.read_text() if owner.exists() else None
    if known == identity:
        return
    if known is not None or (root / "manifest.json").exists():
        raise StoreError(
            f"the window store in {root} is filled by another job or checkpoint: keep the window in another path, or remove "
            "the store"
        )
    make_private(root)
    owner.write_text(identity)
