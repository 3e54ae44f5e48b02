"""The rows of window functions in one order: trees by partition, and the tasks that the functions with this order need."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sash.errors import UnsupportedSqlError
from sash.operators.aggregates.base import fits_word
from sash.operators.kernels import window_tasks as kinds
from sash.operators.kernels.treap import Treap
from sash.operators.kernels.wide_tree import WideTree
from sash.operators.kernels.window_functions import Trees, advance
from sash.operators.kernels.window_search import Keys
from sash.operators.live_rows import RowEvents
from sash.plan.nodes import SortKey
from sash.plan.types import type_name
from sash.plan.window_calls import Bound, Frame, WindowCall
from sash.state.hashing import decimal_words, hash_rows, null_mask
from sash.state.memory import Arrays, Ints, Memory
from sash.state.ordering import encode_order, ordered_bits

_RANKING = {
    "row_number": kinds.ROW_NUMBER,
    "rank": kinds.RANK,
    "dense_rank": kinds.DENSE_RANK,
    "percent_rank": kinds.PERCENT_RANK,
    "cume_dist": kinds.CUME_DIST,
    "ntile": kinds.NTILE,
}
_BOUNDS = {"unbounded": kinds.UNBOUNDED, "row": kinds.ROW, "peer": kinds.PEER, "value": kinds.VALUE}
_NARROW_DECIMAL = 18
_SHORT = 8
"""Rows of a frame that are sooner added again than kept."""

Mask = npt.NDArray[np.bool_]


def sorted_keys(order: tuple[SortKey, ...], ties: tuple[int, ...]) -> tuple[SortKey, ...]:
    """The order of rows with its ties broken."""
    named = {key.column for key in order}
    return (*order, *(SortKey(column) for column in ties if column not in named))


class OrderedRows:
    """The trees of one order; a row's slot has one node per tree. Tree 0 has all rows."""

    def __init__(
        self, memory: Memory, dtypes: Sequence[pa.DataType], order: tuple[SortKey, ...], ties: tuple[int, ...]
    ):
        self._dtypes = dtypes
        self._order = order
        self._sorted = sorted_keys(order, ties)
        self._present: list[tuple[int, str]] = []
        self._ranked = False
        self._words: list[int] = [key.column for key in order[:1]]
        self._tasks: list[tuple[int, ...]] = []
        self._keys = Treap(memory.scope("tree"))
        self._wide = WideTree(memory.scope("wide"), self._keys)
        self._roots = Arrays(memory, {"group.roots": np.int64})
        self._wide.adopt(self._roots["group.roots"])
        self._by_slot = Arrays(memory, {"peer.low": np.uint64, "peer.high": np.uint64})
        self._kept = Arrays(memory, {"group.kept": np.int64})
        self._members = Arrays(memory, {"member": np.int8})
        self._bounds = Arrays(memory, {"words": np.int64, "classes": np.int8})

    def task(self, call: WindowCall) -> int:
        """The number of the task that computes the call; calls with equal tasks share one."""
        task = self._task_of(call)
        if task not in self._tasks:
            self._tasks.append(task)
        return self._tasks.index(task)

    def _task_of(self, call: WindowCall) -> tuple[int, ...]:
        if call.function in _RANKING:
            self._ranked |= call.function == "dense_rank"
            return (_RANKING[call.function], call.parameter, 0, 0, 0, 0, 0)
        tree = 0 if call.present is None else self._tree_of(call.present.index)
        if call.function in ("lag", "lead"):
            return (kinds.SHIFT, call.parameter if call.function == "lead" else -call.parameter, tree, 0, 0, 0, 0)
        frame = (*self._bound(call.frame.start), *self._bound(call.frame.end))
        if finds_extreme(call):
            assert call.aggregate is not None
            tree = self._tree_of(call.aggregate.arguments[0].index, call.aggregate.function)
            self._wide.keep_values()
            return (kinds.EXTREME, 0, tree, *frame)
        if call.aggregate is not None:
            if call.frame.is_whole:
                return (kinds.WHOLE, 0, 0, *frame)
            return (kinds.SWEEP, int(_is_long(call.frame)), 0, *frame)
        chosen = {"first_value": 1, "last_value": -1}.get(call.function, call.parameter)
        return (kinds.PICK, chosen, tree, *frame)

    def _tree_of(self, column: int, function: str = "") -> int:
        """The tree of the rows that have a value in the column; for "min" and "max", with the values in the tree."""
        if (column, function) not in self._present:
            self._present.append((column, function))
        return 1 + self._present.index((column, function))

    def _bound(self, bound: Bound) -> tuple[int, int]:
        if bound.column is None:
            return _BOUNDS[bound.kind], bound.offset
        if bound.column not in self._words:
            self._words.append(bound.column)
        return _BOUNDS[bound.kind], self._words.index(bound.column)

    def is_extreme(self, task: int) -> bool:
        """Whether a task finds the smallest or largest value of a frame."""
        return self._tasks[task][kinds.KIND] == kinds.EXTREME

    @property
    def tasks(self) -> npt.NDArray[np.int64]:
        """The tasks as a table."""
        return np.array(self._tasks, np.int64).reshape(len(self._tasks), kinds.TASK)

    @property
    def stride(self) -> int:
        """Nodes per slot."""
        return 1 + len(self._present) + self._ranked

    def add(self, slots: Ints, columns: Sequence[pa.Array], capacity: int, groups: int) -> None:
        """Write the keys of new rows; every slot is below `capacity`, every group below `groups`."""
        stride, rows = self.stride, len(slots)
        self._roots.reserve(stride * groups)
        self._kept.reserve(2 * len(self._tasks) * groups)
        self._by_slot.reserve(capacity)
        self._members.reserve(stride * capacity)
        self._bounds.reserve(max(1, len(self._words)) * capacity)
        if not rows:
            return
        offsets, data = encode_order(
            [columns[key.column] for key in self._sorted],
            [key.descending for key in self._sorted],
            [key.nulls_first for key in self._sorted],
            rows,
        )
        for k in range(stride):
            self._keys.write(slots * stride + k, offsets, data)
        if self._order:
            low, high = hash_rows([columns[key.column] for key in self._order], rows)
            self._by_slot["peer.low"][slots], self._by_slot["peer.high"][slots] = low, high
        for k, (column, function) in enumerate(self._present, start=1):
            mask = null_mask(columns[column])
            self._members["member"][slots * stride + k] = 1 if mask is None else ~mask
            if function:
                bits = ordered_bits(columns[column], exact=True)
                self._wide.write_values(slots * stride + k, ~bits if function == "max" else bits)
        if len(self._words) > 1 or self._has_value_bounds:
            for number, column in enumerate(self._words):
                words, classes = _in_order(columns[column], self._order[0])
                at = slots * len(self._words) + number
                self._bounds["words"][at], self._bounds["classes"][at] = words, classes

    @property
    def _has_value_bounds(self) -> bool:
        return any(kinds.VALUE in (task[kinds.START], task[kinds.STOP]) for task in self._tasks)

    def advance(
        self, begin: int, end: int, most: int, events: RowEvents, groups: Ints, whole: tuple[Mask, Ints], heads: Ints
    ) -> tuple[int, Ints, Ints, Ints]:
        """Apply events from `begin` on until `end`, or until there are `most` entries; returns where it stopped, the entries,
        the steps, and the number of versions by task."""
        tasks, versions, links = self.tasks, np.ones(len(self._tasks), np.int64), np.empty(len(events.ts), np.int64)
        entries, steps = [], []
        found = 0
        while begin < end and found < most:
            same = int(np.searchsorted(events.ts, events.ts[begin], "right")) - begin
            rows = len(self._members["member"])
            self._wide.reserve(same * self.stride, rows, len(self._roots["group.roots"]))
            begin, made, stepped = advance(
                begin, end, most - found, events.ts, events.sign, events.items, groups, self._trees, tasks, *whole, heads,
                links, versions,
            )  # fmt: skip
            entries.append(made.reshape(-1, kinds.ENTRY))
            steps.append(stepped.reshape(-1, kinds.ENTRY))
            found += len(entries[-1])
        if len(entries) == 1:
            return begin, entries[0], steps[0], versions
        return begin, np.concatenate(entries), np.concatenate(steps), versions

    @property
    def _trees(self) -> Trees:
        """The arrays as kernels take them; they are invalid after rows are added."""
        keys = Keys(
            self._by_slot["peer.low"],
            self._by_slot["peer.high"],
            self._bounds["words"],
            self._bounds["classes"],
            max(1, len(self._words)),
            self.stride,
        )
        distinct = self.stride - 1 if self._ranked else 0
        return Trees(
            self._wide.nodes,
            keys,
            self._roots["group.roots"],
            self._members["member"],
            distinct,
            self._kept["group.kept"],
        )

    def is_empty(self, groups: Ints) -> npt.NDArray[np.bool_]:
        """Whether these partitions have no rows."""
        empty: npt.NDArray[np.bool_] = self._roots["group.roots"][groups * self.stride] == 0
        return empty

    def free(self, slots: Ints) -> None:
        """Free the keys of rows that have ended."""
        for k in range(self.stride):
            self._keys.free(slots * self.stride + k)


def _in_order(column: pa.Array, key: SortKey) -> tuple[Ints, npt.NDArray[np.int8]]:
    """Values as integers in the order of the key, with a class that puts NULLs before or after them."""
    if pa.types.is_decimal(column.type):
        if column.type.precision > _NARROW_DECIMAL:
            raise UnsupportedSqlError(
                f"a RANGE frame with an offset needs a DECIMAL of at most {_NARROW_DECIMAL} digits in ORDER BY, not "
                f"{type_name(column.type)}: cast it"
            )
        words = np.ascontiguousarray(decimal_words(column)[:, 0]).view(np.int64)
    else:
        words = ordered_bits(column)
    words = ~words if key.descending else words.copy()
    classes = np.ones(len(words), np.int8)
    mask = null_mask(column)
    if mask is not None:
        words[mask] = 0
        classes[mask] = 0 if key.nulls_first else 2
    return words, classes


def _is_long(frame: Frame) -> bool:
    """Whether frames may have many rows, so that one is kept for the next."""
    return frame.start.kind != "row" or frame.end.kind != "row" or frame.end.offset - frame.start.offset > _SHORT


def finds_extreme(call: WindowCall) -> bool:
    """Whether the call is MIN or MAX of a part of the partition, of values that fit in a word."""
    found = call.aggregate
    if found is None or found.function not in ("min", "max") or call.frame.is_whole:
        return False
    dtype = found.arguments[0].dtype
    return fits_word(dtype) and not pa.types.is_null(dtype)
