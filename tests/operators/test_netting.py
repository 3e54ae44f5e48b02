"""Netting removes pairs of equal rows of both signs: at one instant, or in the whole batch."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from sash.operators.netting import net, net_all
from sash.state.changes import ChangeBatch
from tests.operators.reference import rows_of

CHANGES = st.lists(
    st.tuples(st.integers(0, 3), st.sampled_from([-1, 1]), st.sampled_from([None, 0, 1]), st.sampled_from(["a", None])),
    max_size=40,
)


def batch(changes: list[tuple[int, int, int | None, str | None]]) -> ChangeBatch:
    ts, sign, number, text = zip(*sorted(changes, key=lambda c: c[:2]), strict=True) if changes else ((), (), (), ())
    columns = [pa.array(number, pa.int64()), pa.array(text, pa.string())]
    return ChangeBatch.explicit(np.array(ts, np.int64), np.array(sign, np.int8), columns)


def effect(changes: ChangeBatch, instants: bool) -> Counter[object]:
    result: Counter[object] = Counter()
    for ts, sign, row in zip(changes.ts.tolist(), changes.sign.tolist(), rows_of(changes), strict=True):
        result[(ts if instants else 0, row)] += sign
    return Counter({key: count for key, count in result.items() if count})


@settings(max_examples=200)
@given(CHANGES)
def test_oracle_net(changes: list[tuple[int, int, int | None, str | None]]) -> None:
    before, after = batch(changes), net(batch(changes))
    assert effect(after, instants=True) == effect(before, instants=True)
    assert len(after) == sum(map(abs, effect(before, instants=True).values()))
    order = list(zip(after.ts.tolist(), after.sign.tolist(), strict=True))
    assert order == sorted(order)


@settings(max_examples=100)
@given(CHANGES)
def test_oracle_net_all(changes: list[tuple[int, int, int | None, str | None]]) -> None:
    before, after = batch(changes), net_all(batch(changes))
    assert effect(after, instants=False) == effect(before, instants=False)
    assert len(after) == sum(map(abs, effect(before, instants=False).values()))


def test_rows_that_differ_in_their_ends_do_not_cancel_out() -> None:
    columns = (pa.array([1, 1, 1], pa.int64()),)
    found = net_all(ChangeBatch(np.arange(3), np.array([9, 7, 7]), np.array([1, 1, -1], np.int8), columns))
    assert found.exp.tolist() == [9]


def test_a_batch_with_nothing_to_net_is_the_same_object() -> None:
    positive = batch([(0, 1, 1, "a"), (0, 1, 1, "a")])
    assert net(positive) is positive
    different = batch([(0, 1, 1, "a"), (0, -1, 2, "a"), (1, -1, 1, "a")])
    assert net(different) is different


def test_one_large_instant() -> None:
    many = [(0, sign, number, "a") for sign in (-1, 1) for number in range(3000)] + [(0, 1, 3000, "b")]
    assert rows_of(net(batch(many))) == [(3000, "b")]
