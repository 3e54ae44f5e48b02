from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sash.operators.updates import Updates
from sash.state.changes import ChangeBatch
from sash.state.memory import HeapMemory
from tests.operators.reference import DTYPES, Row, edge, rows_of

EDGE = (edge("explicit", (*DTYPES, pa.int64())),)
Update = tuple[int, int, int, Row]
"""ts, the time it was made, sign, row."""


def batch(updates: list[Update]) -> ChangeBatch:
    ts, made, sign, rows = zip(*updates, strict=True) if updates else ((), (), (), ())
    columns = [pa.array([row[i] for row in rows], dtype) for i, dtype in enumerate(DTYPES)]
    given_batch = ChangeBatch.explicit(
        np.array(ts, np.int64), np.array(sign, np.int8), [*columns, pa.array(made, pa.int64())]
    )
    return given_batch.sorted()


def listed(output: ChangeBatch) -> list[tuple[int, int, Row]]:
    return list(zip(output.ts.tolist(), output.sign.tolist(), rows_of(output), strict=True))


def test_by_key_a_row_replaces_and_a_deletion_needs_the_key_only() -> None:
    operator = Updates(HeapMemory(), EDGE, (0,))
    output = operator.process([batch([(1, 1, 1, (1, "a")), (2, 2, 1, (1, "b")), (2, 2, 1, (2, "c"))])], 3)
    assert listed(output) == [(1, 1, (1, "a")), (2, -1, (1, "a")), (2, 1, (1, "b")), (2, 1, (2, "c"))]
    output = operator.process([batch([(4, 4, -1, (1, None)), (5, 5, -1, (1, "b")), (6, 6, 1, (2, "c"))])], 7)
    assert listed(output) == [(4, -1, (1, "b"))], "an equal row changes nothing"
    assert (operator.refused, operator.state_rows) == (1, 1)


def test_at_one_instant_what_was_made_last_holds_and_then_the_largest() -> None:
    operator = Updates(HeapMemory(), EDGE, (0,))
    late = [(9, 3, 1, (1, "z")), (9, 5, -1, (1, "")), (9, 5, 1, (2, "b")), (9, 5, 1, (2, "a")), (9, 4, 1, (2, "z"))]
    assert listed(operator.process([batch(late)], 10)) == [(9, 1, (2, "b"))]
    assert operator.state_rows == 1


def test_without_a_key_rows_are_a_bag() -> None:
    operator = Updates(HeapMemory(), EDGE, None)
    updates = [(1, 1, 1, (1, "a")), (1, 1, 1, (1, "a")), (2, 2, -1, (1, "a")), (3, 3, -1, (1, "b")), (3, 3, 1, (1, "c")), (3, 3, -1, (1, "c"))]  # fmt: skip
    assert listed(operator.process([batch(updates)], 4)) == [(1, 1, (1, "a")), (1, 1, (1, "a")), (2, -1, (1, "a"))]
    assert (operator.refused, operator.state_rows) == (1, 1)


def fold(updates: list[Update], keyed: bool) -> Counter[Row]:
    """The relation after the updates, by a dict of lists."""
    rows: dict[Any, list[Row]] = {}
    order = (lambda u: (u[0], u[1], u[2], repr(u[3]))) if keyed else (lambda u: (u[0], -u[2]))
    for _, _, sign, row in sorted(updates, key=order):
        place = rows.setdefault(row[0] if keyed else row, [])
        if sign < 0 or keyed:
            del place[:1]
        if sign > 0:
            place.append(row)
    return Counter(row for place in rows.values() for row in place)


@settings(max_examples=80)
@given(
    steps=st.lists(
        st.tuples(st.integers(0, 3), st.sampled_from((1, 1, -1)), st.sampled_from((0, 1, 2)), st.sampled_from("abc")),
        max_size=40,
    ),
    cut=st.integers(1, 10),
)
@pytest.mark.parametrize("keyed", [True, False])
def test_differential_changes_fold_to_the_relation(
    keyed: bool, steps: list[tuple[int, int, int, str]], cut: int
) -> None:
    now, updates = 0, []
    for gap, sign, key, value in steps:
        now += gap
        updates.append((now, now, sign, (key, value)))
    memory, bag = HeapMemory(), Counter[Row]()
    for clock in range(0, now + cut + 1, cut):
        part = [update for update in updates if clock <= update[0] < clock + cut]
        operator = Updates(memory, EDGE, (0,) if keyed else None)
        for ts, sign, row in listed(operator.process([batch(part)], clock + cut)):
            assert clock <= ts < clock + cut
            bag[row] += sign
            assert bag[row] >= 0
        assert +bag == fold([u for u in updates if u[0] < clock + cut], keyed)
        assert operator.state_rows == bag.total()
