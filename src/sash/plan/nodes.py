"""The logical plan: immutable nodes with their schema. Expressions refer to input columns by position."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property, wraps
from typing import Literal as OneOf
from typing import TypeVar

from sash.plan.expressions import AggregateCall, Expression, remap
from sash.plan.statistics import UNKNOWN, Statistics
from sash.plan.types import BIGINT, BOOLEAN, INT, Field, Schema
from sash.plan.window_calls import WindowCall


@dataclass(frozen=True)
class Range:
    """A time window: a row is valid in [ts, ts + length), or on the grid of `slide` if one is given.

    Lengths are in microseconds. `[NOW]` is a Range of one microsecond.
    """

    length: int
    slide: int | None = None


@dataclass(frozen=True)
class Aligned(Range):
    """The windows that a row is assigned to, where its stream has no window of its own: valid in [ts, end of the last).

    Windows start at multiples of `step` after `origin`, and `length` is the longest life of a row. With `closing` a row is
    valid for the instant of the last window's end, too, at which that window is emitted.
    """

    step: int = 1
    origin: int = 0
    closing: bool = False


@dataclass(frozen=True)
class Rows:
    """A count window: the last `count` rows, of each value of the `partition` columns (positions) if there are any."""

    count: int
    partition: tuple[int, ...] = ()


@dataclass(frozen=True)
class Unbounded:
    """Every row, for ever: `[RANGE UNBOUNDED]`, or a stream used without a window."""


@dataclass(frozen=True)
class Undeclared(Unbounded):
    """No window was written, while a query is bound: an assignment to windows may give the stream one."""


@dataclass(frozen=True)
class TimeWindows:
    """The windows that a time is in: those of `size` microseconds that start at multiples of `step` after `origin`.

    `cumulative` windows start at multiples of `size`, and there is one for each multiple of `step` up to `size`.
    """

    size: int
    step: int
    origin: int = 0
    cumulative: bool = False

    @property
    def most(self) -> int:
        """The largest number of windows that a time is in."""
        return -(-self.size // self.step)


SESSION = "session"
WINDOW_START, WINDOW_END = "window_start", "window_end"
"""The columns that an assignment to windows adds."""

Window = Range | Rows | Unbounded


class _Source:
    @property
    def children(self) -> tuple[Node, ...]:
        return ()


@dataclass(frozen=True)
class _Unary:
    """A node with one input, whose columns it has unless it defines others."""

    child: Node

    @cached_property
    def schema(self) -> Schema:
        return self.child.schema

    @property
    def children(self) -> tuple[Node, ...]:
        return (self.child,)


@dataclass(frozen=True)
class _Binary:
    """A node with two inputs; it has the columns of the left one unless it defines others."""

    left: Node
    right: Node

    @cached_property
    def schema(self) -> Schema:
        return self.left.schema

    @property
    def children(self) -> tuple[Node, ...]:
        return (self.left, self.right)


@dataclass(frozen=True)
class Stream(_Source):
    """A window over a registered stream; the time column is among its columns, at position `time`.

    `statistics` are for estimates only: nodes that differ in nothing else, or in whether they are `endless`, are equal.
    """

    name: str
    schema: Schema
    time: int
    window: Window
    statistics: Statistics = field(default=UNKNOWN, compare=False, repr=False)
    endless: bool = field(default=False, compare=False, repr=False)
    """Whether operators may keep all its rows for ever."""


@dataclass(frozen=True)
class Relation(_Source):
    """A registered relation. `retroactive=False` makes it an NRR; a relation with `changes` is updated while queries run.

    `key` are the positions of its key columns, if it has a key. With `waits`, the query waits for the relation's updates,
    which then have a clock (watermark) of their own. With `timed`, updates carry their times; otherwise they apply from
    their arrival. `constants` are those of alike queries: rows are only added, and removed as a whole, and few, so that all
    updates stay in the log. With `everywhere`, every shard has all rows.
    """

    name: str
    schema: Schema
    retroactive: bool = True
    changes: bool = False
    key: tuple[int, ...] | None = None
    waits: bool = True
    timed: bool = True
    constants: bool = False
    everywhere: bool = False
    statistics: Statistics = field(default=UNKNOWN, compare=False, repr=False)


@dataclass(frozen=True)
class Filter(_Unary):
    """The rows for which the predicate is true (not false, not NULL)."""

    predicate: Expression


@dataclass(frozen=True)
class Project(_Unary):
    """New columns computed from the old; duplicates stay."""

    names: tuple[str, ...]
    expressions: tuple[Expression, ...]

    @cached_property
    def schema(self) -> Schema:
        return tuple(Field(name, e.dtype) for name, e in zip(self.names, self.expressions, strict=True))


@dataclass(frozen=True)
class Expand(_Unary):
    """Several rows per input row: one for each of `lists`, whose expressions are its columns."""

    names: tuple[str, ...]
    lists: tuple[tuple[Expression, ...], ...]

    @cached_property
    def schema(self) -> Schema:
        return tuple(Field(name, e.dtype) for name, e in zip(self.names, self.lists[0], strict=True))

    def passed(self) -> dict[int, Expression]:
        """The columns, by position, that are the same expression in all copies of a row."""
        columns = enumerate(zip(*self.lists, strict=True))
        return {position: made[0] for position, made in columns if all(one == made[0] for one in made)}


@dataclass(frozen=True)
class Generate(_Unary):
    """Every row once per element of `array`: its columns at `columns`, then the position and the element.

    A row without elements is dropped, or with `outer` stays, with NULLs.
    """

    columns: tuple[int, ...]
    array: Expression
    outer: bool = False

    @cached_property
    def schema(self) -> Schema:
        passed = tuple(self.child.schema[column] for column in self.columns)
        return (*passed, Field("pos", INT), Field("col", self.array.dtype.value_type))


@dataclass(frozen=True)
class AssignWindows(_Unary):
    """Every row once per window that its time, the column `time`, is in, with the window's start and end after its columns.

    Rows without a time are dropped.
    """

    time: int
    windows: TimeWindows

    @cached_property
    def schema(self) -> Schema:
        dtype = self.child.schema[self.time].dtype
        return (*self.child.schema, Field(WINDOW_START, dtype), Field(WINDOW_END, dtype))


@dataclass(frozen=True)
class Lifetime(_Unary):
    """Rows that are valid from `start` and until `end`, if that is later and earlier than they are below.

    Both are expressions of a time; a row for which one of them is NULL is never valid.
    """

    start: Expression | None = None
    end: Expression | None = None


@dataclass(frozen=True)
class Sessions(_Unary):
    """Rows with a label after their columns, the same for the rows of a session: those with equal `keys` of which each comes
    at most `gap` microseconds after the one before, by the column `time`. With `gaps`, a column, each row has a gap of its
    own beside that: the session lasts until the latest of the times plus gaps, and a row until then belongs to it.

    If it `closes`, rows leave together, a gap after the last one; otherwise when their windows say so. If it also `emits`, rows
    are valid only then, for an instant.
    """

    keys: tuple[int, ...]
    time: int
    gap: int
    closes: bool
    emits: bool = False
    gaps: int | None = None

    @cached_property
    def schema(self) -> Schema:
        return (*self.child.schema, Field(SESSION, BIGINT))


@dataclass(frozen=True)
class Final(_Unary):
    """EMIT ON WINDOW CLOSE: rows are added when their windows end, and never taken back. It is the top of a plan."""


JoinKind = OneOf["inner", "left", "right", "full", "semi", "anti"]


@dataclass(frozen=True)
class Join(_Binary):
    """A join. `keys` are pairs of columns of one type that must be equal (left position, right position); `condition` is
    a further predicate over the left columns followed by the right ones. A cross join has neither."""

    kind: JoinKind
    keys: tuple[tuple[int, int], ...] = ()
    condition: Expression | None = None

    @cached_property
    def schema(self) -> Schema:
        if self.kind in ("semi", "anti"):
            return self.left.schema
        return self.left.schema + self.right.schema


@dataclass(frozen=True)
class Aggregate(_Unary):
    """GROUP BY the key columns. Without keys it is a global aggregate, which always has one row."""

    keys: tuple[int, ...]
    names: tuple[str, ...]
    aggregates: tuple[AggregateCall, ...]

    @cached_property
    def schema(self) -> Schema:
        keys = tuple(self.child.schema[key] for key in self.keys)
        return keys + tuple(Field(name, a.dtype) for name, a in zip(self.names, self.aggregates, strict=True))


@dataclass(frozen=True)
class Distinct(_Unary):
    """Removes duplicate rows; NULLs are equal."""


@dataclass(frozen=True)
class Union(_Binary):
    """UNION ALL of two inputs of equal types, with the names of the left one. UNION is a Distinct over it."""


@dataclass(frozen=True)
class Except(_Binary):
    """EXCEPT (= MINUS), as sets, or with `all` as bags."""

    all: bool


@dataclass(frozen=True)
class Intersect(_Binary):
    """INTERSECT, as sets, or with `all` as bags."""

    all: bool


@dataclass(frozen=True)
class SortKey:
    """One column of an ORDER BY."""

    column: int
    descending: bool = False
    nulls_first: bool = True


Ranked = OneOf["", "rank", "dense_rank"]
"""The function by which the first rows are chosen: the number of a row, or one that has ties."""


@dataclass(frozen=True)
class TopK(_Unary):
    """The first `limit` rows after `offset`, by `order`; ties are broken by the remaining columns, ascending.

    With columns `by`, the first rows of each combination of their values. With `ranked`, those whose rank, or dense rank, by
    `order` is at most the limit: rows that are equal in the order are not told apart.
    """

    order: tuple[SortKey, ...]
    limit: int
    offset: int = 0
    by: tuple[int, ...] = ()
    ranked: Ranked = ""


@dataclass(frozen=True)
class Over(_Unary):
    """Window functions over partitions of the rows: the columns of the input, then one per call.

    Rows that are equal in the order of a call are ordered by the columns `ties`, ascending, NULLs first.
    """

    partition: tuple[int, ...]
    ties: tuple[int, ...]
    names: tuple[str, ...]
    calls: tuple[WindowCall, ...]

    @cached_property
    def schema(self) -> Schema:
        return self.child.schema + tuple(Field(n, call.dtype) for n, call in zip(self.names, self.calls, strict=True))


@dataclass(frozen=True)
class Alike(_Binary):
    """The answers of alike queries: each row of the left input with the constants of every query that has it in its answer.

    The right input is the relation of constants, whose first column is the number of a query. A query has a row if `keys`,
    pairs of columns of both inputs, are equal and the `condition`, over the left columns followed by the right ones, is
    true. While no row has a query's keys it has the row `otherwise` (constant expressions), if the condition is true for that: a global aggregate
    has a row even without input. With `net`, only the answers at the end of each batch matter, not those at every instant.
    """

    keys: tuple[tuple[int, int], ...] = ()
    condition: Expression | None = None
    otherwise: tuple[Expression, ...] | None = None
    net: bool = False

    @cached_property
    def schema(self) -> Schema:
        return self.left.schema + self.right.schema


Node = (
    Stream
    | Relation
    | Filter
    | Project
    | Expand
    | Generate
    | AssignWindows
    | Lifetime
    | Sessions
    | Final
    | Join
    | Aggregate
    | Distinct
    | Union
    | Except
    | Intersect
    | TopK
    | Over
    | Alike
)

ONE_ROW = Relation("one row", (Field("row", BOOLEAN),), key=(), statistics=Statistics(rows=1, distinct={"row": 1}))
"""The relation that constant queries read, such as VALUES and SELECT without FROM. No registered relation has its name."""


def with_children(node: Node, children: tuple[Node, ...]) -> Node:
    """The same node over other children."""
    match node:
        case Stream() | Relation():
            return node
        case (
            Filter()
            | Project()
            | Expand()
            | Generate()
            | Aggregate()
            | Distinct()
            | TopK()
            | Over()
            | AssignWindows()
            | Lifetime()
            | Sessions()
            | Final()
        ):
            (child,) = children
            return replace(node, child=child)
        case Join() | Union() | Except() | Intersect() | Alike():
            left, right = children
            return replace(node, left=left, right=right)


def walk(node: Node) -> Iterator[Node]:
    """The node and everything below it, top down, left to right."""
    pending = [node]
    while pending:
        found = pending.pop()
        yield found
        pending.extend(reversed(found.children))


def computed(node: Node) -> tuple[Expression, ...]:
    """The expressions that the node itself evaluates on rows of its inputs."""
    match node:
        case Filter():
            return (node.predicate,)
        case Project():
            return node.expressions
        case Expand():
            return tuple(expression for made in node.lists for expression in made)
        case Join(condition=condition) if condition is not None:
            return (condition,)
        case _:
            return ()


Fact = TypeVar("Fact")


def once_per_node(function: Callable[[Node], Fact]) -> Callable[[Node], Fact]:
    """A function of a node and what is below it, computed once for each node, which never changes."""
    name = f"known {function.__module__}.{function.__qualname__}"

    @wraps(function)
    def known(node: Node) -> Fact:
        if name not in node.__dict__:
            node.__dict__[name] = function(node)
        found: Fact = node.__dict__[name]
        return found

    return known


_SIDES: dict[JoinKind, JoinKind] = {"left": "right", "right": "left"}


def mirrored(node: Join) -> Join:
    """The join with its sides exchanged; not for semi and anti joins."""
    split, size = len(node.left.schema), len(node.left.schema) + len(node.right.schema)
    positions = {index: (index + size - split) % size for index in range(size)}
    condition = None if node.condition is None else remap(node.condition, positions)
    keys = tuple((right, left) for left, right in node.keys)
    return Join(node.right, node.left, _SIDES.get(node.kind, node.kind), keys, condition)
