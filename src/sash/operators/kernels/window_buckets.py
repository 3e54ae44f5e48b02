"""NTILE: the bucket of a row, and the rows whose buckets may change with others."""

from __future__ import annotations

from sash.state.jit import grown, kernel, uncounted
from sash.state.memory import Ints


@kernel
def bucket_of(position: int, size: int, buckets: int) -> int:
    """The bucket of a row: the first ones have one row more if the rows cannot be divided equally."""
    each, larger = size // buckets, size % buckets
    border = larger * (each + 1)
    if position < border:
        return position // (each + 1) + 1
    return larger + (position - border) // each + 1


@kernel
def near_borders(
    size: int, before: int, buckets: int, changes: int, least: int, most: int, lows: Ints, highs: Ints, intervals: int
) -> tuple[Ints, Ints, int]:
    """Append the intervals of positions at which rows may be in another bucket, after `changes` rows came or went.

    A row that comes or goes moves the rows behind it by one, and each border between buckets by one or none. So a row changes
    its bucket only near a border: one between the bucket of that row and the one that gets or loses a row. `least` and `most`
    are the positions of the first and the last such row, and `before` is the number of rows before the changes.
    """
    if 2 * changes * buckets >= size:
        lows, highs = grown(lows, intervals + 1), grown(highs, intervals + 1)
        lows[intervals], highs[intervals] = 0, size - 1
        return lows, highs, intervals + 1
    first, last = 1, buckets - 1
    grows, grew = size % buckets, before % buckets
    wraps = size // buckets != before // buckets or min(grows, grew) < changes or max(grows, grew) + changes >= buckets
    if not wraps:
        low, high = _bucket_at(least, size, buckets), _bucket_at(most, size, buckets)
        first = max(first, min(low, grows, grew) - changes - 1)
        last = min(last, max(high, grows, grew) + changes + 1)
    count = max(0, last - first + 1)
    lows, highs = grown(lows, intervals + count), grown(highs, intervals + count)
    each, larger = size // buckets, size % buckets
    for border in range(first, last + 1):
        start = border * each + min(border, larger)
        lows[intervals] = max(0, start - changes)
        highs[intervals] = min(size - 1, start + changes - 1)
        intervals += 1
    return lows, highs, intervals


@uncounted
def _bucket_at(position: int, size: int, buckets: int) -> int:
    return bucket_of(min(max(position, 0), size - 1), size, buckets)
