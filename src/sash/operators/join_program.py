"""The loop nest of a multi-way join: what each level does for the rows of each origin (paper 4, 3.2 to 3.5).

A level loops over one input: over the list of a key that an outer level has bound or, if no equality binds it, over all
rows of the input. Other predicates are checked at the first level at which both rows are bound. The level of the origin,
which is the first in all forms but the naive and the general ones, loops over the new rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sash.plan.expressions import Expression
from sash.state.memory import Ints

FIELDS = 6
INPUT, INDEX, SOURCE, SOURCE_INDEX, FIRST_CHECK, LAST_CHECK = range(FIELDS)
CHECK_FIELDS = 4
OPERATION, MINE, LEVEL, THEIRS = range(CHECK_FIELDS)
COMPARISONS = ("same", "eq", "ne", "lt", "le", "gt", "ge")
"""The checks, by number: equal keys, then comparisons of values."""

MIRRORED = {"eq": "eq", "ne": "ne", "lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}

Attribute = tuple[tuple[int, ...] | None, ...]
"""An attribute on which inputs are equal: the key columns of each input, None for an input without it."""


@dataclass(frozen=True)
class Operand:
    """One side of a comparison: a value of a row of one input."""

    input: int
    value: Expression


@dataclass(frozen=True)
class Theta:
    """A comparison, one of COMPARISONS but the first, between rows of two inputs."""

    comparison: str
    left: Operand
    right: Operand


@dataclass(frozen=True)
class Graph:
    """The attributes on which inputs are equal, and the comparisons between inputs."""

    inputs: int
    attributes: tuple[Attribute, ...]
    thetas: tuple[Theta, ...] = ()

    @property
    def connected(self) -> bool:
        """Whether equalities connect all inputs."""
        return len(self._reached({0})) == self.inputs

    def _reached(self, bound: set[int]) -> set[int]:
        while True:
            more = {j for j in range(self.inputs) if j not in bound and self.shared(j, bound)}
            if not more:
                return bound
            bound = bound | more

    def shared(self, mine: int, bound: set[int]) -> list[tuple[int, int]]:
        """The attributes that an input has in common with bound inputs: (attribute, one such input)."""
        return [
            (number, next(other for other in sorted(bound) if attribute[other] is not None))
            for number, attribute in enumerate(self.attributes)
            if attribute[mine] is not None and any(attribute[other] is not None for other in bound)
        ]

    def compared(self, mine: int, bound: set[int]) -> list[Theta]:
        """The comparisons of an input with bound inputs, with its own side on the left."""
        found = []
        for theta in self.thetas:
            if theta.left.input == mine and theta.right.input in bound:
                found.append(theta)
            elif theta.right.input == mine and theta.left.input in bound:
                found.append(Theta(MIRRORED[theta.comparison], theta.right, theta.left))
        return found

    @property
    def scans(self) -> bool:
        """Whether an input may occur in an order before any of its attributes is bound."""
        common = any(None not in attribute for attribute in self.attributes)
        return not common and (not self.connected or bool(self.thetas))

    def follow(self, order: Sequence[int], origin: int) -> tuple[int, ...]:
        """The order for rows of one origin: the origin first, the others in the given order as the join graph allows."""
        result, left = [origin], [j for j in order if j != origin]
        while left:
            bound = set(result)
            chosen = next((j for j in left if self.shared(j, bound) or self.compared(j, bound)), left[0])
            result.append(chosen)
            left.remove(chosen)
        return tuple(result)


@dataclass(frozen=True)
class Index:
    """The lists of one input by key of one attribute; without an attribute, one list of all its rows."""

    input: int
    attribute: int | None


@dataclass(frozen=True)
class Program:
    """The FIELDS of every level per origin, and the checks that levels refer to."""

    levels: Ints
    checks: Ints


def indexes_of(graph: Graph, scanned: bool) -> tuple[Index, ...]:
    """The indexes of a join: one per input and attribute, and one more for each input that may be scanned."""
    found = []
    for mine in range(graph.inputs):
        found += [Index(mine, number) for number, columns in enumerate(graph.attributes) if columns[mine] is not None]
        if scanned:
            found.append(Index(mine, None))
    return tuple(found)


def compile_program(
    graph: Graph, indexes: Sequence[Index], orders: Sequence[Sequence[int]], operands: Sequence[Sequence[Operand]]
) -> Program:
    """The loop nest of every origin. `operands` has the stored values of each input's rows, in order."""
    position = {index: number for number, index in enumerate(indexes)}
    levels = np.zeros((graph.inputs, graph.inputs, FIELDS), np.int64)
    checks: list[tuple[int, int, int, int]] = []
    for origin, order in enumerate(orders):
        for depth, mine in enumerate(order):
            bound = set(order[:depth])
            above = {other: level for level, other in enumerate(order[:depth])}
            level = levels[origin, depth]
            level[INPUT], level[FIRST_CHECK] = mine, len(checks)
            shared = graph.shared(mine, bound)
            if shared:
                number, other = shared[0]
                level[INDEX], level[SOURCE] = position[Index(mine, number)], above[other]
                level[SOURCE_INDEX] = position[Index(other, number)]
            else:
                level[INDEX], level[SOURCE] = position.get(Index(mine, None), 0), -1
            for number, other in shared[1:]:
                check = (0, position[Index(mine, number)], above[other], position[Index(other, number)])
                checks.append(check)
            for theta in graph.compared(mine, bound):
                other = theta.right.input
                check = (
                    COMPARISONS.index(theta.comparison), operands[mine].index(theta.left),
                    above[other], operands[other].index(theta.right),
                )  # fmt: skip
                checks.append(check)
            level[LAST_CHECK] = len(checks)
    return Program(levels, np.array(checks, np.int64).reshape(-1, CHECK_FIELDS))
