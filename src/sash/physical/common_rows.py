"""One copy of the rows of a channel for windows of several lengths (paper 5, 5.1): the channel keeps them, aggregates do not.

An aggregate that adds and removes a row in one step needs a row twice: when it arrives, and when it ends. Where a window
ends rows in order of arrival, both are in the channel. So each shard keeps the rows of the longest window once
(`state/row_blocks.py`) and gives every stage those that end between two of its clocks, as retractions. An aggregate over
retractions keeps no rows of its own, only its groups.

Others keep their rows: a join probes them; DISTINCT keeps one per value; MIN and MAX have a queue per group of those rows
only that may still become the extreme, and would need a tree of all values over retractions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa

from sash.physical.channels import Channel, Channels, Reader, ScanRows, needs_snapshots
from sash.physical.nodes import Aggregate, Leaf, Operation, PhysicalPlan, Stage, StreamLeg, operations
from sash.physical.passes.base import rebuild
from sash.physical.plan_channels import channels_of
from sash.physical.state_names import digest
from sash.physical.strategies.registry import strategy_of
from sash.plan.expressions import STEPWISE
from sash.plan.nodes import Range

_ROW, _KEPT = 12, 30
"""Bytes of a row besides its values: in the channel (its time, with the rest of its block), and in an aggregate (its slot,
its expiration time, its group, and what grows ahead)."""

_WIDTHS: Mapping[str, int] = {"bool": 1, "int8": 1, "int16": 2, "int32": 4, "float": 4, "date32[day]": 4}
_WIDEST = 8
_TEXT = 16


@dataclass(frozen=True)
class CommonRows:
    """The rows of a channel that each shard keeps for these readers: those that one of them reads, with their columns."""

    channel: Channel
    readers: tuple[Reader, ...]
    lengths: tuple[int, ...]
    """The length of each reader's window."""

    @property
    def horizon(self) -> int:
        """The length of the longest window."""
        return max(self.lengths)

    @cached_property
    def columns(self) -> tuple[int, ...]:
        """The columns of the channel that are kept; masks come last."""
        width = len(self.channel.columns)
        masks = range(width, width + self.channel.masks)
        return (*sorted({column for reader in self.readers for column in reader.columns}), *masks)

    @property
    def dtypes(self) -> tuple[pa.DataType, ...]:
        """The types of these columns."""
        return tuple(self.channel.dtypes[column] for column in self.columns)

    @cached_property
    def filters(self) -> frozenset[int] | None:
        """The filters that accept the rows that are kept; None if all rows are."""
        found = {reader.filter for reader in self.readers}
        return None if None in found else frozenset(number for number in found if number is not None)

    def reader(self, stage: int) -> Reader:
        """A reader whose columns are positions among those that are kept."""
        found = next(reader for reader in self.readers if reader.stage == stage)
        return replace(found, columns=tuple(self.columns.index(column) for column in found.columns))

    @cached_property
    def name(self) -> str:
        """The name of the rows in a shard's arena: others have other columns or filters."""
        return "common-" + digest(f"{self.channel.identity} {self.columns} {sorted(self.filters or ())} {self.horizon}")


def common_rows(plan: PhysicalPlan, channels: Channels) -> dict[int, CommonRows]:
    """What the channels of a plan keep for several readers, by their numbers."""
    found: dict[int, CommonRows] = {}
    for channel in channels.channels:
        readers = tuple(one for one in channel.readers if plan.stages[one.stage].inputs[one.input].common)
        if readers:
            found[channel.index] = _common(plan, channel, readers)
    return found


def share_windows(plan: PhysicalPlan) -> PhysicalPlan:
    """The plan of a job in which channels keep rows for aggregates, wherever one copy takes less memory than several."""
    chosen: set[int] = set()
    for channel in channels_of(plan, share=True).channels:
        readers = tuple(one for one in channel.readers if _may_share(plan, channel, plan.stages[one.stage]))
        if len(readers) > 1:
            common = _common(plan, channel, readers)
            if kept_once(plan, common) < kept_apart(plan, common):
                chosen.update(reader.stage for reader in readers)
    stages = tuple(_sharing(stage) if stage.index in chosen else stage for stage in plan.stages)
    return replace(plan, stages=stages)


def rows_once(plan: PhysicalPlan, common: CommonRows) -> float:
    """Rows that the channel keeps, estimated from the windows of its readers."""
    rates: dict[int | None, float] = {}
    for reader, length in zip(common.readers, common.lengths, strict=True):
        rows = plan.stages[reader.stage].inputs[reader.input].leaf.rows
        rates[reader.filter] = max(rates.get(reader.filter, 0.0), rows / length)
    rate = rates[None] if None in rates else sum(rates.values())
    return rate * common.horizon


def rows_apart(plan: PhysicalPlan, common: CommonRows) -> float:
    """Rows that the readers would keep if each had its own."""
    return sum(plan.stages[reader.stage].inputs[reader.input].leaf.rows for reader in common.readers)


def kept_once(plan: PhysicalPlan, common: CommonRows) -> float:
    """Bytes of the rows that the channel keeps."""
    return rows_once(plan, common) * (_ROW + sum(map(_width, common.dtypes)))


def kept_apart(plan: PhysicalPlan, common: CommonRows) -> float:
    """Bytes that the readers would keep if each had its own rows."""
    total = 0.0
    for reader in common.readers:
        leaf = plan.stages[reader.stage].inputs[reader.input].leaf
        (node,) = _over(plan.stages[reader.stage])
        arguments = {column.index for call in node.aggregates for column in call.arguments}
        total += leaf.rows * (_KEPT + sum(_width(leaf.schema[index].dtype) for index in arguments))
    return total


def _common(plan: PhysicalPlan, channel: Channel, readers: tuple[Reader, ...]) -> CommonRows:
    return CommonRows(channel, readers, tuple(_length(plan, plan.stages[reader.stage]) for reader in readers))


def _length(plan: PhysicalPlan, stage: Stage) -> int:
    leg = plan.legs[stage.inputs[0].leaf.leg or 0]
    assert isinstance(leg, StreamLeg)
    assert isinstance(leg.window, Range)
    return leg.window.length


def _may_share(plan: PhysicalPlan, channel: Channel, stage: Stage) -> bool:
    """Whether a stage is an aggregate of this kind over the rows of a plain time window, and what works row by row on it."""
    if channel.kind != "time" or not isinstance(channel.source, ScanRows) or len(stage.inputs) != 1:
        return False
    leaf, strategy = stage.inputs[0].leaf, strategy_of(stage.strategy)
    leg = None if leaf.leg is None else plan.legs[leaf.leg]
    plain = isinstance(leg, StreamLeg) and isinstance(leg.window, Range) and leg.window.slide is None
    if not plain or leaf.expiry != "fifo" or leaf.follows or strategy.paced or strategy.recomputes:
        return False
    if not strategy.synchronised or needs_snapshots(plan, stage):
        return False
    above = list(_over(stage))
    readers = [node for node in operations(stage.root) if leaf in node.inputs]
    return len(above) == 1 and len(readers) == 1 and all(_is_stepwise(node) for node in above)


def _over(stage: Stage) -> Iterator[Aggregate]:
    """The aggregates that read the stage's only input."""
    leaf = stage.inputs[0].leaf
    return (node for node in operations(stage.root) if isinstance(node, Aggregate) and node.inputs[0] is leaf)


def _is_stepwise(node: Aggregate) -> bool:
    return all(
        call.function in STEPWISE and not call.distinct and (call.detail is None or call.detail.user is None)
        for call in node.aggregates
    )


def _sharing(stage: Stage) -> Stage:
    """The stage with an aggregate that gets retractions."""
    (given,) = stage.inputs

    def change(_old: Operation, node: Operation) -> Operation:
        if isinstance(node, Aggregate) and node.inputs[0] is given.leaf:
            return replace(node, buffers=(replace(node.buffers[0], expiry="explicit"),))
        return node

    root = rebuild(stage.root, change)
    assert not isinstance(root, Leaf)
    return replace(stage, root=root, inputs=(replace(given, common=True),))


def _width(dtype: pa.DataType) -> int:
    fixed = pa.types.is_primitive(dtype) or pa.types.is_decimal(dtype)
    return _WIDTHS.get(str(dtype), _WIDEST) if fixed else _TEXT
