"""Aggregates by rank: MIN, MAX, MEDIAN, PERCENTILE_*, MIN_BY, MAX_BY, FIRST and LAST.

Every live row is a node in the tree of its group. The keys alone determine the result: for ties (equal ordering value,
equal ts) the key continues with all columns and the value itself.
"""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sash.errors import StrategyError
from sash.operators.aggregates.arguments import ArgumentColumns, Kind, Values
from sash.operators.aggregates.base import (
    NO_MASK,
    Accumulator,
    Versions,
    Work,
    array_versions,
    as_doubles,
    canonical,
    fits_word,
    fixed_versions,
)
from sash.operators.kernels.ranks import BACKWARD, DISCRETE, Floats, rank_rows
from sash.operators.kernels.touches import Mask
from sash.operators.kernels.treap import Treap
from sash.plan.expressions import AggregateCall
from sash.state.hashing import null_mask
from sash.state.memory import Arrays, Ints, Memory
from sash.state.ordering import encode_order, ordered_bits, turn_floats
from sash.state.rows import RowStore
from sash.state.slots import Slots

_PLACES = {"min": 0.0, "max": 1.0, "median": 0.5, "min_by": 0.0, "max_by": 1.0, "first": 0.0, "last": 1.0}


class Ranked(Accumulator):
    """Subclasses provide the rows' keys. On a stamped edge a node is a slot; otherwise nodes are numbered here, and a
    removal finds a node with the same key."""

    def __init__(self, memory: Memory, own: bool, payload: pa.DataType | None) -> None:
        super().__init__()
        self._treap = Treap(memory.scope("tree"))
        self._roots = Arrays(memory, {"group.root": np.int64})
        self._nodes = Slots(memory) if own else None
        self._payload = None if payload is None else RowStore(memory.scope("payload"), (payload,))

    def apply(self, work: Work) -> list[Versions]:
        first = work.removed if self._nodes is None else 0
        nodes = work.slots if self._nodes is None else self._nodes.take(len(work.events.order))
        skip = self._write(work, nodes[first:])
        if len(skip) and first:
            skip = np.concatenate((np.zeros(first, np.bool_), skip))
        self._roots.reserve(work.groups)
        places = [(call, place) for call in self._calls for place in _places(call)]
        positions = np.array([place for _, place in places], np.float64)
        kinds = np.array([_kind(call) for call, _ in places], np.int64)
        size = len(positions) * work.versions
        lower, upper, share = np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size, np.float64)
        work.memo[self] = rank_rows(
            work.events, nodes, self._nodes is not None, skip, self._treap.nodes, self._roots["group.root"], positions,
            kinds, lower, upper, share,
        )  # fmt: skip
        shape = (len(positions), work.versions)
        parts = zip(places, lower.reshape(shape), upper.reshape(shape), share.reshape(shape), strict=True)
        found = [(call, self._answer(call, low, high, part)) for (call, _), low, high, part in parts]
        return [_result(call, [answer for other, answer in found if other == call]) for call in self._calls]

    @abstractmethod
    def _write(self, work: Work, nodes: Ints) -> Mask:
        """Write the keys of the nodes of new rows (all positions, if nodes are numbered here); returns rows to skip."""

    def _answer(self, call: AggregateCall, lower: Ints, upper: Ints, share: Floats) -> Versions:
        nulls = lower == 0
        if self._payload is not None:
            (array,) = self._payload.take(np.maximum(lower - 1, 0))
            return array_versions(pc.if_else(pa.array(~nulls), array, pa.scalar(None, array.type)))
        low = self._treap.words(np.maximum(lower - 1, 0))
        dtype = call.dtype if call.detail is None or call.detail.fractions is None else call.dtype.value_type
        if call.function in ("min", "max", "percentile_value"):
            return fixed_versions(turn_floats(low) if pa.types.is_floating(dtype) else low, nulls, dtype)
        high = self._treap.words(np.maximum(upper - 1, 0))
        small, large = turn_floats(low).view(np.float64), turn_floats(high).view(np.float64)
        with np.errstate(invalid="ignore"):
            values = np.where(low == high, small, (1.0 - share) * small + share * large)
        return fixed_versions(values.view(np.int64), nulls, dtype)

    def finish(self, work: Work) -> None:
        free = work.removed_slots
        if self._nodes is not None:
            kept = work.memo[self]
            assert isinstance(kept, np.ndarray)
            free = kept
        self._treap.free(free)
        if self._payload is not None:
            self._payload.free(free)
        if self._nodes is not None:
            self._nodes.give(free)


class RankedValues(Ranked):
    """Rows ordered by the value itself, as a double for interpolating functions; NULLs are skipped."""

    def __init__(self, memory: Memory, arguments: ArgumentColumns, column: int, distinct: bool, kind: Kind) -> None:
        dtype = arguments.edge.dtypes[column]
        own = distinct or not arguments.edge.stamped
        super().__init__(memory, own, None if kind == "double" or fits_word(dtype) else dtype)
        self._column = column
        self._kind = kind
        self._distinct = distinct
        self._values = Values(arguments, column, distinct, kind) if own else None

    def _write(self, work: Work, nodes: Ints) -> Mask:
        if self._values is not None:
            column, skip = self._values.load(work)
            if self._distinct:
                column = canonical(column)
        else:
            column = work.batch.columns[self._column]
            if self._kind == "double":
                column = as_doubles(column)
            mask = null_mask(column)
            skip = NO_MASK if mask is None else np.array(mask)
        if self._payload is None:
            self._treap.write_words(nodes, ordered_bits(column, exact=True))
        else:
            self._treap.write(nodes, *encode_order([column], [False], [True], len(column), 0))
            self._payload.put(nodes, [column])
        return skip


class RankedRows(Ranked):
    """Rows ordered by another column (MIN_BY, MAX_BY; NULLs there are skipped), or by time (FIRST, LAST).

    Rows for which the column `condition` is not true are skipped.
    """

    def __init__(
        self,
        memory: Memory,
        arguments: ArgumentColumns,
        column: int,
        by: int | None,
        timed: bool,
        time: int | None,
        condition: int | None = None,
    ) -> None:
        if by is None and not arguments.edge.stamped and time is None:
            raise StrategyError("FIRST and LAST need input rows that carry their expiration times, or their times")
        super().__init__(memory, not arguments.edge.stamped, arguments.edge.dtypes[column])
        self._column = column
        self._by = by
        self._timed = by is None or (timed and arguments.edge.stamped)
        self._time = time
        self._condition = condition

    def _write(self, work: Work, nodes: Ints) -> Mask:
        columns = work.batch.columns
        leading = [] if self._by is None else [columns[self._by]]
        times = [pa.array(work.batch.ts)] if self._timed else []
        if self._time is not None:
            times = [columns[self._time]]
        keys = [*leading, *times, *columns, columns[self._column]]
        ascending, first = [False] * len(keys), [True] * len(keys)
        ties = len(leading) + len(times)
        self._treap.write(nodes, *encode_order(keys, ascending, first, len(work.batch), ties))
        if self._payload is not None:
            self._payload.put(nodes, [columns[self._column]])
        if self._condition is not None:
            kept = pc.fill_null(columns[self._condition], False)
            return ~np.asarray(kept.to_numpy(zero_copy_only=False), np.bool_)
        mask = null_mask(leading[0]) if leading else None
        return NO_MASK if mask is None else np.array(mask)


def _places(call: AggregateCall) -> tuple[float, ...]:
    if call.detail is not None and call.detail.fractions is not None:
        return call.detail.fractions
    return (_PLACES[call.function] if call.parameter is None else call.parameter,)


def _result(call: AggregateCall, parts: list[Versions]) -> Versions:
    """The column of a call: that of its place, or an array of those of several places; NULL without values."""
    if call.detail is None or call.detail.fractions is None:
        return parts[0]
    return array_versions(arrays_of([part.array for part in parts]))


def arrays_of(parts: list[pa.Array]) -> pa.Array:
    """One array per row with the value of each part, which are all NULL or none."""
    rows, width = len(parts[0]), len(parts)
    position = np.arange(rows * width)
    values = pa.concat_arrays(parts).take(pa.array(position % width * rows + position // width))
    offsets = pa.array(np.arange(rows + 1) * width, pa.int32())
    return pc.if_else(
        parts[0].is_valid(), pa.ListArray.from_arrays(offsets, values), pa.scalar(None, pa.list_(values.type))
    )


def _kind(call: AggregateCall) -> int:
    backward = call.detail is not None and call.detail.descending
    return (DISCRETE if call.function in ("percentile_disc", "percentile_value") else 0) | (BACKWARD if backward else 0)
