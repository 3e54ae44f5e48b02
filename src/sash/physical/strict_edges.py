"""Which edges above a negation may have their rows' ends told either way, by calendar or by negative tuples.

Those between a semi or anti join or an EXCEPT ALL of stamped rows and joins of the same stage, with nothing in between but
what lets rows pass: a join keeps its rows one by one. Aggregates and set operations that are told every end keep counts
alone, which no calendar betters. An answer, and what another stage reads, has every end said.

EXCEPT has no such choice: it gives a value once, however many rows have it, and says nothing as long as there are some. By
calendar the row that ends would have to be replaced by the next, again and again. Nor has INTERSECT ALL: a copy ends with a
row of either side, so that what a left row carries is not when its copy goes.
"""

from __future__ import annotations

from dataclasses import replace

from sash.operators.expiration_choice import COUNTED_RETRACTION, ExpirationPlan
from sash.physical.nodes import Operation, Physical, partitions_of, walk

_PASSING = frozenset({"Filter", "Lookup", "Project", "Union"})


def with_strict_edges(root: Physical, partitions: int | None) -> Physical:
    """The operators of a stage, where some explicit edges have become strict; `partitions` is as in the options."""
    above: dict[int, list[Operation]] = {}
    for node in walk(root):
        for child in node.inputs:
            assert isinstance(node, Operation)
            above.setdefault(id(child), []).append(node)

    def kept(node: Physical) -> bool:
        """Whether all operators that the rows reach keep them one by one."""
        return node is not root and all(
            (user.operator in _PASSING and kept(user)) or node in _kept_rows(user) for user in above[id(node)]
        )

    made: dict[int, Physical] = {}
    for node in walk(root):
        made[id(node)] = node
        if isinstance(node, Operation):
            inputs = tuple(made[id(child)] for child in node.inputs)
            changed = any(new is not old for new, old in zip(inputs, node.inputs, strict=True))
            over = replace(node, inputs=inputs) if changed else node
            if node.operator in _PASSING and any(child.expiry == "strict" for child in inputs):
                horizon = max(child.horizon for child in inputs)
                over = replace(over, expiry="strict", horizon=horizon)
            elif _negates(node) and inputs[0].expiry in ("fifo", "calendar") and kept(node):
                over = _strict(over, partitions)
            made[id(node)] = over
    return made[id(root)]


def _kept_rows(user: Operation) -> tuple[Physical, ...]:
    """The inputs whose rows the operator keeps one by one, and finds by their values."""
    if user.operator == "SemiJoin":
        return user.inputs[:1]
    return user.inputs if user.operator in ("Join", "MultiJoin") else ()


def _negates(node: Operation) -> bool:
    return node.operator == "SemiJoin" or node.arguments.get("mode") == "except_all"


def _strict(node: Operation, partitions: int | None) -> Operation:
    strict = replace(node, expiry="strict", horizon=node.inputs[0].horizon)
    expected = node.expected
    share = expected.premature / expected.rate if expected is not None and expected.rate else None
    ends = ExpirationPlan(share, 0.0 if expected is None else expected.rows, partitions_of(strict, partitions))
    if node.operator == "SetOperation":
        return replace(strict, operator="ExceptAll", arguments={"ends": replace(ends, retraction=COUNTED_RETRACTION)})
    return replace(strict, arguments={**node.arguments, "ends": ends})
