"""The hand-over of state from one generation of a job to the next, as the tasks that do it need it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from sash.change.classify import Classification
from sash.change.derivation import RowProgram
from sash.change.diff import JobDiff
from sash.physical.channels import Channel, LegRows, StageRows
from sash.physical.nodes import UpdateLeg
from sash.plan.nodes import Node
from sash.spark.layout import Layout
from sash.spark.seed_files import SeedFiles
from sash.spark.stored_state import Headers, header_part, log_place
from sash.state.changes import ChangeBatch
from sash.state.partition_clocks import Marks, merge

RAW = 5
"""The kind of a message with a chunk of a log or snapshot, unchanged; `sender` is the label that it comes from."""
CHUNK = 6
"""The kind of a message with rows as a chunk of a log; as with RAW, `metrics` is its directory entry."""
SNAPSHOT = -3
"""The channel of a message with a chunk of a snapshot of the stage `output`."""
NOTICE = -4
"""The channel of a message that only makes sure that every shard of every level runs."""

ChunkKey = tuple[int, int, int]
"""Level, label and number of a chunk."""


@dataclass(frozen=True)
class ChunkUse:
    """What an old chunk of a log is for: new channels, with the program that computes their rows (None: unchanged)."""

    channel: int
    program: RowProgram | None
    clock: int


@dataclass(frozen=True)
class OldAnswer:
    """Answers of the old job that must be retracted: the stage that has them, and where the retractions go."""

    stage: int
    retractions: tuple[Retraction, ...]


@dataclass(frozen=True)
class Retraction:
    """The retraction of an answer from an output of the new job.

    Of alike queries, `old` is the number under which the old stage has the answer, and `new` that in the new output.
    """

    output: int
    old: int | None = None
    new: int | None = None

    def of(self, rows: ChangeBatch) -> ChangeBatch:
        """The retraction of the answer among the rows of the old stage."""
        if self.old is not None:
            mine = rows.columns[0].to_numpy(zero_copy_only=False) == self.old
            rows = rows.take(np.flatnonzero(mine))
            rows = rows.with_columns(rows.columns[1:])
        if self.new is not None:
            rows = rows.with_columns([pa.array(np.full(len(rows), self.new, np.int64)), *rows.columns])
        return ChangeBatch(rows.ts, rows.exp, -rows.sign, rows.columns)


@dataclass(frozen=True)
class Handover:
    """What moves. `emitted` are the outputs that get a new answer, `retracted` the old answers that they replace.

    `restored` are the stages whose answers are computed, for outputs and for channels above them that begin with them.
    `constants` are the rows of channels that begin with the constants of alike queries that are new.

    `in_place` is whether the new generation begins with the whole state of the old one, in the same shards. Then the logs
    of `staying` channels, by new index with the old channel, do not move, and every shard reads its old answers itself.
    `files` carry what moves, where tasks can use files.
    """

    old: Layout
    new: Layout
    headers: Headers
    classification: Classification
    emitted: frozenset[int]
    retracted: tuple[OldAnswer, ...]
    old_tables: Mapping[Node, pa.Table] = field(default_factory=dict)
    new_tables: Mapping[Node, pa.Table] = field(default_factory=dict)
    constants: Mapping[int, ChangeBatch] = field(default_factory=dict)
    in_place: bool = False
    staying: Mapping[int, Channel] = field(default_factory=dict)
    files: SeedFiles = field(default_factory=SeedFiles)

    def marks(self, stream: str) -> Marks:
        """What the old job knows of the partitions of a stream."""
        found: Marks = {}
        for channel in self.old.channels.channels:
            if (channel.stream or "").lower() == stream.lower():
                for header in self.headers.values():
                    merge(found, header.get("channels", {}).get(channel.identity, {}).get("marks", {}))
        return found

    @property
    def restored(self) -> frozenset[int]:
        """The stages of the new plan whose operators run."""
        changes, plan = self.classification.channels, self.new.plan
        below = {c.channel.source.stage for c in changes if c.restored and isinstance(c.channel.source, StageRows)}
        unknown = {change.stage for change in self.classification.stages if change.verdict != "kept"}
        return frozenset(below | unknown | {plan.outputs[number].stage for number in self.emitted})

    def chunk_uses(self) -> dict[ChunkKey, list[ChunkUse]]:
        """The new channels that every old chunk of a log is for."""
        uses: dict[ChunkKey, list[ChunkUse]] = {}
        for change in self.classification.channels:
            for source in change.sources if change.channel.index not in self.staying else ():
                assert change.clock is not None
                use = ChunkUse(change.channel.index, source.program, change.clock)
                place = log_place(self.old, source.old)
                for label in place.labels:
                    for chunk in self.chunks(source.old, place.level, label):
                        uses.setdefault((place.level, label, chunk[0]), []).append(use)
        return uses

    @property
    def moves(self) -> bool:
        """Whether rows move: the log of some channel does not stay where it is."""
        return any(
            change.sources and change.channel.index not in self.staying for change in self.classification.channels
        )

    def chunks(self, channel: Channel, level: int, label: int) -> list[list[int]]:
        """The directory entries of a shard's part of an old log."""
        found = header_part(self.headers, level, label, "channels", channel.identity)
        return [] if found is None else found["log"]["chunks"]

    def snapshot_uses(self) -> dict[ChunkKey, int]:
        """The stage of the new plan that every chunk of an old snapshot is for, if it moves."""
        uses: dict[ChunkKey, int] = {}
        for stage in self.classification.stages:
            if stage.verdict == "kept" and not self.in_place:
                index = self.old.channels.stages.index(stage.identity)
                for label in self.old.labels[index]:
                    for number in snapshot_chunks(self.old_stage(stage.identity, label)):
                        uses[(self.old.levels[index], label, number)] = stage.stage
        return uses

    def old_stage(self, identity: str, label: int) -> dict[str, Any] | None:
        """What the old header of a label says of a stage."""
        index = self.old.channels.stages.index(identity)
        return header_part(self.headers, self.old.levels[index], label, "stages", identity)

    def old_stages(self, identity: str) -> list[dict[str, Any]]:
        """What the old headers of all labels say of a stage."""
        index = self.old.channels.stages.index(identity)
        found = [self.old_stage(identity, label) for label in self.old.labels[index]]
        return [one for one in found if one is not None]


def fits_in_place(changed: Classification, old: Layout, new: Layout) -> bool:
    """Whether a new job can begin with the state of the old one: as many shards and levels, and kept stages where they were."""
    if changed.reshaped or old.height != new.height:
        return False
    for stage in changed.stages:
        if stage.verdict == "kept":
            index = old.channels.stages.index(stage.identity)
            if old.levels[index] != new.levels[stage.stage] or old.labels[index] != new.labels[stage.stage]:
                return False
    return True


def _staying(changed: Classification, old: Layout, new: Layout, headers: Headers) -> dict[int, Channel]:
    """The channels whose logs are those of an old channel, in all shards that read them."""
    found: dict[int, Channel] = {}
    for change in changed.channels:
        channel = change.channel
        if change.restored or change.filled or len(change.sources) != 1 or not change.sources[0].leaves(channel):
            continue
        before = change.sources[0].old
        if channel.keys and old.target(before).labels != new.target(channel).labels:
            continue
        shards = [(level, label) for level in new.levels_of(channel) for label in new.read_by(channel, level)]
        if all(header_part(headers, *shard, "channels", before.identity) is not None for shard in shards):
            found[channel.index] = before
    return found


def handover(diff: JobDiff, old: Layout, new: Layout, headers: Headers, *, in_place: bool = False) -> Handover:
    """What must move for a difference between two jobs; the tables that stages look up are to be added."""
    before, after = diff.classification.old, diff.classification.new
    positions = {output.query: position for position, output in enumerate(new.plan.outputs)}
    emitted: set[int] = set()
    retracted: dict[int, list[Retraction]] = {}
    for query in diff.queries:
        if not query.moves:
            continue
        name = query.name
        output, was, becomes = positions[after.output_of(name)], before.alike.get(name), after.alike.get(name)
        # A query that joins a template of the old job comes with its constants, in the first batch of the new one.
        joins = becomes is not None and becomes.template in before.templates and was != becomes
        if not joins:
            emitted.add(output)
        if name in before.answers and not query.fresh:
            numbers = (None if was is None else was.number), (None if becomes is None else becomes.number)
            retracted.setdefault(before.output_stages[before.output_of(name)], []).append(Retraction(output, *numbers))
    answers = tuple(OldAnswer(stage, tuple(some)) for stage, some in retracted.items())
    staying = _staying(diff.classification, old, new, headers) if in_place else {}
    return Handover(
        old, new, headers, diff.classification, frozenset(emitted), answers, in_place=in_place, staying=staying
    )


def begins_in_place(diff: JobDiff, old: Layout, new: Layout, headers: Headers) -> bool:
    """Whether a new job is to begin with the state of the old one: it fits, and some of it stays, or tells old answers.

    Where all rows move, an empty state is better: chunks that are removed would be merged with those that are written.
    """
    if not fits_in_place(diff.classification, old, new):
        return False
    given = handover(diff, old, new, headers, in_place=True)
    return bool(given.staying or given.retracted) or any(one.verdict == "kept" for one in diff.classification.stages)


def constants_of(layout: Layout, given: Mapping[str, ChangeBatch]) -> dict[int, ChangeBatch]:
    """The rows of the channels that bring these constants, by lower-case name of their relation."""
    found: dict[int, ChangeBatch] = {}
    for channel in layout.channels.channels:
        leg = layout.plan.legs[channel.source.leg] if isinstance(channel.source, LegRows) else None
        if isinstance(leg, UpdateLeg) and leg.stream.lower() in given:
            found[channel.index] = given[leg.stream.lower()]
    return found


def snapshot_chunks(stage: dict[str, Any] | None) -> list[int]:
    """The numbers of the chunks of a stage's snapshot."""
    directory = None if stage is None else stage.get("snapshot")
    return [] if directory is None else [number for file in directory["files"] for number in file[2]]
