"""Backfill: the rows that a generation has read of a stream are read again, for logs of the next one that lack them.

The rows are exactly those that the old job has taken in: of the files, or up to the offsets, of its last committed batch,
and from the start of the windows on. Rows that were late when they came are left out, as far as the files of every batch
tell: not if a heartbeat has advanced the clock, and not of other sources than files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from sash.change.classify import Classification
from sash.change.stored import History
from sash.errors import CheckpointError, SashError
from sash.plan.nodes import Stream, walk
from sash.spark.dataflow import history_frames
from sash.spark.errors import sash_errors
from sash.spark.folders import Folder
from sash.spark.layout import Layout
from sash.spark.legs import micros
from sash.spark.offsets import NOTHING, Sources, source_offsets
from sash.spark.sources.history import Reached, Rereading, plain_rereading, read_files
from sash.spark.sources.inputs import QueryInputs, StreamSource
from sash.sql.render import quoted
from sash.time import BEGINNING

_FILE, _CLOCK = "_sash_file", "_sash_clock"


def reached(generation: Folder, committed: int | None, sources: Sources) -> dict[str, Reached]:
    """How far a generation has read each of its sources."""
    log = None if committed is None else generation.inside("offsets").read(str(committed))
    if log is None:
        return {}
    folders = sources.folders()
    found = {}
    for name, offset in source_offsets(log, sources.names).items():
        log_of_files = generation.inside("sources").inside(folders[name])
        found[name] = Reached(offset, {} if offset == NOTHING else read_files(log_of_files, offset))
    return found


def histories(streams: Mapping[str, StreamSource], found: Mapping[str, Reached]) -> dict[str, History]:
    """What can be read again of the streams."""
    known = {}
    for name, source in streams.items():
        again, read = rereading(source), found.get(name)
        known[name] = History("" if read is None else read.what, again.refused, again.whole)
    return known


def check_readable(changed: Classification, streams: Mapping[str, StreamSource], found: Mapping[str, Reached]) -> None:
    """Raise an error if what must be read again is gone, such as files that have been deleted."""
    for name in {(one.channel.stream or "").lower() for one in changed.channels if one.filled}:
        read, reached_by = rereading(streams[name]).read, found.get(name)
        if read is None or reached_by is None:
            raise CheckpointError(f"the checkpoint does not tell how far stream {name} has been read")
        if reached_by.empty:
            continue
        try:
            with sash_errors():
                read(reached_by.given)
        except SashError as problem:
            raise CheckpointError(f"BACKFILL: stream {name} cannot be read again: {problem}") from problem


def rereading(source: StreamSource) -> Rereading:
    """How a stream is read again."""
    found = plain_rereading(source.frame) if source.history is None else source.history
    if source.max_jump is None or found.refused:
        return found
    return Rereading(refused="MAX JUMP dropped rows by the time of their batch, which is not kept", whole=found.whole)


def backfill_frames(
    changed: Classification, layout: Layout, inputs: QueryInputs, found: Mapping[str, Reached]
) -> list[DataFrame]:
    """The messages to the channels that are filled."""
    groups: dict[tuple[str, int], dict[int, int]] = {}
    for change in changed.channels:
        channel = change.channel
        if change.filled and not found[(channel.stream or "").lower()].empty:
            assert channel.stream is not None
            assert change.clock is not None
            first = change.clock - channel.horizon if channel.kind == "time" else int(BEGINNING)
            groups.setdefault((channel.stream.lower(), first), {})[channel.index] = change.clock
    nodes = [node for leg in layout.plan.legs for node in walk(leg.node) if isinstance(node, Stream)]
    streams = {node.name.lower(): node for node in nodes}
    first_of = {name: min(first for other, first in groups if other == name) for name, _ in groups}
    rows = {name: _rows(streams[name], inputs.streams[name], found[name], first) for name, first in first_of.items()}
    frames: list[DataFrame] = []
    for (name, first), channels in groups.items():
        source = inputs.streams[name]
        recent = rows[name].where(f"{_moment(streams[name], source)} >= {first}")
        given = replace(inputs, streams={**inputs.streams, name: replace(source, frame=recent)})
        frames += history_frames(layout, given, channels)
    return frames


def _moment(stream: Stream, source: StreamSource) -> str:
    field = stream.schema[stream.time]
    return micros(quoted(field.name), field.dtype) if source.time is None else quoted(source.time)


def _rows(stream: Stream, source: StreamSource, found: Reached, first: int) -> DataFrame:
    """The rows from `first` on that the old job has taken in, without those that were late."""
    again = rereading(source)
    assert again.read is not None
    with sash_errors():
        if found.files is None and again.read_from is not None and first > BEGINNING:
            return again.read_from(found.offset, first)
        frame = again.read(found.given)
        if found.files is None or source.heartbeat is not None:
            return frame
        moment = _moment(stream, source)
        batches = frame.sparkSession.createDataFrame(list(found.files.items()), f"{_FILE} string, batch int")
        named = frame.withColumn(_FILE, sf.input_file_name())
        highs = named.selectExpr(_FILE, f"{moment} AS high").groupBy(_FILE).agg(sf.max("high").alias("high"))
        last = highs.join(sf.broadcast(batches), _FILE).groupBy("batch").agg(sf.max("high").alias("high")).collect()
        before = clocks_before({row["batch"]: row["high"] for row in last if row["high"] is not None}, source.slack)
        late = [(path, before[batch]) for path, batch in found.files.items() if batch in before]
        clocks = frame.sparkSession.createDataFrame(late, f"{_FILE} string, {_CLOCK} long")
        joined = named.join(sf.broadcast(clocks), _FILE, "left")
        return joined.where(f"{moment} >= coalesce({_CLOCK}, {int(BEGINNING)})").drop(_FILE, _CLOCK)


def clocks_before(highs: Mapping[int, int], slack: int) -> dict[int, int]:
    """The clock of a stream before each batch, from the greatest times of the batches; none before the first.

    >>> clocks_before({0: 10, 2: 30, 1: 40}, 5)
    {1: 5, 2: 35}
    """
    clocks: dict[int, int] = {}
    high: int | None = None
    for batch in sorted(highs):
        if high is not None:
            clocks[batch] = high - slack
        high = highs[batch] if high is None else max(high, highs[batch])
    return clocks
