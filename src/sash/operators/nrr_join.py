"""The join with a non-retroactive relation: matches are fixed on arrival of a row (paper 5, 4.1).

Meaning: (row, ts, exp, +) gives (row + match, ts, exp, +) for every match in the relation as it was before the updates
of ts: an update at tau applies only to rows with ts > tau. LEFT, SEMI and ANTI use the same version. Rows of a stamped
input are not kept. On an explicit input (row, ts, -) retracts the results of its `+` row, which are therefore kept: the
relation may have changed since.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from sash.operators.base import Edge, Operator
from sash.operators.kernels import nrr_join as loop
from sash.operators.kernels.lists import WORDS, fill
from sash.operators.live_rows import LiveRows, own, rows_at
from sash.operators.matches import joined_rows
from sash.operators.netting import net
from sash.plan.expressions import Expression
from sash.plan.nodes import JoinKind
from sash.state.changes import ChangeBatch, concat
from sash.state.hash import HashBuffer
from sash.state.hashing import any_null, hash_rows
from sash.state.interner import Interner
from sash.state.memory import Arrays, Ints, Memory
from sash.state.rows import RowStore
from sash.state.slots import Slots


class NrrJoin(Operator):
    """Keeps the relation's current rows in lists by key code and, if the input is explicit, the results of live rows."""

    def __init__(
        self,
        memory: Memory,
        inputs: tuple[Edge, Edge],
        kind: JoinKind,
        keys: tuple[tuple[int, int], ...],
        condition: Expression | None = None,
    ) -> None:
        left, right = inputs
        self._kind, self._condition = kind, condition
        self._left_keys, self._right_keys = tuple(key for key, _ in keys), tuple(key for _, key in keys)
        self._codes = Interner(memory.scope("keys"))
        self._lists = Arrays(memory, {"lists": np.int64})
        self._links = Arrays(memory, {"links": np.int64})
        self._live = LiveRows(memory.scope("live"), right)
        self._rows = RowStore(memory.scope("rows"), right.dtypes)
        added = () if kind in ("semi", "anti") else right.dtypes
        self._given = None if left.stamped else _Given(memory.scope("given"), (*left.dtypes, *added))

    def process(self, inputs: Sequence[ChangeBatch], clock: int) -> ChangeBatch:
        batch, updates = inputs
        if self._given is None:
            return self._join(batch, updates, clock)[0]
        came = np.flatnonzero(batch.sign > 0)
        added, owners = self._join(batch.take(came), updates, clock)
        removed = self._given.exchange(batch, came[owners], added)
        return net(concat([removed, added]).sorted())

    def _join(self, batch: ChangeBatch, updates: ChangeBatch, clock: int) -> tuple[ChangeBatch, Ints]:
        """The results of the rows, and the row of the batch that each result comes from."""
        nulls = any_null([updates.columns[key] for key in self._right_keys])
        if nulls is not None:
            updates = updates.take(np.flatnonzero(~nulls))
        events, arrived, slots = self._live.apply(updates, clock)
        columns = rows_at(updates, arrived)
        codes, _ = self._codes.intern(*hash_rows([columns[key] for key in self._right_keys], len(arrived)))
        self._links.reserve(WORDS * self._live.capacity)
        self._lists.reserve(WORDS * self._codes.capacity)
        fill(self._links["links"], slots, codes, own(updates.exp[arrived]))
        self._rows.put(slots, columns)
        owners, partners, dead = loop.join_rows(
            own(batch.ts), self._find(batch), events.ts, events.sign, events.items,
            self._links["links"], self._lists["lists"],
        )  # fmt: skip
        result = joined_rows(batch, self._kind, owners, self._rows.take(partners), self._condition)
        gone = events.items[events.sign < 0]
        self._rows.free(gone)
        self._live.release(gone)
        self._codes.forget(dead)
        return result

    def _find(self, batch: ChangeBatch) -> Ints:
        """The code of every row's key; -1 if the relation has no row with that key."""
        columns = [batch.columns[key] for key in self._left_keys]
        codes = self._codes.find(*hash_rows(columns, len(batch)))
        nulls = any_null(columns)
        if nulls is not None:
            codes[nulls] = -1
        return codes

    @property
    def state_rows(self) -> int:
        return self._live.live + (0 if self._given is None else self._given.live)


class _Given:
    """The results of every live row of an explicit input, in a list per row."""

    def __init__(self, memory: Memory, dtypes: Sequence[pa.DataType]) -> None:
        self._buffer = HashBuffer(memory.scope("owners"), oldest_first=True)
        self._slots = Slots(memory)
        self._heads = Arrays(memory, {"heads": np.int64})
        self._following = Arrays(memory, {"following": np.int64})
        self._rows = RowStore(memory.scope("rows"), dtypes)

    def exchange(self, batch: ChangeBatch, owners: Ints, added: ChangeBatch) -> ChangeBatch:
        """Keep the results of the batch's rows at `owners`; returns the results that its `-` rows retract."""
        slots = self._buffer.apply(own(batch.sign), *hash_rows(batch.columns, len(batch), exact=True))
        self._heads.reserve(self._buffer.capacity)
        heads = self._heads["heads"]
        given = self._slots.take(len(added))
        self._following.reserve(self._slots.high)
        self._rows.put(given, added.columns)
        loop.chain(slots[owners], given, heads, self._following["following"])
        ends = np.flatnonzero(batch.sign < 0)
        positions, back = loop.unchain(slots[ends], heads, self._following["following"])
        ts = batch.ts[ends[positions]]
        removed = ChangeBatch.explicit(ts, np.full(len(back), -1, np.int8), self._rows.take(back))
        self._rows.free(back)
        self._slots.give(back)
        self._buffer.release(slots[ends])
        return removed

    @property
    def live(self) -> int:
        """The number of results that are kept."""
        return self._slots.live
