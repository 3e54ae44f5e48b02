"""ORDER BY with LIMIT, maintained: the rows at certain ranks among all live rows.

Meaning: at every instant the output is the rows at ranks [offset, offset + limit) of the live rows in the given order,
ties broken by the remaining columns, ascending, NULLs first; of the rows of each group, if there are columns to group by. All
live rows of a group are in one search tree with subtree sizes, so an arrival or expiration moves at most one row across either end of the range; one behind the range only updates the
tree. The output is explicit.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from sash.operators.base import Edge, Operator
from sash.operators.kernels.top_k import ROOT, advance
from sash.operators.kernels.treap import Treap
from sash.operators.live_rows import LiveRows, rows_at
from sash.operators.netting import net
from sash.plan.nodes import SortKey
from sash.state.changes import ChangeBatch
from sash.state.hashing import hash_rows
from sash.state.interner import Interner
from sash.state.memory import Arrays, Ints, Memory
from sash.state.ordering import encode_order
from sash.state.rows import RowStore


class TopK(Operator):
    """Keeps the live rows by slot; the slots are also the nodes of the tree."""

    def __init__(
        self,
        memory: Memory,
        inputs: tuple[Edge],
        order: tuple[SortKey, ...],
        limit: int,
        offset: int = 0,
        by: tuple[int, ...] = (),
    ) -> None:
        (edge,) = inputs
        named = {key.column for key in order}
        self._order = (*order, *(SortKey(column) for column in range(len(edge.dtypes)) if column not in named))
        self._dtypes = edge.dtypes
        self._first, self._stop = offset, offset + limit
        self._live = LiveRows(memory.scope("live"), edge)
        self._rows = RowStore(memory.scope("rows"), edge.dtypes)
        self._tree = Treap(memory.scope("tree"))
        self._memory = memory
        self._ends = memory.array("ends", np.int64, 2)
        self._by = by
        self._groups = Interner(memory.scope("groups")) if by else None
        self._group_of = Arrays(memory, {"slot.group": np.int64}) if by else None
        self._marks = Arrays(memory, {"marks": np.int64})

    def process(self, inputs: Sequence[ChangeBatch], clock: int) -> ChangeBatch:
        (batch,) = inputs
        if self._first == self._stop:
            return ChangeBatch.empty(self._dtypes)
        events, arrived, slots = self._live.apply(batch, clock)
        columns = rows_at(batch, arrived)
        self._rows.put(slots, columns)
        offsets, data = encode_order(
            [columns[key.column] for key in self._order],
            [key.descending for key in self._order],
            [key.nulls_first for key in self._order],
            len(arrived),
        )
        self._tree.write(slots, offsets, data)
        self._marks.reserve(self._live.capacity)
        groups = self._assigned(columns, slots, events.items)
        ts, sign, changed = advance(
            events.ts, events.sign, events.items, groups, self._tree.nodes, self._ends, self._marks["marks"],
            self._first, self._stop,
        )  # fmt: skip
        output = net(ChangeBatch.explicit(ts, sign, self._rows.take(changed)))
        gone = events.items[events.sign < 0]
        self._rows.free(gone)
        self._tree.free(gone)
        self._live.release(gone)
        if self._groups is not None:
            ended = np.unique(groups[events.sign < 0])
            self._groups.forget(ended[self._ends[2 * ended + ROOT] == 0])
        return output

    def _assigned(self, columns: Sequence[pa.Array], slots: Ints, items: Ints) -> Ints:
        """The groups of the rows at `items`; those at `slots` are new."""
        if self._groups is None or self._group_of is None:
            return np.zeros(len(items), np.int64)
        low, high = hash_rows([columns[column] for column in self._by], len(slots))
        codes, _ = self._groups.intern(low if low.flags.writeable else low.copy(), high)
        self._ends = self._memory.grow("ends", np.int64, 2 * self._groups.capacity)
        self._group_of.reserve(self._live.capacity)
        self._group_of["slot.group"][slots] = codes
        groups: Ints = self._group_of["slot.group"][items]
        return groups

    @property
    def state_rows(self) -> int:
        return self._live.live
