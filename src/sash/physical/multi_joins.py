"""Lowering chains of inner joins to multi-way joins: as few operators, in as few stages, as their keys allow.

Inputs that are equal on one attribute are joined by one operator in one stage. Where attributes differ, the inputs that
share the most common one are joined first, and the result is an input of the next operator. Where equalities do not link
all inputs, one shard must see every row anyway, so one operator joins them all; likewise if there is only one shard.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from sash.operators.join_program import Attribute, Graph
from sash.operators.multi_join import MOST_INPUTS
from sash.operators.reordering import JoinStatistics
from sash.optimizer.cost import JoinCosts, JoinGraph
from sash.optimizer.plan_cost import INSERTION
from sash.physical.join_chain import Chain, comparison, decompose, equal_columns
from sash.physical.join_plan import JoinPlan
from sash.physical.nodes import Expected, Filter, MultiJoin, Operation, OutputEdge, OutputExpiry, Physical, Project
from sash.plan.expressions import Column, Expression, columns_of, remap
from sash.plan.nodes import Node, Stream
from sash.plan.options import Options
from sash.plan.patterns import Pattern, pattern
from sash.plan.predicate_cost import order_predicates
from sash.plan.rates import Estimate, Estimates, burst
from sash.plan.selectivity import selectivity
from sash.plan.types import Field


@dataclass(frozen=True)
class _JoinedPart:
    """A partial join: its operator, its columns as positions in the chain, the estimate of its rows, and by which factor
    its rate may rise."""

    node: Physical
    name: str
    columns: tuple[int, ...]
    estimate: Estimate
    burst: float

    @property
    def values(self) -> dict[int, float]:
        """The number of values of each column."""
        return dict(zip(self.columns, self.estimate.distinct, strict=True))


def lower_chain(node: Node, lower: Callable[[Node], Physical], options: Options, shards: int | None) -> Physical | None:
    """The node as multi-way joins; None if it is not a chain of inner joins that is run this way."""
    if options.join == "binary":
        return None
    chain = decompose(node)
    least = 3 if options.join == "auto" else 2
    if not least <= len(chain.inputs) <= MOST_INPUTS:
        return None
    lowering = _ChainLowering(chain, options)
    groups = lowering.groups(single=shards == 1)
    if options.join == "auto" and max(len(group) for group in groups) < least:
        return None
    return lowering.build(node, [lower(child) for child in chain.inputs], groups)


class _ChainLowering:
    def __init__(self, chain: Chain, options: Options) -> None:
        self._chain = chain
        self._options = options
        self._origins = chain.origins
        self._fields = [field for node in chain.inputs for field in node.schema]
        self._classes, self._rest = equal_columns(chain)
        starts = [0]
        for node in chain.inputs:
            starts.append(starts[-1] + len(node.schema))
        self._equal = [{starts[number] + column for number, column in known.items()} for known in self._classes]

    def groups(self, single: bool) -> list[list[int]]:
        """The inputs that each operator joins; results of operators have the numbers n, n + 1, ..."""
        n = len(self._chain.inputs)
        sharing = [set(known) for known in self._classes]
        if single or not _linked(n, sharing):
            return [list(range(n))]
        left = set(range(n))
        groups: list[list[int]] = []
        while len(left) > 1:
            group = max(sharing, key=lambda members: (len(members), -min(members)))
            made = n + len(groups)
            groups.append(sorted(group))
            left = (left - group) | {made}
            sharing = [(members - group) | ({made} if members & group else set()) for members in sharing]
            sharing = [members for members in sharing if len(members) > 1]
        return groups

    def build(self, node: Node, inputs: Sequence[Physical], groups: Sequence[Sequence[int]]) -> Physical:
        """The operators, one per group, with the remaining conditions and outputs above them."""
        estimates = Estimates()
        parts: list[_JoinedPart] = []
        names = _names(self._chain.inputs)
        for number, (given, made) in enumerate(zip(self._chain.inputs, inputs, strict=True)):
            columns = tuple(position for position, (owner, _) in enumerate(self._origins) if owner == number)
            parts.append(_JoinedPart(made, names[number], columns, estimates(given), burst(given)))
        for group in groups:
            parts.append(self._joined(node, [parts[number] for number in group], last=group is groups[-1]))
        (*_, last) = parts
        return last.node

    def _joined(self, node: Node, parts: Sequence[_JoinedPart], last: bool) -> _JoinedPart:
        """One operator over some parts, with a filter above it for conditions that it cannot check."""
        have = {column for part in parts for column in part.columns}
        mine = [condition for condition in self._rest if columns_of(condition) <= have]
        self._rest = [condition for condition in self._rest if condition not in mine]
        origins = self._origins_in(parts)
        values = {column: count for part in parts for column, count in part.values.items()}
        counts = [values.get(column, 1.0) for column in range(len(self._fields))]
        checked = [(condition, theta) for condition in mine if (theta := comparison(condition, origins)) is not None]
        filters = [condition for condition in mine if all(condition is not known for known, _ in checked)]
        # All cost the same in the loops, so the most selective one is checked first.
        checked.sort(key=lambda one: selectivity(one[0], counts))
        graph = Graph(len(parts), self._attributes(parts), tuple(theta for _, theta in checked))
        figures = JoinStatistics(
            tuple(part.estimate.rate for part in parts),
            tuple(part.estimate.rows for part in parts),
            tuple(
                tuple(
                    None if key is None else part.estimate.values(key)
                    for key, part in zip(attribute, parts, strict=True)
                )
                for attribute in graph.attributes
            ),
            tuple(selectivity(condition, counts) for condition, _ in checked),
        )
        outputs = self._chain.outputs
        direct = last and not filters and all(isinstance(output, Column) for output in outputs)
        later = [*filters, *self._rest, *outputs]
        wanted = {column for expression in later for column in columns_of(expression)}
        wanted |= {column for known in self._equal for column in known if not known <= have}
        kept = [output.index for output in outputs if isinstance(output, Column)] if direct else sorted(wanted & have)
        columns = tuple(origins[column] for column in kept)
        form = self._form(graph, [part.node for part in parts])
        tau = self._options.tau
        names = tuple(part.name for part in parts)
        plan = JoinPlan(form, names, graph, columns, figures, tau, budget=self._options.buckets)
        if self._options.fixes_orders:
            plan = replace(plan, pinned=True, bursts=tuple(part.burst for part in parts))
        plan = plan.ordered(figures)
        schema = node.schema if direct else tuple(self._fields[column] for column in kept)
        estimate = self._estimate(figures, graph, kept, counts)
        expected = _expected(plan, parts, Estimates()(node) if last and not filters else estimate)
        operation = _operation(plan, [part.node for part in parts], schema, self._options.purge)
        made: Physical = replace(operation, expected=expected)
        if direct and pattern(node) != made.pattern:
            made = replace(made, output=replace(made.output, pattern=pattern(node)))
        made = self._above(made, kept, order_predicates(filters, counts), outputs if last and not direct else (), node)
        return _JoinedPart(made, f"{' x '.join(names)}", tuple(kept), estimate, max(part.burst for part in parts))

    def _origins_in(self, parts: Sequence[_JoinedPart]) -> list[tuple[int, int]]:
        """The part and position of every column of the chain; (-1, -1) for columns that are in none."""
        found = {
            column: (number, position)
            for number, part in enumerate(parts)
            for position, column in enumerate(part.columns)
        }
        return [found.get(column, (-1, -1)) for column in range(len(self._fields))]

    def _attributes(self, parts: Sequence[_JoinedPart]) -> tuple[Attribute, ...]:
        """The attributes on which parts are equal; columns that the same parts have in common form one key."""
        keys: dict[tuple[int, ...], list[list[int]]] = {}
        for known in self._equal:
            found = [next((position for position, c in enumerate(part.columns) if c in known), None) for part in parts]
            members = tuple(number for number, position in enumerate(found) if position is not None)
            if len(members) > 1:
                keys.setdefault(members, []).append([position for position in found if position is not None])
        attributes = []
        for members, columns in keys.items():
            key: list[tuple[int, ...] | None] = [None] * len(parts)
            for position, number in enumerate(members):
                key[number] = tuple(origins[position] for origins in columns)
            attributes.append(tuple(key))
        # A loop looks up the first of several known keys, so the one with the most values comes first.
        return tuple(sorted(attributes, key=lambda key: -self._most_values(key, parts)))

    def _most_values(self, attribute: Attribute, parts: Sequence[_JoinedPart]) -> float:
        keyed = zip(attribute, parts, strict=True)
        return max(part.estimate.values(columns) for columns, part in keyed if columns is not None)

    def _form(self, graph: Graph, inputs: Sequence[Physical]) -> str:
        if self._options.join != "auto":
            return self._options.join
        if graph.scans or graph.thetas:
            return "hybrid"
        return "eager-hash" if self._options.tau is None else "lazy-hash"

    def _above(
        self,
        made: Physical,
        kept: Sequence[int],
        filters: Sequence[Expression],
        outputs: Sequence[Expression],
        node: Node,
    ) -> Physical:
        moved = {column: position for position, column in enumerate(kept)}
        for condition in filters:
            made = Filter(predicate=remap(condition, moved), inputs=(made,), output=made.output)
        if outputs:
            expressions = tuple(remap(output, moved) for output in outputs)
            edge = replace(made.output, schema=node.schema, pattern=pattern(node))
            made = Project(expressions=expressions, inputs=(made,), output=edge)
        return made

    def _estimate(
        self, figures: JoinStatistics, graph: Graph, kept: Sequence[int], counts: Sequence[float]
    ) -> Estimate:
        """The estimate of a result, which has a row for each combination of matching input rows."""
        equalities = tuple(
            {number: count for number, count in enumerate(keys, 1) if count is not None} for keys in figures.keys
        )
        costs = JoinCosts(figures.rates, figures.windows, JoinGraph(equalities))
        rows = costs.result(list(costs.streams)) * math.prod(figures.shares)
        rate = sum(rate * rows / max(size, 1.0) for rate, size in zip(figures.rates, figures.rows, strict=True))
        return Estimate(rate, rows, tuple(max(1.0, min(counts[column], rows)) for column in kept))


def _expected(plan: JoinPlan, parts: Sequence[_JoinedPart], result: Estimate) -> Expected:
    """The estimates of the operator itself: its results, the rows of all its windows, and its comparisons and insertions.

    A result ends prematurely when one of its rows does.
    """
    inputs = [part.estimate for part in parts]
    premature = result.rows * sum(given.premature / max(given.rows, 1.0) for given in inputs)
    cost = plan.cost + INSERTION * sum(given.rate for given in inputs)
    return Expected(result.rate, sum(given.rows for given in inputs), premature, result.rows, cost)


def _linked(size: int, sharing: Sequence[set[int]]) -> bool:
    """Whether equalities link all inputs."""
    reached = {0}
    while any(members & reached and not members <= reached for members in sharing):
        reached = reached.union(*(members for members in sharing if members & reached))
    return len(reached) == size


def _names(inputs: Sequence[Node]) -> list[str]:
    """The names of the inputs: their streams, numbered where a stream occurs twice."""
    names: list[str] = []
    for given in inputs:
        node = given
        while len(node.children) == 1:
            (node,) = node.children
        names.append(node.name if isinstance(node, Stream) else f"input {len(names) + 1}")
    return [
        f"{name}#{names[:number].count(name) + 1}" if names.count(name) > 1 else name
        for number, name in enumerate(names)
    ]


def _operation(plan: JoinPlan, inputs: Sequence[Physical], schema: tuple[Field, ...], purge: int | None) -> Operation:
    stamped = all(given.expiry != "explicit" for given in inputs)
    expiry: OutputExpiry = "calendar" if stamped else "explicit"
    if all(given.expiry == "mono" for given in inputs):
        expiry = "mono"
    horizon = min((given.horizon for given in inputs if given.horizon), default=0) if stamped else 0
    update = {"mono": Pattern.MONO, "calendar": Pattern.WK}.get(expiry, Pattern.STR)
    output = OutputEdge(schema, expiry, update, horizon)
    lazily = purge if expiry == "calendar" and purge else None
    return MultiJoin(plan=plan, purge_interval=lazily, inputs=tuple(inputs), output=output)
