"""The streams of paper 4's Tables 5, 6 and 7, each as (rates, windows, distinct)."""

from __future__ import annotations

import itertools

from sash.optimizer.cost import eager_cost

Streams = tuple[list[float], list[float], list[float]]

TABLE_5: Streams = ([10, 1, 1, 3], [100, 100, 200, 100], [500, 50, 40, 5])
TABLE_6: Streams = ([100, 1, 1, 3], [100, 100, 100, 100], [200, 200, 20, 2])
TABLE_7: Streams = ([11, 10, 1, 1], [100, 100, 100, 100], [200, 100, 65, 20])


def every_order(streams: Streams) -> dict[tuple[int, ...], float]:
    """The eager cost of every order."""
    numbers = range(1, len(streams[0]) + 1)
    return {order: eager_cost(order, *streams) for order in itertools.permutations(numbers)}
