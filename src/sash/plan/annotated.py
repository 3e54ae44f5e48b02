"""A logical plan whose nodes carry the update pattern of their output."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sash.plan.nodes import Node
from sash.plan.patterns import Pattern, pattern
from sash.plan.tree import label
from sash.plan.types import Schema


@dataclass(frozen=True)
class PlanNode:
    """A node of the plan with its kind (`Join`, `Distinct`, ...), EXPLAIN label, columns, update pattern and inputs."""

    node: Node
    pattern: Pattern
    children: tuple[PlanNode, ...]

    @property
    def kind(self) -> str:
        """The name of the operator."""
        return type(self.node).__name__

    @property
    def label(self) -> str:
        """The line that EXPLAIN prints for the node."""
        return label(self.node)

    @property
    def schema(self) -> Schema:
        """The columns of its output."""
        return self.node.schema

    def walk(self) -> Iterator[PlanNode]:
        """The node and everything below it, top down, left to right."""
        yield self
        for child in self.children:
            yield from child.walk()


def annotated(node: Node) -> PlanNode:
    """The plan with the update pattern of every node.

    >>> from sash.plan.nodes import Distinct, Range, Stream
    >>> from sash.plan.types import BIGINT, Field
    >>> plan = annotated(Distinct(Stream("s", (Field("ts", BIGINT),), 0, Range(5))))
    >>> [(node.kind, node.pattern.label) for node in plan.walk()]
    [('Distinct', 'WK'), ('Stream', 'WKS')]
    """
    return PlanNode(node, pattern(node), tuple(annotated(child) for child in node.children))
