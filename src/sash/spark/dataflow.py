"""Dataflow: a physical plan over registered streams becomes one streaming DataFrame.

All stages of a level (see `layout.py`) are one stateful operator of Spark. The levels form a chain, so that every DataFrame
is used once and no stage runs twice. A source joins the chain at the first level that reads it, and messages for higher
levels are forwarded.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import reduce

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from sash.errors import UnsupportedSqlError
from sash.physical.channels import Channel, LegRows, LookupRows, ScanRows, StageRows, StartClock
from sash.physical.nodes import PhysicalPlan, StreamLeg, UpdateLeg
from sash.physical.output_times import output_time
from sash.plan.nodes import Node
from sash.plan.options import Mode
from sash.plan.types import Schema
from sash.runtime.legs import stage_tables
from sash.spark.gather import Gather
from sash.spark.layout import NONE_SUSPENDED, Layout, Suspended, Target, layout_of
from sash.spark.legs import Lookups, find_lookups, leg_frame, relation_table, update_frame, update_time
from sash.spark.messages import CONTROL, DDL, HEARTBEAT, ROWS
from sash.spark.output import OutputMode
from sash.spark.packed_processor import PackedProcessor
from sash.spark.rejected import BATCH_MICROS, BATCH_TIME, ORIGIN, RAW, RejectedOutput, RejectPositions, rejected_outputs
from sash.spark.scan import scan_frame
from sash.spark.scatter import ENDED, PARTITION, TIME, ClockScatter, Feed, Scatter
from sash.spark.sources.inputs import QueryInputs, StreamSource, heartbeats
from sash.spark.sources.start import start_row
from sash.spark.stage import StageProcessor


def change_frame(
    plan: PhysicalPlan,
    schema: Schema,
    inputs: QueryInputs,
    shards: int,
    mode: Mode = "changes",
    key: tuple[int, ...] | None = None,
) -> DataFrame:
    """Build the change stream of a query that runs alone: `_op`, `_ts` and the query's columns."""
    gather = Gather(schema, time_type(plan, inputs))
    packed = _levels(layout_of(plan, shards, share=False), inputs, [OutputMode(mode, key)], gather)
    return gather.typed(packed)


def job_frame(
    plan: PhysicalPlan,
    inputs: QueryInputs,
    shards: int,
    modes: Sequence[OutputMode],
    suspended: Suspended = NONE_SUSPENDED,
) -> DataFrame:
    """Build the frame of a job: messages with the changes of its outputs (`read_output`) and with metrics (`read_metrics`).

    `modes` has the mode of every output of the plan. For queries that are not evaluated, lookups do not run, either.
    """
    layout = layout_of(plan, shards, share=True, suspended=suspended)
    rejected = rejected_outputs(layout.counted(), inputs, len(plan.outputs))
    return _levels(layout, inputs, modes, None, suspended.unevaluated, rejected)


def _levels(
    layout: Layout,
    inputs: QueryInputs,
    modes: Sequence[OutputMode],
    gather: Gather | None,
    unevaluated: Collection[str] = (),
    rejected: Sequence[RejectedOutput] = (),
) -> DataFrame:
    joining: dict[int, list[DataFrame]] = {}
    for number, frame in _Sources(layout, inputs, unevaluated, rejected=rejected).frames():
        joining.setdefault(number, []).append(frame)
    # Legs join with their relations in Spark or in scatter; stages need theirs as tables.
    tables = {node: relation_table(node, inputs.relations) for node in stage_tables(layout.plan)}
    packed: DataFrame | None = None
    for level in range(layout.height):
        frames = [*([] if packed is None else [packed]), *joining.get(level, ())]
        last = gather if level == layout.height - 1 else None
        processor = StageProcessor(layout, level, tables, modes, last, bounded=inputs.bounded, rejected=rejected)
        grouped = reduce(DataFrame.unionAll, frames).groupBy("label")
        ddl = DDL if last is None else last.struct
        packed = grouped.transformWithStateInPandas(PackedProcessor(processor), ddl, "Append", "None")
    assert packed is not None
    return packed


def job_sources(layout: Layout, inputs: QueryInputs) -> list[str]:
    """The sources of a job's frame in the order in which Spark finds them: streams, heartbeats, the control stream
    and the start.

    A source that is read by several passes is there several times.
    """
    sources = _Sources(layout, inputs, ())
    levels = [level for level, _ in sources.frames()]
    return [name for _, name in sorted(zip(levels, sources.names, strict=True), key=lambda one: one[0])]


def history_frames(layout: Layout, inputs: QueryInputs, channels: Mapping[int, int]) -> list[DataFrame]:
    """The messages to some channels of a job, over inputs whose streams have been read again: rows, without clocks.

    `channels` has the clocks that the channels have reached.
    """
    return [frame for _, frame in _Sources(layout, inputs, (_NO_QUERY,), channels).frames()]


def time_type(plan: PhysicalPlan, inputs: QueryInputs) -> pa.DataType:
    """The type of `_ts`."""

    def of_updates(relation: str) -> pa.DataType:
        source = inputs.streams[relation]
        return update_time(source.frame, source.time)

    return output_time(plan, of_updates)


_NO_QUERY = "-"
"""Needs the expressions of a scan that none of the chosen channels reads."""


class _Sources:
    """The packed messages of every scan, leg, heartbeat and control stream, and of the start, each with the first level
    that reads them.

    Of `chosen` channels there are only rows, and what they do not read is not evaluated.
    """

    def __init__(
        self,
        layout: Layout,
        inputs: QueryInputs,
        unevaluated: Collection[str],
        chosen: Mapping[int, int] | None = None,
        rejected: Sequence[RejectedOutput] = (),
    ) -> None:
        self._rejected = rejected
        self._chosen = chosen
        self._layout = layout
        self._inputs = inputs
        self._unevaluated = unevaluated
        self._readers: dict[str, list[Channel]] = {}
        self._found: list[tuple[int, DataFrame]] = []
        self.names: list[str] = []
        self._tables: dict[Node, pa.Table] = {}

    def frames(self) -> list[tuple[int, DataFrame]]:
        """All of them, with the pass that counts a stream's rows first."""
        scanned: dict[int, list[tuple[Channel, Feed]]] = {}
        alone: dict[int, list[Channel]] = {}
        started: list[Channel] = []
        for channel in self._layout.channels.channels:
            source = channel.source
            if self._chosen is not None and channel.index not in self._chosen:
                continue
            if isinstance(source, LegRows):
                alone.setdefault(source.leg, []).append(channel)
            elif isinstance(source, StartClock):
                started.append(channel)
            elif not isinstance(source, StageRows):
                feed = self._feed(channel, source)
                if feed is None:
                    assert isinstance(source, LookupRows)
                    alone.setdefault(source.leg, []).append(channel)
                else:
                    scanned.setdefault(source.scan, []).append((channel, feed))
        for number, fed in scanned.items():
            self._scan(number, fed)
        for leg, channels in alone.items():
            self._leg(leg, channels)
        for name, channels in self._readers.items() if self._chosen is None else ():
            self._clocks(name, channels)
        if started and self._chosen is None:
            self._start(started)
        return self._found

    def _feed(self, channel: Channel, source: ScanRows | LookupRows) -> Feed | None:
        """What a channel gets of a scan; None if it looks up a table that is too large to be looked up in scatter."""
        scan = self._layout.channels.scans[source.scan]
        dtypes = tuple(scan.columns[column].expression.dtype for column in source.columns)
        targets, queries = (self._layout.target(channel),), tuple(self._layout.queries_of(channel))
        last = None
        if self._chosen is not None and channel.window is not None:
            last = channel.window, self._chosen[channel.index]
        if isinstance(source, ScanRows):
            filters, masks = source.filters, channel.masks
            return Feed(source.columns, dtypes, targets, filters, source.everything, masks, None, queries, last=last)
        lookups = find_lookups(source.node, self._inputs.relations, self._tables)
        if lookups is None or lookups.below.children:
            return None
        filters = () if source.filter is None else (source.filter,)
        skipped = bool(queries) and set(queries) <= set(self._unevaluated)
        return Feed(source.columns, dtypes, targets, filters, not filters, 0, lookups, queries, skipped, last)

    def _scan(self, number: int, fed: list[tuple[Channel, Feed]]) -> None:
        scan = self._layout.channels.scans[number]
        name = scan.stream.name.lower()
        source = self._inputs.streams[name]
        filters: dict[int, set[str]] = {}
        columns: dict[int, set[str]] = {}
        for channel, feed in fed:
            for reader in channel.readers:
                whole = channel.masks == 0 or isinstance(channel.source, LookupRows)
                bits = feed.filters if whole else () if reader.filter is None else (feed.filters[reader.filter],)
                read = feed.columns if feed.lookups else [feed.columns[column] for column in reader.columns]
                for numbers, needed in ((bits, filters), (read, columns)):
                    for one in numbers:
                        needed.setdefault(one, set()).update(self._layout.queries[reader.stage])
        by_filter, by_column = ({n: sorted(names) for n, names in found.items()} for found in (filters, columns))
        if self._chosen is not None:
            by_filter = {n: by_filter.get(n, [_NO_QUERY]) for n in range(len(scan.filters))}
            by_column = {n: by_column.get(n, [_NO_QUERY]) for n in range(len(scan.columns))}
        extra = self._extra(name, source)
        rows = scan_frame(scan, source.frame, source.time, by_filter, by_column, self._unevaluated, extra)
        self._add(name, rows, scan.stream.name, [channel for channel, _ in fed], _joined([feed for _, feed in fed]))

    def _leg(self, number: int, channels: list[Channel]) -> None:
        leg = self._layout.plan.legs[number]
        assert isinstance(leg, StreamLeg | UpdateLeg)
        name = leg.stream.lower()
        source = self._inputs.streams[name]
        lookups: Lookups | None = None
        if isinstance(leg, StreamLeg):
            lookups = find_lookups(leg.node, self._inputs.relations, self._tables)
            below = leg.node if lookups is None else lookups.below
            extra = self._extra(name, source)
            rows = leg_frame(below, source.frame, source.time, self._inputs.relations, extra)
            schema = below.schema
        else:
            rows, schema = update_frame(leg, source.frame, source.time), leg.schema
        targets = tuple(map(self._layout.target, channels))
        dtypes = tuple(field.dtype for field in schema)
        queries = sorted({query for channel in channels for query in self._layout.queries_of(channel)})
        skipped = bool(queries) and set(queries) <= set(self._unevaluated)
        feed = Feed(
            tuple(range(len(dtypes))), dtypes, targets, lookups=lookups, queries=tuple(queries), skipped=skipped
        )
        self._add(name, rows, leg.stream, channels, (feed,), signed=isinstance(leg, UpdateLeg))

    def _add(
        self,
        name: str,
        rows: DataFrame,
        stream: str,
        channels: list[Channel],
        feeds: tuple[Feed, ...],
        *,
        signed: bool = False,
    ) -> None:
        source = self._inputs.streams[name]
        counts = name not in self._readers and self._chosen is None
        self._readers.setdefault(name, []).extend(channels)
        idle_after = None if signed or not self._partitioned(source) else source.idle_after
        rejects = None
        if counts and not signed:
            level, knows = min((min(self._layout.levels_of(one)), one.index) for one in channels)
            labels = self._layout.read_by(self._layout.channels.channels[knows], level)
            rejects = RejectPositions.of(name, self._rejected, knows, tuple(labels))
        scatter = Scatter(
            stream, source.slack, source.drop_bad_rows, counts, feeds, signed, idle_after, rejects, source.max_jump
        )
        self._found.append((self._lowest(channels), rows.mapInArrow(scatter, DDL)))
        self.names.append(name)

    def _partitioned(self, source: StreamSource) -> bool:
        """Whether the clocks of partitions are needed."""
        return source.partition is not None and self._chosen is None

    def _extra(self, name: str, source: StreamSource) -> dict[str, str]:
        """What scatter needs of a row besides; the first pass over a stream also brings what is kept of dropped rows."""
        found: dict[str, str] = {}
        if self._partitioned(source):
            found[PARTITION] = f"CAST({source.partition} AS STRING)"
        if name not in self._readers and any(one.stream == name for one in self._rejected):
            assert source.rejects is not None
            found |= {RAW: source.rejects.text, ORIGIN: f"CAST({source.rejects.origin} AS STRING)"}
        timed = bool(found) or source.max_jump is not None
        return {**found, BATCH_TIME: BATCH_MICROS} if timed else {}

    def _clocks(self, name: str, channels: list[Channel]) -> None:
        source, control = self._inputs.streams[name], self._inputs.control
        targets: tuple[Target, ...] = tuple(map(self._layout.target, channels))
        if source.heartbeat is not None:
            idle_after = None if source.partition is None else source.idle_after
            beats = heartbeats(source).mapInArrow(ClockScatter(HEARTBEAT, source.slack, targets, idle_after), DDL)
            self._found.append((self._lowest(channels), beats))
            self.names.append(f"heartbeat of {name}")
        if control is not None:
            clocks = control.where(sf.col("stream") == name).selectExpr(f"ts AS {TIME}", ENDED)
            self._found.append((self._lowest(channels), clocks.mapInArrow(ClockScatter(CONTROL, 0, targets), DDL)))
            self.names.append("control")

    def _start(self, channels: list[Channel]) -> None:
        """Let the stages over constants alone run."""
        if self._inputs.home is None:
            raise UnsupportedSqlError(
                "a part of the query reads constants and relations that never change alone, and needs a folder from which it "
                "is started: start the query with start(), or name a folder with changes(guard=...)"
            )
        targets = tuple(map(self._layout.target, channels))
        rows = start_row(SparkSession.active(), self._inputs.home)
        self._found.append((self._lowest(channels), rows.mapInArrow(ClockScatter(ROWS, 0, targets), DDL)))
        self.names.append("start")

    def _lowest(self, channels: list[Channel]) -> int:
        return min(level for channel in channels for level in self._layout.levels_of(channel))


def _joined(feeds: list[Feed]) -> tuple[Feed, ...]:
    """The feeds of channels that differ only in their keys as one, so that their rows are looked up once."""
    found: dict[object, Feed] = {}
    for feed in feeds:
        node = None if feed.lookups is None else feed.lookups.node
        key = feed.columns, feed.filters, feed.everything, feed.masks, node, feed.last
        known = found.get(key)
        queries = tuple(sorted({*feed.queries, *(known.queries if known else ())}))
        found[key] = feed if known is None else replace(known, targets=(*known.targets, *feed.targets), queries=queries)
    return tuple(found.values())
