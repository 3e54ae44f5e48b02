"""GROUP BY and global aggregates: when a group's row changes, the old row is retracted and the new one is added.

Meaning: at each instant T the output has one row per group of rows valid at T (exactly one row if there are no keys).
A change is (old row, T, FOREVER, -) and (new row, T, FOREVER, +); rows that are the same bit for bit are not sent. Every
value depends on the group's rows alone. Work is per row that arrives or ends (paper 5, 5.3.1; paper 1, W-Aggregate).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from sash.operators.aggregates.arguments import ArgumentColumns
from sash.operators.aggregates.base import Work, canonical
from sash.operators.aggregates.choose import Accumulators
from sash.operators.base import Edge, Operator, merge
from sash.operators.kernels.touches import Events, Touches, emit, note_changes, touch
from sash.plan.expressions import AggregateCall
from sash.state.changes import ChangeBatch
from sash.state.hashing import hash_rows
from sash.state.interner import Interner
from sash.state.memory import Arrays, Ints, Memory
from sash.state.rows import RowStore


class Aggregate(Operator):
    """Keeps row counts by group, the group of each live row by slot, and the accumulators; the output is explicit.

    Aggregates that depend on order (FIRST, MIN_BY) sort rows by ts if they are `timed`, then by all columns.
    On an explicit edge a `-` row has another ts than its `+` row, so their time must be in column `time`.
    """

    def __init__(
        self,
        memory: Memory,
        inputs: tuple[Edge],
        keys: tuple[int, ...],
        aggregates: tuple[AggregateCall, ...],
        timed: bool = False,
        time: int | None = None,
    ) -> None:
        (edge,) = inputs
        self._input_dtypes = edge.dtypes
        self._keys = keys
        self._dtypes = (*(edge.dtypes[key] for key in keys), *(call.dtype for call in aggregates))
        self._buffer = edge.buffer(memory.scope("buffer")) if edge.stamped else None
        self._started = memory.array("started", np.int64, 1)
        self._groups = Interner(memory.scope("groups"))
        self._key_rows = RowStore(memory.scope("keys"), [edge.dtypes[key] for key in keys])
        self._by_group = Arrays(memory, {"group.rows": np.int64, "group.mark": np.int64})
        self._by_slot = Arrays(memory, {"slot.group": np.int32})
        self._arguments = ArgumentColumns(memory.scope("feed"), edge)
        self._accumulators = Accumulators(memory.scope("state"), self._arguments, timed, time)
        self._answers = [self._accumulators.add(call) for call in aggregates]

    def process(self, inputs: Sequence[ChangeBatch], clock: int) -> ChangeBatch:
        (batch,) = inputs
        starting = not self._keys and not self._started[0] and (len(batch) > 0 or clock > 0)
        expired, times = np.empty(0, np.int64), np.empty(0, np.int64)
        added = np.empty(0, np.int64)
        if self._buffer is not None:
            added = self._buffer.add(batch.exp)
            expired, times = self._buffer.drain(clock)
        if not len(batch) and not len(expired) and not starting:
            return ChangeBatch.empty(self._dtypes)
        work, touches = self._timeline(batch, added, expired, times, starting)
        output = self._output(work, touches, starting)
        self._started[0] |= starting
        self._forget(work)
        return output

    def answer(self, clock: int) -> ChangeBatch:
        """The rows of all groups, read from the state; `clock` is the time that it has reached."""
        rows = self._by_group["group.rows"]
        groups = np.flatnonzero(rows > 0) if self._keys else np.zeros(int(self._started[0]), np.int64)
        none = np.empty(0, np.int64)
        events = Events(none, np.empty(0, np.int8), none, none, groups, np.arange(len(groups)))
        work = Work(ChangeBatch.empty(self._input_dtypes), events, rows[groups], max(self._groups.capacity, 1), none, 0)
        answers = {name: accumulator.apply(work) for name, accumulator in self._accumulators.by_name.items()}
        columns = [answers[name][number].array for name, number in self._answers]
        times, signs = np.full(len(groups), clock - 1, np.int64), np.ones(len(groups), np.int8)
        return ChangeBatch.explicit(times, signs, [*self._key_rows.take(groups), *columns])

    def _timeline(
        self, batch: ChangeBatch, added: Ints, expired: Ints, times: Ints, starting: bool
    ) -> tuple[Work, Touches]:
        """The events in time order, removals first at each instant, and the groups they touch."""
        slots = np.concatenate((expired, added))
        group = self._group_of(batch, slots, len(expired))
        sign = np.concatenate((np.full(len(expired), -1, np.int8), batch.sign))
        order = merge(times, np.array(batch.ts)) if len(expired) else np.arange(len(batch))
        ts = np.concatenate((times, batch.ts))
        if self.net and len(order):
            ts[:] = ts[order[-1]]
        self._by_group.reserve(self._groups.capacity)
        start = min(0, int(batch.ts[0])) if len(batch) else 0
        rows, mark = self._by_group["group.rows"], self._by_group["group.mark"]
        version, first_group, first_version, counts, *touched = touch(
            order, ts, sign, group, rows, mark, start, bool(starting)
        )
        events = Events(order, sign, group, version, first_group, first_version)
        work = Work(batch, events, counts, max(self._groups.capacity, 1), slots, len(expired))
        return work, Touches(*touched)

    def _group_of(self, batch: ChangeBatch, slots: Ints, removed: int) -> Ints:
        """The group code of every position; stores the keys of new groups."""
        if not self._keys:
            return np.zeros(removed + len(batch), np.int64)
        keys = [batch.columns[key] for key in self._keys]
        low, high = hash_rows(keys, len(batch))
        codes, fresh = self._groups.intern(low if low.flags.writeable else low.copy(), high)
        if len(fresh):
            positions = pa.array(fresh)
            self._key_rows.put(codes[fresh], [canonical(key.take(positions)) for key in keys])
        if self._buffer is None:
            return codes
        self._by_slot.reserve(self._buffer.capacity)
        by_slot = self._by_slot["slot.group"]
        by_slot[slots[removed:]] = codes
        return np.concatenate((by_slot[slots[:removed]].astype(np.int64), codes))

    def _output(self, work: Work, touches: Touches, starting: bool) -> ChangeBatch:
        answers = {name: accumulator.apply(work) for name, accumulator in self._accumulators.by_name.items()}
        columns = [answers[name][number] for name, number in self._answers]
        changed = np.zeros(len(touches.ts), np.bool_)
        for column in columns:
            note_changes(touches, column.bits, column.nulls, changed)
        ts, sign, which, version = emit(touches, work.counts, changed, not self._keys, bool(starting))
        groups, versions = pa.array(which), pa.array(version)
        keys = [key.take(groups) for key in self._key_rows.take(work.events.first_group)]
        return ChangeBatch.explicit(ts, sign, [*keys, *(column.array.take(versions) for column in columns)])

    def _forget(self, work: Work) -> None:
        """Free the rows that were removed and the groups that are empty."""
        for accumulator in self._accumulators.by_name.values():
            accumulator.finish(work)
        self._arguments.finish(work)
        if self._keys:
            touched = work.events.first_group
            empty = touched[self._by_group["group.rows"][touched] == 0]
            self._key_rows.free(empty)
            self._groups.forget(empty)
        if self._buffer is not None:
            self._buffer.release(work.removed_slots)

    @property
    def state_rows(self) -> int:
        return self._groups.live if self._buffer is None else self._buffer.live
