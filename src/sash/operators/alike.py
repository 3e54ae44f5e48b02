"""Alike queries: the rows of a shared answer, with the constants of every query that has them in its own answer.

Meaning: (row, ts, sign) gives (row + constants, ts, sign) for every row of constants that is there at ts, has the row's keys
and satisfies the condition. A row of constants that comes or goes at ts does so with all its results. Where a query
has the row `otherwise` while no row has its keys, every result of a row takes that row back or returns it; at most one row
has a query's keys at a time. With `net_batches` the changes of a batch are netted first, and constants change before them:
the answers are right at the end of every batch.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from sash.operators.base import Edge, Operator
from sash.operators.constants import Comparison, ConstantsIndex
from sash.operators.live_rows import LiveRows, RowEvents, rows_at
from sash.operators.netting import net, net_all
from sash.operators.scalar import evaluate
from sash.plan.expressions import Expression
from sash.state.changes import ChangeBatch, Signs, concat
from sash.state.columns import gather
from sash.state.memory import Arrays, Ints, Memory
from sash.state.rows import RowStore
from sash.time import FOREVER


class Alike(Operator):
    """Keeps the live rows of its input, for queries that are added, and the constants of all queries."""

    def __init__(
        self,
        memory: Memory,
        inputs: tuple[Edge, Edge],
        keys: tuple[tuple[int, int], ...],
        comparison: Comparison | None = None,
        condition: Expression | None = None,
        otherwise: tuple[Expression, ...] | None = None,
        *,
        net_batches: bool = False,
    ) -> None:
        left, right = inputs
        self._rows = _LiveTable(memory.scope("rows"), left)
        self._constants = _LiveTable(memory.scope("constants"), right)
        self._keys, self._comparison, self._condition = keys, comparison, condition
        self._otherwise = None if otherwise is None else [evaluate(one, [], 1) for one in otherwise]
        self._net = net_batches
        self._explicit = not left.timed
        self._dtypes = (*left.dtypes, *right.dtypes)
        self._index: ConstantsIndex | None = None

    def process(self, inputs: Sequence[ChangeBatch], clock: int) -> ChangeBatch:
        batch, updates = inputs
        if self._net and self._explicit:
            batch = net_all(batch)
        all_events = self._rows.apply(batch, clock)
        changed = self._constants.apply(updates, clock)
        events = _without_brief(all_events) if self._net and not self._explicit else all_events
        earliest = int(events.ts[0]) if self._net and len(events.ts) else FOREVER
        results = [ChangeBatch.empty(self._dtypes)]
        done = 0
        for ts, first, last in _instants(changed.ts):
            until = 0 if self._net else int(np.searchsorted(events.ts, ts, side="left"))
            results += self._results_of(_slice(events, done, until))
            results += self._change(_slice(changed, first, last), earliest)
            done = until
        results += self._results_of(_slice(events, done, len(events.ts)))
        self._rows.settle(all_events)
        self._constants.settle(changed)
        changes = concat(results).sorted()
        if self._net:
            return changes if self._otherwise is None else net_all(changes)
        return net(changes)

    def _results_of(self, events: RowEvents) -> list[ChangeBatch]:
        """The results of rows that come and go, with the current constants."""
        self._rows.mark(events)
        if not len(events.ts):
            return []
        if self._index is None:
            slots = self._constants.alive()
            self._index = self._indexed(slots)
        rows = self._rows.take(events.items)
        owners, partners = self._index.pairs(rows, len(events.ts))
        return self._results(self._index, rows, owners, partners, events.ts[owners], events.sign[owners])

    def _change(self, changed: RowEvents, earliest: int) -> list[ChangeBatch]:
        """The results of constants that come and go, with the live rows."""
        self._constants.mark(changed)
        self._index = None
        ts = np.minimum(changed.ts, earliest)
        index = self._indexed(changed.items)
        slots = self._rows.alive()
        rows = self._rows.take(slots)
        owners, partners = index.pairs(rows, len(slots))
        results = self._results(index, rows, owners, partners, ts[partners], changed.sign[partners])
        if self._otherwise is not None:
            results.append(self._default(index, np.arange(index.rows), ts, changed.sign))
        return results

    def _indexed(self, slots: Ints) -> ConstantsIndex:
        constants = self._constants.take(slots)
        return ConstantsIndex(constants, len(slots), self._keys, self._comparison, self._condition)

    def _results(
        self, index: ConstantsIndex, rows: Sequence[pa.Array], owners: Ints, partners: Ints, ts: Ints, sign: Signs
    ) -> list[ChangeBatch]:
        """The changes that pairs of rows and constants make, with the times and signs of the pairs."""
        passed = index.passing(owners, partners, rows)
        columns = (*gather(rows, owners[passed]), *gather(index.columns, partners[passed]))
        results = [ChangeBatch.explicit(ts[passed], sign[passed], columns)]
        if self._otherwise is not None:
            results.append(self._default(index, partners, ts, -sign))
        return results

    def _default(self, index: ConstantsIndex, partners: Ints, ts: Ints, sign: Signs) -> ChangeBatch:
        """The changes of the row that a query has while no row has its keys."""
        assert self._otherwise is not None
        nothing = np.zeros(index.rows, np.int64)
        passes = np.zeros(index.rows, np.bool_)
        passes[index.passing(nothing, np.arange(index.rows), self._otherwise)] = True
        chosen = np.flatnonzero(passes[partners])
        rows = gather(self._otherwise, nothing[:1].repeat(len(chosen)))
        return ChangeBatch.explicit(ts[chosen], sign[chosen], (*rows, *gather(index.columns, partners[chosen])))

    @property
    def state_rows(self) -> int:
        return self._rows.live + self._constants.live


class _LiveTable:
    """The live rows of an input, which can be listed."""

    def __init__(self, memory: Memory, edge: Edge) -> None:
        self._live = LiveRows(memory.scope("live"), edge)
        self._store = RowStore(memory.scope("store"), edge.dtypes)
        self._flags = Arrays(memory, {"alive": np.uint8})

    def apply(self, batch: ChangeBatch, clock: int) -> RowEvents:
        """The events up to the clock, by slot; rows that end are kept until `settle`."""
        events, arrived, slots = self._live.apply(batch, clock)
        self._store.put(slots, rows_at(batch, arrived))
        self._flags.reserve(self._live.capacity)
        return events

    def mark(self, events: RowEvents) -> None:
        """Let the rows of the events come and go."""
        self._flags["alive"][events.items] = events.sign > 0

    def alive(self) -> Ints:
        """The slots of the rows that have come and not gone."""
        return np.flatnonzero(self._flags["alive"])

    def take(self, slots: Ints) -> list[pa.Array]:
        """The columns of the rows at these slots."""
        return self._store.take(slots)

    def settle(self, events: RowEvents) -> None:
        """Free the rows that ended."""
        gone = events.items[events.sign < 0]
        self._store.free(gone)
        self._live.release(gone)

    @property
    def live(self) -> int:
        """The number of live rows."""
        return self._live.live


def _slice(events: RowEvents, start: int, stop: int) -> RowEvents:
    return RowEvents(events.ts[start:stop], events.sign[start:stop], events.items[start:stop])


def _instants(ts: Ints) -> list[tuple[int, int, int]]:
    """Every instant of the sorted times, with the positions of its first time and of the one after its last."""
    if not len(ts):
        return []
    starts = np.flatnonzero(np.concatenate(([True], ts[1:] != ts[:-1])))
    ends = [*starts[1:], len(ts)]
    return [(int(ts[start]), int(start), int(end)) for start, end in zip(starts, ends, strict=True)]


def _without_brief(events: RowEvents) -> RowEvents:
    """The events without rows that both come and go among them."""
    slots, where, counts = np.unique(events.items, return_inverse=True, return_counts=True)
    if len(slots) == len(events.items):
        return events
    kept = np.flatnonzero(counts[where] == 1)
    return RowEvents(events.ts[kept], events.sign[kept], events.items[kept])
