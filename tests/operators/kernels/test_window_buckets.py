"""The rows that NTILE evaluates: all whose buckets change, and few others."""

from __future__ import annotations

import random

import numpy as np

from sash.operators.kernels.window_buckets import bucket_of, near_borders


def buckets_of(rows: list[int], buckets: int) -> dict[int, int]:
    return {row: bucket_of(place, len(rows), buckets) for place, row in enumerate(rows)}


def test_differential_rows_near_borders_are_those_that_change() -> None:
    rnd = random.Random(5)
    nothing = np.empty(4, np.int64)
    examined = changed = 0
    for _ in range(3000):
        buckets, size = rnd.randint(1, 12), rnd.randint(1, 150)
        before = sorted(rnd.sample(range(1000), size))
        gone = set(rnd.sample(before, min(size - 1, rnd.choice([0, 0, 1, 2]))))
        come = set(rnd.sample(range(1000), rnd.choice([0, 1, 1, 2]))) - set(before)
        after = sorted((set(before) - gone) | come)
        changes = len(gone) + len(come)
        if not changes:
            continue
        places = [sum(row < one for row in after) for one in (*gone, *come)]
        lows, highs, count = near_borders(
            len(after), len(before), buckets, changes, min(places), max(places), nothing.copy(), nothing.copy(), 0
        )
        near = {place for low, high in zip(lows[:count], highs[:count], strict=True) for place in range(low, high + 1)}
        old, new = buckets_of(before, buckets), buckets_of(after, buckets)
        moved = {place for place, row in enumerate(after) if row in old and old[row] != new[row]}
        assert moved <= near
        assert all(0 <= place < len(after) for place in near)
        if changes == 1 and len(after) > 4 * buckets:
            examined, changed = examined + len(near), changed + len(moved)
    assert examined < 8 * changed


def test_the_first_buckets_have_one_row_more() -> None:
    assert [bucket_of(place, 8, 3) for place in range(8)] == [1, 1, 1, 2, 2, 2, 3, 3]
    assert [bucket_of(place, 2, 5) for place in range(2)] == [1, 2]
