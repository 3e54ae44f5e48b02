"""Aggregates of the rows of a group in order: COLLECT_LIST, COLLECT_SET, LISTAGG, and MIN_BY and MAX_BY with k.

The rows of a group are a tree, so a change costs the logarithm of its rows; but its result has as many values as rows, and
each of its versions is written anew. Rows are ordered by WITHIN GROUP's expressions or MIN_BY's, then by ts, then by all
columns; COLLECT_SET by the ts of a value's first row, then by value.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sash.operators.aggregates.arguments import ArgumentColumns, ValueCodes
from sash.operators.aggregates.base import NO_MASK, Accumulator, Versions, Work, array_versions, canonical
from sash.operators.kernels.collected import collect_rows
from sash.operators.kernels.touches import Mask, count_references
from sash.operators.kernels.treap import Treap
from sash.plan.expressions import AggregateCall, AggregateDetail
from sash.state.hashing import null_mask
from sash.state.memory import Arrays, Ints, Memory
from sash.state.ordering import encode_order
from sash.state.rows import RowStore
from sash.state.slots import Slots

_NO_CODES = np.zeros(0, np.int64)


class Collected(Accumulator):
    """One aggregate. The first of `columns` is the value, the others come first in the order."""

    def __init__(
        self,
        memory: Memory,
        arguments: ArgumentColumns,
        columns: Sequence[int],
        call: AggregateCall,
        timed: bool,
        time: int | None,
    ) -> None:
        super().__init__()
        edge = arguments.edge
        self._column, *self._order = columns
        self._function = call.function
        self._detail = call.detail or AggregateDetail()
        self._timed = timed and edge.stamped
        self._time = time
        self._treap = Treap(memory.scope("tree"))
        self._roots = Arrays(memory, {"group.root": np.int64})
        self._nodes = None if edge.stamped else Slots(memory)
        self._payload = RowStore(memory.scope("payload"), self._payload_types(edge.dtypes))
        distinct = call.distinct or call.function == "collect_set"
        self._codes = ValueCodes(memory, edge, self._distinct_columns) if distinct else None
        self._references = Arrays(memory, {"pair.references": np.int64, "node.code": np.int64}) if distinct else None

    def _payload_types(self, dtypes: Sequence[pa.DataType]) -> tuple[pa.DataType, ...]:
        return (dtypes[self._column],)

    @property
    def _distinct_columns(self) -> tuple[int, ...]:
        return (self._column,)

    def apply(self, work: Work) -> list[Versions]:
        first = work.removed if self._nodes is None else 0
        nodes = work.slots if self._nodes is None else self._nodes.take(len(work.events.order))
        skip = self._write(work, nodes[first:])
        if len(skip) and first:
            skip = np.concatenate((np.zeros(first, np.bool_), skip))
        codes, distinct, gone = self._value_codes(work, nodes, first)
        self._roots.reserve(work.groups)
        starts, sizes = np.zeros(work.versions, np.int64), np.zeros(work.versions, np.int64)
        limit = (self._detail.limit if self._function in ("min_by", "max_by") else None) or np.iinfo(np.int64).max
        found, free = collect_rows(
            work.events, nodes, self._nodes is not None, skip, self._treap.nodes, self._roots["group.root"], codes, distinct,
            limit, self._function == "max_by", starts, sizes,
        )  # fmt: skip
        work.memo[self] = free
        if self._codes is not None:
            self._codes.forget(gone)
        result = self._result(starts, sizes, found)
        return [array_versions(result)] * len(self._calls)

    def _write(self, work: Work, nodes: Ints) -> Mask:
        """Write the keys of the nodes of new rows (all positions, if nodes are numbered here); returns rows to skip."""
        columns = work.batch.columns
        value = columns[self._column]
        times = [pa.array(work.batch.ts)] if self._timed else []
        if self._time is not None:
            times = [columns[self._time]]
        rest = [value] if self._function == "collect_set" else [*columns, value]
        keys = [*(columns[index] for index in self._order), *times, *rest]
        directions = self._detail.order or ((False, True),) * len(self._order)
        plain = len(keys) - len(directions)
        descending = [down for down, _ in directions] + [False] * plain
        nulls_first = [first for _, first in directions] + [True] * plain
        exact_from = None if self._function == "collect_set" else len(directions) + len(times)
        self._treap.write(nodes, *encode_order(keys, descending, nulls_first, len(work.batch), exact_from))
        return self._store_rows(work, nodes)

    def _store_rows(self, work: Work, nodes: Ints) -> Mask:
        """Keep what the result is made of; returns rows to skip."""
        columns = work.batch.columns
        value = columns[self._column]
        self._payload.put(nodes, [canonical(value) if self._function == "collect_set" else value])
        decides = columns[self._order[0]] if self._function in ("min_by", "max_by") else value
        mask = null_mask(decides)
        return NO_MASK if mask is None else np.array(mask)

    def _value_codes(self, work: Work, nodes: Ints, first: int) -> tuple[Ints, int, Ints]:
        """By node, for DISTINCT: codes of the values; the number of codes, and those whose values no longer occur."""
        if self._codes is None or self._references is None:
            return _NO_CODES, 0, _NO_CODES
        pairs, _, _ = self._codes.load(work)
        capacity = self._codes.capacity
        self._references.reserve(max(capacity, int(nodes.max()) + 1 if len(nodes) else 1))
        _, gone = count_references(work.events, pairs, self._references["pair.references"])
        self._references["node.code"][nodes[first:]] = pairs[first:] - 1
        return self._references["node.code"], max(capacity, 1), gone

    def _result(self, starts: Ints, sizes: Ints, found: Ints) -> pa.Array:
        """The values by version, as a list or as a text."""
        offsets = np.zeros(len(sizes) + 1, np.int64)
        np.cumsum(sizes, out=offsets[1:])
        order = np.repeat(starts - offsets[:-1], sizes) + np.arange(offsets[-1])
        (values,) = self._payload.take(found[order])
        lists = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values)
        none = pa.array(sizes == 0)
        if self._function == "listagg":
            joined = pc.binary_join(lists, pa.scalar(self._detail.separator, pa.binary()).cast(values.type))
            return pc.if_else(none, pa.scalar(None, values.type), joined)
        return lists if self._function.startswith("collect") else pc.if_else(none, pa.scalar(None, lists.type), lists)

    def finish(self, work: Work) -> None:
        free = work.removed_slots
        if self._nodes is not None:
            kept = work.memo[self]
            assert isinstance(kept, np.ndarray)
            free = kept
            self._nodes.give(free)
        self._treap.free(free)
        self._payload.free(free)
