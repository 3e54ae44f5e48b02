"""Edges on which every row ends by a retraction: what is needed for that depends on the operator below."""

from __future__ import annotations

from dataclasses import replace

from sash.physical.nodes import Distinct, Expire, IntervalJoin, Join, OutputEdge, Physical, Project, walk
from sash.physical.strict_edges import by_calendar
from sash.plan.types import BIGINT, Field

EXPIRES = Field("_ends", BIGINT)
"""The column with the time at which a row will expire."""


def with_retractions(node: Physical, *, by_joins: bool = False) -> Physical:
    """The same rows, each ended by a retraction: through an Expire operator, where rows expire silently.

    DISTINCT retracts by itself. With `by_joins` joins do, too: they find their results again by probing instead of keeping
    them.
    """
    if node.expiry in ("explicit", "mono"):
        return node
    explicit = OutputEdge(node.schema, "explicit", node.pattern)
    match node:
        case Distinct():
            return replace(node, retracting=True, output=explicit)
        case Join() if by_joins and not isinstance(node, IntervalJoin):
            return replace(node, retracting=True, purge=None, output=explicit)
        case Project() if by_joins and is_computed_from_join(node):
            (child,) = node.inputs
            return replace(node, inputs=(with_retractions(child, by_joins=True),), output=explicit)
        case _:
            return Expire(inputs=(node,), output=explicit)


def with_expiration_column(node: Physical) -> Physical | None:
    """The same rows with retractions and, as a last column, their expiration times; None where these are not known.

    A row of a negation may be retracted before its time, with the same last column.
    A DISTINCT that is rebuilt after a failure may choose other expiration times for its rows, so they are not known.
    """
    if any(isinstance(below, Distinct) for below in walk(node)):
        return None
    ending = node if node.expiry in ("fifo", "calendar") else by_calendar(node)
    if ending is None:
        return None
    output = OutputEdge((*node.schema, EXPIRES), "explicit", node.pattern)
    return Expire(with_expiration=True, inputs=(ending,), output=output)


def is_computed_from_join(node: Physical) -> bool:
    """Whether the node is a join or computes columns of one: computing retracted rows again is cheaper than keeping them."""
    match node:
        case Join():
            return not isinstance(node, IntervalJoin)
        case Project():
            return is_computed_from_join(node.inputs[0])
        case _:
            return False
