"""The symmetric window hash join (paper 1, W-Join; paper 5, 5.2).

Meaning: a left and a right row with equal keys give a row that is valid while both are: (ts, exp) is
(max ts, min exp). NULL keys never match, and without keys every row matches every other. If both inputs are stamped,
so is the output, and results expire silently. Otherwise, or with `retracting`, the output is explicit: when a row ends,
its results are retracted.

An interval join keeps a row only for a given time after its arrival, in which all its partners come. Its results carry the
expiration times of the rows themselves.

If results expire silently, expired rows may stay in the state for a while (paper 5, 2.1): they are removed once per
`purge` microseconds, and a pair with an expired row, which would end before it begins, is dropped.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from sash.operators.base import Edge, Operator
from sash.operators.kernels import join as loop
from sash.operators.kernels.vectors import MARKS, ROW, VECTOR, dead_codes, fill
from sash.operators.live_rows import LiveRows, RowEvents, own, rows_at
from sash.operators.netting import net
from sash.operators.purging import Purging
from sash.state.changes import ChangeBatch, Signs
from sash.state.hashing import any_null, hash_rows
from sash.state.interner import Interner
from sash.state.memory import Array, Arrays, Ints, Memory
from sash.state.rows import RowStore

Pairs = tuple[Ints, Ints, Signs, Ints, Ints, Ints]
"""Times, expiration times, signs, left slots, right slots; and codes that had no rows left at some instant."""


class Join(Operator):
    """Two sides, each with its rows in vectors by key code; a key without rows on either side is freed."""

    def __init__(
        self,
        memory: Memory,
        inputs: tuple[Edge, Edge],
        keys: tuple[tuple[int, int], ...],
        left_columns: tuple[int, ...] | None = None,
        right_columns: tuple[int, ...] | None = None,
        retracting: bool = False,
        shared: tuple[RowStore | None, RowStore | None] = (None, None),
        purge: int | None = None,
        lives: tuple[int | None, int | None] = (None, None),
    ) -> None:
        left, right = inputs
        self._explicit = retracting or not (left.stamped and right.stamped)
        self._purge = Purging(memory, None if self._explicit else purge)
        self._keys = Interner(memory.scope("keys"))
        self._vectors = Arrays(memory, {"vectors": np.int64})
        self._pool = Arrays(memory, {"pool": np.int64})
        self._marks = memory.array("pool.marks", np.int64, MARKS)
        self._sides = (
            _JoinSide(memory.scope("left"), left, tuple(key for key, _ in keys), left_columns, shared[0], lives[0]),
            _JoinSide(memory.scope("right"), right, tuple(key for _, key in keys), right_columns, shared[1], lives[1]),
        )

    def process(self, inputs: Sequence[ChangeBatch], clock: int) -> ChangeBatch:
        left, right = self._sides
        until = self._purge.due(clock)
        left_events = left.apply(inputs[0], self._keys, until)
        right_events = right.apply(inputs[1], self._keys, until)
        ts, exp, sign, left_slots, right_slots, dead = self._probe(left_events, right_events)
        if self._purge.lazy and not (met := exp > ts).all():
            ts, exp, left_slots, right_slots = ts[met], exp[met], left_slots[met], right_slots[met]
        columns = (*left.take(left_slots), *right.take(right_slots))
        left.drop(left_events.items[left_events.sign < 0])
        right.drop(right_events.items[right_events.sign < 0])
        self._keys.forget(dead)
        if not self._explicit:
            return ChangeBatch.stamped(ts, exp, columns)
        return net(ChangeBatch.explicit(ts, sign, columns))

    def _probe(self, first: RowEvents, second: RowEvents) -> Pairs:
        """Apply the events; returns the pairs and the codes that have no rows left."""
        left, right = self._sides
        self._vectors.reserve(VECTOR * self._keys.capacity)
        begun = np.zeros(2, np.int64)
        parts: list[Pairs] = []
        while not parts or begun[loop.LEFT] < len(first.ts) or begun[loop.RIGHT] < len(second.ts):
            if parts:
                self._pool.reserve(2 * self._pool.capacity)
            parts.append(
                loop.advance(
                    self._explicit,
                    first.ts, first.sign, first.items, left.records,
                    second.ts, second.sign, second.items, right.records,
                    self._vectors["vectors"], self._pool["pool"], self._marks, begun,
                )
            )  # fmt: skip
        whole = parts[0] if len(parts) == 1 else [np.concatenate(arrays) for arrays in zip(*parts, strict=True)]
        ts, exp, sign, left_slots, right_slots, empty = whole
        return ts, exp, sign, left_slots, right_slots, dead_codes(empty, self._vectors["vectors"])

    @property
    def rows_examined(self) -> int:
        """The number of rows examined to find those that were retracted prematurely."""
        return sum(side.live.searched for side in self._sides if side.live is not None)

    @property
    def state_rows(self) -> int:
        return sum(side.live.live for side in self._sides if side.live is not None)


class _JoinSide:
    """The rows of one input: which are live, their output columns, and their positions in the vectors.

    If the input operator shares its rows (`shared`), batches carry the slots of its store, and only the positions in the
    vectors are kept here.
    """

    def __init__(
        self,
        memory: Memory,
        edge: Edge,
        keys: tuple[int, ...],
        columns: tuple[int, ...] | None,
        shared: RowStore | None,
        life: int | None,
    ) -> None:
        self._key_columns = keys
        self._columns = tuple(range(len(edge.dtypes))) if columns is None else columns
        self._shared = shared
        self._life = life
        self.live = LiveRows(memory.scope("live"), edge) if shared is None else None
        self._rows = RowStore(memory.scope("rows"), [edge.dtypes[column] for column in self._columns if shared is None])
        self._records = Arrays(memory, {"records": np.int64})

    @property
    def records(self) -> Array:
        return self._records["records"]

    def apply(self, batch: ChangeBatch, keys: Interner, clock: int) -> RowEvents:
        """Store arrivals with a code for their key; returns the events up to the clock, expirations included."""
        nulls = any_null([batch.columns[key] for key in self._key_columns])
        if nulls is not None:
            batch = batch.take(np.flatnonzero(~nulls))
        if self.live is None:
            assert batch.slots is not None
            events, arrived = (
                RowEvents(own(batch.ts), own(batch.sign), own(batch.slots)),
                np.flatnonzero(batch.sign > 0),
            )
            slots, capacity = batch.slots[arrived], int(batch.slots.max(initial=-1)) + 1
        else:
            events, arrived, slots = self.live.apply(self._kept(batch), clock)
            capacity = self.live.capacity
        columns, ends = rows_at(batch, arrived), batch.exp if len(arrived) == len(batch) else batch.exp[arrived]
        codes, _ = keys.intern(*hash_rows([columns[key] for key in self._key_columns], len(arrived)))
        self._records.reserve(ROW * capacity)
        fill(self.records, slots, codes, own(ends))
        if self._shared is None:
            self._rows.put(slots, [columns[column] for column in self._columns])
        return events

    def _kept(self, batch: ChangeBatch) -> ChangeBatch:
        """The rows with the times until which they are kept, which may be earlier than those at which they expire."""
        if self._life is None:
            return batch
        return ChangeBatch(batch.ts, np.minimum(batch.exp, batch.ts + self._life), batch.sign, batch.columns)

    def take(self, slots: Ints) -> list[pa.Array]:
        """The output columns of the rows at these slots."""
        return self._rows.take(slots) if self._shared is None else self._shared.take(slots, self._columns)

    def drop(self, slots: Ints) -> None:
        """Free rows that ended."""
        if self.live is not None:
            self._rows.free(slots)
            self.live.release(slots)
