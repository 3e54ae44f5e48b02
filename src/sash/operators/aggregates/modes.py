"""MODE: the most frequent value of a group; of those, the smallest, or the largest if it is `descending`."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sash.operators.aggregates.arguments import ArgumentColumns, ValueCodes
from sash.operators.aggregates.base import Accumulator, Versions, Work, array_versions, canonical
from sash.operators.kernels.modes import count_values, leave_room
from sash.operators.kernels.treap import Treap
from sash.state.memory import Arrays, Memory
from sash.state.ordering import encode_order
from sash.state.rows import RowStore


class Mode(Accumulator):
    """Keeps each distinct value once, with the number of its occurrences, in the tree of its group."""

    def __init__(
        self, memory: Memory, arguments: ArgumentColumns, column: int, distinct: bool, descending: bool
    ) -> None:
        super().__init__()
        self._column = column
        self._distinct = distinct
        self._descending = descending
        self._codes = ValueCodes(memory, arguments.edge, (column,))
        self._repeats = arguments.repeats((column,)) if distinct else None
        self._treap = Treap(memory.scope("tree"))
        self._roots = Arrays(memory, {"group.root": np.int64})
        self._occurrences = Arrays(memory, {"value.occurrences": np.int64})
        self._payload = RowStore(memory.scope("payload"), (arguments.edge.dtypes[column],))

    def apply(self, work: Work) -> list[Versions]:
        pairs, fresh, rows = self._codes.load(work)
        if self._repeats is not None:
            pairs = np.where(self._repeats.load(work), 0, pairs)
        if len(fresh):
            values = canonical(work.batch.columns[self._column].take(pa.array(rows)))
            order = encode_order([values], [self._descending], [True], len(values))
            self._treap.write(fresh, *leave_room(*order))
            self._payload.put(fresh, [values])
        self._roots.reserve(work.groups)
        self._occurrences.reserve(self._codes.capacity)
        nodes = np.empty(work.versions, np.int64)
        gone = count_values(
            work.events, pairs, self._treap.nodes, self._roots["group.root"], self._occurrences["value.occurrences"],
            nodes,
        )  # fmt: skip
        (array,) = self._payload.take(np.maximum(nodes - 1, 0))
        self._treap.free(gone)
        self._payload.free(gone)
        self._codes.forget(gone)
        result = array_versions(pc.if_else(pa.array(nodes > 0), array, pa.scalar(None, array.type)))
        return [result] * len(self._calls)
