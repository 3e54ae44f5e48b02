"""The cost of a join of n windows: rows scanned per unit of time, without materialized results (paper 4, Appendix A).

An order is a sequence of stream numbers from 1. Loops are nested in that order; the loop over a window runs once for
each partial result of the outer loops, and scans the window or one of its hash buckets. The model:

- Stream i has `rates[i-1]` arrivals per unit of time; its window is `windows[i-1]` units long and holds
  `distinct[i-1]` values of the common attribute. Values are uniform, and the values of a window with fewer of them are
  a subset of those of a window with more (containment).
- A partial result over windows of which the smallest number of values is v, joined with a window of n rows and u values,
  has n / max(v, u) matches. Hash buckets do not change that: they only shorten the scan. (So equal numbers of buckets
  divide every cost by that number, as in 5.3.)
- In lazy execution, windows are tau longer on average, and the tau * rate new rows of a stream are joined at once.
- As in the paper, the outermost loop, insertion and expiration are not counted: they do not depend on the order.

A `JoinGraph` describes joins on different attributes and predicates other than equality. It also has the cost of each
predicate in scanned rows. A predicate is tested as soon as both of its rows are bound, on rows that satisfy the
equalities. An expensive predicate therefore costs least in an outer loop if partial results grow from loop to loop.

A hash table with a list for every key, as Sash has, corresponds to as many buckets as values (`listed`): only matching
rows are scanned.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from sash.errors import StatisticsError


@dataclass(frozen=True)
class JoinGraph:
    """The predicates of a join, by stream number.

    Each of `equalities` is an attribute on which the given streams are equal, with its number of distinct values in each.
    `thetas` are other predicates between two streams, with the share of pairs that pass; `test_costs` has the cost of
    testing a pair, for predicates whose cost matters. With `listed`, windows have a list for every key.
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
        """The share of a window's rows that match a partial result of the streams already joined."""
        present = frozenset(joined)
        return self._once(
            "share", present, stream, lambda: self.equal(present, stream) * self._passing(present, stream)
        )

    def equal(self, joined: Iterable[int], stream: int) -> float:
        """The share of a window's rows that satisfy the equalities with such a partial result."""
        share = 1.0
        present = frozenset(joined)
        for counts in self.equalities:
            known = [counts[number] for number in present if number in counts]
            if stream in counts and known:
                share /= max(min(known), counts[stream])
        return share

    def _passing(self, present: frozenset[int], stream: int) -> float:
        return math.prod(passing for pair, passing in self.thetas.items() if _connects(pair, present, stream))

    def tests(self, joined: Iterable[int], stream: int) -> float:
        """The cost of testing the other predicates on a row that satisfies the equalities."""
        present = frozenset(joined)
        return sum(worth for pair, worth in self.test_costs.items() if _connects(pair, present, stream))

    def lists(self, joined: Iterable[int], stream: int) -> float:
        """The number of keys of the stream for an attribute that a joined stream has; 1 if there is none."""
        present = frozenset(joined)
        keys = (counts[stream] for counts in self.equalities if stream in counts and not present.isdisjoint(counts))
        return max(keys, default=1.0)

    def equates(self, joined: Iterable[int], stream: int) -> bool:
        """Whether the stream has an attribute in common with a joined one, so that probing one bucket is enough."""
        present = frozenset(joined)
        return any(stream in counts and not present.isdisjoint(counts) for counts in self.equalities)

    def links(self, joined: Iterable[int], stream: int) -> bool:
        """Whether any predicate connects the stream with a joined one."""
        present = frozenset(joined)

        def linked() -> bool:
            return self.equates(present, stream) or any(_connects(pair, present, stream) for pair in self.thetas)

        return bool(self._once("links", present, stream, linked))

    def _once(self, what: str, present: frozenset[int], stream: int, find: Callable[[], float]) -> float:
        """A figure for a set of joined streams and one more, computed once for all orders."""
        key = (what, present, stream)
        if key not in self._known:
            self._known[key] = find()
        return self._known[key]

    def from_origin(self, order: Sequence[int], origin: int) -> tuple[int, ...]:
        """The order in which a new row of `origin` is joined: first itself, then the others in the global order, each as
        soon as a predicate connects it with a joined stream. On a common attribute that is at once."""
        path, rest = [origin], [stream for stream in order if stream != origin]
        while rest:
            following = next((stream for stream in rest if self.links(path, stream)), rest[0])
            rest.remove(following)
            path.append(following)
        return tuple(path)


@dataclass(frozen=True)
class JoinCosts:
    """The costs of the orders of one join, given the statistics of its streams. With `tau`, execution is lazy."""

    rates: Sequence[float]
    windows: Sequence[float]
    graph: JoinGraph
    tau: float | None = None
    buckets: Sequence[int] | None = None

    def __post_init__(self) -> None:
        size = len(self.rates)
        _require(size >= 1, "a join needs at least one stream")
        for name, values, least in (
            ("windows", self.windows, 0.0),
            ("rates", self.rates, 0.0),
            ("buckets", self.buckets or [1] * size, 1.0),
        ):
            _require(len(values) == size, f"{name} has {len(values)} values for {size} streams: give one for each")
            _require(
                all(math.isfinite(value) and value >= least for value in values),
                f"every value of {name} must be a number of at least {least:g}: {list(values)}",
            )
        counts = [count for counted in self.graph.equalities for count in counted.values()]
        _require(all(count > 0 for count in counts), f"numbers of distinct values must be positive: {counts}")
        named = {number for counted in self.graph.equalities for number in counted}
        named |= {number for pair in (*self.graph.thetas, *self.graph.test_costs) for number in pair}
        _require(named <= set(self.streams), f"the join graph names streams other than 1 to {size}: {sorted(named)}")
        _require(self.tau is None or self.tau > 0, f"tau must be positive, not {self.tau}")

    @property
    def streams(self) -> range:
        return range(1, len(self.rates) + 1)

    def rows(self, stream: int) -> float:
        """The number of rows in a window; in lazy execution, expired rows that are not yet removed count too."""
        return self.rates[stream - 1] * (self.windows[stream - 1] + (self.tau or 0.0))

    def result(self, streams: Sequence[int]) -> float:
        """The size of the join of some windows, which is independent of their order."""
        size = 1.0
        for position, stream in enumerate(streams):
            size *= self.rows(stream) * self.graph.share(streams[:position], stream)
        return size

    def scans(self, order: Sequence[int], origin: int) -> dict[int, float]:
        """The rows scanned per unit of time in each window's loop for the new rows of one stream; the cost of predicates
        is included.

        The new rows take the place of their stream in the order; in eager execution each is joined on its own.
        """
        self._check(order)
        new = 1.0 if self.tau is None else self.rates[origin - 1] * self.tau
        runs = self.rates[origin - 1] if self.tau is None else 1 / self.tau
        scanned: dict[int, float] = {}
        partial = 1.0
        for position, stream in enumerate(order):
            joined = order[:position]
            rows = new if stream == origin else self.rows(stream)
            if position:
                scanned[stream] = runs * partial * rows * self._scanned_share(joined, stream)
            partial *= rows * self.graph.share(joined, stream)
        return scanned

    def _scanned_share(self, joined: Sequence[int], stream: int) -> float:
        """The share of a window's rows that its loop scans, after some streams are joined, plus the cost of predicates."""
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
        """The cost if the new rows of each stream have an order of their own."""
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
    """The cost of EAGER MULTI-WAY NLJ, or with buckets of the hash join: each new row is joined on arrival, first."""
    _require(
        len(distinct) == len(rates), f"distinct has {len(distinct)} values for {len(rates)} streams: give one for each"
    )
    return JoinCosts(rates, windows, JoinGraph.on_common_attribute(distinct), None, buckets).new_first(order)


def _connects(pair: tuple[int, int], present: frozenset[int], stream: int) -> bool:
    """Whether one of the pair is the stream, and the other is among the joined ones."""
    one, other = pair
    return (one == stream and other in present) or (other == stream and one in present)


def _require(holds: bool, message: str) -> None:
    if not holds:
        raise StatisticsError(message)
