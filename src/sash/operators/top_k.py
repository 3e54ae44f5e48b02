"""ORDER BY with LIMIT, maintained: the rows at certain ranks among all live rows.

Meaning: at every instant the output is the rows at ranks [offset, offset + limit) of the live rows in the given order,
ties broken by the remaining columns, ascending, NULLs first; of the rows of each group, if there are columns to group by. All
live rows of a group are in one search tree with counts, so an arrival or expiration moves at most one row across either end of
the range; one behind the range only updates the tree. Where rows end in order of arrival, the tree has only those that can
still come into the range. With `ranked`, the output is the rows whose RANK or DENSE_RANK is at most the limit; an arrival then
moves all rows that are equal in the order. The output is explicit.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from sash.operators.base import Edge, Operator
from sash.operators.kernels.top_k import ROOT, advance
from sash.operators.kernels.top_ranks import advance_ranks
from sash.operators.kernels.treap import Treap
from sash.operators.kernels.wide_tree import WideTree
from sash.operators.kernels.window_search import Keys
from sash.operators.live_rows import LiveRows, RowEvents, rows_at
from sash.operators.netting import net
from sash.plan.nodes import Ranked, SortKey
from sash.state.changes import ChangeBatch, Signs
from sash.state.hashing import hash_rows
from sash.state.interner import Interner
from sash.state.memory import Arrays, Ints, Memory
from sash.state.ordering import encode_order
from sash.state.rows import RowStore

_FEW_RANKS = 32
"""Up to this many ranks, rows that can never reach one are dropped at once; this takes as many steps per row."""


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
        ranked: Ranked = "",
    ) -> None:
        (edge,) = inputs
        named = {key.column for key in order}
        self._order = (*order, *(SortKey(column) for column in range(len(edge.dtypes)) if column not in named))
        self._dtypes = edge.dtypes
        self._first, self._stop = offset, offset + limit
        self._live = LiveRows(memory.scope("live"), edge)
        self._rows = RowStore(memory.scope("rows"), edge.dtypes)
        self._keys = Treap(memory.scope("tree"))
        self._tree = WideTree(memory.scope("wide"), self._keys)
        self._memory = memory
        self._ends = memory.array("ends", np.int64, 2)
        self._by = by
        self._groups = Interner(memory.scope("groups")) if by else None
        self._group_of = Arrays(memory, {"slot.group": np.int64}) if by else None
        self._marks = Arrays(memory, {"marks": np.int64})
        self._ranked = ranked
        self._peers = order if ranked else ()
        self._hashes = Arrays(memory, {"peer.low": np.uint64, "peer.high": np.uint64}) if ranked else None
        few = edge.expiry == "fifo" and self._stop <= _FEW_RANKS and ranked != "dense_rank"
        self._beaten = Arrays(memory, {"beaten": np.int64}) if few else None
        self._tree.adopt(self._ends[ROOT::2])

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
        self._keys.write(slots, offsets, data)
        self._marks.reserve(self._live.capacity)
        if self._hashes is not None:
            self._hashes.reserve(self._live.capacity)
            low, high = hash_rows([columns[key.column] for key in self._peers], len(arrived))
            self._hashes["peer.low"][slots], self._hashes["peer.high"][slots] = low, high
        if self._beaten is not None:
            self._beaten.reserve(self._live.capacity)
        groups = self._assigned(columns, slots, events.items)
        ts, sign, changed = self._advance(events, groups)
        output = net(ChangeBatch.explicit(ts, sign, self._rows.take(changed)))
        gone = events.items[events.sign < 0]
        self._rows.free(gone)
        self._keys.free(gone)
        self._live.release(gone)
        if self._groups is not None:
            ended = np.unique(groups[events.sign < 0])
            self._groups.forget(ended[self._ends[2 * ended + ROOT] == 0])
        return output

    def _advance(self, events: RowEvents, groups: Ints) -> tuple[Ints, Signs, Ints]:
        """The changes of the output: times, signs and slots."""
        parts: list[tuple[Ints, Signs, Ints]] = []
        beaten = np.empty(0, np.int64) if self._beaten is None else self._beaten["beaten"]
        begin, size = 0, len(events.ts)
        while begin < size or not parts:
            same = int(np.searchsorted(events.ts, events.ts[begin], "right")) - begin if size else 0
            self._tree.reserve(same, self._live.capacity, len(self._ends) // 2)
            given = (begin, events.ts, events.sign, events.items, groups, self._tree.nodes)
            state = (self._ends, self._marks["marks"], beaten)
            if self._hashes is None:
                begin, ts, sign, slots = advance(*given, *state, self._first, self._stop)
            else:
                dense = self._ranked == "dense_rank"
                begin, ts, sign, slots = advance_ranks(*given, _keys(self._hashes), *state, self._stop, dense)
            parts.append((ts, sign, slots))
        if len(parts) == 1:
            return parts[0]
        times, signs, changed = zip(*parts, strict=True)
        return np.concatenate(times), np.concatenate(signs), np.concatenate(changed)

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


def _keys(hashes: Arrays) -> Keys:
    none = np.empty(0, np.int64)
    return Keys(hashes["peer.low"], hashes["peer.high"], none, np.empty(0, np.int8), 1, 1)
