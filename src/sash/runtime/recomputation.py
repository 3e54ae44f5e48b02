"""Recomputation: the answer of a stage at every instant, computed anew from the rows that are valid (re-evaluation).

What is kept is, per input of a region, the valid rows and, per region, its last answer. At every instant at which a row
comes or ends, new operators process all valid rows; the changes are the difference to the last answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import perf_counter_ns

import numpy as np
import pyarrow as pa

from sash.operators.base import Operator
from sash.operators.netting import cancelled, net_all
from sash.physical.facts import facts_of
from sash.physical.nodes import Aggregate, Expire, Operation, Physical, Stage
from sash.physical.regions import Region, regions_of
from sash.plan.expressions import ORDERED
from sash.runtime.build import Relations, build
from sash.runtime.counts import Counts
from sash.runtime.ended_rows import with_ends
from sash.state.changes import ChangeBatch, concat
from sash.state.encoding import Spool
from sash.state.hashing import Keys, hash_rows
from sash.state.memory import HeapMemory, Memory
from sash.time import BEGINNING, FOREVER


class Recomputation:
    """The regions of a stage. While `restoring`, only the last answer is computed, with its rows' own times."""

    def __init__(self, memory: Memory, stage: Stage, names: Mapping[int, str], relations: Relations) -> None:
        self.restoring = False
        self._regions = {
            id(region.root): RegionAnswer(memory.scope(str(number)), region, names, relations)
            for number, region in enumerate(regions_of(stage.root))
        }
        self._inner = {id(node) for found in self._regions.values() for node in found.region.operations}

    def holds(self, node: Operation) -> bool:
        """Whether the node is in a region, so that it keeps nothing."""
        return id(node) in self._inner

    def output(
        self, node: Operation, results: Mapping[int, ChangeBatch], clock: int, counts: dict[str, Counts]
    ) -> ChangeBatch:
        """The changes of a node of a region before the clock; none are asked for within one."""
        found = self._regions.get(id(node))
        if found is None:
            return ChangeBatch.empty([column.dtype for column in node.schema])
        return found.advance([results[id(child)] for child in found.region.inputs], clock, counts, self.restoring)

    @property
    def rows(self) -> int:
        """The number of rows that are kept."""
        return sum(region.rows for region in self._regions.values())


class ValidRows:
    """The rows of an input of a region that are valid, or will be, each with its end (FOREVER: not known yet)."""

    def __init__(self, memory: Memory, node: Physical) -> None:
        self._stamped = node.expiry != "explicit"
        self._spool = Spool(memory, [column.dtype for column in node.schema])
        self.rows = self._spool.load()

    def take(self, batch: ChangeBatch) -> None:
        """Add the rows that came, and note the ends that retractions tell."""
        if not len(batch):
            return
        self.rows = concat([self.rows, batch])
        if not self._stamped:
            self.rows = with_ends(self.rows)

    def at(self, instant: int, *, own_times: bool) -> ChangeBatch:
        """The rows that are valid at an instant: with their own times, or all as if they came at that instant."""
        rows = self.rows
        valid = np.flatnonzero((rows.ts <= instant) & (rows.exp > instant))
        if len(valid) < len(rows):
            together = len(valid) and int(valid[-1] - valid[0]) == len(valid) - 1
            rows = rows.slice(int(valid[0]), int(valid[-1]) + 1) if together else rows.take(valid)
        ts = rows.ts if own_times else np.full(len(rows), instant)
        exp = rows.exp if self._stamped else np.full(len(rows), FOREVER)
        return ChangeBatch(ts, exp, rows.sign, rows.columns)

    def forget(self, clock: int) -> None:
        """Drop the rows that ended before the clock, and keep the others for the next batch."""
        ended = self.rows.exp < clock
        if ended.any():
            self.rows = self.rows.take(np.flatnonzero(~ended))
        self._spool.save(self.rows)


class RegionAnswer:
    """The last answer of a region, and the valid rows of its inputs."""

    def __init__(self, memory: Memory, region: Region, names: Mapping[int, str], relations: Relations) -> None:
        self.region = region
        self._names = names
        self._relations = relations
        self._inputs = [ValidRows(memory.scope(f"input{n}"), node) for n, node in enumerate(region.inputs)]
        self._stamped = region.root.expiry != "explicit"
        self._spool = Spool(memory.scope("answer"), [column.dtype for column in region.root.schema])
        self._begun = memory.array("begun", np.int64, 1)
        self._by_time = any(map(_goes_by_time, region.operations))
        self._kept = {
            id(node): build(node, HeapMemory(), relations) for node in region.operations if facts_of(node).stateless
        }
        self._answer = self._spool.load()
        self._hashes = self._hash(self._answer)

    @property
    def rows(self) -> int:
        """The number of valid rows that are kept, beside the last answer."""
        return sum(len(given.rows) for given in self._inputs)

    def advance(
        self, batches: Sequence[ChangeBatch], clock: int, counts: dict[str, Counts], restoring: bool
    ) -> ChangeBatch:
        """The changes of the answer before the clock."""
        for given, batch in zip(self._inputs, batches, strict=True):
            given.take(batch)
        changes = [ChangeBatch.empty([column.dtype for column in self.region.root.schema])]
        for instant in self._instants(batches, clock, restoring):
            made = self._evaluate(instant, counts, own_times=self._by_time or restoring)
            changes.append(self._difference(made, instant, own_times=restoring))
        for given in self._inputs:
            given.forget(clock)
        if len(changes) > 1:
            self._spool.save(self._answer)
        return concat(changes)

    def _instants(self, batches: Sequence[ChangeBatch], clock: int, restoring: bool) -> list[int]:
        """The instants before the clock at which a row comes or ends; the first one is 0, when queries begin."""
        came = [batch.ts for batch in batches]
        begins = not self._begun[0] and (clock > 0 or any(map(len, came)))
        self._begun[0] |= begins
        if restoring:
            return [clock - 1] if self._begun[0] and clock > BEGINNING else []
        ends = [given.rows.exp[given.rows.exp < clock] for given in self._inputs]
        found = np.unique(np.concatenate([np.empty(0, np.int64), *came, *ends]))
        if begins and not (len(found) and found[0] <= 0):
            found = np.append(0, found)
        return [int(instant) for instant in found]

    def _evaluate(self, instant: int, counts: dict[str, Counts], *, own_times: bool) -> ChangeBatch:
        """The answer at an instant, by operators that know nothing but the rows valid then."""
        memory = HeapMemory()
        results = {
            id(node): given.at(instant, own_times=own_times)
            for node, given in zip(self.region.inputs, self._inputs, strict=True)
        }
        for node in self.region.operations:
            inputs, name = [results[id(child)] for child in node.inputs], self._names[id(node)]
            counted = counts.setdefault(name, Counts())
            if isinstance(node, Expire):
                output = _without_ends(inputs[0], node)
                counted.count_call(inputs, output, 0)
            else:
                operator = self._kept.get(id(node)) or self._new(node, memory.scope(name))
                started = perf_counter_ns()
                output = operator.process(inputs, instant + 1)
                counted.microseconds += (perf_counter_ns() - started) // 1000
                counted.count_call(inputs, output, 0)
                counted.rows_examined += operator.rows_examined
                counted.refused += operator.refused
            results[id(node)] = output
        made = results[id(self.region.root)]
        return made if (made.sign > 0).all() else net_all(made)

    def _new(self, node: Operation, memory: Memory) -> Operator:
        return build(node, memory, self._relations)

    def _difference(self, made: ChangeBatch, instant: int, *, own_times: bool) -> ChangeBatch:
        """The changes from the last answer to this one. Rows of a stamped edge end without a retraction."""
        before, known = self._answer, self._hashes
        hashes = self._hash(made)
        self._answer, self._hashes = made, hashes
        low, high = (np.concatenate(parts) for parts in zip(known, hashes, strict=True))
        sign = np.concatenate((-before.sign, made.sign))
        alive = ~cancelled(sign, low, high)
        gone, new = np.flatnonzero(alive[: len(before)]), np.flatnonzero(alive[len(before) :])
        added = made.take(new)
        ts = added.ts if own_times else np.full(len(added), instant)
        added = ChangeBatch(ts, added.exp, added.sign, added.columns)
        if self._stamped or not len(gone):
            return added.sorted()
        columns = before.take(gone).columns
        ended = ChangeBatch.explicit(np.full(len(gone), instant), np.full(len(gone), -1, np.int8), columns)
        return concat([ended, added]).sorted()

    def _hash(self, rows: ChangeBatch) -> Keys:
        columns = (*rows.columns, pa.array(rows.exp)) if self._stamped else rows.columns
        return hash_rows(columns, len(rows))


def _goes_by_time(node: Operation) -> bool:
    """Whether the operator orders rows by the times at which they came."""
    return (
        isinstance(node, Aggregate)
        and node.timed
        and node.time is None
        and any(call.function in ORDERED for call in node.aggregates)
    )


def _without_ends(rows: ChangeBatch, node: Expire) -> ChangeBatch:
    """The valid rows as those of an explicit edge."""
    columns = (*rows.columns, pa.array(rows.exp)) if node.with_expiration else rows.columns
    return ChangeBatch.explicit(rows.ts, rows.sign, columns)
