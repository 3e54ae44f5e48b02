"""Turn aggregates of distinct values into plain aggregates over a DISTINCT, which keeps far less than every row.

DISTINCT's state is at most twice its output (paper 5, delta-star), and other rules may then push it below joins.
"""

from __future__ import annotations

from dataclasses import replace

from sash.optimizer.rewriting import bottom_up, columns, select
from sash.plan.expressions import ORDERED, AggregateCall
from sash.plan.nodes import Aggregate, Distinct, Node

_SAME_WITHOUT_DUPLICATES = frozenset({"min", "max"})


def split_count_distinct(plan: Node) -> Node:
    """Split each GROUP BY whose aggregates are all over the distinct values of one same column.

    >>> from sash.testing.rewrites import show
    >>> show(split_count_distinct, "SELECT k, COUNT(DISTINCT v) AS n FROM s [RANGE 1 HOUR] GROUP BY k")
    Project k#0, count(DISTINCT v)#1 AS n
      Aggregate count(DISTINCT v#2) AS count(DISTINCT v) BY k#1
        Stream s [RANGE 1 HOUR]
    =>
    Project k#0, count(DISTINCT v)#1 AS n
      Aggregate count(v#1) AS count(DISTINCT v) BY k#0
        Distinct
          Project k#1, v#2
            Stream s [RANGE 1 HOUR]
    """
    return bottom_up(plan, _split)


def _split(node: Node) -> Node:
    if not isinstance(node, Aggregate):
        return node
    calls = tuple(
        replace(call, distinct=False) if call.function in _SAME_WITHOUT_DUPLICATES else call for call in node.aggregates
    )
    if calls != node.aggregates:
        node = replace(node, aggregates=calls)
    arguments = {call.arguments[0].index for call in calls if len(call.arguments) == 1}
    if len(arguments) != 1 or not any(call.distinct for call in calls) or not all(map(_is_of_values, calls)):
        return node
    (argument,) = arguments
    positions = list(dict.fromkeys((*node.keys, argument)))
    values = Distinct(select(node.child, positions))
    column = columns(values)[positions.index(argument)]
    return Aggregate(
        values,
        tuple(positions.index(key) for key in node.keys),
        node.names,
        tuple(replace(call, arguments=(column,), distinct=False) for call in calls),
    )


def _is_of_values(call: AggregateCall) -> bool:
    """Whether the aggregate depends only on the set of values."""
    if len(call.arguments) != 1 or call.function in ORDERED:
        return False
    return call.distinct or call.function in _SAME_WITHOUT_DUPLICATES
