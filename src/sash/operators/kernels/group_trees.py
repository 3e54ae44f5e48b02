"""The rows of each group in a tree of their own: one row enters or leaves."""

from __future__ import annotations

from sash.operators.kernels.treap import SIZE, Nodes, delete, find, insert
from sash.state.jit import kernel
from sash.state.memory import Ints


@kernel
def apply_event(
    tree: Nodes, roots: Ints, code: int, node: int, added: bool, own: bool, skipped: bool, free: Ints, freed: int
) -> int:
    """Insert the node into the tree of its group, or remove it; returns the number of nodes in `free`.

    With `own` a removal is any node with the key of this one, and nodes that are no longer in use are appended to `free`.
    Otherwise the node itself leaves, if it is in the tree.
    """
    if added:
        if not skipped:
            roots[code] = insert(tree, roots[code], node)
    elif own:
        if not skipped:
            victim = find(tree, roots[code], node)
            if victim < 0:
                raise ValueError("a retracted row does not exist")
            roots[code] = delete(tree, roots[code], victim)
            free[freed] = victim
            freed += 1
    elif tree.cells[node, SIZE] > 0:
        roots[code] = delete(tree, roots[code], node)
    if own and (skipped or not added):
        free[freed] = node
        freed += 1
    return freed
