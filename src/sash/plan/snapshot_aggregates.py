"""Which aggregates a standing query computes, and which a snapshot of a kept window."""

from __future__ import annotations

from dataclasses import replace

from sash.errors import UnsupportedSqlError
from sash.plan.expressions import APPROXIMATE, COLLECTED, ORDERED, SPREADS, USER, AggregateCall
from sash.plan.nodes import Aggregate, Node, Over, walk, with_children
from sash.plan.types import is_numeric
from sash.plan.window_calls import WindowCall

_SNAPSHOTS = (
    APPROXIMATE
    | (ORDERED - COLLECTED - {USER})
    | SPREADS
    | {"count", "count_star", "sum", "avg", "min", "max", "median", "percentile"}
)
_DISTINCT = frozenset({"count", "sum", "avg", "min", "max"})


def exact_aggregates(plan: Node) -> Node:
    """The plan of a standing query, in which aggregates that Spark estimates are exact. Raises UnsupportedSqlError for those
    that only snapshots compute."""
    return _rewritten(plan) if any(map(_estimates, walk(plan))) else plan


def _estimates(node: Node) -> bool:
    if isinstance(node, Over):
        return any(call.aggregate is not None and call.function in APPROXIMATE for call in node.calls)
    return isinstance(node, Aggregate) and any(call.function in APPROXIMATE for call in node.aggregates)


def _rewritten(plan: Node) -> Node:
    below = tuple(map(_rewritten, plan.children))
    if any(one is not other for one, other in zip(below, plan.children, strict=True)):
        plan = with_children(plan, below)
    if isinstance(plan, Over):
        return replace(plan, calls=tuple(map(_exact_call, plan.calls)))
    if isinstance(plan, Aggregate):
        return replace(plan, aggregates=tuple(map(_exact, plan.aggregates)))
    return plan


def _exact_call(call: WindowCall) -> WindowCall:
    if call.aggregate is None:
        return call
    exact = _exact(call.aggregate)
    return replace(call, function=exact.function, aggregate=exact)


def _exact(call: AggregateCall) -> AggregateCall:
    match call.function:
        case "approx_count_distinct":
            return AggregateCall("count", call.arguments, call.dtype, distinct=True)
        case "approx_percentile":
            return replace(call, function="percentile_value", precision=None)
        case "approx_top_k":
            raise UnsupportedSqlError(
                "APPROX_TOP_K is available in snapshots of a kept window only: use SNAPSHOT SELECT (engine.snapshot), or GROUP "
                "BY the values and take the first with ORDER BY and LIMIT"
            )
        case _:
            return call


def refuse_standing_aggregates(plan: Node) -> None:
    """Raise UnsupportedSqlError if a snapshot has an aggregate that only standing queries compute."""
    for node in walk(plan):
        for call in node.aggregates if isinstance(node, Aggregate) else ():
            distinct = call.distinct and call.function not in _DISTINCT
            weighted = call.function == "percentile" and len(call.arguments) > 1
            moments = call.function == "approx_percentile" and not is_numeric(call.dtype)
            if distinct or call.function not in _SNAPSHOTS or call.detail is not None or weighted or moments:
                name = f"{call.function.upper()}{'(DISTINCT ...)' if distinct else ''}"
                raise UnsupportedSqlError(
                    f"a snapshot cannot compute {name}: keep the answer of a standing query with it, and read that"
                )
