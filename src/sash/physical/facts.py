"""Facts about every kind of operator, in one match over all of them without a default: mypy reports a new one as missing."""

from __future__ import annotations

from dataclasses import dataclass

from sash.operators.base import Expiry
from sash.physical import nodes
from sash.physical.nodes import Leaf, Operation, Physical


@dataclass(frozen=True)
class Facts:
    """What is true of every operator of a kind.

    `stateless`: it keeps nothing from one batch to the next. `passes_rows`: every output row is made of one input row and
    lives as long as that row. `must_expire`: the expiration of an input row may change the output at that instant (paper 3);
    elsewhere output rows carry an expiration time of their own. `retracts_early`: premature expirations begin here.
    `joins`: it joins its input with another one or with a table. `repeatable`: a stage rebuilt from its live rows outputs
    its rows at the same times; a row of a GROUP BY or DISTINCT may be there because of a row that is gone. `light`: one
    shard can run it at the rate of many, millions of rows a second. `by_arrival`: the rows valid now do not determine its
    output, which depends on when rows came, or on rows that are gone. `endless` is the kind of edge as which it takes an
    input whose rows never expire.
    """

    stateless: bool = False
    passes_rows: bool = False
    must_expire: bool = False
    retracts_early: bool = False
    joins: bool = False
    repeatable: bool = False
    light: bool = False
    by_arrival: bool = False
    endless: Expiry = "explicit"


def facts_of(node: Operation) -> Facts:
    """The facts of the operator's kind."""
    match node:
        case nodes.Filter() | nodes.Project() | nodes.Expand():
            return Facts(stateless=True, passes_rows=True, repeatable=True, light=True)
        case nodes.Generate() | nodes.AssignWindows():
            return Facts(stateless=True, passes_rows=True, repeatable=True, light=True)
        case nodes.Final():
            return Facts(stateless=True, repeatable=True, light=True, by_arrival=True)
        case nodes.Sessions():
            return Facts(must_expire=node.closes, by_arrival=True, endless="fifo")
        case nodes.Lifetime():
            waits = node.start is not None
            return Facts(
                stateless=not waits, must_expire=waits, repeatable=True, light=True, by_arrival=True, endless="calendar"
            )
        case nodes.Lookup():
            return Facts(stateless=True, passes_rows=True, repeatable=True, light=True, joins=True)
        case nodes.Union():
            return Facts(stateless=True, passes_rows=True, repeatable=True, light=True, endless="calendar")
        case nodes.Combine():
            return Facts(stateless=True, repeatable=True, light=True)
        case nodes.Expire():
            return Facts(must_expire=True, repeatable=True, light=True, endless="fifo")
        case nodes.Sample():
            return Facts(must_expire=True, repeatable=True, by_arrival=True)
        case nodes.Distinct():
            return Facts(must_expire=True, light=True, endless="fifo")
        case nodes.Aggregate() | nodes.TopK() | nodes.Over() | nodes.Alike():
            return Facts(must_expire=True)
        case nodes.ExceptAll() | nodes.SetOperation():
            return Facts(must_expire=True, retracts_early=True)
        case nodes.SemiJoin():
            return Facts(must_expire=True, retracts_early=True, joins=True)
        case nodes.ScalarComparison():
            return Facts(must_expire=True, joins=True)
        case nodes.Join():
            return Facts(joins=True, repeatable=True, endless="fifo")
        case nodes.NrrJoin():
            return Facts(joins=True, repeatable=True, by_arrival=True, endless="fifo")
        case nodes.MultiJoin():
            return Facts(joins=True, endless="fifo")
        case nodes.CountWindow():
            return Facts(retracts_early=True, by_arrival=True)
        case nodes.Updates():
            return Facts(light=True, by_arrival=True)


def must_expire(node: Operation) -> bool:
    """Whether the operator must process expirations: by its kind, or because it mixes stamped and explicit inputs.

    A join of a stamped and an explicit input is explicit and retracts its results itself.
    """
    mixed = node.expiry == "explicit" and any(expires_silently(child) for child in node.inputs)
    return facts_of(node).must_expire or mixed


def expires_silently(node: Physical) -> bool:
    """Whether rows of the edge may expire without a retraction."""
    return node.expiry in ("fifo", "calendar", "strict")


def is_repeatable(node: Physical) -> bool:
    """Whether all operators of the tree are repeatable: a join with a non-retroactive relation depends on when rows arrive."""
    return isinstance(node, Leaf) or (facts_of(node).repeatable and all(map(is_repeatable, node.inputs)))
