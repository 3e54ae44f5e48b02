"""Edges above a negation whose rows carry expiration times, and are retracted only if they end prematurely (paper 5, 5.3.2)."""

from __future__ import annotations

from dataclasses import replace

from sash.operators.expiration_choice import COUNTED_RETRACTION, ExpirationPlan
from sash.physical.facts import facts_of
from sash.physical.nodes import ExceptAll, Leaf, Operation, OutputEdge, Physical, SemiJoin, SetOperation
from sash.physical.passes.assign_buffers import partitions_of


def strict_edge(node: Operation, horizon: int) -> OutputEdge:
    """The output edge of the node, with expiration times and retractions."""
    return replace(node.output, expiry="strict", horizon=horizon)


def strict(node: Operation, partitions: int | None) -> Operation:
    """A semi join, anti join or EXCEPT ALL with a strict output edge; any other operator as it is."""
    expected, output = node.expected, strict_edge(node, node.inputs[0].horizon)
    rows = 0.0 if expected is None else expected.rows
    share = expected.premature / expected.rate if expected is not None and expected.rate else None
    match node:
        case SemiJoin():
            made = replace(node, output=output)
            return replace(made, ends=ExpirationPlan(share, rows, partitions_of(made, partitions)))
        case SetOperation(mode="except_all"):
            known = partitions_of(node, partitions)
            ends = ExpirationPlan(share, rows, known, retraction=COUNTED_RETRACTION, together=False)
            return ExceptAll(ends=ends, inputs=node.inputs, expected=expected, output=output)
        case _:
            return node


def by_calendar(node: Physical) -> Physical | None:
    """The rows of a negation, or computed from them one by one, all with expiration times; None where these are not certain.

    For a result that is kept in sub-windows by expiration time: an end in time needs no further row there, and a premature
    one as many as any end would without expiration times. So this never costs more, whatever the share of premature ends,
    and need not change. It must not: a shard that is rebuilt gives every row the time that it had. For that, the rows of
    EXCEPT ALL must expire in order.
    """
    if isinstance(node, Leaf):
        return None
    if facts_of(node).passes_rows and len(node.inputs) == 1:
        child = by_calendar(node.inputs[0])
        return None if child is None else replace(node, inputs=(child,), output=strict_edge(node, child.horizon))
    match node:
        case SemiJoin() if node.inputs[0].expiry in ("fifo", "calendar"):
            made = strict(node, None)
        case SetOperation(mode="except_all") if node.inputs[0].expiry == "fifo":
            made = strict(node, None)
        case _:
            return None
    assert isinstance(made, SemiJoin | ExceptAll)
    assert made.ends is not None
    return replace(made, ends=replace(made.ends, share=0.0, fixed=True))
