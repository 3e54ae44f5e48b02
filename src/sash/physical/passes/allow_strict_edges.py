"""Choose the edges above a negation whose rows may end either way, by calendar or by retractions (paper 5, 5.3.2).

These are the edges between a semi join, anti join or EXCEPT ALL of stamped rows and the joins of the same stage, with
nothing in between but operators that pass rows on: a join keeps its rows one by one. Aggregates and set operations that
receive a retraction for every row keep counts alone, which no calendar improves on. The answer has retractions, too; where
it is kept, its rows have expiration times (`strict_edges.by_calendar`). What other stages read may have expiration times if
it comes from a semi or anti join and all of these stages keep its rows one by one (`strict_stages.py`).

EXCEPT has no such choice: it outputs a value once, however many rows have it, and emits nothing as long as some remain. By
calendar the row that expires would have to be replaced by the next one, again and again. Nor has INTERSECT ALL: a copy ends
with a row of either side, so the expiration time of a left row is not that of its copy.
"""

from __future__ import annotations

from dataclasses import replace

from sash.physical.facts import facts_of
from sash.physical.nodes import Join, MultiJoin, Operation, Physical, SemiJoin, operations
from sash.physical.passes.base import PlannerSettings, rebuild
from sash.physical.strict_edges import strict, strict_edge


def allow_strict_edges(root: Physical, settings: PlannerSettings) -> Physical:
    """Make explicit edges strict where the negation below may choose, at run time, how its rows end."""
    if not settings.strategy.adaptive_expiration:
        return root
    kept = KeptRows(root)

    def change(old: Operation, node: Operation) -> Physical:
        if facts_of(node).passes_rows and any(child.expiry == "strict" for child in node.inputs):
            return replace(node, output=strict_edge(node, max(child.horizon for child in node.inputs)))
        if node.inputs[0].expiry in ("fifo", "calendar") and kept(old):
            return strict(node, settings.options.partitions)
        return node

    return rebuild(root, change)


class KeptRows:
    """Whether all operators of a stage that the rows of a node reach keep them one by one."""

    def __init__(self, root: Physical) -> None:
        self._root = root
        self._above: dict[int, list[Operation]] = {}
        for node in operations(root):
            for child in node.inputs:
                self._above.setdefault(id(child), []).append(node)

    def __call__(self, node: Physical) -> bool:
        return node is not self._root and all(
            (facts_of(reader).passes_rows and self(reader)) or node in _kept_rows(reader)
            for reader in self._above[id(node)]
        )


def _kept_rows(reader: Operation) -> tuple[Physical, ...]:
    """The inputs whose rows the operator keeps one by one and finds by their values."""
    match reader:
        case SemiJoin():
            return reader.inputs[:1]
        case Join() | MultiJoin():
            return reader.inputs
        case _:
            return ()
