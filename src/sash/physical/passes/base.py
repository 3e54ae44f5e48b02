"""What the passes over a stage's operators share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace

from sash.physical.nodes import Leaf, Operation, Physical, walk
from sash.physical.strategies.base import Strategy
from sash.plan.options import Options


@dataclass(frozen=True)
class PlannerSettings:
    """What passes decide by: the query's options and its strategy."""

    options: Options
    strategy: Strategy


Pass = Callable[[Physical, PlannerSettings], Physical]
"""Takes the root of a stage and returns it changed, or the same object where there is nothing to change."""


def rebuild(root: Physical, change: Callable[[Operation, Operation], Physical]) -> Physical:
    """The tree with every operator replaced by what `change` makes of it, inputs first.

    `change` gets the operator as it was and the same operator over its changed inputs. An operator with several readers is
    changed once and stays shared.
    """
    made: dict[int, Physical] = {}
    for node in walk(root):
        if isinstance(node, Leaf):
            made[id(node)] = node
            continue
        inputs = tuple(made[id(child)] for child in node.inputs)
        same = all(new is old for new, old in zip(inputs, node.inputs, strict=True))
        made[id(node)] = change(node, node if same else replace(node, inputs=inputs))
    return made[id(root)]


def readers(root: Physical) -> Counter[int]:
    """The number of operators that read each node, by its identity."""
    return Counter(id(child) for node in walk(root) for child in node.inputs)
