"""Regions of a stage: the operators whose output at an instant is determined by the rows that are valid then.

Re-evaluation computes a region's answer anew from its inputs. These are inputs of the stage and the outputs of operators
that go by the arrival of rows, such as `[ROWS n]` windows, which run as they do under other strategies.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sash.errors import StrategyError
from sash.physical.facts import facts_of
from sash.physical.nodes import Leaf, Leg, Operation, Physical, StreamLeg, operations


@dataclass(frozen=True)
class Region:
    """The operators that compute the output of `root`, in the order in which they run, and what they read."""

    root: Operation
    operations: tuple[Operation, ...]
    inputs: tuple[Physical, ...]


def regions_of(root: Physical) -> list[Region]:
    """The regions of a stage: those of its root, and of what operators that go by arrival read."""
    order = operations(root)
    ends: dict[int, Operation] = {} if isinstance(root, Leaf) else {id(root): root}
    for node in order:
        if facts_of(node).by_arrival:
            ends |= {id(child): child for child in node.inputs if not isinstance(child, Leaf)}
    return [_region(node, order) for node in order if id(node) in ends and not facts_of(node).by_arrival]


def _region(root: Operation, order: Sequence[Operation]) -> Region:
    mine = {id(root)}
    read: dict[int, Physical] = {}
    for node in reversed(order):
        if id(node) not in mine:
            continue
        for child in node.inputs:
            if isinstance(child, Leaf) or facts_of(child).by_arrival:
                read[id(child)] = child
            else:
                mine.add(id(child))
    return Region(root, tuple(node for node in order if id(node) in mine), tuple(read.values()))


def refuse_endless_windows(root: Physical, legs: Sequence[Leg]) -> None:
    """Refuse to keep the rows of a window that never ends, which computing an answer anew needs."""
    for region in regions_of(root):
        for node in region.inputs:
            leg = legs[node.leg] if isinstance(node, Leaf) and node.leg is not None else None
            if isinstance(leg, StreamLeg) and node.expiry == "mono":
                raise StrategyError(
                    f"strategy 're-evaluation' keeps all rows of a window, and those of {leg.stream} never end: give "
                    f"{leg.stream} a window of a length, such as [RANGE 1 HOUR], or use another strategy"
                )
