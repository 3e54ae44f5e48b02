"""The optimizer: a tuple of rules, each of which keeps the answer at every instant, run until none changes the plan."""

from __future__ import annotations

from collections.abc import Callable, Collection

from sash.optimizer.rewriting import named, unnamed
from sash.optimizer.rules.drop_distinct import drop_distinct
from sash.optimizer.rules.merge_projections import merge_projections
from sash.optimizer.rules.order_static_joins import order_static_joins
from sash.optimizer.rules.push_distinct_below_join import push_distinct_below_join
from sash.optimizer.rules.push_down_projection import push_down_projection
from sash.optimizer.rules.push_down_selection import push_down_selection
from sash.optimizer.rules.push_relation_join_below_negation import push_relation_join_below_negation
from sash.optimizer.rules.put_tables_right import put_tables_right
from sash.optimizer.rules.split_count_distinct import split_count_distinct
from sash.plan.nodes import Node

Rule = Callable[[Node], Node]

RULES: tuple[tuple[str, Rule], ...] = (
    ("merge_projections", merge_projections),
    ("push_down_selection", push_down_selection),
    ("split_count_distinct", split_count_distinct),
    ("put_tables_right", put_tables_right),
    ("order_static_joins", order_static_joins),
    ("push_relation_join_below_negation", push_relation_join_below_negation),
    ("push_distinct_below_join", push_distinct_below_join),
    ("drop_distinct", drop_distinct),
    ("push_down_projection", push_down_projection),
)
"""The rules in the order they are tried."""

_MOST_ROUNDS = 50


def optimize(
    node: Node, rules: tuple[tuple[str, Rule], ...] = RULES, disable: Collection[str] = frozenset()
) -> tuple[Node, tuple[str, ...]]:
    """The optimized plan, with the schema of the given one, and the names of the rules that changed it."""
    fired: dict[str, None] = {}
    plan = node
    for _ in range(_MOST_ROUNDS):
        before = plan
        for name, rule in rules:
            if name in disable:
                continue
            changed = rule(plan)
            if unnamed(changed) != unnamed(plan):
                plan = changed
                fired[name] = None
        if plan is before:
            break
    return named(plan, node.schema), tuple(fired)
