"""Drives an operator batch by batch and compares what its changes fold to with a recomputation at every instant."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from sash.operators.base import Edge, Operator
from sash.operators.expiration_choice import ExpirationPlan
from sash.operators.expire import Expire
from sash.state.changes import ChangeBatch
from sash.state.memory import HeapMemory, Memory
from sash.time import FOREVER

Row = tuple[Any, ...]
Bag = Counter[Row]
DTYPES = (pa.int64(), pa.string())
KINDS = ("fifo", "calendar", "explicit")
JOINED = (*KINDS, "strict")
"""The edges that an operator takes that keeps rows one by one."""
WINDOW = 5


class Life(NamedTuple):
    """A row and the time in which it is valid: [ts, exp)."""

    ts: int
    exp: int
    row: Row


class Change(NamedTuple):
    """A change of a row at an instant."""

    ts: int
    sign: int
    exp: int
    row: Row


def edge(kind: str, dtypes: Sequence[pa.DataType] = DTYPES) -> Edge:
    """An edge of that kind, with a calendar small enough to turn."""
    return Edge(tuple(dtypes), kind, partitions=4, width=3)  # type: ignore[arg-type]


def lives(kind: str, rows: st.SearchStrategy[Row] | None = None, size: int = 25) -> st.SearchStrategy[list[Life]]:
    """Rows of an input, in order of arrival; those of a fifo edge expire in that order."""
    rows = rows if rows is not None else st.tuples(st.sampled_from([None, 0, 1]), st.sampled_from([None, "", "é"]))
    lengths = st.just(WINDOW) if kind == "fifo" else st.sampled_from([1, 2, 3, 7, 30, int(FOREVER)])
    entries = st.lists(st.tuples(st.sampled_from([0, 0, 1, 2]), lengths, rows), max_size=size)

    def place(items: list[tuple[int, int, Row]]) -> list[Life]:
        now, result = 0, []
        for gap, length, row in items:
            now += gap
            result.append(Life(now, min(now + length, int(FOREVER)), row))
        return result

    return entries.map(place)


def clocks() -> st.SearchStrategy[list[int]]:
    """When the operator is called, in order; the last call is after everything."""
    return st.lists(st.integers(0, 60), max_size=6).map(lambda some: [*sorted(some), 200])


def stamped(entries: Sequence[Life], dtypes: Sequence[pa.DataType] = DTYPES) -> ChangeBatch:
    """The rows as a batch of a stamped edge."""
    columns = [pa.array([life.row[i] for life in entries], dtype) for i, dtype in enumerate(dtypes)]
    ts, exp = ([life[i] for life in entries] for i in (0, 1))
    return ChangeBatch.stamped(np.array(ts, np.int64), np.array(exp, np.int64), columns)


def strict(entries: Sequence[Life], dtypes: Sequence[pa.DataType] = DTYPES) -> ChangeBatch:
    """The rows as changes of a strict edge: some end by themselves, some before their time, some have no time."""
    changes = []
    for life in entries:
        early = {0: life.exp, 1: life.exp + 3, 2: int(FOREVER)}[(7 * life.ts + life.exp) % 3]
        expires = min(early, int(FOREVER))
        changes.append((life.ts, 1, expires, life.row))
        if expires != life.exp < FOREVER:
            changes.append((life.exp, -1, expires, life.row))
    changes.sort(key=lambda change: change[:2])
    columns = [pa.array([row[i] for *_, row in changes], dtype) for i, dtype in enumerate(dtypes)]
    ts, sign, exp = (np.array([change[i] for change in changes], np.int64) for i in range(3))
    return ChangeBatch(ts, exp, sign.astype(np.int8), tuple(columns))


def rows_of(batch: ChangeBatch) -> list[Row]:
    """The values of a batch, row by row."""
    if not batch.columns:
        return [()] * len(batch)
    return list(zip(*(column.to_pylist() for column in batch.columns), strict=True))


def batches(source: Edge, entries: Sequence[Life], calls: Sequence[int]) -> list[ChangeBatch]:
    """What an input brings between one clock and the next."""
    bounds = list(pairwise([-1, *calls]))
    parts = [stamped([life for life in entries if low <= life.ts < high], source.dtypes) for low, high in bounds]
    if source.stamped:
        return parts
    if source.expiry == "strict":
        batch = strict(entries, source.dtypes)
        return [batch.take(np.flatnonzero((batch.ts >= low) & (batch.ts < high))) for low, high in bounds]
    expire = Expire(HeapMemory(), (edge("calendar", source.dtypes),))
    return [expire.process([part], clock) for part, clock in zip(parts, calls, strict=True)]


def drive(
    make: Callable[[Memory, tuple[Edge, ...]], Operator],
    edges: Sequence[Edge],
    inputs: Sequence[Sequence[Life]],
    calls: Sequence[int],
    stamped_output: bool = False,
) -> list[Life]:
    """Run the operator, made anew for every call; the lives of its output rows, after checking the batches' promises.

    For an explicit output the `-` rows end the lives that the `+` rows began.
    """
    memory = HeapMemory()
    result: list[Life] = []
    begun: dict[Row, list[int]] = {}
    last = -1
    steps = zip(*(batches(source, rows, calls) for source, rows in zip(edges, inputs, strict=True)), strict=True)
    for clock, step in zip(calls, steps, strict=True):
        output = make(memory, tuple(edges)).process(list(step), clock)
        rows = rows_of(output)
        order = list(zip(output.ts.tolist(), output.sign.tolist(), strict=True))
        assert order == sorted(order)
        assert all(last <= ts < clock for ts, _ in order)
        last = clock
        if stamped_output:
            assert all(sign == 1 for _, sign in order)
            found = [Life(ts, exp, row) for (ts, _), exp, row in zip(order, output.exp.tolist(), rows, strict=True)]
            assert all(life.ts < life.exp for life in found)
            result += found
            continue
        assert (output.exp == FOREVER).all()
        added = {(ts, row) for (ts, sign), row in zip(order, rows, strict=True) if sign > 0}
        for (ts, sign), row in zip(order, rows, strict=True):
            if sign > 0:
                begun.setdefault(row, []).append(ts)
            else:
                assert (ts, row) not in added, "a row is added and retracted at one instant"
                assert begun.get(row), "a retracted row does not exist"
                result.append(Life(begun[row].pop(), ts, row))
    return result + [Life(ts, int(FOREVER), row) for row, times in begun.items() for ts in times]


def drive_strict(
    make: Callable[[Memory, tuple[Edge, Edge], ExpirationPlan], Operator],
    kinds: Sequence[str],
    inputs: Sequence[Sequence[Life]],
    calls: Sequence[int],
    ways: Sequence[bool],
) -> tuple[list[Life], list[Change]]:
    """Run a negation, made anew for every call, by calendar where `ways` says so: the lives of its output rows, and its
    changes.

    A row ends at its expiration time, or earlier by a `-` row with the same expiration time.
    """
    memory, edges = HeapMemory(), (edge(kinds[0]), edge(kinds[1]))
    given: list[Life] = []
    over: list[Life] = []
    changes: list[Change] = []
    last = -1
    steps = zip(*(batches(source, rows, calls) for source, rows in zip(edges, inputs, strict=True)), strict=True)
    for calendar, clock, step in zip(ways, calls, steps, strict=True):
        operator = make(memory, edges, ExpirationPlan(0.0, 0.0, 4, fixed=True))
        memory.array("ending.marks", np.float64, 0)[1] = calendar
        output = operator.process(list(step), clock)
        rows = zip(output.ts.tolist(), output.sign.tolist(), output.exp.tolist(), rows_of(output), strict=True)
        found = [Change(*change) for change in rows]
        assert [change[:2] for change in found] == sorted(change[:2] for change in found)
        assert all(last <= change.ts < clock for change in found)
        for change in found:
            if change.sign > 0:
                assert change.ts < change.exp
                given.append(Life(change.ts, change.exp, change.row))
                continue
            begun = next(life for life in given if life[1:] == change[2:] and life.ts < change.ts < life.exp)
            given.remove(begun)
            over.append(Life(begun.ts, change.ts, change.row))
        changes += found
        last = clock
    return given + over, changes


def at(entries: Sequence[Life], instant: int) -> Bag:
    """The rows valid at an instant."""
    return Counter(life.row for life in entries if life.ts <= instant < life.exp)


def check(
    output: Sequence[Life], inputs: Sequence[Sequence[Life]], answer: Callable[..., Bag], until: int = 200
) -> None:
    """The output is the answer over the live rows, at every instant at which anything happens."""
    instants = {time for rows in (*inputs, output) for life in rows for time in life[:2] if time < until}
    for instant in sorted(instants):
        assert at(output, instant) == +answer(*(at(rows, instant) for rows in inputs)), f"at {instant}"


def numbered(entries: Sequence[Life]) -> list[Life]:
    """The same lives with a running number as an additional column, so that no two rows are equal."""
    return [life._replace(row=(*life.row, number)) for number, life in enumerate(entries)]
