"""What EXPLAIN says of aggregates and window functions whose changes cost more than the logarithm of the rows of a group."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from sash.operators.over_order import finds_extreme
from sash.plan.expressions import COLLECTED, AggregateCall
from sash.plan.user_code import Way, way_of
from sash.plan.window_calls import WindowCall

_WAYS = {
    "remove": "one state per group, rows are taken back with remove",
    "merge": "two stacks of merged states per group",
    "recompute": "computed anew from all rows of a group at each change",
}

_RANKING = {
    "row_number": "the rows behind a change",
    "rank": "the rows behind a change",
    "dense_rank": "the rows behind a change of the set of values",
    "percent_rank": "the whole partition at a change",
    "cume_dist": "the whole partition at a change",
    "ntile": "the rows at the borders of buckets",
}


def aggregate_costs(calls: Sequence[AggregateCall], expiry: str) -> str:
    """A remark on each such aggregate of a GROUP BY over rows that end in this way."""
    remarks: dict[str, str] = {}
    for call in calls:
        detail = call.detail
        if detail is not None and detail.user is not None:
            remarks[detail.user.name] = _WAYS[way_of(detail.user, expiry, distinct=call.distinct)]
        elif call.function in COLLECTED:
            remarks[call.function] = "returns all values of a group at each change"
        elif call.function == "histogram_numeric":
            remarks[call.function] = "reads all rows of a group at each change"
        elif call.function == "percentile" and len(call.arguments) == 2:
            remarks["percentile"] = "reads all rows of a group at each change"
    return _together([f"{name}: {remark}" for name, remark in remarks.items()])


def over_costs(calls: Sequence[WindowCall]) -> str:
    """The rows that each window function evaluates at a change, where these may be more than a frame has."""
    remarks: dict[str, None] = {}
    for call in calls:
        detail = call.aggregate.detail if call.aggregate is not None else None
        if detail is not None and detail.user is not None and _way(call) != "remove":
            remarks[f"{detail.user.name}: computed anew from all rows of each frame"] = None
        elif (evaluated := _evaluated(call)) is not None:
            remarks[f"{call.function}: evaluates {evaluated}"] = None
    return _together(remarks)


def _way(call: WindowCall) -> Way:
    """How an aggregate of a user's own is maintained over frames, which rows leave in any order."""
    assert call.aggregate is not None
    assert call.aggregate.detail is not None
    assert call.aggregate.detail.user is not None
    return way_of(call.aggregate.detail.user, "explicit", distinct=call.aggregate.distinct)


def _evaluated(call: WindowCall) -> str | None:
    if call.function in _RANKING:
        return _RANKING[call.function]
    if call.aggregate is None or finds_extreme(call):
        return None
    if call.frame.is_whole:
        return "the whole partition when its value has changed"
    if call.frame.start.kind == "unbounded":
        return "the rows behind a change"
    return "the rows before a change" if call.frame.end.kind == "unbounded" else None


def _together(remarks: Collection[str]) -> str:
    return f"({'; '.join(remarks)})" if remarks else ""
