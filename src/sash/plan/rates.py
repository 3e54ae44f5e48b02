"""How many rows flow and how many are kept on every edge of a plan, from what is known of its streams and relations.

In a steady state as many rows come as go, so an edge with `rate` rows per second that live for L seconds holds
rate * L of them. Values are uniform and contained (paper 4, 4.2), and a value's rows come independently of one another.

Where nothing is declared or observed: 1,000 rows per second and stream, one update per second of a relation that
changes (which gives a row to nobody who met it before, where it is non-retroactive), 1,000 rows in a relation, 1,000 values in a column (two in a BOOLEAN, one per row in a stream's time); an
unbounded stream counts with the rows of a day. Predicates: see `selectivity.py`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from sash.plan.expressions import Column, Expression, Literal, columns_of
from sash.plan.nodes import (
    Aggregate,
    Distinct,
    Except,
    Filter,
    Intersect,
    Join,
    Node,
    Project,
    Range,
    Relation,
    Rows,
    Stream,
    TopK,
    Unbounded,
    Union,
)
from sash.plan.patterns import is_nonretroactive
from sash.plan.selectivity import pinned, selectivity
from sash.plan.types import BOOLEAN

DEFAULT_RATE = 1_000.0
DEFAULT_UPDATES = 1.0
DEFAULT_ROWS = 1_000.0
DEFAULT_DISTINCT = 1_000.0
UNBOUNDED_SECONDS = 86_400.0


@dataclass(frozen=True)
class Estimate:
    """Of an edge: rows per second that come, rows that are there, and the number of values of each column.

    `premature` are the rows per second that go before anyone could know.
    """

    rate: float
    rows: float
    distinct: tuple[float, ...]
    premature: float = 0.0

    def values(self, columns: Iterable[int] | None = None) -> float:
        """How many different values the columns (or whole rows) have together; at least one."""
        chosen = range(len(self.distinct)) if columns is None else columns
        return max(1.0, min(math.prod(self.distinct[column] for column in chosen), self.rows))

    def thinned(self, share: float) -> Estimate:
        """The edge with only a share of its rows."""
        return _bounded(self.rate * share, self.rows * share, self.distinct, self.premature * share)


class Estimates:
    """The estimates of a plan's edges, each made once."""

    def __init__(self) -> None:
        self._made: dict[int, tuple[Node, Estimate]] = {}

    def __call__(self, node: Node) -> Estimate:
        """The estimate of a node's output."""
        if id(node) not in self._made:
            self._made[id(node)] = node, self._of(node)
        return self._made[id(node)][1]

    def _of(self, node: Node) -> Estimate:
        match node:
            case Stream():
                return _of_stream(node)
            case Relation():
                return _of_relation(node)
            case Filter():
                below = self(node.child)
                left = below.thinned(selectivity(node.predicate, below.distinct))
                held = pinned(node.predicate)
                counts = tuple(min(count, held.get(place, count)) for place, count in enumerate(left.distinct))
                return replace(left, distinct=counts)
            case Project():
                below = self(node.child)
                return replace(below, distinct=tuple(_values(made, below) for made in node.expressions))
            case Join():
                return _of_join(node, self(node.left), self(node.right))
            case Aggregate():
                below = self(node.child)
                groups = below.values(node.keys) if node.keys else 1.0
                changes = 2 * below.rate
                counts = (*(below.distinct[key] for key in node.keys), *(groups for _ in node.aggregates))
                return _bounded(changes, groups, counts, changes)
            case Distinct():
                below = self(node.child)
                return below.thinned(below.values() / max(below.rows, 1.0))
            case Union():
                left, right = self(node.left), self(node.right)
                counts = tuple(map(max, left.distinct, right.distinct))
                return _bounded(
                    left.rate + right.rate, left.rows + right.rows, counts, left.premature + right.premature
                )
            case Except():
                return _bag_difference(node, self) if node.all else _set_difference(node, self)
            case Intersect():
                return _intersection(node, self)
            case TopK():
                below = self(node.child)
                share = min(1.0, (node.limit + node.offset) / max(below.rows, 1.0))
                kept = min(float(node.limit), below.rows)
                return _bounded(2 * below.rate * share, kept, below.distinct, below.rate * share)


@dataclass(frozen=True)
class Matching:
    """How the rows of one input find matches in the other."""

    share: float
    """The share of the rows that have a match at a given time."""
    turns: float
    """How often per second an arrival on the other side is the first match of a value."""


def matching(left: Estimate, right: Estimate, keys: Sequence[tuple[int, int]], passing: float = 1.0) -> Matching:
    """How left rows find right rows with equal keys, of which a share passes some further condition."""
    here = left.values(one for one, _ in keys) if keys else 1.0
    there = right.values(other for _, other in keys) if keys else 1.0
    absent = math.exp(-right.rows * passing / there)
    if right.rate == 0 and right.rows * passing >= there:
        absent = 0.0
    share = min(1.0, there / here) * (1 - absent)
    return Matching(share, right.rate * passing * min(1.0, here / there) * absent)


def _bounded(rate: float, rows: float, distinct: Iterable[float], premature: float) -> Estimate:
    """An estimate in which no column has more values than there are rows."""
    return Estimate(rate, rows, tuple(max(1.0, min(count, rows)) for count in distinct), min(premature, rate))


def _of_stream(node: Stream) -> Estimate:
    rate = DEFAULT_RATE if node.statistics.rate is None else node.statistics.rate
    counts = [_declared(node, place) for place in range(len(node.schema))]
    match node.window:
        case Range():
            rows, premature = rate * node.window.length / 1e6, 0.0
        case Unbounded():
            rows, premature = rate * UNBOUNDED_SECONDS, 0.0
        case Rows():
            rows = node.window.count * math.prod(counts[column] for column in node.window.partition)
            premature = rate
    if node.statistics.of_column(node.schema[node.time].name) is None:
        counts[node.time] = rows
    return _bounded(rate, rows, counts, premature)


def _of_relation(node: Relation) -> Estimate:
    rows = DEFAULT_ROWS if node.statistics.rows is None else node.statistics.rows
    updates = DEFAULT_UPDATES if node.statistics.rate is None else node.statistics.rate
    rate = updates if node.changes else 0.0
    return _bounded(rate, rows, [_declared(node, place) for place in range(len(node.schema))], rate)


def _declared(node: Stream | Relation, place: int) -> float:
    column = node.schema[place]
    known = node.statistics.of_column(column.name)
    if known is not None:
        return known
    return 2.0 if column.dtype == BOOLEAN else DEFAULT_DISTINCT


def _values(made: Expression, below: Estimate) -> float:
    match made:
        case Literal():
            return 1.0
        case Column():
            return below.distinct[made.index]
        case _:
            return below.values(columns_of(made))


def _of_join(node: Join, left: Estimate, right: Estimate) -> Estimate:
    passing = selectivity(node.condition, left.distinct + right.distinct)
    if is_nonretroactive(node.right):
        right = replace(right, rate=0.0, premature=0.0)
    if is_nonretroactive(node.left):
        left = replace(left, rate=0.0, premature=0.0)
    if node.kind in ("semi", "anti"):
        return _alone(left, right, node.keys, passing, matched=node.kind == "semi")
    share = passing * math.prod(1 / max(left.distinct[one], right.distinct[other]) for one, other in node.keys)
    counts = list(left.distinct + right.distinct)
    for one, other in node.keys:
        fewest = min(left.distinct[one], right.distinct[other])
        counts[one] = counts[len(left.distinct) + other] = fewest
    rate = (left.rate * right.rows + right.rate * left.rows) * share
    premature = (left.premature * right.rows + right.premature * left.rows) * share
    joined = _bounded(rate, left.rows * right.rows * share, counts, premature)
    flipped = [(other, one) for one, other in node.keys]
    padded = []
    if node.kind in ("left", "full"):
        padded.append(_alone(left, right, node.keys, passing, matched=False))
    if node.kind in ("right", "full"):
        padded.append(_alone(right, left, flipped, passing, matched=False))
    for alone in padded:
        joined = _bounded(
            joined.rate + alone.rate, joined.rows + alone.rows, joined.distinct, joined.premature + alone.premature
        )
    return joined


def _alone(
    left: Estimate, right: Estimate, keys: Sequence[tuple[int, int]], passing: float, *, matched: bool
) -> Estimate:
    """The left rows with a match, or those without one: they also come and go with the first and last match."""
    found = matching(left, right, keys, passing)
    share = found.share if matched else 1 - found.share
    same = left.rows / (left.values(one for one, _ in keys) if keys else 1.0)
    stay = left.thinned(share)
    turned = found.turns * same
    return _bounded(stay.rate + turned, stay.rows, stay.distinct, stay.premature + turned)


def _set_difference(node: Except, estimates: Estimates) -> Estimate:
    left, right = estimates(node.left), estimates(node.right)
    values = left.thinned(left.values() / max(left.rows, 1.0))
    return _alone(values, right, _all_columns(node), 1.0, matched=False)


def _bag_difference(node: Except, estimates: Estimates) -> Estimate:
    """max(v1 - v2, 0) copies of each value, where v1 and v2 vary around their means."""
    left, right = estimates(node.left), estimates(node.right)
    here, there = left.values(), right.values()
    common = min(1.0, there / here)
    first, second = left.rows / here, right.rows / there
    spread = math.sqrt(max(first + second, 1e-9))
    above = (first - second) / spread
    more = (1 + math.erf(above / math.sqrt(2))) / 2
    excess = (first - second) * more + spread * math.exp(-above * above / 2) / math.sqrt(2 * math.pi)
    rows = here * ((1 - common) * first + common * min(max(excess, 0.0), first))
    turned = right.rate * min(1.0, here / there) * more
    rate = left.rate * (1 - common + common * more) + turned
    return _bounded(rate, rows, left.distinct, turned + left.premature * rows / max(left.rows, 1.0))


def _intersection(node: Intersect, estimates: Estimates) -> Estimate:
    left, right = estimates(node.left), estimates(node.right)
    values = left if node.all else left.thinned(left.values() / max(left.rows, 1.0))
    both = _alone(values, right, _all_columns(node), 1.0, matched=True)
    counts = tuple(map(min, both.distinct, right.distinct))
    rows = min(both.rows, right.rows)
    hurried = left.premature * rows / max(left.rows, 1.0) + right.premature * rows / max(right.rows, 1.0)
    return _bounded(both.rate, rows, counts, hurried)


def _all_columns(node: Except | Intersect) -> list[tuple[int, int]]:
    return [(place, place) for place in range(len(node.schema))]
