"""What a plan costs: rows touched per second by each operator, and in all (paper 5, 5.4.1).

With input rates l1, l2, rows N1, N2 in their windows and output rows No, the paper's formulas are

- selection, projection, union: l1 + l2;
- join, intersection: l1 N2 + l2 N1 (each new row probes the other side; the paper prints N1 and N2 the other way round);
- DISTINCT on rows whose ends are known (delta-star): l1 No / 2; else each row also goes through the input's buffer;
- group-by: 2 l1 C, an aggregate of cost C being computed when a row comes and when it goes;
- negation: 2 l1 log d1 + 2 l2 log d2, with d1 and d2 different values, and the rows that it takes back prematurely.
  (Logarithms are to base 2 and of 1 + d: one value takes one step.)

They are of buffers that are scanned. Ours are hashed by the columns that are compared: a probe looks only at the rows that
it finds, and takes at least one step. What the paper counts in words is added: a row that is kept is put in and taken out once.
That is two steps in a ring, where rows end in the order in which they came; three in a calendar; and four in a hash
table, where a row's end is said, and it must be found. A negation keeps numbers in place of rows, which saves a step.
These steps are what the kernels were seen to take (`sash bench paper5`, Queries 1, 3 and 5), a step being a probe. Rows
whose ends must be said come twice, as `+` and as `-`; that doubles everything but group-by, negation and top-k, which see
every row come and go in any case. A lookup in a table, or in a non-retroactive relation, keeps nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from sash.plan.expressions import AggregateCall
from sash.plan.nodes import (
    Aggregate,
    Distinct,
    Except,
    Filter,
    Intersect,
    Join,
    Node,
    Project,
    Relation,
    Rows,
    Stream,
    TopK,
    Union,
    walk,
)
from sash.plan.patterns import Pattern, is_nonretroactive, is_static, pattern
from sash.plan.rates import Estimate, Estimates, equal_share

_RING, _CALENDAR, _TABLE = 2.0, 3.0, 4.0
"""Steps to put a row into a buffer and to take it out."""

_RAREST = 1e-12
"""Of all pairs of rows, at least this share is taken to match."""

_CONSTANT = frozenset({"sum", "count", "count_star", "avg", "var_pop", "var_samp", "stddev_pop", "stddev_samp"})
"""Aggregates that a row is added to and taken from in one step; the others keep their rows in order."""


def join_cost(rates: tuple[float, float], rows: tuple[float, float], buckets: tuple[float, float] = (1, 1)) -> float:
    """Each new row looks at the other side's rows, or at one bucket of them.

    >>> join_cost((10, 1), (1000, 100))
    2000.0
    """
    return float(rates[0] * _probe(rows[1], buckets[1]) + rates[1] * _probe(rows[0], buckets[0]))


def distinct_cost(rate: float, output: float, buckets: float = 1) -> float:
    """Delta-star: every new row looks through half of the output, or of one bucket of it.

    >>> distinct_cost(10, 50)
    250.0
    """
    return float(rate * max(1.0, output / 2 / max(buckets, 1.0)))


def group_by_cost(rate: float, aggregate: float = 1) -> float:
    """Every row changes the aggregates of its group when it comes and when it goes."""
    return 2 * rate * aggregate


def negation_cost(
    rates: tuple[float, float], values: tuple[float, float], premature: float = 0, buckets: tuple[float, float] = (1, 1)
) -> float:
    """Every row finds its value's counts when it comes and when it goes; rows taken back are found and said as well.

    >>> negation_cost((10, 5), (7, 1))
    70.0
    """
    searches = (
        rate * math.log2(1 + count / max(bucket, 1.0))
        for rate, count, bucket in zip(rates, values, buckets, strict=True)
    )
    return 2 * sum(searches) + 2 * premature


def plan_cost(plan: Node, *, hashed: bool = True) -> float:
    """The whole plan's cost; equal subtrees run once. `hashed=False` gives the paper's scans."""
    return PlanCosts(hashed=hashed).total(plan)


class PlanCosts:
    """The costs of plans' operators, with the estimates that they rest on."""

    def __init__(self, *, hashed: bool = True) -> None:
        self.estimates = Estimates()
        self._hashed = hashed
        self._patterns: dict[int, tuple[Node, Pattern]] = {}

    def total(self, plan: Node) -> float:
        """What all operators of a plan cost together."""
        return sum(self.of(node) for node in dict.fromkeys(walk(plan)))

    def state(self, node: Node) -> float:
        """How many rows the operator itself keeps."""
        match node:
            case Relation() | Filter() | Project() | Union():
                return 0.0
            case Stream():
                return self.estimates(node).rows if isinstance(node.window, Rows) else 0.0
            case Join():
                looked_up = _looked_up(node)
                return 0.0 if looked_up is not None else sum(self.estimates(side).rows for side in node.children)
            case Distinct():
                output = self.estimates(node).rows
                return 2 * output if self._ends_are_known(node.child) else output + self.estimates(node.child).rows
            case Aggregate():
                kept = self.estimates(node.child).rows if pattern(node.child) > Pattern.MONO else 0.0
                return self.estimates(node).rows + kept
            case Except() | Intersect() | TopK():
                return sum(self.estimates(child).rows for child in node.children)

    def of(self, node: Node) -> float:
        """What the operator itself costs."""
        below = [self.estimates(child) for child in node.children]
        flows = [self._flow(child) for child in node.children]
        rates = [estimate.rate for estimate in below]
        match node:
            case Relation():
                return 0.0
            case Stream():
                return 2 * self.estimates(node).rate if isinstance(node.window, Rows) else 0.0
            case Filter() | Project() | Union():
                return sum(flows)
            case Join():
                return self._of_join(node, flows)
            case Distinct():
                output = self.estimates(node)
                search = distinct_cost(flows[0], output.rows, output.rows if self._hashed else 1)
                kept = 0.0 if self._ends_are_known(node.child) else self._kept(node.children)
                return search + _RING * output.rate + kept
            case Aggregate():
                groups = self.estimates(node).rows
                each = sum(_aggregate_cost(call, below[0].rows / max(groups, 1.0)) for call in node.aggregates)
                return group_by_cost(rates[0], max(1.0, each)) + self._kept(node.children)
            case Except():
                counted = self._negation(below, rates, [None, None], self.estimates(node).premature)
                return counted + self._kept(node.children) - sum(rates)
            case Intersect():
                counts = [estimate.values() if self._hashed else 1.0 for estimate in below]
                found = join_cost(_pair(flows), _pair([estimate.rows for estimate in below]), _pair(counts))
                return found + self._kept(node.children)
            case TopK():
                return 2 * rates[0] * math.log2(2 + below[0].rows) + self._kept(node.children)

    def _flow(self, node: Node) -> float:
        """The rows per second on an edge: `-` rows too, where ends are said."""
        rate = self.estimates(node).rate
        return rate if self._ends_are_known(node) else 2 * rate

    def _kept(self, nodes: Sequence[Node]) -> float:
        """Steps per second to keep the rows of these edges."""
        steps = 0.0
        for node in nodes:
            known = self._pattern(node)
            each = _RING if known <= Pattern.WKS else _CALENDAR if known <= Pattern.WK else _TABLE
            steps += each * self.estimates(node).rate
        return steps

    def _ends_are_known(self, node: Node) -> bool:
        """Whether rows say when they end as they come; `-` rows do it otherwise."""
        return self._pattern(node) <= Pattern.WK

    def _pattern(self, node: Node) -> Pattern:
        if id(node) not in self._patterns:
            self._patterns[id(node)] = node, pattern(node)
        return self._patterns[id(node)][1]

    def _of_join(self, node: Join, flows: Sequence[float]) -> float:
        left, right = self.estimates(node.left), self.estimates(node.right)
        columns = [[one for one, _ in node.keys], [other for _, other in node.keys]]
        found = max(_RAREST, equal_share(left, right, node.keys)) if self._hashed else 1.0
        looked_up = _looked_up(node)
        if looked_up is not None:
            asking, asked = (0, 1) if looked_up is node.right else (1, 0)
            probe = max(1.0, (left, right)[asked].rows * found)
            return flows[asking] * probe + self.estimates(looked_up).rate
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
    """One step, or as many as it takes to find a place among the group's rows."""
    if call.function in _CONSTANT and not call.distinct:
        return 1.0
    return max(1.0, math.log2(1 + rows))


def _looked_up(node: Join) -> Node | None:
    """The side of the join that rows are taken to without being kept: data that never changes its mind."""
    if node.kind in ("inner", "left", "semi", "anti") and (is_static(node.right) or is_nonretroactive(node.right)):
        return node.right
    if node.kind in ("inner", "right") and (is_static(node.left) or is_nonretroactive(node.left)):
        return node.left
    return None
