"""The symmetric window hash join (paper 1, W-Join; paper 5, 5.2).

Meaning: a left and a right row with equal keys give a row that is valid while both are: (ts, exp) is
(max ts, min exp). NULL keys match nothing, and without keys every row matches every other. If both inputs are stamped
so is the output, and expiry is silent, unless it is to be spoken of. Otherwise the output is explicit: whatever ends
takes back its matches.

Where expiry is silent, rows that have ended may stay in the state for a while (paper 5, 2.1): they are purged every so
often, and a pair with one of them, which would end before it begins, is left out.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from sash.operators.base import Edge, Operator
from sash.operators.kernels import join as loop
from sash.operators.kernels.lists import WORDS, fill
from sash.operators.live_rows import Events, LiveRows, own, rows_at
from sash.operators.netting import net
from sash.state.changes import ChangeBatch
from sash.state.hashing import any_null, hash_rows
from sash.state.interner import Interner
from sash.state.memory import Array, Arrays, Ints, Memory
from sash.state.rows import RowStore


class Join(Operator):
    """Two sides, each with its rows in lists by key code; a key that neither side has any more is forgotten."""

    def __init__(
        self,
        memory: Memory,
        inputs: tuple[Edge, Edge],
        keys: tuple[tuple[int, int], ...],
        left_columns: tuple[int, ...] | None = None,
        right_columns: tuple[int, ...] | None = None,
        spoken: bool = False,
        lent: tuple[RowStore | None, RowStore | None] = (None, None),
        purge: int | None = None,
    ) -> None:
        left, right = inputs
        self._explicit = spoken or not (left.stamped and right.stamped)
        self._purge = None if self._explicit else purge
        self._purged = None if self._purge is None else memory.array("purged", np.int64, 1)
        self._keys = Interner(memory.scope("keys"))
        self._heads = Arrays(memory, {"heads": np.int64})
        self._sides = (
            _Side(memory.scope("left"), left, tuple(key for key, _ in keys), left_columns, lent[0]),
            _Side(memory.scope("right"), right, tuple(key for _, key in keys), right_columns, lent[1]),
        )

    def process(self, inputs: Sequence[ChangeBatch], clock: int) -> ChangeBatch:
        left, right = self._sides
        until = self._due(clock)
        left_events = left.apply(inputs[0], self._keys, until)
        right_events = right.apply(inputs[1], self._keys, until)
        self._heads.reserve(WORDS * self._keys.capacity)
        ts, exp, sign, left_slots, right_slots, dead = loop.advance(
            self._explicit,
            left_events.ts, left_events.sign, left_events.items, left.links,
            right_events.ts, right_events.sign, right_events.items, right.links,
            self._heads["heads"],
        )  # fmt: skip
        if self._purged is not None and not (met := exp > ts).all():
            ts, exp, left_slots, right_slots = ts[met], exp[met], left_slots[met], right_slots[met]
        columns = (*left.take(left_slots), *right.take(right_slots))
        left.drop(left_events.items[left_events.sign < 0])
        right.drop(right_events.items[right_events.sign < 0])
        self._keys.forget(dead)
        if not self._explicit:
            return ChangeBatch.stamped(ts, exp, columns)
        return net(ChangeBatch.explicit(ts, sign, columns))

    def _due(self, clock: int) -> int:
        """Up to when rows that ended are taken out now: up to the clock, or up to when it was last done."""
        if self._purge is None or self._purged is None:
            return clock
        if clock - self._purged[0] >= self._purge:
            self._purged[0] = clock
        return int(self._purged[0])

    @property
    def probes(self) -> int:
        """How many rows it has looked at to find those that were taken back before their time."""
        return sum(side.live.searched for side in self._sides if side.live is not None)

    @property
    def state_rows(self) -> int:
        return sum(side.live.live for side in self._sides if side.live is not None)


class _Side:
    """The rows of one input: which are live, their output columns, and their places in the lists.

    Where rows are `lent`, they come with the slots in which they stand, and only their places in the lists are kept here.
    """

    def __init__(
        self,
        memory: Memory,
        edge: Edge,
        keys: tuple[int, ...],
        columns: tuple[int, ...] | None,
        lent: RowStore | None,
    ) -> None:
        self._key_columns = keys
        self._columns = tuple(range(len(edge.dtypes))) if columns is None else columns
        self._lent = lent
        self.live = LiveRows(memory.scope("live"), edge) if lent is None else None
        self._rows = RowStore(memory.scope("rows"), [edge.dtypes[column] for column in self._columns if lent is None])
        self._links = Arrays(memory, {"links": np.int64})

    @property
    def links(self) -> Array:
        return self._links["links"]

    def apply(self, batch: ChangeBatch, keys: Interner, clock: int) -> Events:
        """Store what arrives, with a code for its key; what happens, with the ends of rows up to the clock."""
        nulls = any_null([batch.columns[key] for key in self._key_columns])
        if nulls is not None:
            batch = batch.take(np.flatnonzero(~nulls))
        if self.live is None:
            assert batch.slots is not None
            events, arrived = Events(own(batch.ts), own(batch.sign), own(batch.slots)), np.flatnonzero(batch.sign > 0)
            slots, capacity = batch.slots[arrived], int(batch.slots.max(initial=-1)) + 1
        else:
            events, arrived, slots = self.live.apply(batch, clock)
            capacity = self.live.capacity
        columns = rows_at(batch, arrived)
        codes, _ = keys.intern(*hash_rows([columns[key] for key in self._key_columns], len(arrived)))
        self._links.reserve(WORDS * capacity)
        fill(self.links, slots, codes, own(batch.exp[arrived]))
        if self._lent is None:
            self._rows.put(slots, [columns[column] for column in self._columns])
        return events

    def take(self, slots: Ints) -> list[pa.Array]:
        """The output columns of the rows at these slots."""
        return self._rows.take(slots) if self._lent is None else self._lent.take(slots, self._columns)

    def drop(self, slots: Ints) -> None:
        """Forget rows that ended."""
        if self.live is not None:
            self._rows.free(slots)
            self.live.release(slots)
