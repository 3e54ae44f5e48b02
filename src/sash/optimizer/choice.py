"""Rules that do not always pay: they propose plans, and the optimizer takes the one that costs least."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from sash.optimizer.plan_cost import plan_cost
from sash.plan.nodes import Node, with_children

_MARGIN = 1e-9
"""Plans whose costs differ by less than this share cost the same."""


@dataclass(frozen=True)
class ByCost:
    """A rule with alternatives to a plan, all of which give its answer at every instant."""

    alternatives: Callable[[Node], Iterable[Node]]

    def __call__(self, plan: Node) -> Node:
        """The cheapest of the plan and its alternatives; the plan itself where none costs less."""
        return min((plan, *self.alternatives(plan)), key=plan_cost)


def is_cheaper(cost: float, other: float) -> bool:
    """Whether the one cost is less than the other, by more than rounding."""
    return cost < other * (1 - _MARGIN)


def somewhere(plan: Node, change: Callable[[Node], Iterable[Node]]) -> Iterator[Node]:
    """Every plan that comes from changing one node of the plan in one of its ways."""
    yield from change(plan)
    for place, child in enumerate(plan.children):
        for changed in somewhere(child, change):
            yield with_children(plan, (*plan.children[:place], changed, *plan.children[place + 1 :]))
