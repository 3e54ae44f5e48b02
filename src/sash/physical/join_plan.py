"""The plan of a multi-way join: its form, its orders, and their cost (paper 4, sections 3 and 5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from sash.operators.join_program import Graph
from sash.operators.reordering import Choice, JoinStatistics, Orders
from sash.optimizer.cost import JoinCosts, JoinGraph
from sash.optimizer.join_order import allocate_buckets, choose_order, choose_orders
from sash.plan.describe import COMPARISONS, describe
from sash.plan.types import Schema

TEST: Final = 10.0
"""The cost of comparing two rows in the loop nest, in rows of a bucket that are skipped (measured).

It is the same for all comparisons: the value of each side is computed once, when its row arrives.
"""


@dataclass(frozen=True)
class JoinPlan:
    """A form, and one order of all inputs per origin. Inputs are numbered from 0.

    `order` is the common order from which `orders` are derived, if there is one. `sizes` are the sizes of hash tables, if
    they do not have one list per key: they are chosen to spread a `budget` of buckets. `pinned` orders never change;
    if the planner has chosen them, `bursts` are the peak rates of the inputs as multiples of their rates.
    """

    form: str
    names: tuple[str, ...]
    graph: Graph
    columns: tuple[tuple[int, int], ...]
    figures: JoinStatistics
    tau: int | None
    order: tuple[int, ...] = ()
    orders: Orders = ()
    cost: float = 0.0
    considered: int = 0
    sizes: tuple[int, ...] | None = None
    pinned: bool = False
    budget: int | None = None
    bursts: tuple[float, ...] = ()

    @property
    def buckets(self) -> tuple[int, ...] | None:
        """Hash tables have one list per key; a nested-loop join has one list."""
        return (1,) * self.graph.inputs if "nlj" in self.form or self.form == "naive" else self.sizes

    @property
    def common_keys(self) -> list[tuple[int, ...]]:
        """The keys on which all inputs are equal, each as one column per input, in an order that does not depend on estimates."""
        return sorted(
            tuple(columns)
            for attribute in self.graph.attributes
            for columns in zip(*(key or () for key in attribute), strict=False)
            if None not in attribute
        )

    def ordered(self, figures: JoinStatistics) -> JoinPlan:
        """The plan with the orders that are best by these statistics."""
        costs = self._costs(figures)
        known: dict[str, Any] = {"tau": costs.tau, "buckets": costs.buckets, "graph": costs.graph}
        known["bursts"] = self.bursts
        if self.budget is not None and self.sizes is None:
            order = choose_order(costs.rates, costs.windows, **known).order
            sizes = allocate_buckets(
                self.budget, costs.rates, costs.windows, graph=costs.graph, order=order, tau=costs.tau
            )
            return replace(self, sizes=sizes).ordered(figures)
        if self.form == "general-lazy-nlj":
            assert costs.tau is not None
            general = choose_orders(costs.rates, costs.windows, tau=costs.tau, buckets=costs.buckets, graph=costs.graph)
            orders = tuple(_from_zero(order) for order in general.orders)
            return replace(
                self, figures=figures, order=(), orders=orders, cost=general.cost, considered=general.considered
            )
        chosen = choose_order(costs.rates, costs.windows, **known)
        order = _from_zero(chosen.order)
        orders = self._orders(order)
        cost = costs.any_order(_from_one(orders))
        return replace(self, figures=figures, order=order, orders=orders, cost=cost, considered=chosen.considered)

    def pinned_to(self, order: tuple[int, ...], sizes: tuple[int, ...] | None = None) -> JoinPlan:
        """The plan with a fixed order, and hash tables of given sizes."""
        return replace(self, order=order, orders=self._orders(order), sizes=sizes, pinned=True)

    def describe(self, orders: Orders) -> str:
        """The orders by name: the common one, or, without one, that of every origin."""
        shared = self.order if orders == self.orders else self._shared(orders)
        return self._named(shared) if shared else "; ".join(f"({self._named(order)})" for order in orders)

    def _named(self, order: Sequence[int]) -> str:
        return ", ".join(self.names[j] for j in order)

    def _shared(self, orders: Orders) -> tuple[int, ...]:
        """The common order from which those of all origins are derived; empty without one."""
        first, *rest = orders[0]
        candidates = [(*rest[:position], first, *rest[position:]) for position in range(len(orders))]
        return next((order for order in candidates if self._orders(order) == orders), ())

    def choose(self, orders: Orders, figures: JoinStatistics) -> Choice | None:
        """The orders that are best by these statistics, and the cost of the current ones; None if the orders are pinned."""
        if self.pinned:
            return None
        best = self.ordered(figures)
        return Choice(best.orders, best.cost, self._costs(figures).any_order(_from_one(orders)), best.considered)

    def _orders(self, order: tuple[int, ...]) -> Orders:
        origins = range(self.graph.inputs)
        return tuple(order if self.form == "naive" else self.graph.follow(order, origin) for origin in origins)

    def _costs(self, figures: JoinStatistics) -> JoinCosts:
        equalities = tuple(
            {number: max(1.0, count) for number, count in enumerate(counts, 1) if count is not None}
            for counts in figures.keys
        )
        thetas: dict[tuple[int, int], float] = {}
        test_costs: dict[tuple[int, int], float] = {}
        for theta, share in zip(self.graph.thetas, figures.shares, strict=True):
            pair = (theta.left.input + 1, theta.right.input + 1)
            test_costs[pair] = test_costs.get(pair, 0.0) + TEST * thetas.get(pair, 1.0)
            thetas[pair] = thetas.get(pair, 1.0) * share
        tau = None if self.tau is None else self.tau / 1e6
        graph = JoinGraph(equalities, thetas, test_costs, listed=self.buckets is None)
        return JoinCosts(figures.rates, figures.windows, graph, tau, self.buckets)


def _from_zero(order: Sequence[int]) -> tuple[int, ...]:
    return tuple(number - 1 for number in order)


def _from_one(orders: Orders) -> list[tuple[int, ...]]:
    return [tuple(number + 1 for number in order) for order in orders]


def describe_join(plan: JoinPlan, schemas: Sequence[Schema]) -> str:
    """The parameters of the join as EXPLAIN prints them: form, keys, and comparisons."""
    keys = [
        " = ".join(f"{plan.names[j]}.{schemas[j][columns[position]].name}" for j, columns in enumerate(key) if columns)
        for key in plan.graph.attributes
        for position in range(max(len(columns) for columns in key if columns))
    ]
    compared = [
        f"{plan.names[theta.left.input]}.{describe(theta.left.value)} {COMPARISONS[theta.comparison]} "
        f"{plan.names[theta.right.input]}.{describe(theta.right.value)}"
        for theta in plan.graph.thetas
    ]
    on = f" ON {' AND '.join([*keys, *compared])}" if keys or compared else ""
    return f"{plan.form}{on}"


def describe_order(plan: JoinPlan) -> str:
    """The planned order, its cost, the number of orders considered, and the sizes of hash tables."""
    counted = "1 order" if plan.considered == 1 else f"{plan.considered} orders"
    text = f"{plan.describe(plan.orders)}: {plan.cost:,.0f} comparisons/s, "
    rises = [(name, burst) for name, burst in zip(plan.names, plan.bursts, strict=False) if burst > 1]
    if rises:
        peaks = " and ".join(f"{name}, whose peak is {burst:.3g} times its rate," for name, burst in rises)
        text += f"of {counted}; fixed, so {peaks} {'is' if len(rises) == 1 else 'are'} near the top"
    else:
        text += f"the least of {counted}{'; fixed' if plan.bursts else ''}"
    if plan.sizes is None or plan.sizes != plan.buckets:
        return text
    tables = ", ".join(f"{name} {size}" for name, size in zip(plan.names, plan.sizes, strict=True))
    return f"{text}; hash buckets: {tables}"
