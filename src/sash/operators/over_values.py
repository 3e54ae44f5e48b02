"""The values of window functions: columns of numbers, of values that entries point to, and of aggregates over frames."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sash.operators.aggregates.arguments import ArgumentColumns
from sash.operators.aggregates.base import Versions, Work, fixed_versions
from sash.operators.aggregates.choose import Accumulators
from sash.operators.base import Edge
from sash.operators.kernels.touches import Events, Mask, Touches, note_changes, touch
from sash.operators.live_rows import RowEvents
from sash.operators.over_order import sorted_keys
from sash.plan.expressions import ORDERED, AggregateCall
from sash.plan.nodes import SortKey
from sash.plan.window_calls import RANKING, WindowCall
from sash.state.changes import ChangeBatch, Signs
from sash.state.memory import Arrays, Ints, Memory
from sash.state.ordering import encode_order, turn_floats
from sash.state.rows import RowStore


class FrameAggregates:
    """Aggregates over groups of rows that enter and leave, computed by the accumulators of GROUP BY."""

    def __init__(
        self,
        memory: Memory,
        dtypes: Sequence[pa.DataType],
        order: tuple[SortKey, ...],
        ties: tuple[int, ...],
        calls: list[AggregateCall],
    ):
        self._sorted = sorted_keys(order, ties) if any(call.function in ORDERED for call in calls) else ()
        read = [column.index for call in calls for column in call.arguments]
        self._columns = list(dict.fromkeys(read)) or [0]
        first = 1 if self._sorted else 0
        at = {column: first + position for position, column in enumerate(self._columns)}
        kept = tuple(dtypes[column] for column in self._columns)
        self._arguments = ArgumentColumns(
            memory.scope("feed"), Edge((pa.binary(), *kept) if self._sorted else kept, "explicit")
        )
        time = 0 if self._sorted else None
        self._accumulators = Accumulators(memory.scope("state"), self._arguments, bool(self._sorted), time)
        self._answers = [
            self._accumulators.add(
                replace(call, arguments=tuple(replace(column, index=at[column.index]) for column in call.arguments))
            )
            for call in calls
        ]

    def apply(
        self, rows: RowStore, slots: Ints, sign: Signs, events: Events, counts: Ints, groups: int
    ) -> list[Versions]:
        """The values of every aggregate by version; `slots` are by position."""
        columns = rows.take(slots, self._columns)
        if self._sorted:
            columns.insert(0, self._places(rows, slots))
        batch = ChangeBatch.explicit(np.zeros(len(slots), np.int64), sign, columns)
        work = Work(batch, events, counts, max(groups, 1), np.empty(0, np.int64), 0)
        answers = {name: accumulator.apply(work) for name, accumulator in self._accumulators.by_name.items()}
        result = [answers[name][number] for name, number in self._answers]
        for accumulator in self._accumulators.by_name.values():
            accumulator.finish(work)
        self._arguments.finish(work)
        return result

    def _places(self, rows: RowStore, slots: Ints) -> pa.Array:
        """The places of rows in the order of the window, as byte strings: aggregates take them for the times of the rows."""
        keys = rows.take(slots, [key.column for key in self._sorted])
        offsets, data = encode_order(
            keys,
            [key.descending for key in self._sorted],
            [key.nulls_first for key in self._sorted],
            len(slots),
        )
        buffers = [None, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(data)]
        return pa.Array.from_buffers(pa.binary(), len(slots), buffers)


class WholePartitions:
    """Aggregates over whole partitions: by event, the version of its partition and whether the value changed with it."""

    def __init__(self, memory: Memory, frames: FrameAggregates) -> None:
        self._by_group = Arrays(memory, {"group.rows": np.int64, "group.mark": np.int64})
        self._frames = frames

    def apply(self, rows: RowStore, events: RowEvents, group: Ints, groups: int) -> tuple[list[pa.Array], Mask, Ints]:
        """The values by version, and by event whether the partition's value changed at its instant and its version."""
        self._by_group.reserve(groups)
        order = np.arange(len(events.ts))
        version, first_group, first_version, counts, *touched = touch(
            order, events.ts, events.sign, group, self._by_group["group.rows"], self._by_group["group.mark"], 0, False
        )
        touches = Touches(*touched)
        timeline = Events(order, events.sign, group, version, first_group, first_version)
        answers = self._frames.apply(rows, events.items, events.sign, timeline, counts, groups)
        changed = np.zeros(len(touches.ts), np.bool_)
        for answer in answers:
            note_changes(touches, answer.bits, answer.nulls, changed)
        by_version = np.zeros(len(counts), np.bool_)
        by_version[touches.after] = changed
        return [answer.array for answer in answers], by_version[np.maximum(version, 0)] & (version >= 0), version


def frame_events(steps: Ints, counts_of: int) -> tuple[Ints, Signs, Events, Ints]:
    """The steps of one task (rows of numbers) as slots, signs, events and rows by version."""
    slots, enters = steps[:, 1] >> 1, (steps[:, 1] & 1) > 0
    sign = np.where(enters, 1, -1).astype(np.int8)
    version, group = np.ascontiguousarray(steps[:, 2]), np.ascontiguousarray(steps[:, 4])
    counts = np.zeros(counts_of, np.int64)
    complete = version >= 0
    counts[version[complete]] = steps[complete, 3]
    zero = np.zeros(1, np.int64)
    return slots, sign, Events(np.arange(len(steps)), sign, group, version, zero, zero.copy()), counts


def pointed_to(call: WindowCall, rows: RowStore, slots: Ints, targets: Ints) -> pa.Array:
    """The values of the rows that are pointed to (slot + 1, 0 for none); `slots` are the current rows."""
    (values,) = rows.take(np.maximum(targets - 1, 0) if len(targets) else targets, [call.arguments[0].index])
    found = pa.array(targets > 0)
    if len(call.arguments) > 1:
        (default,) = rows.take(slots, [call.arguments[1].index])
        return pc.if_else(found, values, default)
    return pc.if_else(found, values, pa.scalar(None, call.dtype))


def extremes(call: WindowCall, words: Ints, nulls: Mask) -> pa.Array:
    """The column of MIN, or of MAX, whose words are complements."""
    values = ~words if call.function == "max" else words
    return fixed_versions(turn_floats(values) if pa.types.is_floating(call.dtype) else values, nulls, call.dtype).array


def ranks(call: WindowCall, values: Ints, divisors: Ints) -> pa.Array:
    """The column of a ranking function."""
    assert call.function in RANKING
    if call.function in ("percent_rank", "cume_dist"):
        shares = np.zeros(len(values), np.float64)
        np.divide(values, divisors, out=shares, where=divisors > 0)
        return pa.array(shares)
    return pa.array(values).cast(call.dtype)
