"""The comparison with a scalar against a recomputation at every instant, and what a change of the scalar touches."""

from __future__ import annotations

import operator as comparisons
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sash.operators.base import Edge
from sash.operators.scalar_comparison import COMPARISONS, ScalarComparison
from sash.plan.expressions import Column
from sash.plan.types import BIGINT
from sash.state.changes import ChangeBatch
from sash.state.memory import HeapMemory, Memory
from tests.operators.reference import JOINED, Bag, Life, check, clocks, drive, edge, lives, rows_of, stamped

HOLDS: dict[str, Callable[[Any, Any], bool]] = {name: getattr(comparisons, name) for name in COMPARISONS}
NUMBERS = [None, -3, 0, 1, 2**40]
TEXTS = [None, "", "a", "a long text with a common beginning", "a long text with a common beginning, and more", "é"]
FLOATS = [None, -0.0, 0.0, 1.5, float("-inf")]
TYPES = {"numbers": (pa.int64(), NUMBERS), "texts": (pa.string(), TEXTS), "floats": (pa.float64(), FLOATS)}


def scalars(values: list[Any]) -> st.SearchStrategy[list[Life]]:
    """One row at a time, from the beginning on, with pauses; NULLs too."""
    changes = st.lists(st.tuples(st.sampled_from([1, 1, 2, 5]), st.sampled_from(["none", *values])), max_size=15)

    def place(items: list[tuple[int, Any]]) -> list[Life]:
        times = [0]
        for gap, _ in items:
            times.append(times[-1] + gap)
        found = zip(pairwise(times), (value for _, value in items), strict=True)
        return [Life(start, end, (value,)) for (start, end), value in found if value != "none"]

    return changes.map(place)


def made(memory: Memory, edges: tuple[Edge, ...], function: str, dtype: pa.DataType = BIGINT) -> ScalarComparison:
    column = Column(0, "v", dtype)
    return ScalarComparison(memory, (edges[0], edges[1]), function, column, column)


@pytest.mark.parametrize("function", COMPARISONS)
@pytest.mark.parametrize("dtype", TYPES)
@settings(max_examples=40)
@given(data=st.data())
def test_oracle_scalar_comparison(dtype: str, function: str, data: st.DataObject) -> None:
    arrow, values = TYPES[dtype]
    dtypes = (arrow, pa.string())
    kind = data.draw(st.sampled_from(JOINED))
    rows = data.draw(lives(kind, st.tuples(st.sampled_from(values), st.sampled_from(["x", "y"]))))
    inputs = [rows, data.draw(scalars(values))]

    def answer(left: Bag, right: Bag) -> Bag:
        held = [(row, value) for row in left for (value,) in right if row[0] is not None and value is not None]
        return Counter({row: left[row] for row, value in held if HOLDS[function](row[0], value)})

    edges = [edge(kind, dtypes), edge("explicit", (arrow,))]
    output = drive(lambda memory, given: made(memory, given, function, arrow), edges, inputs, data.draw(clocks()))
    check(output, inputs, answer)


def scalar(*changes: tuple[int, int, int | None]) -> ChangeBatch:
    ts, sign, values = zip(*changes, strict=True)
    return ChangeBatch.explicit(np.array(ts), np.array(sign, np.int8), [pa.array(values, pa.int64())])


def test_a_new_scalar_touches_only_the_rows_between() -> None:
    edges = (edge("fifo", (pa.int64(),)), edge("explicit", (pa.int64(),)))
    compared = made(HeapMemory(), edges, "gt")
    rows = stamped([Life(0, 1000, (value,)) for value in range(5000)], (pa.int64(),))
    first = compared.process([rows, scalar((0, 1, 100))], 1)
    assert sorted(value for (value,) in rows_of(first)) == [*range(101, 5000)]
    changes = scalar((5, -1, 100), (5, 1, 103), (6, -1, 103), (6, 1, 102))
    output = compared.process([rows.slice(0, 0), changes], 7)
    found = [*zip(output.ts.tolist(), output.sign.tolist(), (row[0] for row in rows_of(output)), strict=True)]
    assert sorted(found) == [(5, -1, 101), (5, -1, 102), (5, -1, 103), (6, 1, 103)]


def test_many_rows_at_one_instant_and_their_end() -> None:
    edges = (edge("calendar", (pa.int64(),)), edge("explicit", (pa.int64(),)))
    compared = made(HeapMemory(), edges, "ne")
    rows = stamped([Life(3, 9, (value % 7,)) for value in range(3000)], (pa.int64(),))
    output = compared.process([rows, scalar((0, 1, 2), (4, -1, 2), (4, 1, 3))], 100)
    twos, threes = (sum(value % 7 == wanted for value in range(3000)) for wanted in (2, 3))
    counts = Counter(zip(output.ts.tolist(), output.sign.tolist(), strict=True))
    assert counts == {(3, 1): 3000 - twos, (4, 1): twos, (4, -1): threes, (9, -1): 3000 - threes}
    assert compared.state_rows == 0
