"""What EXPLAIN says of aggregates whose changes cost more than one step, or the logarithm of the group's rows."""

from __future__ import annotations

from collections.abc import Sequence

from sash.plan.expressions import COLLECTED, AggregateCall
from sash.plan.user_code import way_of

_WAYS = {
    "remove": "one state per group, rows are taken back with remove",
    "merge": "two stacks of merged states per group",
    "recompute": "computed anew from all rows of a group at each change",
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
    return f"({'; '.join(f'{name}: {remark}' for name, remark in remarks.items())})" if remarks else ""
