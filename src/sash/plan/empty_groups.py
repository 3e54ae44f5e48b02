"""The value of an aggregate over no rows."""

from __future__ import annotations

from sash.errors import EvaluationError
from sash.plan.expressions import AggregateCall, Call, Expression, Literal

_COUNTS = frozenset({"count", "count_star", "approx_count_distinct"})


def value_of_nothing(call: AggregateCall) -> Expression:
    """0 for counts, an empty array for lists, what the code returns for an aggregate of the user's, and else NULL."""
    if call.function in ("collect_list", "collect_set"):
        return Call("array", (), call.dtype)
    if call.detail is not None and call.detail.user is not None:
        user = call.detail.user
        try:
            made = user.code()
            return Literal(made.result(made.init()), call.dtype)
        except Exception as error:
            raise EvaluationError(
                f"{user.name} (version {user.version}) failed: {type(error).__name__}: {error}"
            ) from error
    return Literal(0 if call.function in _COUNTS else None, call.dtype)
