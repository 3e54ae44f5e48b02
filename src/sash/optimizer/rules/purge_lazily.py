"""Joins take rows that have ended out of their state every so often, where that costs less than to do it as they end.

Of paper 5 (2.1, 5.4.3): a join whose own ends nobody waits for may keep rows that have ended, if it leaves them out when
it probes. The interval is chosen among parts of the windows' length: a longer one purges less often, finds more rows in
vain, and needs more memory, so that more than a tenth is not proposed. (INTERSECT keeps numbers by value here, which must
follow every end.)

By the costs as they are (`plan_cost.SAVED`) no interval is taken, for none was measured to pay. Joins of two windows of
20,000 and of 100,000 rows, in rings and in calendars, by batches of 50 to 5,000 rows, purged at once, took 1.04 times the
time that they take purged lazily where rows have no match (0.95 to 1.19), 0.98 times where they have one (0.85 to 1.08)
and 0.95 times where they have ten (0.84 to 1.02). What the paper saves is that arrivals need not look for rows that have
ended. Here a buffer is asked once per batch and looks at nothing but what has ended; to take a row out costs the same
whenever it is done, and until then it is one more to keep in the processor's caches and, if it matches, to leave out.
`purge=` sets an interval all the same.

>>> import pyarrow as pa
>>> from sash.plan.nodes import Distinct, Range, Stream
>>> from sash.plan.types import Field
>>> one, other = (Stream(name, (Field("ts", pa.int64()),), 0, Range(60_000_000)) for name in "sr")
>>> [next(plan.children[0].purge for plan in purge_lazily(Distinct(Join(one, other, "inner", ((0, 0),)))))]
[600000]
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from sash.plan.nodes import Aggregate, Distinct, Except, Filter, Intersect, Join, Node, Project, TopK, with_children
from sash.plan.patterns import Pattern, is_nonretroactive, is_static, pattern
from sash.plan.rates import Estimates

SHARES = (0.01, 0.02, 0.05, 0.1)
"""Parts of the time that rows live, after which they may be purged."""
_SHORTEST = 1_000


def purge_lazily(plan: Node) -> Iterator[Node]:
    """Give one join an interval."""
    return _below(plan, Estimates(), heard=False)


def _below(node: Node, estimates: Estimates, heard: bool) -> Iterator[Node]:
    """The plans with one join under the node purged lazily; `heard` where something above needs no word of its ends."""
    if heard and isinstance(node, Join) and _is_silent(node):
        yield from (replace(node, purge=interval) for interval in _intervals(node, estimates))
    match node:
        case Aggregate() | Distinct() | Except() | Intersect() | TopK():
            heard = True
        case Join():
            heard = node.kind != "inner"
        case Filter() | Project():
            pass
        case _:
            heard = False
    for place, child in enumerate(node.children):
        for changed in _below(child, estimates, heard):
            yield with_children(node, (*node.children[:place], changed, *node.children[place + 1 :]))


def _is_silent(node: Join) -> bool:
    """Whether the join is one of two inputs whose rows come with their ends, and not part of a larger join."""
    if node.kind != "inner" or node.purge is not None or not node.keys:
        return False
    return all(
        Pattern.MONO < pattern(side) <= Pattern.WK and not is_static(side) and not is_nonretroactive(side)
        for side in node.children
    ) and not any(_is_inner_join(side) for side in node.children)


def _is_inner_join(node: Node) -> bool:
    while isinstance(node, Filter | Project):
        node = node.child
    return isinstance(node, Join) and node.kind == "inner"


def _intervals(node: Join, estimates: Estimates) -> list[int]:
    """Parts of the time that a row of the shorter window lives, in microseconds."""
    sides = [estimates(side) for side in node.children]
    lives = [1e6 * side.rows / side.rate for side in sides if side.rate > 0]
    return sorted({max(_SHORTEST, round(share * min(lives))) for share in SHARES}) if lives else []
