"""Turn a filter by ROW_NUMBER, RANK or DENSE_RANK into the first rows of each partition, kept as such: other rows only wait
in a tree.

The functions that remain are computed over these few rows; where nobody reads them, nothing of them is left.
"""

from __future__ import annotations

from dataclasses import replace

from sash.optimizer.rewriting import bottom_up, filtered
from sash.plan.expressions import Call, Column, Expression, Literal, conjuncts
from sash.plan.nodes import Filter, Node, Over, Project, Ranked, SortKey, TopK
from sash.plan.types import is_integer
from sash.plan.window_calls import WindowCall

_FLIPPED = {"le": "ge", "lt": "gt", "ge": "le", "gt": "lt", "eq": "eq"}
_MOST_ROWS = 2**31 - 1
_RANKED: dict[str, Ranked] = {"row_number": "", "rank": "rank", "dense_rank": "dense_rank"}


def keep_top_rows(plan: Node) -> Node:
    """Keep the first n rows of each partition where a filter asks for rows with ROW_NUMBER() <= n, < n or = n; likewise RANK and
    DENSE_RANK, with all rows that are equal in the order.

    >>> from sash.testing.rewrites import show
    >>> show(keep_top_rows, "SELECT v FROM s [RANGE 1 HOUR] QUALIFY ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC) < 3")
    Project v#2
      Filter row_number() OVER (PARTITION BY k ORDER BY v DESC)#3 < 3
        Over row_number() OVER (ORDER BY v DESC) PARTITION BY k TIES BY ts, k, v
          Stream s [RANGE 1 HOUR]
    =>
    Project v#2
      Over row_number() OVER (ORDER BY v DESC) PARTITION BY k TIES BY ts, k, v
        TopK 2 OF EACH k#1 BY v#2 DESC, ts#0, k#1
          Stream s [RANGE 1 HOUR]
    """
    return bottom_up(plan, _keep)


def _keep(node: Node) -> Node:
    if not isinstance(node, Filter) or not isinstance(node.child, Over):
        return node
    over = node.child
    width = len(over.child.schema)
    parts = conjuncts(node.predicate)
    for part in parts:
        found = _limit(part)
        if found is None or found[0] < width:
            continue
        column, limit, exactly = found
        call = over.calls[column - width]
        if call.function not in _RANKED or not (call.order or call.function == "row_number"):
            continue
        if any(not _looks_back(one, call) for one in over.calls):
            continue
        rest = [one for one in parts if one is not part or (exactly and limit > 1)]
        if _is_kept(over, limit):
            return node
        named = {key.column for key in call.order}
        ranked = _RANKED[call.function]
        ties = () if ranked else (SortKey(tie) for tie in over.ties if tie not in named)
        top = TopK(over.child, (*call.order, *ties), limit, 0, over.partition, ranked)
        return filtered(replace(over, child=top), rest)
    return node


def _is_kept(over: Over, limit: int) -> bool:
    """Whether there are no more rows of each partition than the limit, because the rule was applied before."""
    below, partition = over.child, over.partition
    while isinstance(below, Project):
        parts = [below.expressions[column] for column in partition]
        partition = tuple(part.index for part in parts if isinstance(part, Column))
        below = below.child
    return isinstance(below, TopK) and below.by == partition and below.limit <= limit


def _limit(part: Expression) -> tuple[int, int, bool] | None:
    """The column that a comparison bounds, the largest whole number it may be, and whether it must be that."""
    if not isinstance(part, Call) or part.function not in _FLIPPED:
        return None
    (one, other), function = part.arguments, part.function
    if isinstance(one, Literal):
        one, other, function = other, one, _FLIPPED[function]
    if not isinstance(one, Column) or not isinstance(other, Literal) or not is_integer(other.dtype):
        return None
    if function not in ("le", "lt", "eq") or other.value is None or abs(other.value) > _MOST_ROWS:
        return None
    return one.index, max(int(other.value) - (function == "lt"), 0), function == "eq"


def _looks_back(call: WindowCall, number: WindowCall) -> bool:
    """Whether the function has the same values if rows behind the current one, by the row number, are missing."""
    if call.order != number.order:
        return False
    if call.function in ("row_number", "rank", "dense_rank", "lag"):
        return True
    framed = call.aggregate is not None or call.function in ("first_value", "last_value", "nth_value")
    return framed and call.frame.end.kind == "row" and call.frame.end.offset <= 0
