"""Estimated rates and row counts on every edge of a plan, from the statistics of its streams and relations.

In a steady state as many rows arrive as expire, so an edge with `rate` rows per second that live for L seconds holds
rate * L of them. Values are contained (paper 4, 4.2) and uniform except for those known to be frequent (see
`frequencies.py`). Columns are independent, and so are the arrival times of a value's rows.

Defaults where nothing is declared or observed: 1,000 rows per second of a stream, one update per second of a relation
that changes (it affects no earlier result if the relation is non-retroactive), 1,000 rows in a relation, 1,000 values in
a column (two in a BOOLEAN, one per row in a stream's time column). An unbounded stream counts with the rows of one day.
`selectivity.py` estimates predicates.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from sash.plan import nodes
from sash.plan.expressions import Column, Expression, Literal, columns_of
from sash.plan.frequencies import NONE, Alike, Distribution, Shares, chance_of_equality, compared, in_both, together
from sash.plan.patterns import is_nonretroactive
from sash.plan.selectivity import pinned, selectivity
from sash.plan.types import BOOLEAN
from sash.time import DAY, SECOND

DEFAULT_RATE = 1_000.0
DEFAULT_UPDATES = 1.0
DEFAULT_ROWS = 1_000.0
DEFAULT_DISTINCT = 1_000.0
UNBOUNDED_SECONDS = DAY / SECOND

_AFFECTED = 3
"""Assumed number of other rows whose window function changes with a row."""


@dataclass(frozen=True)
class Estimate:
    """The estimate of one edge: rows that arrive per second, live rows, and the number of values of each column.

    `premature` is the number of rows per second that end before their expiration time. `frequent` has the shares of rows
    of each column's frequent values, where they are known.
    """

    rate: float
    rows: float
    distinct: tuple[float, ...]
    premature: float = 0.0
    frequent: tuple[Shares, ...] = ()

    def distribution(self, column: int) -> Distribution:
        """The distribution of the rows over the values of a column."""
        return Distribution(self.distinct[column], self.frequent[column] if self.frequent else NONE)

    def values(self, columns: Iterable[int] | None = None) -> float:
        """The number of different combinations of values of the columns (or of whole rows) among live rows; at least one."""
        chosen = list(range(len(self.distinct)) if columns is None else columns)
        most = min(math.prod(self.distinct[column] for column in chosen), self.rows)
        for column in chosen if len(chosen) == 1 else ():
            if self.distribution(column).frequent:
                most = min(most, self.distribution(column).seen(self.rows))
        return max(1.0, most)

    def thinned(self, share: float) -> Estimate:
        """The edge reduced to a share of its rows."""
        return replace(self, rate=self.rate * share, rows=self.rows * share, premature=self.premature * share)


FLUCTUATES = 2.0
"""A stream fluctuates if its peak rate is at least this many times its average rate."""


def burst(node: nodes.Node) -> float:
    """How many times its average rate an edge may have: as its most fluctuating stream, or 1 if none fluctuates."""
    bursts = [below.statistics.burst for below in nodes.walk(node) if isinstance(below, nodes.Stream)]
    most = max(bursts, default=1.0)
    return most if most >= FLUCTUATES else 1.0


class Estimates:
    """The estimates of a plan's edges, each computed once."""

    def __init__(self) -> None:
        self._made: dict[int, tuple[nodes.Node, Estimate]] = {}

    def __call__(self, node: nodes.Node) -> Estimate:
        """The estimate of a node's output."""
        if id(node) not in self._made:
            self._made[id(node)] = node, self._of(node)
        return self._made[id(node)][1]

    def _of(self, node: nodes.Node) -> Estimate:
        match node:
            case nodes.Stream():
                return _of_stream(node)
            case nodes.Relation():
                return _of_relation(node)
            case nodes.Filter():
                below = self(node.child)
                left = below.thinned(selectivity(node.predicate, below.distinct, below.frequent))
                held = pinned(node.predicate)
                counts = tuple(min(count, held.get(position, count)) for position, count in enumerate(left.distinct))
                known = tuple(NONE if position in held else shares for position, shares in enumerate(left.frequent))
                return replace(left, distinct=counts, frequent=known)
            case nodes.Project():
                below = self(node.child)
                spreads = [_distribution(made, below) for made in node.expressions]
                counts = tuple(spread.count for spread in spreads)
                return replace(below, distinct=counts, frequent=tuple(spread.frequent for spread in spreads))
            case nodes.Expand():
                return _expanded(node, self(node.child))
            case nodes.Generate():
                return _generated(node, self(node.child))
            case nodes.AssignWindows():
                return _of_windows(node, self(node.child))
            case nodes.Sessions():
                below = self(node.child)
                known = (*below.frequent, NONE) if below.frequent else ()
                return replace(below, distinct=(*below.distinct, below.values(node.keys)), frequent=known)
            case nodes.Lifetime() | nodes.Final():
                return self(node.child)
            case nodes.Join():
                return _of_join(node, self(node.left), self(node.right))
            case nodes.Alike():
                joined = nodes.Join(node.left, node.right, "inner", node.keys, node.condition)
                return _of_join(joined, self(node.left), self(node.right))
            case nodes.Aggregate():
                below = self(node.child)
                groups = below.values(node.keys) if node.keys else 1.0
                changes = 2 * below.rate
                counts = (*(below.distinct[key] for key in node.keys), *(groups for _ in node.aggregates))
                return _made(changes, groups, counts, changes)
            case nodes.Distinct():
                below = self(node.child)
                return replace(below.thinned(below.values() / max(below.rows, 1.0)), frequent=())
            case nodes.Union():
                left, right = self(node.left), self(node.right)
                counts = tuple(map(max, left.distinct, right.distinct))
                known = tuple(
                    together(
                        left.distribution(position).frequent,
                        left.rows,
                        right.distribution(position).frequent,
                        right.rows,
                    )
                    for position in range(len(counts))
                )
                return _made(
                    left.rate + right.rate, left.rows + right.rows, counts, left.premature + right.premature, known
                )
            case nodes.Except():
                return _bag_difference(node, self) if node.all else _set_difference(node, self)
            case nodes.Intersect():
                return _intersection(node, self)
            case nodes.Over():
                below = self(node.child)
                moved = min(below.rows, float(len(node.calls) * _AFFECTED))
                counts = (*below.distinct, *(below.rows for _ in node.calls))
                return _made(2 * below.rate * (1 + moved), below.rows, counts, below.rate * moved)
            case nodes.TopK():
                below = self(node.child)
                groups = below.values(node.by) if node.by else 1.0
                share = min(1.0, groups * (node.limit + node.offset) / max(below.rows, 1.0))
                kept = min(groups * node.limit, below.rows)
                return _made(2 * below.rate * share, kept, below.distinct, below.rate * share)


@dataclass(frozen=True)
class Matching:
    """How the rows of one input find matches in the other."""

    share: float
    """The share of the rows that have a match at a given time."""
    turns: float
    """Rows per second that get their first match by an arrival on the other side."""


def matching(left: Estimate, right: Estimate, keys: Sequence[tuple[int, int]], passing: float = 1.0) -> Matching:
    """How left rows match right rows with equal keys; a share `passing` of the pairs meets the other conditions."""
    share = turns = 0.0
    for alike in _compared(left, right, keys):
        there = right.rows * passing * alike.right
        absent = 0.0 if right.rate == 0 and there >= 1 else math.exp(-there)
        share += alike.values * alike.left * (1 - absent)
        turns += alike.values * right.rate * passing * alike.right * absent * left.rows * alike.left
    return Matching(min(1.0, share), turns)


def equal_share(left: Estimate, right: Estimate, keys: Sequence[tuple[int, int]]) -> float:
    """The share of all pairs of rows that have equal keys."""
    return math.prod(chance_of_equality(left.distribution(one), right.distribution(other)) for one, other in keys)


def _compared(left: Estimate, right: Estimate, keys: Sequence[tuple[int, int]]) -> list[Alike]:
    """How the rows of both inputs are distributed over the values of the keys; evenly for keys of several columns."""
    if len(keys) == 1:
        ((one, other),) = keys
        return compared(left.distribution(one), right.distribution(other))
    counts = [math.prod(left.distinct[one] for one, _ in keys), math.prod(right.distinct[other] for _, other in keys)]
    return compared(Distribution(counts[0]), Distribution(counts[1]))


def _made(
    rate: float, rows: float, distinct: Iterable[float], premature: float, frequent: Iterable[Shares] = ()
) -> Estimate:
    return Estimate(rate, rows, tuple(max(1.0, count) for count in distinct), min(premature, rate), tuple(frequent))


def _of_windows(node: nodes.AssignWindows, below: Estimate) -> Estimate:
    """Every row is in several windows, of which some are open at a time."""
    assigned = node.windows
    share = (1 + assigned.most) / 2 if assigned.cumulative else assigned.size / assigned.step
    windows = 1 + below.rows / max(below.rate, 1e-9) / (assigned.step / SECOND)
    return Estimate(
        below.rate * share,
        below.rows * share,
        (*below.distinct, max(1.0, windows), max(1.0, windows)),
        below.premature * share,
        (*below.frequent, NONE, NONE) if below.frequent else (),
    )


def _of_stream(node: nodes.Stream) -> Estimate:
    rate = DEFAULT_RATE if node.statistics.rate is None else node.statistics.rate
    counts = [_declared(node, position) for position in range(len(node.schema))]
    match node.window:
        case nodes.Range():
            rows, premature = rate * node.window.length / SECOND, 0.0
        case nodes.Unbounded():
            rows, premature = rate * UNBOUNDED_SECONDS, 0.0
        case nodes.Rows():
            rows = node.window.count * math.prod(counts[column] for column in node.window.partition)
            premature = rate
    if node.statistics.of_column(node.schema[node.time].name) is None:
        counts[node.time] = rows
    return _made(rate, rows, counts, premature, [node.statistics.shares(field.name) for field in node.schema])


def _of_relation(node: nodes.Relation) -> Estimate:
    rows = DEFAULT_ROWS if node.statistics.rows is None else node.statistics.rows
    updates = DEFAULT_UPDATES if node.statistics.rate is None else node.statistics.rate
    rate = updates if node.changes else 0.0
    counts = [min(_declared(node, position), rows) for position in range(len(node.schema))]
    return _made(rate, rows, counts, rate, [node.statistics.shares(field.name) for field in node.schema])


def _declared(node: nodes.Stream | nodes.Relation, position: int) -> float:
    column = node.schema[position]
    known = node.statistics.of_column(column.name)
    if known is not None:
        return known
    return 2.0 if column.dtype == BOOLEAN else DEFAULT_DISTINCT


def _expanded(node: nodes.Expand, below: Estimate) -> Estimate:
    """Every row as often as there are lists; a column has the values of all its expressions."""
    counts = [sum(_distribution(made, below).count for made in set(column)) for column in zip(*node.lists, strict=True)]
    return replace(below.thinned(len(node.lists)), distinct=tuple(counts), frequent=())


_ELEMENTS = 3.0
"""The number of elements that an array is taken to have."""


def _generated(node: nodes.Generate, below: Estimate) -> Estimate:
    counts = [below.distribution(column).count for column in node.columns]
    return replace(below.thinned(_ELEMENTS), distinct=(*counts, _ELEMENTS, DEFAULT_DISTINCT), frequent=())


def _distribution(made: Expression, below: Estimate) -> Distribution:
    match made:
        case Literal():
            return Distribution(1.0)
        case Column():
            return below.distribution(made.index)
        case _:
            return Distribution(below.values(columns_of(made)))


def _of_join(node: nodes.Join, left: Estimate, right: Estimate) -> Estimate:
    passing = selectivity(node.condition, left.distinct + right.distinct)
    known = [*(left.frequent or [NONE] * len(left.distinct)), *(right.frequent or [NONE] * len(right.distinct))]
    if is_nonretroactive(node.right):
        right = replace(right, rate=0.0, premature=0.0)
    if is_nonretroactive(node.left):
        left = replace(left, rate=0.0, premature=0.0)
    if node.kind in ("semi", "anti"):
        return _alone(left, right, node.keys, passing, matched=node.kind == "semi")
    share = passing * equal_share(left, right, node.keys)
    counts = list(left.distinct + right.distinct)
    for one, other in node.keys:
        here, there = left.distribution(one), right.distribution(other)
        counts[one] = counts[len(left.distinct) + other] = min(here.count, there.count)
        known[one] = known[len(left.distinct) + other] = in_both(here, there)
    rate = (left.rate * right.rows + right.rate * left.rows) * share
    premature = (left.premature * right.rows + right.premature * left.rows) * share
    joined = _made(rate, left.rows * right.rows * share, counts, premature, known)
    flipped = [(other, one) for one, other in node.keys]
    padded = []
    if node.kind in ("left", "full"):
        padded.append(_alone(left, right, node.keys, passing, matched=False))
    if node.kind in ("right", "full"):
        padded.append(_alone(right, left, flipped, passing, matched=False))
    for alone in padded:
        joined = _made(
            joined.rate + alone.rate, joined.rows + alone.rows, joined.distinct, joined.premature + alone.premature
        )
    return joined


def _alone(
    left: Estimate, right: Estimate, keys: Sequence[tuple[int, int]], passing: float, *, matched: bool
) -> Estimate:
    """The left rows with a match, or those without one. They also start and end with their first and last match."""
    found = matching(left, right, keys, passing)
    share = found.share if matched else 1 - found.share
    stay = left.thinned(share)
    return _made(stay.rate + found.turns, stay.rows, stay.distinct, stay.premature + found.turns, stay.frequent)


def _set_difference(node: nodes.Except, estimates: Estimates) -> Estimate:
    left, right = estimates(node.left), estimates(node.right)
    values = replace(left.thinned(left.values() / max(left.rows, 1.0)), frequent=())
    return _alone(values, right, _all_columns(node), 1.0, matched=False)


def _bag_difference(node: nodes.Except, estimates: Estimates) -> Estimate:
    """max(v1 - v2, 0) copies of each value, where the counts v1 and v2 are normally distributed around their means.

    An arrival on the left is in the answer if v1 is then larger than v2; an arrival on the right retracts a copy if v1
    was larger.
    """
    left, right = estimates(node.left), estimates(node.right)
    rows = stayed = turned = 0.0
    for alike in _compared(left, right, _all_columns(node)):
        first, second = left.rows * alike.left, right.rows * alike.right
        spread = math.sqrt(max(first + second, 1e-9))
        more = _below((first - second) / spread)
        excess = (first - second) * more + spread * math.exp(-(((first - second) / spread) ** 2) / 2) / math.sqrt(
            math.tau
        )
        rows += alike.values * min(max(excess, 0.0), first) if second else alike.values * first
        stayed += alike.values * alike.left * (_below((first - second + 0.5) / spread) if second else 1.0)
        turned += alike.values * alike.right * (_below((first - second - 0.5) / spread) if first else 0.0)
    rate = left.rate * min(1.0, stayed) + right.rate * turned
    premature = right.rate * turned + left.premature * rows / max(left.rows, 1.0)
    return _made(rate, rows, left.distinct, premature, left.frequent)


def _below(deviations: float) -> float:
    """The probability that a normal variable is at most `deviations` standard deviations above its mean."""
    return (1 + math.erf(deviations / math.sqrt(2))) / 2


def _intersection(node: nodes.Intersect, estimates: Estimates) -> Estimate:
    left, right = estimates(node.left), estimates(node.right)
    values = left if node.all else replace(left.thinned(left.values() / max(left.rows, 1.0)), frequent=())
    both = _alone(values, right, _all_columns(node), 1.0, matched=True)
    counts = tuple(map(min, both.distinct, right.distinct))
    rows = min(both.rows, right.rows)
    premature = left.premature * rows / max(left.rows, 1.0) + right.premature * rows / max(right.rows, 1.0)
    return _made(both.rate, rows, counts, premature)


def _all_columns(node: nodes.Except | nodes.Intersect) -> list[tuple[int, int]]:
    return [(position, position) for position in range(len(node.schema))]
