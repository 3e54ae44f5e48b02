"""Generations of a job's checkpoint: how a job changes its plan, its shards or its sources while its windows stay.

Each generation is a checkpoint of Spark's in a folder of its own, and the file CURRENT names the one in use. To change a job:

1. the old generation's last batch is committed (the caller finishes one that is not);
2. the new plan runs one batch over the old state (`seed_scatter.py`, `seed_processor.py`), into a new folder: it fills the
   logs of all shards; what the queries' sinks must get goes to their outboxes;
3. the offsets that the old generation reached replace those of that batch, with the metadata of the sources;
4. CURRENT is replaced: this commits the change;
5. the new job delivers the outboxes with its first batch, and
6. the old generation is deleted after it.

A process that is killed before the fourth step leaves the old job, and after it the new one.
"""

from __future__ import annotations

import json
import logging
import re
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal
from urllib.parse import quote

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from sash.change.diff import JobDiff, diff_jobs
from sash.change.stored import AT_ONCE, Completeness, JobPlan
from sash.errors import CheckpointError
from sash.operators.netting import net_all
from sash.operators.output_modes import reduce_changes
from sash.plan.nodes import Node
from sash.spark.backfill import backfill_frames, check_readable, histories, reached
from sash.spark.completion import completed
from sash.spark.errors import sash_errors
from sash.spark.folders import Folder, local_path
from sash.spark.handover import begins_in_place, constants_of, handover
from sash.spark.job_manifest import CURRENT, NAME
from sash.spark.layout import Layout
from sash.spark.messages import OUTPUT
from sash.spark.offsets import Sources, moved_offsets
from sash.spark.outbox import Outbox
from sash.spark.resumption import NAME as ANSWERS
from sash.spark.seed_files import SeedFiles
from sash.spark.seed_query import adopt, begin_unread, seed_frame
from sash.spark.session import LARGE_ROWS, WHOLE_STATE, query_settings
from sash.spark.sinks.base import OutputSpec
from sash.spark.sinks.batch import by_number, typed_table
from sash.spark.sinks.start import await_sources
from sash.spark.sources.history import Reached
from sash.spark.sources.inputs import QueryInputs
from sash.spark.stored_state import Headers, read_headers, stored_state
from sash.state.changes import ChangeBatch, concat
from sash.state.encoding import decode

Step = Literal["begun", "seeded", "outbox", "offsets", "manifest", "committed"]
"""What has been done of a change. Before `committed`, the old generation is in use; from then on, the new one."""

OnStep = Callable[[Step], None]

_START, _GO = "start", "go.json"
_FILES = "moving"
_COPIED = ("parked.json",)
"""What a generation keeps for its job, besides state and outboxes, and hands on unchanged."""


@dataclass(frozen=True)
class JobShape:
    """A job as a generation needs it: its plan, its layout on shards, the tables of its stages, and its sources in order.

    `tables` reads the static parts of the plan that stages look up. `inputs` are needed of a new job only.
    """

    plan: JobPlan
    layout: Layout
    tables: Callable[[], Mapping[Node, pa.Table]]
    sources: Sources
    outputs: Mapping[str, OutputSpec] = field(default_factory=dict)
    constants: Mapping[str, ChangeBatch] = field(default_factory=dict)
    """The constants of alike queries whose template the old job does not have, by lower-case name of their relation."""
    inputs: QueryInputs = field(default_factory=lambda: QueryInputs({}))


@dataclass(frozen=True)
class Incomplete:
    """What earlier changes left incomplete: since when logs have all rows, and from when stages are complete."""

    logs: Mapping[str, int] = field(default_factory=dict)
    stages: Mapping[str, Completeness] = field(default_factory=dict)

    @staticmethod
    def of(manifest: Mapping[str, Any]) -> Incomplete:
        """Read it from the manifest of a generation."""
        found = manifest.get("incomplete", {})
        stages = {name: Completeness(*entry) for name, entry in found.get("stages", {}).items()}
        return Incomplete(found.get("logs", {}), stages)

    def learnt(self, generation: Folder, old: JobShape) -> Incomplete:
        """With the instants that have become known since, while the generation ran."""
        known = completed(generation)
        stages = {
            old.layout.channels.stages[old.plan.output_stages[old.plan.output_of(name)]]: Completeness(known[name])
            for name in old.plan.answers
            if name in known
        }
        return replace(self, stages={**self.stages, **stages})

    def to_json(self) -> dict[str, Any]:
        """As plain values, for the manifest."""
        return {"logs": dict(self.logs), "stages": {n: [c.instant, c.after] for n, c in self.stages.items()}}


class Generations:
    """The generations in a job's folder."""

    def __init__(self, spark: SparkSession, job: str) -> None:
        self._spark = spark
        self._folder = Folder(spark, job)

    @property
    def current(self) -> Folder:
        """The generation in use."""
        return self._folder.inside(self._name)

    @property
    def _name(self) -> str:
        return (self._folder.read(CURRENT) or "g1").strip()

    @property
    def following(self) -> Folder:
        """The generation after the one in use."""
        return self._folder.inside(f"g{int(self._name[1:]) + 1}")

    def begin(self) -> Folder:
        """An empty folder for the next generation. What an interrupted change left there is deleted."""
        following = f"g{int(self._name[1:]) + 1}"
        if self._folder.exists(following):
            logging.getLogger("sash").warning(
                "%s: a change of the job was interrupted before it took effect; the old job is in use", following
            )
            self._folder.remove_tree(following)
        return self._folder.inside(following)

    def commit(self, generation: Folder) -> None:
        """Make a generation the one in use."""
        self._folder.write(CURRENT, generation.location.rstrip("/").rsplit("/", 1)[1])

    def clean(self) -> None:
        """Delete the generations before the current one, if that has committed a batch of its own; it may take a while."""
        committed, number = last_batch(self.current)[0], int(self._name[1:])
        old = [name for name in self._folder.names() if re.fullmatch(r"g\d+", name) and int(name[1:]) < number]
        seed = int(json.loads(self.current.read(NAME) or "{}").get("seed", 0)) if old else 0
        if old and committed is not None and committed > seed:
            threading.Thread(target=lambda: list(map(self._folder.remove_tree, old)), name="sash-clean").start()


def last_batch(generation: Folder) -> tuple[int | None, bool]:
    """The number of the last committed batch of a generation, and whether a batch after it has begun."""

    def newest(log: str) -> int | None:
        return max((int(name) for name in generation.inside(log).names() if name.isdigit()), default=None)

    begun, committed = newest("offsets"), newest("commits")
    return committed, begun is not None and begun != committed


def survey(spark: SparkSession, generation: Folder, old: JobShape) -> Headers:
    """Read the headers of a generation's state; none if it has not run a batch."""
    committed = last_batch(generation)[0]
    if committed is None:
        return {}
    # The batch that began the generation may have written the state as a whole, instead of what it changed.
    seed = json.loads(generation.read(NAME) or "{}").get("seed")
    return read_headers(spark, generation.location, old.layout, None if committed == seed else committed)


def compare(
    old: JobShape, new: JobShape, headers: Headers, incomplete: Incomplete, read: Mapping[str, Reached]
) -> JobDiff:
    """The difference between the job of a generation, which has `read` its sources so far, and another one."""
    stored = stored_state(old.layout, headers, incomplete.logs, incomplete.stages)
    if new.plan.backfill:
        stored = replace(stored, histories=histories(new.inputs.streams, read))
    diff = diff_jobs(old.plan, new.plan, stored)
    new.sources.begun(old.sources)
    check_readable(diff.classification, new.inputs.streams, read)
    return diff


@dataclass(frozen=True)
class Change:
    """A change of a job: from the generation in use to the next."""

    spark: SparkSession
    generations: Generations
    old: JobShape
    new: JobShape
    manifest: Mapping[str, Any]
    """The manifest of the new job, without what this adds."""
    outbox_limit: int
    on_step: OnStep = lambda _: None

    def apply(self) -> JobDiff:
        """Make the next generation and put it in use; the old one has no uncommitted batch, and nobody writes to it."""
        current = self.generations.current
        committed, pending = last_batch(current)
        if pending:
            raise CheckpointError(
                f"{current.location} has a batch that is not committed: finish it with the old job first"
            )
        known = json.loads(current.read(NAME) or "{}")
        headers = survey(self.spark, current, self.old)
        read = reached(current, committed, self.old.sources)
        diff = compare(self.old, self.new, headers, Incomplete.of(known).learnt(current, self.old), read)
        diff.check()
        made = self.generations.begin()
        number = int(known.get("first_batch", 0)) + (0 if committed is None else committed + 1)
        in_place = current.local and begins_in_place(diff, self.old.layout, self.new.layout, headers)
        seed = 0 if committed is None or not in_place else committed + 1
        self.on_step("begun")
        if headers:
            if seed:
                adopt(current, made, seed - 1)
            self._seed(diff, headers, current, made, number, read, seed)
            self._move_offsets(current, made, committed or 0, seed)
            self.on_step("offsets")
        for name in _COPIED:
            current.copy(name, made)
        written = {
            **self.manifest,
            "identity": known.get("identity"),
            "first_batch": number - seed,
            "seed": seed,
            "incomplete": _left_incomplete(diff).to_json(),
        }
        made.write(NAME, json.dumps(written, indent=2))
        self.on_step("manifest")
        self.generations.commit(made)
        self.on_step("committed")
        return diff

    def _seed(
        self,
        diff: JobDiff,
        headers: Headers,
        current: Folder,
        made: Folder,
        number: int,
        read: Mapping[str, Reached],
        seed: int,
    ) -> None:
        given = handover(diff, self.old.layout, self.new.layout, headers, in_place=seed > 0)
        if given.retracted:
            given = replace(given, old_tables=self.old.tables())
        given = replace(given, constants=constants_of(self.new.layout, self.new.constants))
        if given.restored:
            given = replace(given, new_tables=self.new.tables())
        given = replace(given, files=SeedFiles(local_path(made.inside(_FILES).location)))
        current.copy("outbox", made)
        current.copy(ANSWERS, made)
        # A sink that gets a new answer does not get what is left of the old one, which may have other columns.
        kept = {quote(query.name, safe="") for query in diff.queries if query.verdict != "dropped" and not query.fresh}
        for name in made.inside("outbox").names():
            if name not in kept:
                made.inside("outbox").remove_tree(name)
        made.inside(_START).write(_GO, '{"go":1}\n')
        settings = {**LARGE_ROWS, **(WHOLE_STATE if given.moves else {})}
        with query_settings(self.spark, self.new.plan.shards, made.location, settings):
            filled = backfill_frames(diff.classification, self.new.layout, self.new.inputs, read)
            start = made.inside(_START).location
            frame, sources = seed_frame(self.spark, given, current.location, start, self.new.plan.shards, filled)
            if seed:
                begin_unread(current, made, seed - 1, sources)
            writer = frame.writeStream.outputMode("append").option("checkpointLocation", made.location)
            moving = frozenset(query.name for query in diff.queries if query.moves)
            writer = writer.foreachBatch(lambda batch, _: self._fill_outboxes(batch, moving, made, number))
            with sash_errors():
                query = await_sources(writer.trigger(availableNow=True).start())
        with sash_errors():
            query.awaitTermination()
        made.remove_tree(_FILES)
        self.on_step("outbox")

    def _fill_outboxes(self, batch: DataFrame, moving: Collection[str], made: Folder, number: int) -> None:
        """Write what sinks must get at the change: the difference between the old answer and the new one."""
        columns = ("output", "clock", "blob")
        found = batch.where(sf.col("channel") == OUTPUT).select(*columns).toArrow()
        self.on_step("seeded")
        parts: dict[int, list[ChangeBatch]] = {}
        clocks: dict[int, int] = {}
        for output, clock, blob in zip(*(found.column(name) for name in columns), strict=True):
            clocks[output.as_py()] = max(clocks.get(output.as_py(), clock.as_py()), clock.as_py())
            if blob.is_valid:
                parts.setdefault(output.as_py(), []).append(decode(blob.as_buffer()))
        for output, changes in parts.items():
            netted = net_all(concat(changes))
            at = np.full(len(netted), clocks[output], np.int64)
            netted = replace(netted, ts=at, exp=np.full_like(netted.exp, netted.exp.max(initial=0))).sorted()
            for name, answer in self._answers(self.new.layout.plan.outputs[output].query, netted):
                if name in moving:
                    spec = self.new.outputs[name]
                    reduced = reduce_changes(answer, spec.mode, spec.key) if spec.mode == "upsert" else answer
                    outbox = Outbox(made.inside("outbox"), name, spec, self.outbox_limit)
                    outbox.add(number, typed_table(reduced, spec.schema, spec.time))

    def _answers(self, output: str, changes: ChangeBatch) -> Iterator[tuple[str, ChangeBatch]]:
        """The changes of every query of an output: of alike queries, those with its number."""
        alike = {place.number: name for name, place in self.new.plan.alike.items() if place.template == output}
        if not alike:
            yield output, changes
            return
        for number, rows in by_number(changes):
            if number in alike:
                yield alike[number], rows

    def _move_offsets(self, current: Folder, made: Folder, committed: int, seed: int) -> None:
        log = made.inside("offsets")
        written, reached = log.read(str(seed)), current.inside("offsets").read(str(committed))
        assert written is not None
        assert reached is not None
        moved = moved_offsets(written, reached, self.old.sources, self.new.sources)
        made.remove_tree("sources")
        begun, folders = self.new.sources.begun(self.old.sources), self.old.sources.folders()
        for number, name in {
            number: name for name, number in self.new.sources.folders().items() if name in begun
        }.items():
            current.inside("sources").copy(folders[begun[name]], made.inside("sources"), number)
        for batch in {seed, max(seed - 1, 0)}:  # Spark also reads those of the batch before the last
            log.remove(f".{batch}.crc")
            log.write(str(batch), moved)
        made.remove_tree(_START)


def _left_incomplete(diff: JobDiff) -> Incomplete:
    changed = diff.classification
    logs = {one.channel.identity: one.since for one in changed.channels}
    stages = {one.identity: one.complete for one in changed.stages if one.complete != AT_ONCE}
    return Incomplete(logs, stages)
