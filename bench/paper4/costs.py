"""The costs of paper 4's other forms of multi-way joins on one common attribute: lazy, naive and general lazy."""

from __future__ import annotations

from collections.abc import Sequence

from sash.optimizer.cost import JoinCosts, JoinGraph


def lazy_cost(
    order: Sequence[int],
    rates: Sequence[float],
    windows: Sequence[float],
    distinct: Sequence[float],
    tau: float,
    buckets: Sequence[int] | None = None,
) -> float:
    """The cost of LAZY MULTI-WAY NLJ, or of the lazy hash join: every tau, the new rows of each stream come first."""
    return _costs(rates, windows, distinct, tau, buckets).new_first(order)


def naive_cost(
    order: Sequence[int],
    rates: Sequence[float],
    windows: Sequence[float],
    distinct: Sequence[float],
    tau: float | None = None,
    buckets: Sequence[int] | None = None,
) -> float:
    """The cost of NAIVE MULTI-WAY NLJ, eager without tau: new rows keep the position of their stream in the order."""
    return _costs(rates, windows, distinct, tau, buckets).any_order([order] * len(rates))


def general_cost(
    orders: Sequence[Sequence[int]],
    rates: Sequence[float],
    windows: Sequence[float],
    distinct: Sequence[float],
    tau: float,
    buckets: Sequence[int] | None = None,
) -> float:
    """The cost of GENERAL LAZY MULTI-WAY NLJ: `orders[i-1]` is the order for the new rows of stream i."""
    return _costs(rates, windows, distinct, tau, buckets).any_order(orders)


def _costs(
    rates: Sequence[float],
    windows: Sequence[float],
    distinct: Sequence[float],
    tau: float | None,
    buckets: Sequence[int] | None,
) -> JoinCosts:
    return JoinCosts(rates, windows, JoinGraph.on_common_attribute(distinct), tau, buckets)
