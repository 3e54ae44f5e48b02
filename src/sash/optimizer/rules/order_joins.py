"""Order the joins of three or more streams by cost (paper 4, section 5; paper 5, 5.4.2).

The candidates are the order of `join_order.choose_order` and the result of the same search with the cost of binary joins,
which keep intermediate results. Equality is transitive, so any two streams that share a value may be joined first. Joins
with tables and non-retroactive relations are not reordered, nor are joins whose conditions may fail.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from sash.optimizer.cost import JoinGraph
from sash.optimizer.join_order import Search, choose_order
from sash.optimizer.plan_cost import PlanCosts
from sash.optimizer.rewriting import select, somewhere
from sash.plan.expression_safety import may_fail
from sash.plan.expressions import Column, Expression, columns_of, conjunction, conjuncts, remap
from sash.plan.nodes import Join, Node, Project, walk
from sash.plan.patterns import is_nonretroactive, is_static
from sash.plan.predicate_cost import predicate_cost
from sash.plan.selectivity import selectivity
from sash.plan.time_bounds import runs_by_bounds

_FEWEST = 3


def order_joins(plan: Node) -> Iterator[Node]:
    """Propose other orders for every group of three or more joined inputs.

    >>> from sash.testing.rewrites import show
    >>> show(order_joins, "SELECT fast.v FROM fast JOIN s ON fast.k = s.k JOIN slow ON s.k = slow.k WINDOW 1 HOUR")
    Project v#2
      Join inner ON k#4 = k#1
        Join inner ON k#1 = k#1
          Stream fast [RANGE 1 HOUR]
          Stream s [RANGE 1 HOUR]
        Stream slow [RANGE 1 HOUR]
    =>
    Project v#8
      Join inner ON k#1 = k#1
        Join inner ON k#1 = k#1
          Stream slow [RANGE 1 HOUR]
          Stream s [RANGE 1 HOUR]
        Stream fast [RANGE 1 HOUR]
    """
    inside = {id(below) for node in walk(plan) if _is_open(node) for below in map(_unprojected, node.children)}
    return somewhere(plan, lambda node: _ordered(node) if _is_open(node) and id(node) not in inside else iter(()))


def _ordered(node: Node) -> Iterator[Node]:
    group = _Group()
    output = group.take(node)
    if len(group.inputs) < _FEWEST or not group.is_orderable:
        return
    costs = PlanCosts()
    graph = group.graph(costs)
    estimates = [costs.estimates(leaf) for leaf in group.inputs]
    rates = [estimate.rate for estimate in estimates]
    lives = [estimate.rows / estimate.rate if estimate.rate else 0.0 for estimate in estimates]
    chosen = choose_order(rates, lives, graph=graph).order
    written = tuple(range(1, len(rates) + 1))
    search = Search(rates, lambda order: _joining_cost(group.tree(order, graph)[0], len(rates), costs))
    for order in dict.fromkeys((chosen, search.run([chosen, written]))):
        made, positions = group.tree(order, graph)
        yield select(made, [positions[column] for column in output])


def _joining_cost(made: Node, inputs: int, costs: PlanCosts) -> float:
    """The cost of the joins of a left-deep tree; its inputs cost the same in every order."""
    total = 0.0
    for _ in range(inputs - 1):
        total += costs.of(made)
        made = made.children[0]
    return total


def _unprojected(node: Node) -> Node:
    return node.child if isinstance(node, Project) else node


def _is_open(node: Node) -> bool:
    """Whether the node is an inner join of streams that may be reordered."""
    return (
        isinstance(node, Join)
        and node.kind == "inner"
        and not any(is_static(side) or is_nonretroactive(side) for side in node.children)
        and (node.condition is None or not may_fail(node.condition))
        and not runs_by_bounds(node)
    )


@dataclass
class _Group:
    """The inputs of adjacent joins; their columns are numbered consecutively, in the order of the plan."""

    inputs: list[Node] = field(default_factory=list)
    owners: list[int] = field(default_factory=list)
    classes: list[set[int]] = field(default_factory=list)
    parts: list[Expression] = field(default_factory=list)

    def take(self, node: Node) -> list[int]:
        """Add the inputs of a join, or the node itself; returns the numbers of its columns."""
        if isinstance(node, Join) and _is_open(node):
            left, right = self.take(node.left), self.take(node.right)
            for one, other in node.keys:
                self._equate(left[one], right[other])
            at = dict(enumerate([*left, *right]))
            self.parts += [remap(part, at) for part in ([] if node.condition is None else conjuncts(node.condition))]
            return [*left, *right]
        if isinstance(node, Project) and _is_open(node.child):
            picked = [made.index for made in node.expressions if isinstance(made, Column)]
            if len(picked) == len(node.expressions):
                below = self.take(node.child)
                return [below[position] for position in picked]
        start = len(self.owners)
        self.inputs.append(node)
        self.owners += [len(self.inputs)] * len(node.schema)
        return list(range(start, len(self.owners)))

    def _equate(self, one: int, other: int) -> None:
        joined = {one, other}
        for known in [known for known in self.classes if not known.isdisjoint(joined)]:
            self.classes.remove(known)
            joined |= known
        self.classes.append(joined)

    @property
    def is_orderable(self) -> bool:
        """Whether no input has two columns that are equal to each other only by way of another input."""
        return all(len({self.owners[column] for column in known}) == len(known) for known in self.classes)

    def graph(self, costs: PlanCosts) -> JoinGraph:
        """The predicates between the inputs, numbered from 1."""
        counts = [count for leaf in self.inputs for count in costs.estimates(leaf).distinct]
        thetas: dict[tuple[int, int], float] = {}
        test_costs: dict[tuple[int, int], float] = {}
        for part in self.parts:
            met = sorted({self.owners[column] for column in columns_of(part)})
            if len(met) == 2:
                pair = (met[0], met[1])
                thetas[pair] = thetas.get(pair, 1.0) * selectivity(part, counts)
                test_costs[pair] = test_costs.get(pair, 0.0) + predicate_cost(part)
        equalities = tuple({self.owners[column]: counts[column] for column in known} for known in self.classes)
        return JoinGraph(equalities, thetas, test_costs)

    def tree(self, order: Sequence[int], graph: JoinGraph) -> tuple[Node, dict[int, int]]:
        """The inputs joined in this order, and the position of each column in the result."""
        first, *rest = graph.from_origin(order, order[0])
        made, positions = (
            self.inputs[first - 1],
            {column: position for position, column in enumerate(self._columns(first))},
        )
        open_parts = list(self.parts)
        for number in rest:
            mine = self._columns(number)
            keys = tuple(
                (min(positions[other] for other in known if other in positions), mine.index(column))
                for column in mine
                for known in self.classes
                if column in known and not known.isdisjoint(positions)
            )
            width = len(made.schema)
            positions |= {column: width + position for position, column in enumerate(mine)}
            ready = [part for part in open_parts if columns_of(part) <= positions.keys()]
            open_parts = [part for part in open_parts if part not in ready]
            condition = conjunction([remap(part, positions) for part in ready])
            made = Join(made, self.inputs[number - 1], "inner", keys, condition)
        return made, positions

    def _columns(self, number: int) -> list[int]:
        return [column for column, owner in enumerate(self.owners) if owner == number]
