"""Edges on which every end is said: what has to be done for it, by who gave the rows."""

from __future__ import annotations

from dataclasses import replace

from sash.physical.nodes import Operation, Physical, walk
from sash.plan.types import BIGINT, Field

ENDS = Field("_ends", BIGINT)
"""The column with the time at which a row is to expire."""


def explicit(node: Physical, speaking: bool = False) -> Physical:
    """The same rows with every end said: an Expire operator, where rows expire by themselves.

    DISTINCT says it itself; with `speaking` joins do, too: what they gave is found again by probing, not kept.
    """
    if node.expiry in ("explicit", "mono"):
        return node
    if isinstance(node, Operation):
        kept = {name: value for name, value in node.arguments.items() if name != "purge"}
        spoken = replace(node, arguments={**kept, "retracting": True}, expiry="explicit", horizon=0)
        if node.operator == "Distinct" or (speaking and node.operator == "Join"):
            return spoken
        if speaking and node.operator == "Project" and speaks(node):
            (child,) = node.inputs
            return replace(node, inputs=(explicit(child, speaking),), expiry="explicit", horizon=0)
    return Operation("Expire", {}, (node,), node.schema, "explicit", node.pattern)


def telling(node: Physical) -> Physical | None:
    """The same rows with every end said, and told in a last column from the beginning; None where ends are not known.

    A DISTINCT that is built anew after a failure may choose other ends for its rows, so they are not told.
    """
    if node.expiry not in ("fifo", "calendar"):
        return None
    if any(isinstance(below, Operation) and below.operator == "Distinct" for below in walk(node)):
        return None
    return Operation("Expire", {"with_expiration": True}, (node,), (*node.schema, ENDS), "explicit", node.pattern)


def speaks(node: Physical) -> bool:
    """Whether the node is a join, or computes columns of one: what is taken back is computed again, which costs less than
    to keep it."""
    if not isinstance(node, Operation):
        return False
    return node.operator == "Join" or (node.operator == "Project" and speaks(node.inputs[0]))
