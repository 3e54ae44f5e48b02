"""The choice of a join order of n windows: a heuristic that costs a few of the n! orders (paper 4, section 5).

1. Selectivity: the two windows with the smallest join come first, the faster stream of them before the other, since new
   rows of all other streams probe the first window. The next window is always the one with the smallest binary join with
   the chosen ones, as far as the join graph allows. Hashed windows count with the size of a bucket.
2. Streams above the mean rate, the fastest first, move to an earlier position if some such position costs less.
3. An extension: any stream, the fastest first, moves to any other position if that costs less, until there is no such
   move or `most_orders` have been costed. For random joins of four to six streams, steps 1 and 2 alone come within 1.2
   times the best cost in two thirds of the cases; with step 3, in practically all.

For a hybrid of hashed and scanned windows, an order with the hashed ones innermost is also costed before step 2
(5.4: those loops run most often). In the general lazy join each origin has an order of its own, found by the same
steps with tau as the length of the window whose new rows are joined (5.2).

Where orders cannot change at run time, streams whose rates fluctuate move up, as near to the top as an order at `PRUDENCE`
times the lowest cost allows (5.4). Then rows of the other streams find an empty window first while such a stream is quiet.
In its bursts a stream on top costs more than further below, and how much is what the bound limits.
"""

from __future__ import annotations

import functools
import heapq
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from sash.errors import StatisticsError
from sash.optimizer.cost import JoinCosts, JoinGraph


@dataclass(frozen=True)
class Ordering:
    """A global order (stream numbers from 1), its cost per unit of time, and the number of orders that were costed."""

    order: tuple[int, ...]
    cost: float
    considered: int


@dataclass(frozen=True)
class GeneralOrdering:
    """One order per origin of new rows: `orders[i-1]` is for the new rows of stream i."""

    orders: tuple[tuple[int, ...], ...]
    cost: float
    considered: int


def choose_order(
    rates: Sequence[float],
    windows: Sequence[float],
    distinct: Sequence[float] = (),
    *,
    tau: float | None = None,
    buckets: Sequence[int] | None = None,
    graph: JoinGraph | None = None,
    bursts: Sequence[float] = (),
) -> Ordering:
    """A good global order in which new rows come first; execution is eager, or lazy with tau.

    Without a graph all streams are joined on one attribute, with `distinct` values in each window. `bursts` are the peak
    rates as multiples of the rates: for an order that cannot change.
    """
    costs = JoinCosts(rates, windows, _graph(rates, distinct, graph), tau, buckets)
    search = Search(rates, costs.new_first)
    order = search.run(_starts(costs, {stream: costs.rows(stream) for stream in costs.streams}))
    order = search.with_fluctuating_on_top(order, bursts)
    return Ordering(order, search.costed[order], len(search.costed))


def choose_orders(
    rates: Sequence[float],
    windows: Sequence[float],
    distinct: Sequence[float] = (),
    *,
    tau: float,
    buckets: Sequence[int] | None = None,
    graph: JoinGraph | None = None,
    bursts: Sequence[float] = (),
) -> GeneralOrdering:
    """Good orders for the general lazy join, one per origin; new rows may have any position in their order."""
    costs = JoinCosts(rates, windows, _graph(rates, distinct, graph), tau, buckets)
    shared = choose_order(rates, windows, distinct, tau=tau, buckets=buckets, graph=graph)
    orders, cost, considered = [], 0.0, shared.considered
    for origin in costs.streams:
        sizes = {stream: costs.rows(stream) for stream in costs.streams}
        sizes[origin] = rates[origin - 1] * tau
        search = Search(rates, functools.partial(costs.of_origin, origin=origin))
        order = search.run([*_starts(costs, sizes), costs.graph.from_origin(shared.order, origin)])
        order = search.with_fluctuating_on_top(order, bursts)
        orders.append(order)
        cost += search.costed[order]
        considered += len(search.costed)
    return GeneralOrdering(tuple(orders), cost, considered)


def allocate_buckets(
    limit: int,
    rates: Sequence[float],
    windows: Sequence[float],
    distinct: Sequence[float] = (),
    *,
    order: Sequence[int] | None = None,
    tau: float | None = None,
    upkeep: float = 0.0,
    graph: JoinGraph | None = None,
) -> tuple[int, ...]:
    """Distribute at most `limit` hash buckets over the windows so that the join costs least (6.5).

    Every window has one bucket; each further one goes to the window whose scans it shortens most, usually a fast and
    large one. A window gets no more buckets than it has values, and none whose gain is below its `upkeep`, the cost per
    unit of time of checking a bucket for expired rows. `order` defaults to the one chosen for equal buckets.
    """
    if limit < len(rates):
        raise StatisticsError(f"{limit} buckets are too few for {len(rates)} windows: each needs at least one")
    joined = _graph(rates, distinct, graph)
    costs = JoinCosts(rates, windows, JoinGraph(joined.equalities, joined.thetas), tau)
    chosen = order or choose_order(rates, windows, tau=tau, graph=costs.graph).order
    values = {stream: costs.graph.lists(costs.streams, stream) for stream in costs.streams}
    scanned = dict.fromkeys(costs.streams, 0.0)
    for origin in costs.streams:
        path = costs.graph.from_origin(chosen, origin)
        for stream, rows in costs.scans(path, origin).items():
            if costs.graph.equates(path[: path.index(stream)], stream):
                scanned[stream] += rows
    buckets = dict.fromkeys(costs.streams, 1)
    gains = [(-scanned[stream] / 2, stream) for stream in costs.streams if values[stream] >= 2]
    heapq.heapify(gains)
    left = limit - len(rates)
    while left and gains and -gains[0][0] > upkeep:
        stream = heapq.heappop(gains)[1]
        buckets[stream] += 1
        left -= 1
        count = buckets[stream]
        if count < values[stream]:
            heapq.heappush(gains, (-scanned[stream] / (count * (count + 1)), stream))
    return tuple(buckets[stream] for stream in costs.streams)


def _graph(rates: Sequence[float], distinct: Sequence[float], graph: JoinGraph | None) -> JoinGraph:
    if graph is None and len(distinct) != len(rates):
        raise StatisticsError(f"distinct has {len(distinct)} values for {len(rates)} streams: give one for each")
    return graph or JoinGraph.on_common_attribute(distinct)


def _starts(costs: JoinCosts, sizes: dict[int, float]) -> list[tuple[int, ...]]:
    """The order by binary selectivity and, if some windows are hashed, the same order with these innermost."""
    parts = {stream: _parts(costs, stream) for stream in sizes}
    first = _by_selectivity(costs, {stream: size / parts[stream] for stream, size in sizes.items()})
    hashed = [stream for stream in first if parts[stream] > 1]
    if not hashed or len(hashed) == len(first):
        return [first]
    return [first, (*(stream for stream in first if stream not in hashed), *hashed)]


def _parts(costs: JoinCosts, stream: int) -> float:
    """The number of buckets, or lists, of a window."""
    if costs.buckets is not None:
        return costs.buckets[stream - 1]
    return costs.graph.lists(costs.streams, stream) if costs.graph.listed else 1.0


def _by_selectivity(costs: JoinCosts, scans: dict[int, float]) -> tuple[int, ...]:
    """The most selective join first, then repeatedly the most selective one that the join graph allows."""

    def joined(one: int, other: int) -> float:
        return scans[one] * scans[other] * costs.graph.share((one,), other)

    def speed(stream: int) -> tuple[float, int]:
        return (-costs.rates[stream - 1], stream)

    if len(scans) == 1:
        return tuple(scans)
    pairs = itertools.combinations(scans, 2)
    pair = min(pairs, key=lambda pair: (not costs.graph.links(pair[:1], pair[1]), joined(*pair)))
    order = sorted(pair, key=speed)
    while len(order) < len(scans):
        order.append(
            min(
                scans.keys() - order,
                key=lambda stream: (
                    not costs.graph.links(order, stream),
                    min(joined(other, stream) for other in order),
                    speed(stream),
                ),
            )
        )
    return tuple(order)


_WORK = 60_000

PRUDENCE: Final = 1.2
"""How many times the lowest cost an order may have so that fluctuating streams are near the top."""


def most_orders(streams: int) -> int:
    """The number of orders that are costed: 2 n^2; fewer for more than 13 streams, since an order costs more than n^2 itself.

    >>> [most_orders(n) for n in (5, 10, 20, 40)]
    [50, 200, 150, 37]
    """
    return min(2 * streams**2, max(2, _WORK // streams**2))


class Search:
    """Costs orders of streams, each once, and improves them by moving streams; `costed` has the costs so far."""

    def __init__(self, rates: Sequence[float], cost: Callable[[tuple[int, ...]], float]) -> None:
        self.costed: dict[tuple[int, ...], float] = {}
        self._rates = rates
        self._cost = cost
        self._limit = most_orders(len(rates))

    def run(self, starts: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
        """The best order reached by moves from the best of the given ones."""
        best = min(starts, key=self._of)
        rates = self._rates
        mean = sum(rates) / len(rates)
        by_speed = sorted(best, key=lambda stream: (-rates[stream - 1], stream))
        for stream in by_speed:
            if rates[stream - 1] > mean:
                best = self._improved(best, stream, range(best.index(stream)))
        previous = None
        while previous != best:
            previous = best
            for stream in by_speed:
                best = self._improved(best, stream, range(len(best)))
        return best

    def with_fluctuating_on_top(self, order: tuple[int, ...], bursts: Sequence[float]) -> tuple[int, ...]:
        """The order with each stream whose burst is above 1 moved up, the most fluctuating one first and highest, as far as
        the cost stays below `PRUDENCE` times that of the given order."""
        most, highest = PRUDENCE * self._of(order), 0
        fluctuating = [stream for stream in order if bursts and bursts[stream - 1] > 1]
        for stream in sorted(fluctuating, key=lambda stream: -bursts[stream - 1]):
            rest = [other for other in order if other != stream]
            places = range(highest, order.index(stream))
            higher = [(*rest[:place], stream, *rest[place:]) for place in places]
            order = next((moved for moved in higher if self._cost_of(moved) <= most), order)
            highest = order.index(stream) + 1
        return order

    def _improved(self, order: tuple[int, ...], stream: int, positions: range) -> tuple[int, ...]:
        """The best order with the stream in one of the places; `order` itself if none costs less."""
        rest = [other for other in order if other != stream]
        moved = [(*rest[:position], stream, *rest[position:]) for position in positions]
        return min([order, *moved], key=self._of)

    def _of(self, order: tuple[int, ...]) -> float:
        """The order's cost; infinite once the limit of costed orders is reached."""
        if order not in self.costed and len(self.costed) >= self._limit:
            return float("inf")
        return self._cost_of(order)

    def _cost_of(self, order: tuple[int, ...]) -> float:
        if order not in self.costed:
            self.costed[order] = self._cost(order)
        return self.costed[order]
