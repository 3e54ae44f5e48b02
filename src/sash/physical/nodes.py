"""The physical plan: operators with their arguments, legs that read the sources, and stages that share a partition key."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from sash.operators.base import Edge, Expiry
from sash.plan.nodes import Node, Relation, Window
from sash.plan.patterns import Pattern
from sash.plan.types import Schema

OutputExpiry = Literal["mono", "fifo", "calendar", "strict", "explicit"]
"""How the rows of an edge end: never, in order, out of order, out of order unless a `-` row comes before, or by one."""


@dataclass(frozen=True, eq=False)
class Leaf:
    """Where rows come in: from source leg `leg`, or (after the plan is cut) from stage `stage`."""

    schema: Schema
    expiry: OutputExpiry
    pattern: Pattern
    leg: int | None = None
    stage: int | None = None
    horizon: int = 0
    follows: bool = False
    """Made of relations' updates that nobody waits for: they count from their time on, or from when they come."""
    timed: bool = True
    """Whether rows that come behind the clock are late; updates without times of their own are not."""
    rows: float = 0.0
    """How many rows are expected to be valid at a time."""

    @property
    def inputs(self) -> tuple[Physical, ...]:
        return ()


@dataclass(frozen=True)
class Expected:
    """What the planner expects of an operator: rows per second out, rows kept, premature ends per second, rows standing
    in its output."""

    rate: float
    kept: float
    premature: float
    rows: float


@dataclass(frozen=True, eq=False)
class Operation:
    """An operator of the registry over its inputs. Nodes are compared by identity: one node may feed two others.

    `horizon` is the longest life of a row on the output edge in microseconds (0: unknown or endless); it shapes the
    calendar buffers above. `expected` is what is estimated for the logical node that it computes, if it computes one.
    """

    operator: str
    arguments: dict[str, Any]
    inputs: tuple[Physical, ...]
    schema: Schema
    expiry: OutputExpiry
    pattern: Pattern
    horizon: int = 0
    expected: Expected | None = None


Physical = Leaf | Operation

_ROWS_PER_PARTITION = 32
_FEWEST_PARTITIONS, _MOST_PARTITIONS = 16, 1 << 16


def standing(node: Physical) -> float:
    """How many rows of the edge are expected to be valid at a time: rate times life; 0 if nothing is expected."""
    if isinstance(node, Leaf):
        return node.rows
    return max(map(standing, node.inputs)) if node.expected is None else node.expected.rows


def partitions_of(node: Physical, wanted: int | None) -> int:
    """Into how many partitions a calendar puts the rows of the edge: as many as are wanted, else so that few share one."""
    if wanted is not None:
        return wanted
    return int(min(max(standing(node) / _ROWS_PER_PARTITION, _FEWEST_PARTITIONS), _MOST_PARTITIONS))


def edge(node: Physical, never: Expiry, partitions: int) -> Edge:
    """What an operator above is told of this edge; `never` is how rows that never expire are to be taken."""
    expiry: Expiry = never if node.expiry == "mono" else node.expiry
    dtypes = tuple(field.dtype for field in node.schema)
    width = max(1, node.horizon // max(partitions - 2, 1)) if node.horizon else 1_000_000
    return Edge(dtypes, expiry, partitions, width)


def calendar_of(node: Operation, child: Physical) -> Physical:
    """The edge whose rows the operator keeps in the calendar of this input: DISTINCT keeps those that it gives."""
    return node if node.operator == "Distinct" else child


def walk(node: Physical, seen: set[int] | None = None) -> Iterator[Physical]:
    """The node and everything below it, inputs first, each once."""
    seen = set() if seen is None else seen
    if id(node) in seen:
        return
    seen.add(id(node))
    for child in node.inputs:
        yield from walk(child, seen)
    yield node


@dataclass(frozen=True)
class StreamLeg:
    """Straight above a source: what is filtered, computed and looked up before a row is scattered.

    `node` is that part of the logical plan, down to the stream; it has no stateful operator.
    """

    stream: str
    window: Window
    node: Node
    schema: Schema


@dataclass(frozen=True)
class RelationLeg:
    """A relation that never changes, taken in as rows that are there from the start."""

    relation: Relation
    node: Node
    schema: Schema


@dataclass(frozen=True)
class UpdateLeg:
    """The updates of a relation as they come: its columns, then the time at which each was made."""

    relation: Relation
    schema: Schema

    @property
    def node(self) -> Node:
        """The part of the logical plan that it reads: the relation alone."""
        return self.relation

    @property
    def stream(self) -> str:
        """The name under which the updates come."""
        return self.relation.name


Leg = StreamLeg | RelationLeg | UpdateLeg


@dataclass(frozen=True)
class StageInput:
    """An input of a stage: a leg or an earlier stage, and the columns it is partitioned by (none: all in one shard)."""

    leaf: Leaf
    keys: tuple[int, ...]


@dataclass(frozen=True)
class Stage:
    """A subtree whose stateful operators share one partition key; `single` stages run as one shard."""

    index: int
    root: Physical
    inputs: tuple[StageInput, ...]
    single: bool


@dataclass(frozen=True)
class PhysicalPlan:
    """Legs and stages; a stage reads only legs and stages before it, and the last one gives the answer's changes.

    `strategy` is the name of the strategy that it was made for. With `tau` changes come at its multiples only
    (microseconds), each with all changes since the last. `partitions` is how many every calendar has, if that was said.
    """

    legs: tuple[Leg, ...]
    stages: tuple[Stage, ...]
    strategy: str = "update-pattern-aware"
    tau: int | None = None
    partitions: int | None = None

    @property
    def schema(self) -> Schema:
        return self.stages[-1].root.schema
