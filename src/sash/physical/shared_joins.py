"""Joins that several queries of a job need: whether they retract their results, or leave that to an Expire of a reader.

Alone, a join below an answer or a subtractable aggregate retracts its results itself (`retractions.py`,
`passes/retract_from_joins.py`), so that nobody keeps them. A join that is shared does so if none of its readers needs
expiration times. Otherwise its results carry these, and an answer that needs retractions keeps the results in an Expire, if
they are fewer than the rows that another join would keep.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from sash.physical.nodes import (
    Aggregate,
    Distinct,
    Expire,
    Join,
    Leaf,
    Operation,
    OutputEdge,
    Physical,
    Project,
    SetOperation,
    operations,
    valid_rows,
    walk,
)
from sash.physical.passes.retract_from_joins import prefers_retractions
from sash.physical.retractions import is_computed_from_join, with_retractions
from sash.physical.sharing import shared_nodes
from sash.plan.expressions import ORDERED


def retract_shared_joins(roots: Sequence[Physical], stamped: Collection[int]) -> list[Physical]:
    """The trees with shared joins that retract, where all readers can take retractions and one of them prefers these.

    `stamped` are the roots (by identity) whose queries need the expiration times of their rows.
    """
    shared = shared_nodes(roots)
    trees = {id(node): node for root in roots for node in walk(root)}
    readers: dict[int, list[Operation]] = {}
    for node in trees.values():
        if not isinstance(node, Leaf):
            for child in node.inputs:
                readers.setdefault(id(child), []).append(node)
    answers = {id(root) for root in roots}

    def accepts(node: Physical) -> bool:
        return id(node) not in stamped and all(
            accepts(reader) if isinstance(reader, Project) else _accepts_retractions(reader)
            for reader in readers.get(id(node), ())
        )

    def prefers(node: Physical) -> bool:
        return id(node) in answers or any(
            prefers(reader) if isinstance(reader, Project) else prefers_retractions(reader)
            for reader in readers.get(id(node), ())
        )

    changed = {
        key: with_retractions(node, by_joins=True)
        for key, node in trees.items()
        if key in shared and _is_plain_join(node) and accepts(node) and prefers(node)
    }
    return _rebuilt(roots, changed) if changed else list(roots)


def answer(node: Physical, shared: Collection[int], *, by_joins: bool) -> Physical:
    """The answer of a query, each row ended by a retraction, where the query's top operator may be shared with others."""
    if id(node) in shared and node.expiry in ("fifo", "calendar") and _shares_below_expire(node):
        return Expire(inputs=(node,), output=OutputEdge(node.schema, "explicit", node.pattern))
    return with_retractions(node, by_joins=by_joins)


def _shares_below_expire(node: Physical) -> bool:
    """Whether an Expire over a shared operator keeps less than an operator that retracts by itself.

    A DISTINCT that is shared retracts once it is planned again, since another stage reads it.
    """
    if isinstance(node, Distinct):
        return True
    kept = sum(one.expected.kept for one in operations(node) if one.expected is not None)
    return is_computed_from_join(node) and valid_rows(node) <= kept


def _is_plain_join(node: Physical) -> bool:
    """Whether it is a join that expires its rows at once, or computed from one, whose results carry expiration times."""
    if not is_computed_from_join(node) or node.expiry not in ("fifo", "calendar"):
        return False
    return all(below.purge is None for below in walk(node) if isinstance(below, Join))


def _accepts_retractions(node: Operation) -> bool:
    """Whether the operator computes the same from rows that end by retractions; FIRST and LAST go by times of rows."""
    match node:
        case Aggregate():
            return all(call.function not in ORDERED for call in node.aggregates)
        case SetOperation():
            return True
        case _:
            return False


def _rebuilt(roots: Sequence[Physical], changed: dict[int, Physical]) -> list[Physical]:
    """The trees over the changed nodes; a projection of rows with retractions has such, too."""
    made: dict[int, Physical] = dict(changed)
    for root in roots:
        for node in walk(root):
            if id(node) in made:
                continue
            if isinstance(node, Leaf):
                made[id(node)] = node
                continue
            inputs = tuple(made[id(child)] for child in node.inputs)
            if all(new is old for new, old in zip(inputs, node.inputs, strict=True)):
                made[id(node)] = node
                continue
            new = replace(node, inputs=inputs)
            if isinstance(node, Project) and inputs[0].expiry == "explicit":
                new = replace(new, output=OutputEdge(node.schema, "explicit", node.pattern))
            made[id(node)] = new
    return [made[id(root)] for root in roots]
