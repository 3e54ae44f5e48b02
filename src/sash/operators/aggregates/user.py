"""Aggregates that are Python classes, of users or of Sash, by one of three ways.

A class has `init()`, `add(state, *arrays)` and `result(state)`; `add` gets the rows of one group and one instant as Arrow
arrays, in order, and returns the new state. With `remove(state, *arrays)` a group keeps one state, from which rows are
taken back (`Removing`). With `merge(earlier, later)`, where rows expire in order of arrival, a group is two stacks: of
states of all rows from one on, and of the later ones together, so that each row is merged a constant number of times
(`Stacks`; the two-stacks algorithm, Tangwongsan, Hirzel and Schneider, "General incremental sliding-window aggregation",
VLDB 2015). Otherwise the state is made anew of all rows of the group at each change (`Recomputed`).
"""

from __future__ import annotations

import itertools
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sash.errors import SashError
from sash.operators.aggregates.arguments import Argument, ArgumentColumns
from sash.operators.aggregates.base import NO_MASK, Accumulator, Versions, Work, array_versions, canonical
from sash.operators.aggregates.collected import Collected
from sash.operators.aggregates.stored_states import load_state, store_state
from sash.operators.kernels.segments import versions_of_events
from sash.operators.kernels.touches import Mask
from sash.operators.scalar.ranks import positive_zeros, ranks
from sash.operators.scalar.user_functions import as_column, failed
from sash.plan.expressions import AggregateCall
from sash.plan.user_code import UserCode
from sash.state.memory import Arrays, Ints, Memory
from sash.state.ordering import order_rows
from sash.state.rows import RowStore
from sash.state.slots import Slots

Positions = Ints


class UserState:
    """Calls the methods of a user's class; errors name the aggregate."""

    def __init__(self, code: UserCode) -> None:
        self.code = code
        self._made = self._run(code.code)
        self._module = type(self._made).__module__

    def call(self, method: str, *arguments: Any) -> Any:
        """The result of a method."""
        return self._run(getattr(self._made, method), *arguments)

    def packed(self, states: Sequence[Any]) -> pa.Array:
        """The states as bytes. One of them is read again, since states that cannot be read must not be stored."""
        stored = [self._run(store_state, state) for state in states]
        if stored:
            self.unpacked(stored[0])
        return pa.array(stored, pa.binary())

    def unpacked(self, stored: bytes) -> Any:
        """The state that was packed."""
        return self._run(load_state, stored, self._module)

    def _run(self, function: Any, *arguments: Any) -> Any:
        try:
            return function(*arguments)
        except SashError:
            raise
        except Exception as error:
            raise failed(self.code, error) from error


class _Touched(Accumulator):
    """One aggregate whose groups are processed touch by touch; subclasses keep the states."""

    def __init__(self, memory: Memory, arguments: ArgumentColumns, columns: Sequence[int], call: AggregateCall) -> None:
        super().__init__()
        assert call.detail is not None
        assert call.detail.user is not None
        self._user = UserState(call.detail.user)
        self._arguments: list[Argument] = [arguments.argument((column,)) for column in columns]
        self._filtered = call.detail.filtered
        self._stamped = arguments.edge.stamped
        self._kept = Arrays(memory, {"group.kept": np.int64})

    def apply(self, work: Work) -> list[Versions]:
        columns = [argument.load(work)[0] for argument in self._arguments]
        skip = NO_MASK
        if self._filtered:
            kept = pc.fill_null(columns.pop(), False)
            skip = ~np.asarray(kept.to_numpy(zero_copy_only=False), np.bool_)
        self._kept.reserve(work.groups)
        states: list[Any] = [None] * work.versions
        self._begin(work)
        for code, version in zip(work.events.first_group.tolist(), work.events.first_version.tolist(), strict=True):
            states[version] = self._user.call("result", self._current(code))
        for code, version, gone, come in self._touches(work, skip):
            if len(gone):
                self._kept["group.kept"][code] -= len(gone)
                self._remove(code, gone, [column.take(pa.array(gone)) for column in columns])
            if len(come):
                self._kept["group.kept"][code] += len(come)
                self._add(work, code, come, [column.take(pa.array(come)) for column in columns])
            states[version] = self._user.call("result", self._current(code))
        self._end(work)
        result = array_versions(canonical(as_column(self._user.code, states)))
        return [result] * len(self._calls)

    def _touches(self, work: Work, skip: Mask) -> Iterator[tuple[int, int, Positions, Positions]]:
        """The touches in time order: group, version, and the positions of rows that leave and of rows that come."""
        events = work.events
        ranks = np.arange(len(events.order))
        if self._stamped:
            ranks[work.removed :][order_rows(work.batch.ts, work.batch.columns)] = (
                np.arange(len(work.batch)) + work.removed
            )
        versions = versions_of_events(events, work.groups)
        order = np.lexsort((ranks[events.order], versions))
        borders = np.flatnonzero(np.diff(versions[order], prepend=-1, append=-1))
        for start, stop in zip(borders[:-1].tolist(), borders[1:].tolist(), strict=True):
            positions = events.order[order[start:stop]]
            code, version = int(events.group[positions[0]]), int(versions[order[start]])
            if len(skip):
                positions = positions[~skip[positions]]
            signs = events.sign[positions]
            yield code, version, positions[signs < 0], positions[signs > 0]

    @abstractmethod
    def _begin(self, work: Work) -> None:
        """Load the states of the groups of a call."""

    @abstractmethod
    def _current(self, code: int) -> Any:
        """The state of all rows of a group."""

    @abstractmethod
    def _remove(self, code: int, positions: Positions, values: list[pa.Array]) -> None:
        """Take rows out of a group."""

    @abstractmethod
    def _add(self, work: Work, code: int, positions: Positions, values: list[pa.Array]) -> None:
        """Put rows into a group."""

    @abstractmethod
    def _end(self, work: Work) -> None:
        """Store the states of the groups of a call."""


class Removing(_Touched):
    """One state per group. A group without rows starts anew, so that nothing is left of those it had."""

    def __init__(self, memory: Memory, arguments: ArgumentColumns, columns: Sequence[int], call: AggregateCall) -> None:
        super().__init__(memory, arguments, columns, call)
        self._store = RowStore(memory.scope("states"), (pa.binary(),))
        self._states: dict[int, Any] = {}

    def _begin(self, work: Work) -> None:
        known = work.events.first_group[self._kept["group.kept"][work.events.first_group] > 0]
        (packed,) = self._store.take(known)
        loaded = [self._user.unpacked(state) for state in packed.to_pylist()]
        self._states = dict(zip(known.tolist(), loaded, strict=True))
        self._store.free(known)

    def _current(self, code: int) -> Any:
        if code not in self._states:
            self._states[code] = self._user.call("init")
        return self._states[code]

    def _remove(self, code: int, positions: Positions, values: list[pa.Array]) -> None:
        if self._kept["group.kept"][code] == 0:
            self._states[code] = self._user.call("init")
        else:
            self._states[code] = self._user.call("remove", self._current(code), *values)

    def _add(self, work: Work, code: int, positions: Positions, values: list[pa.Array]) -> None:
        self._states[code] = self._user.call("add", self._current(code), *values)

    def _end(self, work: Work) -> None:
        known = work.events.first_group[self._kept["group.kept"][work.events.first_group] > 0]
        self._store.put(known, [self._user.packed([self._states[code] for code in known.tolist()])])
        self._states = {}


class Stacks(_Touched):
    """Rows of a group that end together are a chunk. The older chunks hold the state of their rows and of all later ones
    before the younger chunks, which hold their own; the state of all younger rows is kept by group."""

    def __init__(self, memory: Memory, arguments: ArgumentColumns, columns: Sequence[int], call: AggregateCall) -> None:
        super().__init__(memory, arguments, columns, call)
        self._slots = Slots(memory)
        self._chunks = Arrays(memory, {"chunk.rows": np.int64, "chunk.next": np.int64})
        self._groups = Arrays(memory, {"group.older": np.int64, "group.younger": np.int64, "group.last": np.int64})
        self._store = RowStore(memory.scope("states"), (pa.binary(),))
        self._totals = RowStore(memory.scope("totals"), (pa.binary(),))
        self._fresh: dict[int, Any] = {}
        self._younger: dict[int, Any] = {}
        self._free: list[int] = []

    def _begin(self, work: Work) -> None:
        self._groups.reserve(work.groups)
        groups = work.events.first_group
        known = groups[self._groups["group.younger"][groups] > 0]
        (packed,) = self._totals.take(known)
        loaded = [self._user.unpacked(state) for state in packed.to_pylist()]
        self._younger = dict(zip(known.tolist(), loaded, strict=True))
        self._totals.free(known)

    def _state(self, chunk: int) -> Any:
        if chunk not in self._fresh:
            (packed,) = self._store.take(np.array([chunk]))
            return self._user.unpacked(packed[0].as_py())
        return self._fresh[chunk]

    def _current(self, code: int) -> Any:
        older, younger = int(self._groups["group.older"][code]), code in self._younger
        if not older:
            return self._younger[code] if younger else self._user.call("init")
        state = self._state(older - 1)
        return self._user.call("merge", state, self._younger[code]) if younger else state

    def _remove(self, code: int, positions: Positions, values: list[pa.Array]) -> None:
        left = len(positions)
        while left:
            if not self._groups["group.older"][code]:
                self._turn_over(code)
            chunk = int(self._groups["group.older"][code]) - 1
            left -= int(self._chunks["chunk.rows"][chunk])
            assert left >= 0, "rows of a chunk end together"
            self._groups["group.older"][code] = self._chunks["chunk.next"][chunk]
            self._free.append(chunk)

    def _turn_over(self, code: int) -> None:
        """Make the younger chunks the older ones: from the last on, each state includes the later ones."""
        chunks = []
        chunk = int(self._groups["group.younger"][code])
        self._groups["group.older"][code] = chunk
        while chunk:
            chunks.append(chunk - 1)
            chunk = int(self._chunks["chunk.next"][chunk - 1])
        later: Any = None
        for number, one in enumerate(reversed(chunks)):
            later = self._user.call("merge", self._state(one), later) if number else self._state(one)
            self._fresh[one] = later
        self._groups["group.younger"][code] = self._groups["group.last"][code] = 0
        self._younger.pop(code, None)

    def _add(self, work: Work, code: int, positions: Positions, values: list[pa.Array]) -> None:
        ends = work.batch.exp[positions - work.removed]
        order = np.argsort(ends, kind="stable")
        ends, values = ends[order], [column.take(pa.array(order)) for column in values]
        borders = [0, *(np.flatnonzero(np.diff(ends)) + 1).tolist(), len(ends)]
        for start, stop in itertools.pairwise(borders):
            part = [column.slice(start, stop - start) for column in values]
            state = self._user.call("add", self._user.call("init"), *part)
            (chunk,) = self._slots.take(1).tolist()
            self._chunks.reserve(chunk + 1)
            self._chunks["chunk.rows"][chunk] = stop - start
            self._chunks["chunk.next"][chunk] = 0
            self._fresh[chunk] = state
            last = int(self._groups["group.last"][code])
            if last:
                self._chunks["chunk.next"][last - 1] = chunk + 1
                whole = self._user.call("merge", self._younger[code], state)
            else:
                self._groups["group.younger"][code] = chunk + 1
                whole = state
            self._younger[code] = whole
            self._groups["group.last"][code] = chunk + 1

    def _end(self, work: Work) -> None:
        gone = set(self._free)
        changed = np.array([chunk for chunk in self._fresh if chunk not in gone], np.int64)
        self._store.free(changed)
        self._store.put(changed, [self._user.packed([self._fresh[chunk] for chunk in changed.tolist()])])
        free = np.array(self._free, np.int64)
        self._store.free(free)
        self._slots.give(free)
        known = np.array(list(self._younger), np.int64)
        self._totals.put(known, [self._user.packed([self._younger[code] for code in known.tolist()])])
        self._fresh, self._younger, self._free = {}, {}, []


class Recomputed(Collected):
    """The rows of a group in order of ts, then of all columns; each version of the result reads them all.

    With DISTINCT, it reads the first of the rows with equal arguments.
    """

    def __init__(
        self,
        memory: Memory,
        arguments: ArgumentColumns,
        columns: Sequence[int],
        call: AggregateCall,
        timed: bool,
        time: int | None,
    ) -> None:
        assert call.detail is not None
        assert call.detail.user is not None
        self._read = tuple(columns)
        super().__init__(memory, arguments, columns[:1], replace(call, distinct=False), timed, time)
        self._user = UserState(call.detail.user)
        self._distinct = call.distinct

    def _payload_types(self, dtypes: Sequence[pa.DataType]) -> tuple[pa.DataType, ...]:
        return tuple(dtypes[column] for column in self._read)

    def _store_rows(self, work: Work, nodes: Ints) -> Mask:
        columns = [work.batch.columns[column] for column in self._read]
        self._payload.put(nodes, columns)
        if not self._detail.filtered:
            return NO_MASK
        kept = pc.fill_null(columns[-1], False)
        return ~np.asarray(kept.to_numpy(zero_copy_only=False), np.bool_)

    def _result(self, starts: Ints, sizes: Ints, found: Ints) -> pa.Array:
        columns = self._payload.take(found)
        if self._detail.filtered:
            columns.pop()
        codes = None
        if self._distinct:
            columns = [positive_zeros(column) for column in columns]
            codes = ranks(pa.StructArray.from_arrays(columns, names=[f"c{place}" for place in range(len(columns))]))
        results = []
        for start, size in zip(starts.tolist(), sizes.tolist(), strict=True):
            state = self._user.call("init")
            if size:
                rows = [column.slice(start, size) for column in columns]
                if codes is not None:
                    _, first = np.unique(codes[start : start + size], return_index=True)
                    rows = [column.take(pa.array(np.sort(first))) for column in rows]
                state = self._user.call("add", state, *rows)
            results.append(self._user.call("result", state))
        return canonical(as_column(self._user.code, results))
