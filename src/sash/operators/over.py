"""Window functions (OVER), maintained: every row with the values of its functions among the live rows of its partition.

Meaning: at every instant the output is the live rows, each with one more column per function, computed over the rows of its
partition in the function's order; ties are broken by given columns. When a row arrives or ends, the rows whose values may
change are found by position in an ordered tree per partition, evaluated, and sent as `-` and `+` where a value has changed.
The output is explicit. Cost: O(log n) per change and per row evaluated; see `docs/sql.md` for the rows that each function
evaluates.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sash.operators.base import Edge, Operator
from sash.operators.kernels.window_output import assemble, emit
from sash.operators.live_rows import LiveRows, RowEvents, rows_at
from sash.operators.netting import net
from sash.operators.over_order import OrderedRows
from sash.operators.over_values import FrameAggregates, WholePartitions, extremes, frame_events, pointed_to, ranks
from sash.plan.nodes import SortKey
from sash.plan.window_calls import RANKING, WindowCall
from sash.state.changes import ChangeBatch
from sash.state.hashing import hash_rows
from sash.state.interner import Interner
from sash.state.memory import Arrays, Ints, Memory
from sash.state.rows import RowStore

_MOST_ENTRIES = 1 << 20
"""Entries that are evaluated together; the events of one instant may have more."""


class _Calls:
    """Calls with one task: their numbers, and the accumulators of aggregates."""

    def __init__(self, order: int, task: int) -> None:
        self.order = order
        self.task = task
        self.numbers: list[int] = []
        self.frames: FrameAggregates | None = None
        self.whole: WholePartitions | None = None


class Over(Operator):
    """Keeps the live rows and their last values by slot, and their trees by partition for every order."""

    def __init__(
        self,
        memory: Memory,
        inputs: tuple[Edge],
        partition: tuple[int, ...],
        ties: tuple[int, ...],
        calls: tuple[WindowCall, ...],
    ) -> None:
        (edge,) = inputs
        self._partition = partition
        self._calls = calls
        self._dtypes = (*edge.dtypes, *(call.dtype for call in calls))
        self._live = LiveRows(memory.scope("live"), edge)
        self._rows = RowStore(memory.scope("rows"), edge.dtypes)
        self._values = RowStore(memory.scope("values"), [call.dtype for call in calls])
        self._groups = Interner(memory.scope("groups"))
        self._by_slot = Arrays(memory, {"slot.group": np.int64, "slot.mark": np.int64, "slot.stored": np.int8})
        self._by_group = Arrays(memory, {"group.head": np.int64})
        orders = list(dict.fromkeys(call.order for call in calls))
        self._orders = [
            OrderedRows(memory.scope(f"order{number}"), edge.dtypes, order, ties) for number, order in enumerate(orders)
        ]
        self._tasks = self._shared_tasks(memory, edge, ties, orders)

    def _shared_tasks(
        self, memory: Memory, edge: Edge, ties: tuple[int, ...], orders: list[tuple[SortKey, ...]]
    ) -> list[_Calls]:
        """The tasks of all calls; those with aggregates have their accumulators."""
        shared: dict[tuple[int, int], _Calls] = {}
        for number, call in enumerate(self._calls):
            order = orders.index(call.order)
            task = self._orders[order].task(call)
            shared.setdefault((order, task), _Calls(order, task)).numbers.append(number)
        for (order, task), one in shared.items():
            aggregates = [found for n in one.numbers if (found := self._calls[n].aggregate) is not None]
            if aggregates and not self._orders[order].is_extreme(task):
                whole = self._calls[one.numbers[0]].frame.is_whole
                scope = memory.scope(f"{'frame' if whole else 'kept'}{order}.{task}")
                one.frames = FrameAggregates(scope, edge.dtypes, orders[order], ties, aggregates)
                if whole:
                    one.whole = WholePartitions(scope.scope("whole"), one.frames)
        return list(shared.values())

    def process(self, inputs: Sequence[ChangeBatch], clock: int) -> ChangeBatch:
        (batch,) = inputs
        events, arrived, slots = self._live.apply(batch, clock)
        if not len(events.ts):
            return ChangeBatch.empty(self._dtypes)
        columns = rows_at(batch, arrived)
        self._rows.put(slots, columns)
        self._by_slot.reserve(self._live.capacity)
        self._by_slot["slot.group"][slots] = self._group_of(columns, len(slots))
        groups = self._by_slot["slot.group"][events.items]
        capacity = max(self._groups.capacity, 1)
        self._by_group.reserve(capacity)
        for order in self._orders:
            order.add(slots, columns, self._live.capacity, capacity)
        output = self._evaluate(events, groups, capacity)
        self._forget(events, groups)
        return output

    def _group_of(self, columns: Sequence[pa.Array], rows: int) -> Ints:
        if not self._partition:
            return np.zeros(rows, np.int64)
        low, high = hash_rows([columns[column] for column in self._partition], rows)
        codes, _ = self._groups.intern(low if low.flags.writeable else low.copy(), high)
        return codes

    def _evaluate(self, events: RowEvents, groups: Ints, capacity: int) -> ChangeBatch:
        """All changes, a number of instants at a time."""
        whole = {
            number: task.whole.apply(self._rows, events, groups, capacity)
            for number, task in enumerate(self._tasks)
            if task.whole is not None
        }
        parts: list[ChangeBatch] = []
        begin, size = 0, len(events.ts)
        while begin < size:
            end, most = size, _MOST_ENTRIES
            found: list[tuple[Ints, Ints, Ints]] = []
            for number, order in enumerate(self._orders):
                mask, version = np.zeros(size, np.bool_), np.full(size, -1, np.int64)
                for n, (_, changed, now) in whole.items():
                    if self._tasks[n].order == number:
                        mask, version = changed, now
                heads = self._by_group["group.head"]
                end, *made = order.advance(begin, end, most, events, groups, (mask, version), heads)
                most = 2**62
                found.append((made[0], made[1], made[2]))
            chunk = RowEvents(events.ts[begin:end], events.sign[begin:end], events.items[begin:end])
            answers = {number: answer[0] for number, answer in whole.items()}
            parts.append(self._changes(chunk, found, answers, capacity))
            begin = end
        return parts[0] if len(parts) == 1 else _together(parts, self._dtypes)

    def _changes(
        self,
        events: RowEvents,
        found: list[tuple[Ints, Ints, Ints]],
        whole: dict[int, list[pa.Array]],
        capacity: int,
    ) -> ChangeBatch:
        """The changes of some instants, given what each order found."""
        tables, values = [], []
        for number, task in enumerate(self._tasks):
            entries, steps, versions = found[task.order]
            own = entries[entries[:, 1] == task.task]
            values.append(self._column_values(number, own, steps, versions, whole, capacity))
            tables.append(np.column_stack((own[:, 0], np.full(len(own), number), own[:, 2], np.arange(len(own)))))
        entries = np.concatenate(tables)
        if len(tables) > 1:
            entries = entries[np.argsort(entries[:, 0], kind="stable")]
        ts, slots, born, dead, before, after, last, firsts = assemble(
            events.ts, events.sign, events.items, *_columns_of(entries), len(self._tasks), self._by_slot["slot.mark"],
        )  # fmt: skip
        columns: list[tuple[pa.Array, Ints, Ints]] = [None] * len(self._calls)  # type: ignore[list-item]
        changed = np.zeros(len(ts), np.bool_)
        stored = self._values.take(firsts)
        for number, task in enumerate(self._tasks):
            old, new = (_combined(table[:, number], len(firsts)) for table in (before, after))
            for place, call in enumerate(task.numbers):
                column = pa.concat_arrays([stored[call], values[number][place]])
                low, high = hash_rows([_exact(column)], len(column))
                changed |= (low[old] != low[new]) | (high[old] != high[new])
                columns[call] = column, old, new
        out_ts, out_sign, touch = emit(ts, born, dead, changed)
        kept = np.flatnonzero(last)
        self._free_values(slots[kept])
        self._by_slot["slot.stored"][slots[kept]] = 1
        self._values.put(slots[kept], [column.take(pa.array(new[kept])) for column, _, new in columns])
        choose = out_sign < 0
        made = [column.take(pa.array(np.where(choose, old[touch], new[touch]))) for column, old, new in columns]
        return net(ChangeBatch.explicit(out_ts, out_sign, [*self._rows.take(slots[touch]), *made]))

    def _column_values(
        self,
        number: int,
        entries: Ints,
        steps: Ints,
        versions: Ints,
        whole: dict[int, list[pa.Array]],
        capacity: int,
    ) -> list[pa.Array]:
        """The values of a task's calls, one per entry."""
        task = self._tasks[number]
        refers = np.ascontiguousarray(entries[:, 3])
        if task.frames is not None:
            if number in whole:
                arrays = whole[number]
            else:
                own = steps[steps[:, 0] == task.task]
                slots, sign, events, counts = frame_events(own, int(versions[task.task]))
                answers = task.frames.apply(self._rows, slots, sign, events, counts, capacity + 1)
                arrays = [answer.array for answer in answers]
            return [array.take(pa.array(refers)) for array in arrays]
        calls = [self._calls[n] for n in task.numbers]
        if self._orders[task.order].is_extreme(task.task):
            return [extremes(call, refers, entries[:, 4] == 0) for call in calls]
        if calls[0].function in RANKING:
            return [ranks(call, refers, entries[:, 4]) for call in calls]
        return [pointed_to(call, self._rows, entries[:, 2], refers) for call in calls]

    def _forget(self, events: RowEvents, groups: Ints) -> None:
        gone = events.items[events.sign < 0]
        self._rows.free(gone)
        self._free_values(gone)
        for order in self._orders:
            order.free(gone)
        if self._partition:
            ended = np.unique(groups[events.sign < 0])
            self._groups.forget(ended[self._orders[0].is_empty(ended)])
        self._live.release(gone)

    def _free_values(self, slots: Ints) -> None:
        stored = self._by_slot["slot.stored"]
        self._values.free(slots[stored[slots] > 0])
        stored[slots] = 0

    @property
    def state_rows(self) -> int:
        return self._live.live


def _columns_of(entries: Ints) -> tuple[Ints, Ints, Ints, Ints]:
    times, tasks, slots, numbers = (np.ascontiguousarray(entries[:, n]) for n in range(4))
    return times, tasks, slots, numbers


def _combined(numbers: Ints, stored: int) -> Ints:
    """Numbers of entries, or of stored values if negative, as positions in the stored values followed by the entries."""
    return np.where(numbers < 0, -1 - numbers, numbers + stored)


def _exact(column: pa.Array) -> pa.Array:
    """The column, in which floats are compared bit by bit."""
    if not pa.types.is_floating(column.type):
        return column
    return column.view(pa.int64() if column.type == pa.float64() else pa.int32())


def _together(parts: list[ChangeBatch], dtypes: Sequence[pa.DataType]) -> ChangeBatch:
    columns = [pa.concat_arrays([part.columns[n] for part in parts]) for n in range(len(dtypes))]
    ts: Ints = np.concatenate([part.ts for part in parts])
    sign: npt.NDArray[np.int8] = np.concatenate([part.sign for part in parts])
    return ChangeBatch.explicit(ts, sign, columns)
