"""The multi-way window join: n inputs joined in one operator, without intermediate results (paper 4, section 3).

Meaning: rows, one of each input, with equal keys and true comparisons give a row that is valid while all of them are:
(ts, exp) is (max ts, min exp). NULL keys and values never match. A result is produced by the last of its rows: that row
probes the other inputs in the order for its origin, and only rows that are valid at its time match. If all inputs are
stamped, so is the output; otherwise it is explicit, and when a row ends its results are retracted.

The forms of the paper differ in the orders, in `buckets` (None: one list per key; 1: a nested-loop join; more: hash
tables of that size), in `tau` (None: eager; else lazy re-evaluation and expiration at its multiples) and in `purge` (eager
evaluation, but expired rows are removed once per interval; stamped inputs only). A loop then compares the times of rows.

Lazily over count windows this is ComputeCountJoin (3.6): a row has left its window at time t if the row whose counter is
larger by the window's length came by then. The count window below keeps these counters, and its retraction brings the time
of that row; with it, windows whose rows a filter drops and windows by partition need no counter of their own here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from sash.operators.base import Edge, Learnt, Operator
from sash.operators.join_program import Graph, Index, Operand, compile_program, indexes_of
from sash.operators.kernels import multi_join as loop
from sash.operators.live_rows import LiveRows, RowEvents, own, rows_at
from sash.operators.netting import net
from sash.operators.purging import Purging
from sash.operators.reordering import JoinStatistics, OrderChooser, Orders, Reordering
from sash.operators.scalar import evaluate
from sash.state.changes import ChangeBatch
from sash.state.hashing import any_null, hash_rows
from sash.state.interner import Interner
from sash.state.memory import Array, Ints, Memory, Regions
from sash.state.ordering import ordered_bits
from sash.state.rows import RowStore
from sash.time import FOREVER

MOST_INPUTS: Final = 10
_ROOM: Final = 1024


class MultiJoin(Operator):
    """`orders` has one order of all inputs per origin; `columns` are the output columns, as (input, column)."""

    def __init__(
        self,
        memory: Memory,
        inputs: tuple[Edge, ...],
        graph: Graph,
        columns: tuple[tuple[int, int], ...],
        orders: Orders,
        tau: int | None = None,
        buckets: tuple[int, ...] | None = None,
        figures: JoinStatistics | None = None,
        chooser: OrderChooser | None = None,
        purge: int | None = None,
    ) -> None:
        self._explicit = not all(edge.stamped for edge in inputs)
        self._tau = tau or 0
        self._purge = Purging(memory, None if self._explicit else purge)
        self._graph = graph
        scanned = graph.scans or any(order[0] != origin for origin, order in enumerate(orders))
        self._indexes = indexes_of(graph, scanned)
        self._keys = [Interner(memory.scope(f"keys{number}")) for number in range(len(graph.attributes))]
        self._sides = [
            _JoinInput(memory.scope(f"input{number}"), edge, number, graph, columns)
            for number, edge in enumerate(inputs)
        ]
        self._columns = columns
        emitting = [side.number for side in self._sides if side.columns]
        self._emitted = np.array([emitting.index(n) if n in emitting else -1 for n in range(len(inputs))])
        self._scratch: list[Array] = [
            np.empty(_ROOM, np.int64), np.empty(_ROOM, np.int64), np.empty(_ROOM if self._explicit else 0, np.int8),
            np.empty((len(emitting), _ROOM), np.int64),
        ]  # fmt: skip
        self._rows = Regions(memory.scope("rows"), len(inputs))
        scans = [x for x, index in enumerate(self._indexes) if index.attribute is None]
        self._lists = Regions(memory.scope("lists"), len(graph.attributes) + len(scans))
        self._stats = memory.array("stats", np.int64, loop.STATS + len(self._indexes))
        self._index, self._inputs, self._regions = self._layout(buckets, scans)
        packs = int(self._index[:, loop.BUCKETS].sum())
        self._links = Regions(memory.scope("links"), len(self._indexes) + packs, np.int32)
        self._packed = memory.array("packed", np.int64, packs)
        self._shares = () if figures is None else figures.shares
        self._reordering = Reordering(memory.scope("reordering"), orders, figures, chooser)
        self._compile()

    def _layout(self, buckets: tuple[int, ...] | None, scans: Sequence[int]) -> tuple[Ints, Ints, list[int]]:
        """The kernels' tables of indexes and inputs, without offsets that move, and the region of each index's lists."""
        index = np.zeros((len(self._indexes), loop.INDEX_FIELDS), np.int64)
        given = np.zeros((len(self._sides), loop.INPUT_FIELDS), np.int64)
        regions = []
        for x, (mine, number) in enumerate((index.input, index.attribute) for index in self._indexes):
            same = [
                other for other, found in enumerate(self._indexes) if found.attribute == number and other not in scans
            ]
            side = [other for other, found in enumerate(self._indexes) if found.input == mine]
            index[x, loop.STEP] = 1 + 2 * max(len(same), 1)
            index[x, loop.MEMBER] = 1 if number is None else 1 + 2 * same.index(x)
            index[x, loop.BUCKETS] = 1 if number is None else 0 if buckets is None else buckets[mine]
            index[x, loop.PREVIOUS] = loop.HEADER + side.index(x)
            index[x, loop.PACKS] = index[:x, loop.BUCKETS].sum()
            index[x, loop.ATTRIBUTE] = -1 if number is None else number
            regions.append(len(self._graph.attributes) + scans.index(x) if number is None else number)
        for mine, details in enumerate(self._sides):
            own_indexes = [x for x, found in enumerate(self._indexes) if found.input == mine]
            given[mine, loop.FIRST_INDEX] = min(own_indexes, default=0)
            given[mine, loop.LAST_INDEX] = max(own_indexes, default=-1) + 1
            given[mine, loop.VALUES] = loop.HEADER + len(own_indexes)
            given[mine, loop.WORDS] = loop.HEADER + len(own_indexes) + len(details.operands)
        return index, given, regions

    def _compile(self) -> None:
        """Compile the loop nests for the current orders."""
        operands = [side.operands for side in self._sides]
        self._program = compile_program(self._graph, self._indexes, self._reordering.orders, operands)
        self._remark = f"order {self._reordering.described}", self._reordering.reason

    def _adapt(self, arrived: Sequence[int], clock: int) -> None:
        """Choose new orders if the observed statistics call for it."""
        seconds = self._reordering.count(arrived, self.state_rows, clock)
        if seconds is None:
            return
        counts = {index: float(self._stats[loop.STATS + x]) for x, index in enumerate(self._indexes)}
        numbers = range(len(self._sides))
        figures = JoinStatistics(
            self._reordering.rates(seconds),
            tuple(float(side.live.live) for side in self._sides),
            tuple(tuple(counts.get(Index(j, a)) for j in numbers) for a in range(len(self._graph.attributes))),
            self._shares,
        )
        if self._reordering.adapt(figures, clock):
            self._compile()

    @property
    def rows_examined(self) -> int:
        """The number of rows that the levels of the loop nest have examined."""
        return int(self._stats[loop.PROBES])

    def process(self, inputs: Sequence[ChangeBatch], clock: int) -> ChangeBatch:
        until = self._purge.due(clock)
        events = [self._apply(side, batch, until) for side, batch in zip(self._sides, inputs, strict=True)]
        self._place()
        stops = np.cumsum([len(given.ts) for given in events])
        count, dead, *self._scratch = loop.advance(
            self._explicit, self._tau, self._purge.lazy,
            np.concatenate([given.ts for given in events]), np.concatenate([given.sign for given in events]),
            np.concatenate([given.items for given in events]), stops - [len(given.ts) for given in events], stops,
            self._program.levels, self._program.checks, self._emitted, self._inputs, self._index,
            self._links.data, self._links.starts[len(self._indexes) :], self._packed, self._rows.data, self._lists.data, self._stats, *self._scratch,
        )  # fmt: skip
        ts, exp, sign, slots = (made[..., :count] for made in self._scratch)
        if self._tau:
            order = np.lexsort((sign, ts)) if self._explicit else np.argsort(ts, kind="stable")
            ts, exp, slots = ts[order], exp[order], slots[:, order]
            sign = sign[order] if self._explicit else sign
        else:
            ts, exp = ts.copy(), exp.copy()
        columns = self._gather(slots)
        for side, given in zip(self._sides, events, strict=True):
            side.drop(given.items[given.sign < 0])
        self._forget(dead)
        if clock != FOREVER:
            self._adapt([int((given.sign > 0).sum()) for given in events], clock)
        if not self._explicit:
            return ChangeBatch.stamped(ts, exp, columns)
        return net(ChangeBatch.explicit(ts, sign.copy(), columns))

    def _apply(self, side: _JoinInput, batch: ChangeBatch, clock: int) -> RowEvents:
        """Store the arrivals of one input, with codes for their keys and the values that are compared."""
        batch, values = side.usable(batch)
        events, arrived, slots = side.live.apply(batch, clock)
        columns = rows_at(batch, arrived)
        words = int(self._inputs[side.number, loop.WORDS])
        self._rows.reserve(side.number, words * side.live.capacity)
        at = self._rows.starts[side.number] + words * slots
        self._rows.data[at + loop.TS] = batch.ts[arrived]
        self._rows.data[at + loop.EXP] = batch.exp[arrived]
        for position, column in enumerate(values, int(self._inputs[side.number, loop.VALUES])):
            self._rows.data[at + position] = column[arrived]
        for x, index in enumerate(self._indexes):
            if index.input != side.number:
                continue
            self._links.reserve(x, 2 * side.live.capacity)
            codes = np.zeros(len(slots), np.int64)
            if index.attribute is not None:
                key = self._graph.attributes[index.attribute][side.number]
                assert key is not None
                hashes = hash_rows([columns[column] for column in key], len(arrived))
                codes, _ = self._keys[index.attribute].intern(*hashes)
                self._links.data[self._links.starts[x] + 2 * slots + 1] = codes
            self._make_room(x, codes)
        side.rows.put(slots, [columns[column] for column in side.columns])
        return events

    def _make_room(self, x: int, codes: Ints) -> None:
        """Reserve space in the buckets of an index for new rows with these codes."""
        buckets, first = int(self._index[x, loop.BUCKETS]), int(self._index[x, loop.PACKS])
        if not buckets:
            return
        sizes = self._packed[first : first + buckets] + np.bincount(codes % buckets, minlength=buckets)
        for bucket, size in enumerate(sizes.tolist(), len(self._indexes) + first):
            self._links.reserve(bucket, 2 * size)

    def _place(self) -> None:
        """Reserve space for the lists of new keys, and update the kernel's offsets."""
        for x, region in enumerate(self._regions):
            index = self._index[x]
            attribute = self._indexes[x].attribute
            keys = 1 if attribute is None else self._keys[attribute].capacity
            self._lists.reserve(region, int(index[loop.STEP]) * keys)
        self._index[:, loop.LINKS] = self._links.starts[: len(self._indexes)]
        self._index[:, loop.LISTS] = self._lists.starts[self._regions]
        self._inputs[:, loop.ROWS] = self._rows.starts

    def _gather(self, slots: Ints) -> list[pa.Array]:
        taken = [
            side.rows.take(own(slots[row])) if row >= 0 else []
            for side, row in zip(self._sides, self._emitted, strict=True)
        ]
        return [taken[mine][self._sides[mine].columns.index(column)] for mine, column in self._columns]

    def _forget(self, dead: Ints) -> None:
        """Free the codes of keys without rows."""
        for number, keys in enumerate(self._keys):
            codes = np.unique(dead[1][dead[0] == number])
            if len(codes):
                x = next(x for x, index in enumerate(self._indexes) if index.attribute == number)
                uses = self._lists.data[self._index[x, loop.LISTS] + self._index[x, loop.STEP] * codes]
                keys.forget(codes[uses == 0])

    @property
    def current_choice(self) -> tuple[str, str]:
        return self._remark

    @property
    def learnt(self) -> Learnt:
        return self._reordering.learnt

    def recall(self, learnt: Learnt) -> None:
        self._reordering.recall(learnt)
        self._compile()

    @property
    def state_rows(self) -> int:
        return sum(side.live.live for side in self._sides)


class _JoinInput:
    """One input: its live rows, their output columns, and the values that are compared."""

    def __init__(
        self, memory: Memory, edge: Edge, number: int, graph: Graph, columns: Sequence[tuple[int, int]]
    ) -> None:
        self.number = number
        self.columns = list(dict.fromkeys(column for mine, column in columns if mine == number))
        sides = [side for theta in graph.thetas for side in (theta.left, theta.right)]
        self.operands: list[Operand] = list(dict.fromkeys(side for side in sides if side.input == number))
        self.live = LiveRows(memory.scope("live"), edge)
        self.rows = RowStore(memory.scope("rows"), [edge.dtypes[column] for column in self.columns])
        self._keys = sorted({column for attribute in graph.attributes for column in attribute[number] or ()})

    def usable(self, batch: ChangeBatch) -> tuple[ChangeBatch, list[Ints]]:
        """The rows without NULL keys or values, and the compared values as integers of the same order."""
        values = [evaluate(operand.value, batch.columns, len(batch)) for operand in self.operands]
        nulls = any_null([*(batch.columns[key] for key in self._keys), *values])
        if nulls is not None:
            kept = np.flatnonzero(~nulls)
            batch = batch.take(kept)
            values = [value.take(pa.array(kept)) for value in values]
        return batch, [ordered_bits(value) for value in values]

    def drop(self, slots: Ints) -> None:
        """Free rows that ended."""
        self.rows.free(slots)
        self.live.release(slots)
