"""The optimizer: rules that preserve the answer at every instant. Some always pay; others choose by cost.

Rewriting rules run until none changes the plan. Then each cost-based rule proposes alternatives, to which the rewriting
rules are applied as well, and the cheapest one is taken if it costs less than the plan. This repeats until no
alternative is cheaper.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from sash.optimizer.plan_cost import plan_cost
from sash.optimizer.rewriting import named, unnamed
from sash.optimizer.rules.drop_distinct import drop_distinct
from sash.optimizer.rules.keep_top_rows import keep_top_rows
from sash.optimizer.rules.merge_projections import merge_projections
from sash.optimizer.rules.order_joins import order_joins
from sash.optimizer.rules.order_static_joins import order_static_joins
from sash.optimizer.rules.pull_up_negation import pull_up_negation
from sash.optimizer.rules.push_distinct_below_join import push_distinct_below_join
from sash.optimizer.rules.push_down_negation import push_down_negation
from sash.optimizer.rules.push_down_projection import push_down_projection
from sash.optimizer.rules.push_down_selection import push_down_selection
from sash.optimizer.rules.push_relation_join_below_negation import push_relation_join_below_negation
from sash.optimizer.rules.put_tables_right import put_tables_right
from sash.optimizer.rules.split_count_distinct import split_count_distinct
from sash.optimizer.rules.turn_lookup_into_semi_join import turn_lookup_into_semi_join
from sash.plan.nodes import Node
from sash.plan.relations import misuses_relations

Rule = Callable[[Node], Node]


@dataclass(frozen=True)
class ByCost:
    """A rule that proposes alternatives to a plan, all with the same answer at every instant."""

    alternatives: Callable[[Node], Iterable[Node]]

    def __call__(self, plan: Node) -> Node:
        """The cheapest of the plan and its alternatives; the plan itself if none costs less."""
        return min((plan, *self.alternatives(plan)), key=plan_cost)


RULES: tuple[tuple[str, Rule], ...] = (
    ("merge_projections", merge_projections),
    ("push_down_selection", push_down_selection),
    ("keep_top_rows", keep_top_rows),
    ("split_count_distinct", split_count_distinct),
    ("put_tables_right", put_tables_right),
    ("order_static_joins", order_static_joins),
    ("turn_lookup_into_semi_join", turn_lookup_into_semi_join),
    ("push_relation_join_below_negation", push_relation_join_below_negation),
    ("drop_distinct", drop_distinct),
    ("push_down_projection", push_down_projection),
    ("push_distinct_below_join", ByCost(push_distinct_below_join)),
    ("pull_up_negation", ByCost(pull_up_negation)),
    ("push_down_negation", ByCost(push_down_negation)),
    ("order_joins", ByCost(order_joins)),
)
"""The rules in the order in which they are tried."""

UNCOUNTED: dict[str, str] = {
    "drop_distinct": "no state is kept for values that differ anyway",
    "keep_top_rows": "only rows that can be among the first are kept",
    "merge_projections": "one pass computes all columns",
    "order_static_joins": "selective tables come first; a projection restores the columns",
    "push_down_projection": "rows get narrower: the cost counts rows, not columns",
    "push_down_selection": "rows are dropped at their source, before they are sent and kept",
    "push_relation_join_below_negation": "a join with a relation takes no retracted rows",
    "put_tables_right": "the table is looked up; a projection restores the columns",
    "split_count_distinct": "values are counted in all shards, not in one alone",
    "turn_lookup_into_semi_join": "no columns of the table are carried",
}
"""What rules improve that the cost does not count: why they are applied even where the plan costs more after them."""

_MOST_ROUNDS = 50
_MARGIN = 1e-9
"""Costs that differ by less than this share are equal."""


@dataclass(frozen=True)
class AppliedRule:
    """A rule that changed the plan, with the plan's cost before and after."""

    rule: str
    before: float
    after: float

    @property
    def is_dearer(self) -> bool:
        """Whether the plan costs more after the rule."""
        return self.after > self.before * (1 + _MARGIN)


@dataclass(frozen=True)
class Rejected:
    """A plan that a rule proposed, its cost, and the cost of the plan chosen instead."""

    rule: str
    plan: Node
    cost: float
    instead: float


@dataclass(frozen=True)
class Optimized:
    """The optimized plan, the rules that were applied, and the plans that were rejected."""

    plan: Node
    steps: tuple[AppliedRule, ...]
    rejected: tuple[Rejected, ...]
    cost: float

    @property
    def rules(self) -> tuple[str, ...]:
        """The names of the rules that changed the plan."""
        return tuple(dict.fromkeys(step.rule for step in self.steps))


def optimize(
    node: Node, rules: tuple[tuple[str, Rule], ...] = RULES, disable: Collection[str] = frozenset()
) -> Optimized:
    """The optimized plan, with the schema of the given one, all applied rules, and the rejected plans."""
    usable = [(name, rule) for name, rule in rules if name not in disable]
    rewriting = [(name, rule) for name, rule in usable if not isinstance(rule, ByCost)]
    plan, steps = _rewritten(node, rewriting)
    rejected: dict[Node, Rejected] = {}
    choosing = [(name, rule) for name, rule in usable if isinstance(rule, ByCost)]
    plan = _chosen(plan, choosing, rewriting, steps, rejected)
    kept = unnamed(plan)
    final = named(plan, node.schema)
    return Optimized(final, tuple(steps), tuple(one for key, one in rejected.items() if key != kept), plan_cost(final))


def _chosen(
    plan: Node,
    choosing: Collection[tuple[str, ByCost]],
    rewriting: Collection[tuple[str, Rule]],
    steps: list[AppliedRule],
    rejected: dict[Node, Rejected],
) -> Node:
    """The plan once no cost-based rule finds a cheaper one; fills `steps` and `rejected`."""
    for _ in range(_MOST_ROUNDS):
        before = plan
        for name, rule in choosing:
            now = plan_cost(plan)
            found = (_rewritten(raw, rewriting)[0] for raw in rule.alternatives(plan))
            proposed = {unnamed(made): made for made in found if not misuses_relations(made)}
            proposed.pop(unnamed(plan), None)
            costs = {key: plan_cost(made) for key, made in proposed.items()}
            best = min(costs, key=lambda key: costs[key], default=None)
            if best is not None and costs[best] < now * (1 - _MARGIN):
                plan = proposed.pop(best)
                steps.append(AppliedRule(name, now, costs[best]))
                now = costs[best]
            for key, made in proposed.items():
                rejected.setdefault(key, Rejected(name, made, costs[key], now))
        if plan is before:
            break
    return plan


def _rewritten(node: Node, rules: Collection[tuple[str, Rule]]) -> tuple[Node, list[AppliedRule]]:
    """The plan once no rewriting rule changes it, and the rules that were applied."""
    steps = []
    plan = node
    for _ in range(_MOST_ROUNDS):
        before = plan
        for name, rule in rules:
            changed = rule(plan)
            if changed is not plan and unnamed(changed) != unnamed(plan):
                steps.append(AppliedRule(name, plan_cost(plan), plan_cost(changed)))
                plan = changed
        if plan is before:
            break
    return plan, steps
