"""MIN and MAX over stamped rows (-0.0 is before 0.0): a row is dropped once a better or equal row expires no earlier.

The remaining rows of a group form steps: the later a row expires, the worse its value; the result is the row on the first
step. If rows expire in order of arrival, new rows are only added at the end, and a queue is enough (the monoq of
Tangwongsan, Hirzel and Schneider, "In-order sliding-window aggregation in worst-case constant time", 2021): amortized
constant work per row. Otherwise the steps are kept in a search tree by expiration time.
"""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
import pyarrow as pa

from sash.operators.aggregates.base import NO_MASK, Accumulator, Versions, Work, fixed_versions
from sash.operators.kernels.touches import Events, Mask
from sash.operators.kernels.treap import LOW, SIZE, Nodes, Treap, count, delete, insert, kth, rank
from sash.state.hashing import null_mask
from sash.state.jit import kernel
from sash.state.memory import Arrays, Ints, Memory
from sash.state.ordering import ordered_bits, turn_floats


class _Extreme(Accumulator):
    """MIN or MAX of a type that fits in 64 bits; MAX is computed as the MIN of complements."""

    def __init__(self, column: int, largest: bool) -> None:
        super().__init__()
        self._column = column
        self._largest = largest

    def apply(self, work: Work) -> list[Versions]:
        column = work.batch.columns[self._column]
        bits = ordered_bits(column, exact=True)
        mask = null_mask(column)
        skip = NO_MASK if mask is None else np.concatenate((np.zeros(work.removed, np.bool_), mask))
        out, nulls = np.zeros(work.versions, np.int64), np.zeros(work.versions, np.bool_)
        self._advance(work, ~bits if self._largest else bits, skip, out, nulls)
        values = ~out if self._largest else out
        return [
            fixed_versions(turn_floats(values) if pa.types.is_floating(call.dtype) else values, nulls, call.dtype)
            for call in self._calls
        ]

    @abstractmethod
    def _advance(self, work: Work, values: Ints, skip: Mask, out: Ints, nulls: Mask) -> None:
        """Apply the events with these values of arrivals; returns the smallest value by version and the mask of NULLs."""


class QueueExtreme(_Extreme):
    """For fifo edges. Links are slot + 1, 0 for none."""

    def __init__(self, memory: Memory, column: int, largest: bool) -> None:
        super().__init__(column, largest)
        self._slots = Arrays(memory, {"slot.value": np.int64, "slot.next": np.int64, "slot.before": np.int64})
        self._groups = Arrays(memory, {"group.first": np.int64, "group.last": np.int64})

    def _advance(self, work: Work, values: Ints, skip: Mask, out: Ints, nulls: Mask) -> None:
        if len(work.slots):
            self._slots.reserve(int(work.slots.max()) + 1)
        self._groups.reserve(work.groups)
        self._slots["slot.value"][work.added_slots] = values
        _queue(
            work.events, work.slots, skip, self._slots["slot.value"], self._slots["slot.next"],
            self._slots["slot.before"], self._groups["group.first"], self._groups["group.last"], out, nulls,
        )  # fmt: skip


class StepExtreme(_Extreme):
    """For calendar edges. A node is a slot; its key is the expiration time and the value."""

    def __init__(self, memory: Memory, column: int, largest: bool) -> None:
        super().__init__(column, largest)
        self._treap = Treap(memory)
        self._roots = Arrays(memory, {"group.root": np.int64})

    def _advance(self, work: Work, values: Ints, skip: Mask, out: Ints, nulls: Mask) -> None:
        self._roots.reserve(work.groups)
        self._treap.write_words(work.added_slots, np.array(work.batch.exp), values)
        _steps(work.events, work.slots, skip, self._treap.nodes, self._roots["group.root"], out, nulls)


@kernel
def _queue(
    events: Events, slots: Ints, skip: Mask, value: Ints, following: Ints, before: Ints, first: Ints, last: Ints,
    out: Ints, nulls: Mask,
) -> None:  # fmt: skip
    for index in range(len(events.first_group)):
        head = first[events.first_group[index]]
        nulls[events.first_version[index]] = head == 0
        out[events.first_version[index]] = value[head - 1] if head != 0 else 0
    for event in range(len(events.order)):
        position = events.order[event]
        code = events.group[position]
        slot = slots[position]
        if events.sign[position] < 0:
            if first[code] == slot + 1:
                first[code] = following[slot]
                if first[code] == 0:
                    last[code] = 0
                else:
                    before[first[code] - 1] = 0
        elif not (len(skip) and skip[position]):
            tail = last[code]
            while tail != 0 and value[tail - 1] >= value[slot]:
                tail = before[tail - 1]
            before[slot] = tail
            following[slot] = 0
            if tail == 0:
                first[code] = slot + 1
            else:
                following[tail - 1] = slot + 1
            last[code] = slot + 1
        if events.version[event] >= 0:
            head = first[code]
            nulls[events.version[event]] = head == 0
            out[events.version[event]] = value[head - 1] if head != 0 else 0


@kernel
def _steps(events: Events, slots: Ints, skip: Mask, tree: Nodes, roots: Ints, out: Ints, nulls: Mask) -> None:
    for index in range(len(events.first_group)):
        _read_step(tree, roots[events.first_group[index]], events.first_version[index], out, nulls)
    for event in range(len(events.order)):
        position = events.order[event]
        code = events.group[position]
        slot = slots[position]
        if events.sign[position] < 0:
            if tree.cells[slot, SIZE] > 0:
                roots[code] = delete(tree, roots[code], slot)
        elif not (len(skip) and skip[position]):
            roots[code] = _add_step(tree, roots[code], slot)
        if events.version[event] >= 0:
            _read_step(tree, roots[code], events.version[event], out, nulls)


@kernel
def _add_step(tree: Nodes, root: int, slot: int) -> int:
    place = rank(tree, root, slot)
    if place < count(tree, root) and tree.cells[kth(tree, root, place), LOW] <= tree.cells[slot, LOW]:
        return root
    while place > 0:
        place -= 1
        beaten = kth(tree, root, place)
        if tree.cells[beaten, LOW] < tree.cells[slot, LOW]:
            break
        root = delete(tree, root, beaten)
    return insert(tree, root, slot)


@kernel
def _read_step(tree: Nodes, root: int, version: int, out: Ints, nulls: Mask) -> None:
    nulls[version] = root == 0
    out[version] = tree.cells[kth(tree, root, 0), LOW] if root != 0 else 0
