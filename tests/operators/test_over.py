"""Window functions against a recomputation of every partition, at every instant."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sash.operators.aggregates.base import Versions
from sash.operators.base import Edge
from sash.operators.over import Over
from sash.operators.over_values import FrameAggregates
from sash.plan.expressions import AggregateCall, Column
from sash.plan.nodes import SortKey
from sash.plan.window_calls import RUNNING, RUNNING_ROWS, WHOLE, Bound, Frame, WindowCall
from sash.state.changes import ChangeBatch
from sash.state.memory import HeapMemory, Ints, Memory
from sash.state.rows import RowStore
from tests.operators.reference import KINDS, Bag, Row, check, clocks, drive, edge, lives

DTYPES = (pa.int64(), pa.int64(), pa.string(), pa.int64(), pa.int64())
"""Partition, value, text, and the bounds of a RANGE frame from one less than the value to two more."""

K, V, G, LOW, HIGH = range(5)
ASCENDING = (SortKey(V),)
DESCENDING = (SortKey(V, descending=True, nulls_first=False),)
FRAMES = {
    "whole": WHOLE,
    "running": RUNNING,
    "running rows": RUNNING_ROWS,
    "around": Frame(Bound("row", -1), Bound("row", 1)),
    "before": Frame(Bound("row", -3), Bound("row", -2)),
    "after": Frame(Bound("row", 1), Bound("row", 2)),
    "all before": Frame(Bound("unbounded"), Bound("row", -2)),
    "all up to the next": Frame(Bound("unbounded"), Bound("row", 1)),
    "all after": Frame(Bound("row", 1), Bound("unbounded")),
    "many before": Frame(Bound("row", -12), Bound("row", 0)),
    "far before": Frame(Bound("row", -12), Bound("row", -2)),
    "far after": Frame(Bound("row", 2), Bound("row", 12)),
    "peers": Frame(Bound("peer"), Bound("peer")),
    "peers and all after": Frame(Bound("peer"), Bound("unbounded")),
    "near": Frame(Bound("value", 0, LOW), Bound("value", 0, HIGH)),
    "up to near": Frame(Bound("unbounded"), Bound("value", 0, LOW)),
    "from near": Frame(Bound("value", 0, HIGH), Bound("unbounded")),
}
INT = pa.int64()


def _row(k: int | None, v: int | None, g: str | None) -> Row:
    return (k, v, g, None if v is None else v - 1, None if v is None else v + 2)


ROWS = st.builds(
    _row, st.sampled_from([None, 1]), st.sampled_from([None, 0, 1, 2, 3, 7]), st.sampled_from([None, "", "a", "é"])
)


def aggregate(function: str, frame: Frame, order: tuple[SortKey, ...] = ASCENDING, column: int = V) -> WindowCall:
    arguments = () if function == "count_star" else (Column(column, "v", DTYPES[column]),)
    dtype = pa.float64() if function == "avg" else DTYPES[column] if function in ("min", "max") else INT
    return WindowCall(function, (), dtype, order, frame, aggregate=AggregateCall(function, arguments, dtype))


def function(
    name: str, parameter: int = 0, order: tuple[SortKey, ...] = ASCENDING, frame: Frame = WHOLE, ignore: bool = False
) -> WindowCall:
    if name in ("lag", "lead", "first_value", "last_value", "nth_value"):
        value = Column(G, "g", pa.string())
        return WindowCall(name, (value,), pa.string(), order, frame, parameter, value if ignore else None)
    dtype = pa.float64() if name in ("percent_rank", "cume_dist") else pa.int32()
    return WindowCall(name, (), dtype, order, frame, parameter)


CALLS = {
    **{name: [function(name)] for name in ("row_number", "rank", "dense_rank", "percent_rank", "cume_dist")},
    **{f"ntile {n}": [function("ntile", n, DESCENDING)] for n in (1, 2, 3, 9)},
    **{
        f"{name} {n} {ignore}": [function(name, n, ignore=ignore)]
        for name in ("lag", "lead")
        for n in (0, 1, 2)
        for ignore in (False, True)
    },
    **{
        f"{name} {frame} {ignore}": [function(name, 2 * (name == "nth_value"), frame=FRAMES[frame], ignore=ignore)]
        for name in ("first_value", "last_value", "nth_value")
        for frame in FRAMES
        for ignore in (False, True)
    },
    **{
        f"aggregates {name}": [
            *(aggregate(one, frame) for one in ("sum", "count", "count_star", "avg", "min")),
            aggregate("max", frame, column=G),
        ]
        for name, frame in FRAMES.items()
    },
    "many": [
        function("rank", order=DESCENDING),
        aggregate("sum", RUNNING, DESCENDING),
        aggregate("sum", WHOLE),
        aggregate("max", FRAMES["around"], DESCENDING),
        function("lag", 1),
        function("dense_rank", order=DESCENDING),
        aggregate("count", FRAMES["around"]),
        aggregate("count_star", WHOLE, ()),
    ],
}


class _Partition:
    """The rows of a partition in one order, and the functions over them, straight from their definitions."""

    def __init__(self, rows: list[Row], order: tuple[SortKey, ...]) -> None:
        self.order = order
        self.rows = sorted(rows, key=lambda row: tuple(_comparable(row[c], SortKey(c)) for c in (V, G)))
        for key in reversed(order):
            self.rows.sort(key=lambda row: _comparable(row[key.column], key))

    def value(self, call: WindowCall, at: int) -> Any:
        rows, row, size = self.rows, self.rows[at], len(self.rows)
        peers = [n for n in range(size) if all(rows[n][key.column] == row[key.column] for key in self.order)]
        match call.function:
            case "row_number":
                return at + 1
            case "rank":
                return peers[0] + 1
            case "dense_rank":
                return len({rows[n][V] for n in range(peers[0] + 1)})
            case "percent_rank":
                return peers[0] / (size - 1) if size > 1 else 0.0
            case "cume_dist":
                return (peers[-1] + 1) / size
            case "ntile":
                sizes = [size // call.parameter + (n < size % call.parameter) for n in range(call.parameter)]
                return next(n + 1 for n in range(call.parameter) if at < sum(sizes[: n + 1]))
            case "lag" | "lead":
                before = list(range(at))[::-1] if call.function == "lag" else list(range(at + 1, size))
                found = [at] if call.parameter == 0 else before
                if call.present and call.parameter:
                    found = [n for n in found if rows[n][G] is not None]
                place = max(call.parameter - 1, 0)
                return rows[found[place]][G] if place < len(found) else None
        frame = [rows[n] for n in range(size) if self._within(call.frame, at, n, peers)]
        if call.aggregate is None:
            values = [one[G] for one in frame if not (call.present and one[G] is None)]
            place = {"first_value": 0, "last_value": -1}.get(call.function, call.parameter - 1)
            return values[place] if values and place < len(values) else None
        column = call.aggregate.arguments[0].index if call.aggregate.arguments else 0
        values = [one[column] for one in frame if one[column] is not None]
        match call.function:
            case "count_star":
                return len(frame)
            case "count":
                return len(values)
            case "sum":
                return sum(values) if values else None
            case "avg":
                return sum(values) / len(values) if values else None
            case _:
                best = min if call.function == "min" else max
                return best(values, key=lambda one: one.encode() if isinstance(one, str) else one) if values else None

    def _within(self, frame: Frame, at: int, other: int, peers: list[int]) -> bool:
        return self._reaches(frame.start, at, other, peers, True) and self._reaches(frame.end, at, other, peers, False)

    def _reaches(self, bound: Bound, at: int, other: int, peers: list[int], start: bool) -> bool:
        match bound.kind:
            case "unbounded":
                return True
            case "row":
                return other >= at + bound.offset if start else other <= at + bound.offset
            case "peer":
                return other >= peers[0] if start else other <= peers[-1]
        key = self.order[0]
        here = _comparable(self.rows[other][key.column], key)
        limit = _comparable(self.rows[at][bound.column or 0], key)
        return here >= limit if start else here <= limit


def _comparable(value: Any, key: SortKey) -> tuple[int, Any]:
    if value is None:
        return (0 if key.nulls_first else 2, 0)
    value = value.encode() if isinstance(value, str) else value
    return (1, -value if key.descending else value)


def answer(live: Bag, calls: list[WindowCall]) -> Bag:
    result: Bag = Counter()
    for k in {row[K] for row in live}:
        rows = [row for row in live.elements() if row[K] == k]
        columns = []
        for call in calls:
            partition = _Partition(rows, call.order)
            columns.append(sorted(((row, n) for n, row in enumerate(partition.rows)), key=lambda pair: _whole(pair[0])))
            columns[-1] = [(row, partition.value(call, n)) for row, n in columns[-1]]  # type: ignore[misc]
        for parts in zip(*columns, strict=True):
            result[(*parts[0][0], *(value for _, value in parts))] += 1
    return result


def _whole(row: Row) -> Any:
    return tuple(_comparable(value, SortKey(0)) for value in row)


@pytest.mark.parametrize("name", CALLS)
@settings(max_examples=5)
@given(data=st.data())
def test_oracle_over(name: str, data: st.DataObject) -> None:
    calls = CALLS[name]
    kind = data.draw(st.sampled_from(KINDS))
    inputs = [data.draw(lives(kind, ROWS, 12))]

    def make(memory: Memory, edges: tuple[Edge, ...]) -> Over:
        return Over(memory, (edges[0],), (K,), (V, G), tuple(calls))

    output = drive(make, [edge(kind, DTYPES)], inputs, data.draw(clocks()))
    check(output, inputs, lambda live: answer(live, calls))


@pytest.mark.parametrize("frame", ["long", "near", "running"])
def test_rows_that_arrive_in_order_cost_what_enters_and_leaves_their_frames(
    frame: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = []
    apply = FrameAggregates.apply

    def counted(self: FrameAggregates, rows: RowStore, slots: Ints, *rest: Any) -> list[Versions]:
        steps.append(len(slots))
        return apply(self, rows, slots, *rest)

    monkeypatch.setattr(FrameAggregates, "apply", counted)
    frames = {
        "long": Frame(Bound("row", -400), Bound("row", 0)),
        "near": Frame(Bound("value", 0, LOW), Bound("peer")),
        "running": RUNNING,
    }
    operator = Over(HeapMemory(), (Edge(DTYPES, "explicit"),), (K,), (V,), (aggregate("sum", frames[frame]),))
    size, values = 2_000, np.arange(2_000)
    columns = [
        pa.array(np.ones(size, np.int64)),
        pa.array(values),
        pa.nulls(size, pa.string()),
        pa.array(values - 400),
        pa.array(values),
    ]
    made = operator.process([ChangeBatch.explicit(values, np.ones(size, np.int8), columns)], size + 1)
    first = np.zeros(size, np.int64) if frame == "running" else np.maximum(values - 400, 0)
    assert made.columns[-1].to_pylist() == [
        sum(range(start, stop + 1)) for start, stop in zip(first, values, strict=True)
    ]
    assert sum(steps) <= 3 * size
