"""The cost of a plan: rows touched per second by each operator, and in total (paper 5, 5.4.1).

With input rates l1, l2, rows N1, N2 in their windows and output rows No, the paper's formulas are

- selection, projection, union: l1 + l2;
- join, intersection: l1 N2 + l2 N1 (each new row probes the other side; the paper prints N1 and N2 the other way round);
- DISTINCT on rows with known expiration times (delta-star): l1 No / 2; otherwise rows also pass the input's buffer;
- group-by: 2 l1 C, where an aggregate of cost C is computed when a row arrives and when it expires;
- negation: 2 l1 log d1 + 2 l2 log d2 for d1 and d2 different values, plus the rows that it retracts prematurely.
  (Logarithms are to base 2 and of 1 + d: one value takes one step.)

The formulas assume buffers that are scanned. Ours are hashed by the compared columns: a probe touches only matching rows
and takes at least one step. The cost of insertion and removal, which the paper describes in words, is added: two steps in
a ring, whose rows expire in order of arrival; three in a calendar; four in a hash table, where a retraction must find its
row. A negation keeps counts instead of rows, which saves a step. A step is the time of a probe, and the numbers of steps
were measured on the kernels (`python -m bench paper5`, Queries 1, 3 and 5). Retracted rows arrive twice, as `+` and as
`-`; that doubles all costs except those of group-by, negation and top-k, which process every row twice in any case. A
lookup in a table or in a non-retroactive relation keeps no rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from sash.plan import nodes
from sash.plan.expressions import STEPWISE, AggregateCall
from sash.plan.patterns import Pattern, looked_up_side, pattern
from sash.plan.rates import Estimate, Estimates, equal_share
from sash.plan.time_bounds import time_bounds
from sash.time import SECOND

_RING, _CALENDAR, _TABLE = 2.0, 3.0, 4.0
"""Steps to insert a row into a buffer and to remove it."""

INSERTION = _RING
"""The same for the window of a multi-way join."""

_RAREST = 1e-12
"""The smallest share of pairs of rows that is assumed to match."""


def join_cost(rates: tuple[float, float], rows: tuple[float, float], buckets: tuple[float, float] = (1, 1)) -> float:
    """Each new row probes the other side's rows, or one bucket of them.

    >>> join_cost((10, 1), (1000, 100))
    2000.0
    """
    return float(rates[0] * _probe(rows[1], buckets[1]) + rates[1] * _probe(rows[0], buckets[0]))


def distinct_cost(rate: float, output: float, buckets: float = 1) -> float:
    """Delta-star: every new row scans half of the output, or half of one bucket of it.

    >>> distinct_cost(10, 50)
    250.0
    """
    return float(rate * max(1.0, output / 2 / max(buckets, 1.0)))


def group_by_cost(rate: float, aggregate: float = 1) -> float:
    """Every row updates the aggregates of its group when it arrives and when it expires."""
    return 2 * rate * aggregate


def negation_cost(
    rates: tuple[float, float], values: tuple[float, float], premature: float = 0, buckets: tuple[float, float] = (1, 1)
) -> float:
    """Every row looks up its value's counts when it arrives and when it expires; premature rows are also retracted.

    >>> negation_cost((10, 5), (7, 1))
    70.0
    """
    searches = (
        rate * math.log2(1 + count / max(bucket, 1.0))
        for rate, count, bucket in zip(rates, values, buckets, strict=True)
    )
    return 2 * sum(searches) + 2 * premature


def plan_cost(plan: nodes.Node, *, hashed: bool = True) -> float:
    """The whole plan's cost; equal subtrees run once. `hashed=False` gives the paper's scans."""
    return PlanCosts(hashed=hashed).total(plan)


class PlanCosts:
    """The costs of plans' operators, with the estimates that they are based on."""

    def __init__(self, *, hashed: bool = True) -> None:
        self.estimates = Estimates()
        self._hashed = hashed

    def total(self, plan: nodes.Node) -> float:
        """The cost of all operators of a plan."""
        return sum(self.of(node) for node in dict.fromkeys(nodes.walk(plan)))

    def state(self, node: nodes.Node) -> float:
        """The number of rows that the operator itself keeps."""
        match node:
            case (
                nodes.Relation()
                | nodes.Filter()
                | nodes.Project()
                | nodes.Expand()
                | nodes.Generate()
                | nodes.Union()
                | nodes.AssignWindows()
            ):
                return 0.0
            case nodes.Final():
                return 0.0
            case nodes.Sessions():
                return self.estimates(node).rows if node.closes else self.estimates(node).values(node.keys)
            case nodes.Lifetime():
                return 0.0 if node.start is None else self.estimates(node).rows
            case nodes.Stream():
                return self.estimates(node).rows if isinstance(node.window, nodes.Rows) else 0.0
            case nodes.Join():
                looked_up = looked_up_side(node)
                return 0.0 if looked_up is not None else self._kept_by_join(node)
            case nodes.Distinct():
                output = self.estimates(node).rows
                return 2 * output if self._ends_are_known(node.child) else output + self.estimates(node.child).rows
            case nodes.Aggregate():
                kept = self.estimates(node.child).rows if pattern(node.child) > Pattern.MONO else 0.0
                return self.estimates(node).rows + kept
            case nodes.Except() | nodes.Intersect() | nodes.TopK() | nodes.Over() | nodes.Alike():
                return sum(self.estimates(child).rows for child in node.children)

    def _kept_by_join(self, node: nodes.Join) -> float:
        """The rows of both inputs, or those that came while a row may still meet partners."""
        bounds = time_bounds(node)
        sides = [(self.estimates(node.left), bounds.left), (self.estimates(node.right), bounds.right)]
        return sum(side.rows if life is None else min(side.rows, side.rate * life / SECOND + 1) for side, life in sides)

    def of(self, node: nodes.Node) -> float:
        """The cost of the operator itself."""
        below = [self.estimates(child) for child in node.children]
        flows = [self._flow(child) for child in node.children]
        rates = [estimate.rate for estimate in below]
        match node:
            case nodes.Relation():
                return 0.0
            case nodes.Stream():
                return 2 * self.estimates(node).rate if isinstance(node.window, nodes.Rows) else 0.0
            case nodes.Filter() | nodes.Project() | nodes.Union():
                return sum(flows)
            case nodes.Expand():
                return flows[0] * len(node.lists)
            case nodes.Final():
                return sum(flows)
            case nodes.Sessions():
                return 2 * sum(flows)
            case nodes.Generate() | nodes.AssignWindows():
                return self.estimates(node).rate
            case nodes.Lifetime():
                return sum(flows) + (0.0 if node.start is None else _RING * rates[0])
            case nodes.Join():
                return self._of_join(node, flows)
            case nodes.Distinct():
                output = self.estimates(node)
                search = distinct_cost(flows[0], output.rows, output.rows if self._hashed else 1)
                kept = 0.0 if self._ends_are_known(node.child) else self._kept(node.children)
                return search + _RING * output.rate + kept
            case nodes.Aggregate():
                groups = self.estimates(node).rows
                each = sum(_aggregate_cost(call, below[0].rows / max(groups, 1.0)) for call in node.aggregates)
                return group_by_cost(rates[0], max(1.0, each)) + self._kept(node.children)
            case nodes.Except():
                counted = self._negation(below, rates, [None, None], self.estimates(node).premature)
                return counted + self._kept(node.children) - sum(rates)
            case nodes.Intersect():
                counts = [estimate.values() if self._hashed else 1.0 for estimate in below]
                found = join_cost(_pair(flows), _pair([estimate.rows for estimate in below]), _pair(counts))
                return found + self._kept(node.children)
            case nodes.Alike():
                search = flows[0] * math.log2(2 + below[1].rows)
                return search + self.estimates(node).rate + self._kept(node.children)
            case nodes.Over():
                changes = self.estimates(node).rate
                return 2 * rates[0] * math.log2(2 + below[0].rows) + changes + self._kept(node.children)
            case nodes.TopK():
                return 2 * rates[0] * math.log2(2 + below[0].rows) + self._kept(node.children)

    def _flow(self, node: nodes.Node) -> float:
        """The changes per second on an edge, including retractions."""
        rate = self.estimates(node).rate
        return rate if self._ends_are_known(node) else 2 * rate

    def _kept(self, inputs: Sequence[nodes.Node]) -> float:
        """Steps per second to insert and remove the rows of these inputs."""
        steps = 0.0
        for node in inputs:
            known = pattern(node)
            each = _RING if known <= Pattern.WKS else _CALENDAR if known <= Pattern.WK else _TABLE
            steps += each * self.estimates(node).rate
        return steps

    def _ends_are_known(self, node: nodes.Node) -> bool:
        """Whether rows carry their expiration times; otherwise they end by retractions."""
        return pattern(node) <= Pattern.WK

    def _of_join(self, node: nodes.Join, flows: Sequence[float]) -> float:
        left, right = self.estimates(node.left), self.estimates(node.right)
        columns = [[one for one, _ in node.keys], [other for _, other in node.keys]]
        found = max(_RAREST, equal_share(left, right, node.keys)) if self._hashed else 1.0
        looked_up = looked_up_side(node)
        if looked_up is not None:
            probing, probed = (0, 1) if looked_up is node.right else (1, 0)
            probe = max(1.0, (left, right)[probed].rows * found)
            return flows[probing] * probe + self.estimates(looked_up).rate
        rates = [left.rate, right.rate]
        pairs = join_cost(_pair(flows), (left.rows, right.rows), (1 / found, 1 / found)) + self._kept(node.children)
        output = self.estimates(node)
        match node.kind:
            case "inner":
                return pairs
            case "semi" | "anti":
                counted = self._negation([left, right], rates, columns, output.premature) + self._kept(node.children)
                return counted if node.condition is None else pairs + counted
            case "left" | "right" | "full":
                sides = 2 if node.kind == "full" else 1
                alone = self._negation([left, right], rates, columns, output.premature / sides)
                return pairs + sides * (alone + self._kept(node.children)) + 2 * output.rate

    def _negation(
        self,
        below: Sequence[Estimate],
        rates: Sequence[float],
        columns: Sequence[Sequence[int] | None],
        premature: float,
    ) -> float:
        values = [estimate.values(read) for estimate, read in zip(below, columns, strict=True)]
        return negation_cost(_pair(rates), _pair(values), premature, _pair(values) if self._hashed else (1, 1))


def _probe(rows: float, buckets: float) -> float:
    return max(1.0, rows / max(buckets, 1.0))


def _pair(values: Sequence[float]) -> tuple[float, float]:
    one, other = values
    return one, other


def _aggregate_cost(call: AggregateCall, rows: float) -> float:
    """One step, or the steps of a binary search among the group's rows."""
    if call.function in STEPWISE and not call.distinct:
        return 1.0
    return max(1.0, math.log2(1 + rows))
