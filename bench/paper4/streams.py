"""The streams of paper 4's experiments: rows in the ratio of the streams' rates, with uniform keys (6.1).

A unit of time has one tick per row of all streams, so that a window of T units of a stream with rate r holds r T rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from sash.state.changes import ChangeBatch


@dataclass(frozen=True)
class Streams:
    """The rates, windows and numbers of keys of the streams."""

    rates: tuple[int, ...]
    windows: tuple[int, ...]
    distinct: tuple[int, ...]

    @property
    def unit(self) -> int:
        """Ticks in a unit of time."""
        return sum(self.rates)

    @property
    def lengths(self) -> tuple[int, ...]:
        """The windows in ticks."""
        return tuple(window * self.unit for window in self.windows)

    @property
    def figures(self) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        """The arguments of the cost model."""
        return self.rates, self.windows, self.distinct

    def batches(self, sizes: list[int], seed: int) -> Iterator[tuple[int, list[ChangeBatch]]]:
        """Generate batches of the given sizes: the clock after each batch, and its rows by stream."""
        random = np.random.default_rng(seed)
        share = np.array(self.rates) / self.unit
        begun = 0
        for size in sizes:
            ts = np.arange(begun, begun + size)
            owner = random.choice(len(self.rates), size, p=share)
            keys = (random.random(size) * np.array(self.distinct)[owner]).astype(np.int64)
            rows = []
            for number, length in enumerate(self.lengths):
                mine = np.flatnonzero(owner == number)
                rows.append(ChangeBatch.stamped(ts[mine], ts[mine] + length, (pa.array(keys[mine]),)))
            begun += size
            yield begun, rows

    @property
    def filling(self) -> int:
        """The number of rows until every window is full."""
        return max(self.lengths)


TABLE_5 = Streams((10, 1, 1, 3), (100, 100, 200, 100), (500, 50, 40, 5))


def alike(count: int, fast: int = 1) -> Streams:
    """Streams of one row per unit of time, windows of 100 units and fifty keys; the last one may be faster."""
    return Streams((1,) * (count - 1) + (fast,), (100,) * count, (50,) * count)
