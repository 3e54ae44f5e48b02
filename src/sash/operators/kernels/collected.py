"""The loop of aggregates that return the rows of their group: rows enter and leave the tree of their group, which is walked
in order at every version."""

from __future__ import annotations

import numpy as np

from sash.operators.kernels.group_trees import apply_event
from sash.operators.kernels.touches import Events, Mask
from sash.operators.kernels.treap import LEFT, RIGHT, SIZE, Nodes
from sash.state.jit import grown, kernel
from sash.state.memory import Ints

_DEEPEST = 4096


@kernel
def collect_rows(
    events: Events, nodes: Ints, own: bool, skip: Mask, tree: Nodes, roots: Ints, codes: Ints, distinct: int,
    limit: int, backward: bool, starts: Ints, sizes: Ints,
) -> tuple[Ints, Ints]:  # fmt: skip
    """The nodes of every version, in order, from `starts` on as many as `sizes`; and the nodes that are free again.

    At most `limit` nodes per version, the last first if `backward`. If `distinct` is positive, `codes` are by node and below
    it, and only the first node with each code is returned. With `own` a removal is any node with the key of the event's
    node; otherwise the event's node itself leaves, if it is in the tree.
    """
    free = np.empty(2 * len(nodes) if own else 0, np.int64)
    freed = 0
    found = np.empty(1024, np.int64)
    used = 0
    seen = np.zeros(distinct, np.int64)
    stack = np.empty(_DEEPEST, np.int64)
    for index in range(len(events.first_group) + len(events.order)):
        if index < len(events.first_group):
            code, version = events.first_group[index], events.first_version[index]
        else:
            event = index - len(events.first_group)
            position = events.order[event]
            code, version = events.group[position], events.version[event]
            skipped = len(skip) > 0 and skip[position]
            freed = apply_event(
                tree, roots, code, nodes[position], events.sign[position] > 0, own, skipped, free, freed
            )
        if version < 0:
            continue
        root = roots[code]
        starts[version] = used
        size = 0 if root == 0 else min(limit, tree.cells[root - 1, SIZE])
        if used + size > len(found):
            found = grown(found, used + size)
        used = _walk(tree, root, backward, used + size, codes, seen, index + 1, stack, found, used)
        sizes[version] = used - starts[version]
    return found[:used], free[:freed].copy()


@kernel
def _walk(
    tree: Nodes,
    root: int,
    backward: bool,
    end: int,
    codes: Ints,
    seen: Ints,
    mark: int,
    stack: Ints,
    found: Ints,
    used: int,
) -> int:
    """Write the nodes of the tree in order, up to `end`; returns the end of those written."""
    near, far = (RIGHT, LEFT) if backward else (LEFT, RIGHT)
    depth = 0
    here = root
    while (here != 0 or depth > 0) and used < end:
        while here != 0:
            stack[depth] = here
            depth += 1
            here = tree.cells[here - 1, near]
        depth -= 1
        node = stack[depth] - 1
        if len(seen) == 0:
            found[used] = node
            used += 1
        elif seen[codes[node]] != mark:
            seen[codes[node]] = mark
            found[used] = node
            used += 1
        here = tree.cells[node, far]
    return used
