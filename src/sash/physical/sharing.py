"""Which operators of a job several queries read: they run once, in a stage of their own."""

from __future__ import annotations

from collections.abc import Sequence

from sash.physical.nodes import Leaf, Physical, operations, walk


def shared_nodes(roots: Sequence[Physical]) -> frozenset[int]:
    """The nodes (by identity) at which the queries with these roots part.

    These are the nodes that several queries use and that are read by an operator which fewer of them use. Equal queries
    have one root and count as one.
    """
    users: dict[int, set[int]] = {}
    trees = {id(root): list(walk(root)) for root in roots}
    for number, tree in enumerate(trees.values()):
        for node in tree:
            users.setdefault(id(node), set()).add(number)
    return frozenset(
        id(child)
        for tree in trees.values()
        for node in tree
        for child in node.inputs
        if len(users[id(child)]) > 1 and users[id(child)] != users[id(node)]
    )


def is_worth_a_stage(node: Physical) -> bool:
    """Whether running the tree once saves more than sending its rows to several readers costs.

    Not so for a scan, even where it retracts its rows or turns updates of a relation into changes: each reader scans anew.
    """
    return any(operation.name not in _SCANNING for operation in operations(node)) and not isinstance(node, Leaf)


_SCANNING = frozenset({"Combine", "Expire", "Filter", "Lookup", "Project", "Sample", "Union", "Updates"})
