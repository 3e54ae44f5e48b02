"""The comparison of rows with a scalar that changes, such as `price > (SELECT AVG(price) ...)`.

Meaning: a row of the first input is in the output while its value compares as wanted with that of the only row of the second
input. It is not while either value is NULL, or there is no such row. The output is explicit. Rows are kept in the order of
their values, so a new scalar costs O(log n) and the rows between the old and the new one, which are those whose
comparison flips.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from sash.operators.base import Edge, Operator
from sash.operators.kernels import scalar_comparison as loop
from sash.operators.kernels.scalar_comparison import NODES, SCALAR
from sash.operators.kernels.treap import Treap
from sash.operators.kernels.wide_tree import WideTree
from sash.operators.kernels.window_search import Keys
from sash.operators.live_rows import LiveRows, RowEvents, rows_at
from sash.operators.netting import net
from sash.operators.scalar import evaluate
from sash.plan.expressions import Expression
from sash.state.changes import ChangeBatch, Signs
from sash.state.hashing import null_mask
from sash.state.memory import Arrays, Ints, Memory
from sash.state.ordering import encode_order
from sash.state.rows import RowStore

COMPARISONS = {"lt": loop.LT, "le": loop.LE, "gt": loop.GT, "ge": loop.GE, "eq": loop.EQ, "ne": loop.NE}
_KEPT = 1


class ScalarComparison(Operator):
    """Keeps the rows by slot, and a tree of them by value; the scalar is a key in the same order."""

    def __init__(
        self, memory: Memory, inputs: tuple[Edge, Edge], function: str, value: Expression, scalar: Expression
    ) -> None:
        edge, _ = inputs
        self._comparison = COMPARISONS[function]
        self._value, self._scalar = value, scalar
        self._live = LiveRows(memory.scope("live"), edge)
        self._rows = RowStore(memory.scope("rows"), edge.dtypes)
        self._keys = Treap(memory.scope("tree"))
        self._tree = WideTree(memory.scope("wide"), self._keys)
        self._state = memory.array("state", np.int64, 2)
        self._by_slot = Arrays(memory, {"null": np.int8, "marks": np.int64})

    def process(self, inputs: Sequence[ChangeBatch], clock: int) -> ChangeBatch:
        events, arrived, slots = self._live.apply(inputs[0], clock)
        columns = rows_at(inputs[0], arrived)
        self._rows.put(slots, columns)
        self._by_slot.reserve(self._live.capacity)
        values = evaluate(self._value, columns, len(arrived))
        self._write(NODES * slots, values)
        mask = null_mask(values)
        self._by_slot["null"][slots] = 0 if mask is None else mask
        ts, sign, changed = self._advance(events, *self._scalars(inputs[1]))
        output = net(ChangeBatch.explicit(ts, sign, self._rows.take(changed)))
        gone = events.items[events.sign < 0]
        self._rows.free(gone)
        self._keys.free(NODES * gone)
        self._live.release(gone)
        return output

    def _write(self, nodes: Ints, values: pa.Array) -> None:
        self._keys.write(nodes, *encode_order([values], [False], [True], len(values)))

    def _scalars(self, batch: ChangeBatch) -> tuple[Ints, Ints, pa.Array]:
        """The instants at which the scalar changes, the node of its value at each (0: it has none), and its values."""
        values = evaluate(self._scalar, batch.columns, len(batch))
        there, mask = batch.sign > 0, null_mask(values)
        rows = np.flatnonzero(there if mask is None else there & ~mask)
        ts = np.unique(batch.ts)
        nodes = np.zeros(len(ts), np.int64)
        nodes[np.searchsorted(ts, batch.ts[rows])] = _KEPT + NODES * (1 + np.arange(len(rows)))
        values = values.take(pa.array(rows))
        self._write(_KEPT + NODES * (1 + np.arange(len(rows))), values)
        return ts, nodes, values

    def _advance(self, events: RowEvents, scalar_ts: Ints, scalars: Ints, values: pa.Array) -> tuple[Ints, Signs, Ints]:
        """The changes of the output: times, signs and slots."""
        none = np.empty(0, np.uint64)
        keys = Keys(none, none, np.empty(0, np.int64), np.empty(0, np.int8), 1, 1)
        parts: list[tuple[Ints, Signs, Ints]] = []
        begin, size = (0, 0), len(events.ts)
        while begin[0] < size or begin[1] < len(scalar_ts) or not parts:
            event = begin[0]
            same = int(np.searchsorted(events.ts, events.ts[event], "right")) - event if event < size else 0
            self._tree.reserve(same, self._live.capacity, 1)
            begin, ts, sign, slots = loop.advance(
                begin, events.ts, events.sign, events.items, self._by_slot["null"], scalar_ts, scalars,
                self._comparison, self._tree.nodes, keys, self._state, self._by_slot["marks"],
            )  # fmt: skip
            parts.append((ts, sign, slots))
        self._keep(scalars, values)
        times, signs, changed = zip(*parts, strict=True)
        return np.concatenate(times), np.concatenate(signs), np.concatenate(changed)

    def _keep(self, scalars: Ints, values: pa.Array) -> None:
        """Keep the last scalar for the next call."""
        if not len(scalars):
            return
        self._keys.free(_KEPT + NODES * np.arange(1 + len(values)))
        if self._state[SCALAR]:
            self._state[SCALAR] = _KEPT
            self._write(np.array([_KEPT]), values.slice(len(values) - 1))

    @property
    def state_rows(self) -> int:
        return self._live.live
