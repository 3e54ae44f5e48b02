"""What a join of n windows costs: rows looked at per unit of time, without materialized results (paper 4, Appendix A).

An order is a sequence of stream numbers from 1. Loops are nested in that order; the loop over a window runs once for
each partial result of the loops around it, and looks at every row of the window, or of one of its hash buckets. What
streams, windows and tests share:

- Stream i brings `rates[i-1]` rows per unit of time, its window is `windows[i-1]` units long and holds
  `distinct[i-1]` values of the common attribute. Values are uniform, and a window with fewer of them has a part of
  those of a window with more (containment).
- Partial results over windows with a fewest count v, joined with a window of n rows and u values, give
  n / max(v, u) results each. Hash buckets do not change that: they only shorten the scan. (So equal numbers of buckets
  divide every cost by that number, which is what 5.3 says of them.)
- Lazily, windows are tau longer on average, and the tau * rate new rows of a stream are joined at once.
- As in the paper, the outermost loop itself is not counted, nor are insertion and expiration: they do not depend on
  the order.

Joins on different attributes, and other tests than equality, are described by a `JoinGraph`. It also says what a test is
worth in rows looked at: it is made, once both of its rows are bound, on those that are equal where they must be. So a dear
test costs least where it is made for the fewest partial results, which is near the top if results grow from loop to loop.

A hash table with a list for every key, as Sash's own have, is one with as many buckets as values (`listed`): only rows
that match are looked at.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from sash.errors import StatisticsError


@dataclass(frozen=True)
class JoinGraph:
    """Which streams are joined on what, by stream number.

    Each of `equalities` is an attribute on which the named streams are all equal, with its number of distinct values
    in each; `thetas` are other predicates between two streams, each with the share of pairs that pass it, and `test_costs`
    is what testing a pair is worth, where it is worth anything. With `listed`, windows have a list for every key.
    """

    equalities: tuple[Mapping[int, float], ...]
    thetas: Mapping[tuple[int, int], float] = field(default_factory=dict)
    test_costs: Mapping[tuple[int, int], float] = field(default_factory=dict)
    listed: bool = False
    _known: dict[tuple[str, frozenset[int], int], float] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @staticmethod
    def on_common_attribute(distinct: Sequence[float]) -> JoinGraph:
        """All streams are equal on one attribute."""
        return JoinGraph((dict(enumerate(distinct, 1)),))

    def share(self, joined: Iterable[int], stream: int) -> float:
        """The share of a window's rows that match a result of the streams that are already joined."""
        present = frozenset(joined)
        return self._once(
            "share", present, stream, lambda: self.equal(present, stream) * self._passing(present, stream)
        )

    def equal(self, joined: Iterable[int], stream: int) -> float:
        """The share of a window's rows that are equal to such a result in all that must be equal."""
        share = 1.0
        present = frozenset(joined)
        for counts in self.equalities:
            met = [counts[number] for number in present if number in counts]
            if stream in counts and met:
                share /= max(min(met), counts[stream])
        return share

    def _passing(self, present: frozenset[int], stream: int) -> float:
        return math.prod(passing for pair, passing in self.thetas.items() if _meets(pair, present, stream))

    def tests(self, joined: Iterable[int], stream: int) -> float:
        """What the tests are worth that a row of the window, equal in all that must be, is put to."""
        present = frozenset(joined)
        return sum(worth for pair, worth in self.test_costs.items() if _meets(pair, present, stream))

    def lists(self, joined: Iterable[int], stream: int) -> float:
        """How many keys the stream has of an attribute that is known from those already joined; 1 if none is."""
        present = frozenset(joined)
        met = (counts[stream] for counts in self.equalities if stream in counts and not present.isdisjoint(counts))
        return max(met, default=1.0)

    def equates(self, joined: Iterable[int], stream: int) -> bool:
        """Whether an attribute of the stream is known from those already joined, so that one bucket is enough."""
        present = frozenset(joined)
        return any(stream in counts and not present.isdisjoint(counts) for counts in self.equalities)

    def links(self, joined: Iterable[int], stream: int) -> bool:
        """Whether any predicate connects the stream with those already joined."""
        present = frozenset(joined)

        def linked() -> bool:
            return self.equates(present, stream) or any(_meets(pair, present, stream) for pair in self.thetas)

        return bool(self._once("links", present, stream, linked))

    def _once(self, what: str, present: frozenset[int], stream: int, find: Callable[[], float]) -> float:
        """What is found for streams that are joined and one more: asked of many orders, found once."""
        key = (what, present, stream)
        if key not in self._known:
            self._known[key] = find()
        return self._known[key]

    def from_origin(self, order: Sequence[int], origin: int) -> tuple[int, ...]:
        """The order in which a new row of a stream meets the others: it comes first, they follow in the global order,
        each as soon as a predicate connects it with what is joined. On a common attribute that is at once."""
        path, rest = [origin], [stream for stream in order if stream != origin]
        while rest:
            following = next((stream for stream in rest if self.links(path, stream)), rest[0])
            rest.remove(following)
            path.append(following)
        return tuple(path)


@dataclass(frozen=True)
class JoinCosts:
    """The costs of one join's orders: its streams' figures, checked once. With `tau`, costs are those of lazy runs."""

    rates: Sequence[float]
    windows: Sequence[float]
    graph: JoinGraph
    tau: float | None = None
    buckets: Sequence[int] | None = None

    def __post_init__(self) -> None:
        size = len(self.rates)
        _require(size >= 1, "a join has at least one stream")
        for name, values, least in (
            ("windows", self.windows, 0.0),
            ("rates", self.rates, 0.0),
            ("buckets", self.buckets or [1] * size, 1.0),
        ):
            _require(len(values) == size, f"{name} has {len(values)} figures for {size} streams: give one for each")
            _require(
                all(math.isfinite(value) and value >= least for value in values),
                f"{name} has a figure that is not a number of at least {least:g}: {list(values)}",
            )
        counts = [count for counted in self.graph.equalities for count in counted.values()]
        _require(all(count > 0 for count in counts), f"a count of distinct values is not positive: {counts}")
        named = {number for counted in self.graph.equalities for number in counted}
        named |= {number for pair in (*self.graph.thetas, *self.graph.test_costs) for number in pair}
        _require(named <= set(self.streams), f"the join graph names streams other than 1 to {size}: {sorted(named)}")
        _require(self.tau is None or self.tau > 0, f"tau must be positive, not {self.tau}")

    @property
    def streams(self) -> range:
        return range(1, len(self.rates) + 1)

    def rows(self, stream: int) -> float:
        """How many rows a window holds: lazily, also those that wait for their expiration."""
        return self.rates[stream - 1] * (self.windows[stream - 1] + (self.tau or 0.0))

    def result(self, streams: Sequence[int]) -> float:
        """The size of the join of some windows, which does not depend on their order."""
        size = 1.0
        for place, stream in enumerate(streams):
            size *= self.rows(stream) * self.graph.share(streams[:place], stream)
        return size

    def scans(self, order: Sequence[int], origin: int) -> dict[int, float]:
        """The rows of each window's loop that are looked at, per unit of time, for the new rows of one stream; tests that
        are dear count as rows too.

        The new rows stand where the order has their stream; eagerly each of them is joined on its own.
        """
        self._check(order)
        new = 1.0 if self.tau is None else self.rates[origin - 1] * self.tau
        runs = self.rates[origin - 1] if self.tau is None else 1 / self.tau
        looked: dict[int, float] = {}
        partial = 1.0
        for place, stream in enumerate(order):
            joined = order[:place]
            rows = new if stream == origin else self.rows(stream)
            if place:
                looked[stream] = runs * partial * rows * self._looked(joined, stream)
            partial *= rows * self.graph.share(joined, stream)
        return looked

    def _looked(self, joined: Sequence[int], stream: int) -> float:
        """What looking through a window is worth per row that it has, once some are joined: its tests included."""
        present = frozenset(joined)
        found = 1.0
        if self.buckets is not None and self.graph.equates(present, stream):
            found = 1 / self.buckets[stream - 1]
        elif self.buckets is None and self.graph.listed:
            found = 1 / self.graph.lists(present, stream)
        tests = self.graph.tests(present, stream)
        return found + (self.graph.equal(present, stream) * tests if tests else 0.0)

    def of_origin(self, order: Sequence[int], origin: int) -> float:
        """The cost of the new rows of one stream, joined in exactly this order."""
        return sum(self.scans(order, origin).values())

    def new_first(self, order: Sequence[int]) -> float:
        """The cost of a global order: new rows come first, the others follow in its order."""
        self._check(order)
        return sum(self.of_origin(self.graph.from_origin(order, origin), origin) for origin in order)

    def any_order(self, orders: Sequence[Sequence[int]]) -> float:
        """The cost where the new rows of each stream are joined in an order of their own."""
        _require(
            len(orders) == len(self.rates), f"{len(orders)} orders for {len(self.rates)} streams: give one for each"
        )
        return sum(self.of_origin(order, origin) for origin, order in enumerate(orders, 1))

    def _check(self, order: Sequence[int]) -> None:
        _require(
            sorted(order) == list(self.streams),
            f"{list(order)} is not an order of the streams 1 to {len(self.rates)}: name each of them once",
        )


def eager_cost(
    order: Sequence[int],
    rates: Sequence[float],
    windows: Sequence[float],
    distinct: Sequence[float],
    buckets: Sequence[int] | None = None,
) -> float:
    """The cost of EAGER MULTI-WAY NLJ, or with buckets of the hash join: each new row joined when it comes, first."""
    return _costs(rates, windows, distinct, None, buckets).new_first(order)


def lazy_cost(
    order: Sequence[int],
    rates: Sequence[float],
    windows: Sequence[float],
    distinct: Sequence[float],
    tau: float,
    buckets: Sequence[int] | None = None,
) -> float:
    """The cost of LAZY MULTI-WAY NLJ, or of the lazy hash join: every tau, the new rows of each stream come first."""
    return _costs(rates, windows, distinct, tau, buckets).new_first(order)


def naive_cost(
    order: Sequence[int],
    rates: Sequence[float],
    windows: Sequence[float],
    distinct: Sequence[float],
    tau: float | None = None,
    buckets: Sequence[int] | None = None,
) -> float:
    """The cost of NAIVE MULTI-WAY NLJ, eager without tau: new rows stay where the one order has their stream."""
    return _costs(rates, windows, distinct, tau, buckets).any_order([order] * len(rates))


def general_cost(
    orders: Sequence[Sequence[int]],
    rates: Sequence[float],
    windows: Sequence[float],
    distinct: Sequence[float],
    tau: float,
    buckets: Sequence[int] | None = None,
) -> float:
    """The cost of GENERAL LAZY MULTI-WAY NLJ: `orders[i-1]` is the order for the new rows of stream i."""
    return _costs(rates, windows, distinct, tau, buckets).any_order(orders)


def _costs(
    rates: Sequence[float],
    windows: Sequence[float],
    distinct: Sequence[float],
    tau: float | None,
    buckets: Sequence[int] | None,
) -> JoinCosts:
    _require(
        len(distinct) == len(rates), f"distinct has {len(distinct)} figures for {len(rates)} streams: give one for each"
    )
    return JoinCosts(rates, windows, JoinGraph.on_common_attribute(distinct), tau, buckets)


def _meets(pair: tuple[int, int], present: frozenset[int], stream: int) -> bool:
    """Whether the one of a pair is the stream, and the other is there."""
    one, other = pair
    return (one == stream and other in present) or (other == stream and one in present)


def _require(holds: bool, message: str) -> None:
    if not holds:
        raise StatisticsError(message)
