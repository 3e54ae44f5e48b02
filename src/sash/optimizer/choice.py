"""Cost-based rules: they propose plans, and the optimizer takes the cheapest."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from sash.optimizer.plan_cost import plan_cost
from sash.plan.nodes import Node, with_children

_MARGIN = 1e-9
"""Costs that differ by less than this share are equal."""


@dataclass(frozen=True)
class ByCost:
    """A rule that proposes alternatives to a plan, all with the same answer at every instant."""

    alternatives: Callable[[Node], Iterable[Node]]

    def __call__(self, plan: Node) -> Node:
        """The cheapest of the plan and its alternatives; the plan itself if none costs less."""
        return min((plan, *self.alternatives(plan)), key=plan_cost)


def is_cheaper(cost: float, other: float) -> bool:
    """Whether `cost` is less than `other` by more than a rounding error."""
    return cost < other * (1 - _MARGIN)


def somewhere(plan: Node, change: Callable[[Node], Iterable[Node]]) -> Iterator[Node]:
    """Every plan that results from applying `change` to one node of the plan."""
    yield from change(plan)
    for place, child in enumerate(plan.children):
        for changed in somewhere(child, change):
            yield with_children(plan, (*plan.children[:place], changed, *plan.children[place + 1 :]))
