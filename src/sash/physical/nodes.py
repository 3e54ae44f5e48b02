"""The physical plan: one dataclass per operator, the legs that read the sources, and the stages that share a partition key.

What is true of every operator of a kind (whether it keeps state, must process expirations, ...) is in `facts.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from sash.operators.base import Edge
from sash.operators.expiration_choice import ExpirationPlan
from sash.physical.join_plan import JoinPlan
from sash.plan.expressions import AggregateCall, Expression
from sash.plan.nodes import JoinKind, Node, Ranked, Rows, SortKey, TimeWindows, Window
from sash.plan.nodes import Relation as LogicalRelation
from sash.plan.patterns import Pattern
from sash.plan.types import Schema
from sash.plan.window_calls import WindowCall

OutputExpiry = Literal["mono", "fifo", "calendar", "strict", "explicit"]
"""How the rows of an edge end: never, in order of arrival, in any order, in any order unless a retraction comes first, or
by a retraction."""

STAMPED: tuple[OutputExpiry, ...] = ("mono", "fifo", "calendar")
"""The kinds of edges without retractions."""

SetMode = Literal["distinct", "except", "except_all", "intersect", "intersect_all", "semi", "anti"]


@dataclass(frozen=True)
class OutputEdge:
    """The rows that a node outputs: their columns, how they end, and their update pattern.

    `horizon` is the longest life of a row in microseconds (0: unknown or endless); it determines the width of calendar
    partitions above.
    """

    schema: Schema
    expiry: OutputExpiry
    pattern: Pattern
    horizon: int = 0


@dataclass(frozen=True, eq=False, kw_only=True)
class _Node:
    """A node of the plan, with its output edge. Nodes are compared by identity: one may feed two others."""

    output: OutputEdge

    @property
    def schema(self) -> Schema:
        return self.output.schema

    @property
    def expiry(self) -> OutputExpiry:
        return self.output.expiry

    @property
    def pattern(self) -> Pattern:
        return self.output.pattern

    @property
    def horizon(self) -> int:
        return self.output.horizon


@dataclass(frozen=True, eq=False, kw_only=True)
class Leaf(_Node):
    """Reads source leg `leg`, or, once the plan is split into stages, the output of stage `stage`."""

    leg: int | None = None
    stage: int | None = None
    follows: bool = False
    """Made of updates of relations that do not hold the clock back: they take effect at their time, or on arrival."""
    timed: bool = True
    """Whether rows behind the clock count as late; updates without times of their own do not."""
    everywhere: bool = False
    """Whether every shard reads all rows."""
    rows: float = 0.0
    """The estimated number of rows that are valid at a time."""

    @property
    def inputs(self) -> tuple[Physical, ...]:
        return ()


@dataclass(frozen=True)
class Expected:
    """The planner's estimates of an operator: rows per second out, rows kept, premature expirations per second, rows valid
    in its output at a time, and cost per second."""

    rate: float
    kept: float
    premature: float
    rows: float
    cost: float = 0.0


@dataclass(frozen=True, eq=False, kw_only=True)
class _Operator(_Node):
    """An operator over its inputs.

    `expected` holds the estimates of the logical node that it computes, if it computes one. `buffers` describes, per input,
    the buffer that keeps its rows; the last pass of the planner sets it.
    """

    inputs: tuple[Physical, ...]
    expected: Expected | None = None
    buffers: tuple[Edge, ...] = ()

    @property
    def name(self) -> str:
        """The operator's name in EXPLAIN, in counts and in state."""
        return type(self).__name__


@dataclass(frozen=True, eq=False, kw_only=True)
class Filter(_Operator):
    """Passes the rows that satisfy the predicate."""

    predicate: Expression


@dataclass(frozen=True, eq=False, kw_only=True)
class Project(_Operator):
    """Computes the output columns from each row."""

    expressions: tuple[Expression, ...]


@dataclass(frozen=True, eq=False, kw_only=True)
class Expand(_Operator):
    """Several rows per input row: one for each of `lists`, whose expressions are its columns."""

    lists: tuple[tuple[Expression, ...], ...]


@dataclass(frozen=True, eq=False, kw_only=True)
class Generate(_Operator):
    """Each row once per element of an array: the columns at `columns`, the position and the element."""

    columns: tuple[int, ...]
    array: Expression
    outer: bool


@dataclass(frozen=True, eq=False, kw_only=True)
class AssignWindows(_Operator):
    """Outputs each row once per window that its time is in, with the window's start and end."""

    time: int
    windows: TimeWindows


@dataclass(frozen=True, eq=False, kw_only=True)
class Lifetime(_Operator):
    """Narrows the time in which rows are valid; those that begin later wait."""

    start: Expression | None
    end: Expression | None


@dataclass(frozen=True, eq=False, kw_only=True)
class Final(_Operator):
    """Passes insertions, which then stay for ever, and drops retractions."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Sessions(_Operator):
    """Labels the rows of each session. If it `closes`, it retracts them together when the session ends; if it `emits`,
    it outputs them only then, for an instant."""

    keys: tuple[int, ...]
    time: int
    gap: int
    closes: bool
    emits: bool = False
    gaps: int | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class Lookup(_Operator):
    """Joins each row with a table that never changes."""

    relation: Node
    kind: JoinKind
    keys: tuple[tuple[int, int], ...]
    condition: Expression | None


@dataclass(frozen=True, eq=False, kw_only=True)
class Union(_Operator):
    """Merges two inputs (UNION ALL)."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Expire(_Operator):
    """Emits a retraction when a row expires; with `with_expiration`, also the expiration time as a last column."""

    with_expiration: bool = False


@dataclass(frozen=True, eq=False, kw_only=True)
class Sample(_Operator):
    """Moves the times of rows to the next multiples of `slide`."""

    slide: int


@dataclass(frozen=True, eq=False, kw_only=True)
class Combine(_Operator):
    """Partial aggregates of the rows of a batch that have the same lifetime."""

    aggregates: tuple[AggregateCall, ...]


@dataclass(frozen=True, eq=False, kw_only=True)
class Aggregate(_Operator):
    """Aggregates by group.

    `timed`: rows have the times of stream rows; `time` is the column with it, where it is one.
    """

    keys: tuple[int, ...]
    aggregates: tuple[AggregateCall, ...]
    timed: bool = False
    time: int | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class Distinct(_Operator):
    """DISTINCT of stamped rows (delta-star). With `retracting`, it emits a retraction when a value is gone."""

    retracting: bool = False


@dataclass(frozen=True, eq=False, kw_only=True)
class SetOperation(_Operator):
    """Set operators by counts per value, and semi and anti joins by counts of matches."""

    mode: SetMode


@dataclass(frozen=True, eq=False, kw_only=True)
class ExceptAll(_Operator):
    """EXCEPT ALL on a strict edge: the copies that expire first are in the answer."""

    ends: ExpirationPlan


@dataclass(frozen=True, eq=False, kw_only=True)
class Join(_Operator):
    """Symmetric hash join of two inputs.

    With `retracting`, it retracts its results when a row expires, by probing once more. `purge` is the interval of lazy
    expiration. `left_columns` and `right_columns` are those that it outputs (None: all). `shared` tells per input whether
    it reads the rows where the DISTINCT below keeps them.
    """

    keys: tuple[tuple[int, int], ...]
    retracting: bool = False
    purge: int | None = None
    left_columns: tuple[int, ...] | None = None
    right_columns: tuple[int, ...] | None = None
    shared: tuple[bool, bool] = (False, False)


@dataclass(frozen=True, eq=False, kw_only=True)
class IntervalJoin(Join):
    """A join whose condition bounds how far apart in time partners are: a row is kept only while partners may come.

    `lives` are the microseconds for which a row of each input is kept; None: until it expires. Results expire silently, as
    the row of one may be gone before it ends.
    """

    lives: tuple[int | None, int | None]


@dataclass(frozen=True, eq=False, kw_only=True)
class SemiJoin(_Operator):
    """Semi or anti join by keys. With `ends`, the output edge is strict."""

    keys: tuple[tuple[int, int], ...]
    anti: bool
    ends: ExpirationPlan | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class ScalarComparison(_Operator):
    """The rows of the first input whose `value` compares as wanted with the `scalar` of the second, which has one row at most."""

    function: str
    value: Expression
    scalar: Expression


@dataclass(frozen=True, eq=False, kw_only=True)
class NrrJoin(_Operator):
    """Join with a non-retroactive relation: matches are fixed on arrival."""

    kind: JoinKind
    keys: tuple[tuple[int, int], ...]
    condition: Expression | None


@dataclass(frozen=True, eq=False, kw_only=True)
class MultiJoin(_Operator):
    """Join of three or more inputs (two, where a form of it is chosen by an option) in one loop nest per origin.

    `purge_interval` is the interval of lazy expiration; None: expired rows are removed at once, or at every re-execution.
    """

    plan: JoinPlan
    purge_interval: int | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class TopK(_Operator):
    """ORDER BY ... LIMIT, or the first rows by value of the columns `by`; of all that are equal in the order, if `ranked`."""

    order: tuple[SortKey, ...]
    limit: int
    offset: int
    by: tuple[int, ...] = ()
    ranked: Ranked = ""


@dataclass(frozen=True, eq=False, kw_only=True)
class Over(_Operator):
    """Window functions over partitions, with their orders and frames; `ties` order rows that are otherwise equal."""

    partition: tuple[int, ...]
    ties: tuple[int, ...]
    calls: tuple[WindowCall, ...]


@dataclass(frozen=True, eq=False, kw_only=True)
class CountWindow(_Operator):
    """A window of the last n rows, of the stream or of each partition."""

    window: Rows


@dataclass(frozen=True, eq=False, kw_only=True)
class Updates(_Operator):
    """Turns updates of a relation into changes of its rows; `key` are the columns that identify a row."""

    key: tuple[int, ...] | None


@dataclass(frozen=True, eq=False, kw_only=True)
class Alike(_Operator):
    """The answers of alike queries: its input's rows, with the constants of every query that has them in its answer.

    Constants are found by `keys`, pairs of columns of both inputs, and then by `comparison`: a column of the first input, the
    function, and a column of the constants. The `condition` is tested on the pairs found. While no row has a query's keys
    it has the row `otherwise`. With `net`, changes within a batch that cancel out are left out.
    """

    keys: tuple[tuple[int, int], ...]
    comparison: tuple[int, str, int] | None
    condition: Expression | None
    otherwise: tuple[Expression, ...] | None
    net: bool


Operation = (
    Aggregate
    | Alike
    | AssignWindows
    | Combine
    | CountWindow
    | Distinct
    | ExceptAll
    | Expand
    | Expire
    | Filter
    | Final
    | Generate
    | Join
    | Lifetime
    | Lookup
    | MultiJoin
    | NrrJoin
    | Over
    | Project
    | Sample
    | ScalarComparison
    | SemiJoin
    | Sessions
    | SetOperation
    | TopK
    | Union
    | Updates
)
"""Every operator. A match over it has no default, so that mypy names the ones that a new operator is missing from."""

Physical = Leaf | Operation


def walk(node: Physical, seen: set[int] | None = None) -> Iterator[Physical]:
    """The node and everything below it, inputs first, each once."""
    seen = set() if seen is None else seen
    if id(node) in seen:
        return
    seen.add(id(node))
    for child in node.inputs:
        yield from walk(child, seen)
    yield node


def operations(root: Physical) -> list[Operation]:
    """The operators of a tree, inputs first: the order in which a shard runs them."""
    return [node for node in walk(root) if not isinstance(node, Leaf)]


def valid_rows(node: Physical) -> float:
    """The estimated number of rows of the edge that are valid at a time; 0 without an estimate."""
    if isinstance(node, Leaf):
        return node.rows
    return max(map(valid_rows, node.inputs)) if node.expected is None else node.expected.rows


@dataclass(frozen=True)
class StreamLeg:
    """The part right above a stream: what is filtered, computed and looked up before a row is scattered.

    `node` is that part of the logical plan, down to the stream; it has no stateful operator.
    """

    stream: str
    window: Window
    node: Node
    schema: Schema


@dataclass(frozen=True)
class RelationLeg:
    """A relation that never changes, read as rows that are valid from the start."""

    relation: LogicalRelation
    node: Node
    schema: Schema


@dataclass(frozen=True)
class UpdateLeg:
    """The updates of a relation: its columns, then the time at which each update was made."""

    relation: LogicalRelation
    schema: Schema

    @property
    def node(self) -> Node:
        """The part of the logical plan that it reads: the relation alone."""
        return self.relation

    @property
    def stream(self) -> str:
        """The name under which the updates arrive."""
        return self.relation.name


Leg = StreamLeg | RelationLeg | UpdateLeg


@dataclass(frozen=True)
class StageInput:
    """An input of a stage: a leg or an earlier stage, and the columns it is partitioned by (none: all in one shard).

    A `local` input reads an earlier stage that has the same partitions: each shard reads the changes of the same shard, and
    nothing is sent. Of a `common` input, the stage keeps no rows: its channel does, for the windows of several stages, and
    gives out those that end, as retractions (`common_rows.py`).
    """

    leaf: Leaf
    keys: tuple[int, ...]
    local: bool = False
    common: bool = False


@dataclass(frozen=True)
class Stage:
    """A subtree whose stateful operators share one partition key; `single` stages run as one shard.

    `strategy` is the name of the strategy that it was made for. With `tau` changes are released at its multiples only
    (microseconds), each with all changes since the last. `probe` is the period of time probing (None: once per batch), and
    `patience` how long a time may wait for a row that carries it (None: by the lifetime of rows).
    """

    index: int
    root: Physical
    inputs: tuple[StageInput, ...]
    single: bool
    strategy: str = "update-pattern-aware"
    tau: int | None = None
    probe: int | None = None
    patience: int | None = None

    @property
    def operator_names(self) -> list[str]:
        """The operators as stage.position.operator, in the order in which a shard runs them."""
        return [f"{self.index}.{position}.{node.name}" for position, node in enumerate(operations(self.root))]


@dataclass(frozen=True)
class Output:
    """The changes of a query: those of the stage with this index."""

    query: str
    stage: int


@dataclass(frozen=True)
class PhysicalPlan:
    """Legs and stages, of one query or of all queries of a job; a stage reads only legs and earlier stages.

    Every query has an output. The plan of a single query has one, without a name.
    """

    legs: tuple[Leg, ...]
    stages: tuple[Stage, ...]
    outputs: tuple[Output, ...]

    @property
    def root(self) -> Stage:
        """The stage that outputs the changes of a plan's only query."""
        (output,) = self.outputs
        return self.stages[output.stage]

    @property
    def schema(self) -> Schema:
        """The columns of a plan's only query."""
        return self.root.root.schema

    @property
    def strategy(self) -> str:
        """The strategy of a plan's only query."""
        return self.root.strategy

    def outputs_of(self, stage: Stage) -> list[int]:
        """The positions of the outputs that are the changes of a stage."""
        return [number for number, output in enumerate(self.outputs) if output.stage == stage.index]

    def stages_of(self, output: Output) -> list[Stage]:
        """The stages that compute the changes of an output, in the order in which they run."""
        needed = {output.stage}
        for stage in reversed(self.stages):
            if stage.index in needed:
                needed |= {given.leaf.stage for given in stage.inputs if given.leaf.stage is not None}
        return [stage for stage in self.stages if stage.index in needed]

    def queries_of(self, stage: Stage) -> list[str]:
        """The queries whose answers a stage is needed for."""
        return [self.outputs[number].query for number in sorted(self._users[stage.index])]

    @cached_property
    def _users(self) -> list[set[int]]:
        """Per stage, the positions of the outputs that it is needed for."""
        users: list[set[int]] = [set() for _ in self.stages]
        for number, output in enumerate(self.outputs):
            users[output.stage].add(number)
        for stage in reversed(self.stages):
            for given in stage.inputs:
                if given.leaf.stage is not None:
                    users[given.leaf.stage] |= users[stage.index]
        return users
