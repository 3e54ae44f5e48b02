"""Plans made up at random, over two streams, a relation that changes and two tables of small numbers and NULLs."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from sash.plan.expressions import AggregateCall, Call, Cast, Column, Expression, Literal
from sash.plan.nodes import (
    Aggregate,
    AssignWindows,
    Distinct,
    Except,
    Expand,
    Filter,
    Generate,
    Intersect,
    Join,
    JoinKind,
    Lifetime,
    Node,
    Over,
    Project,
    Range,
    Relation,
    Sessions,
    SortKey,
    Stream,
    TimeWindows,
    TopK,
    Union,
)
from sash.plan.types import BIGINT, BOOLEAN, Field, Schema
from sash.plan.window_calls import RUNNING, RUNNING_ROWS, WHOLE, Bound, Frame, WindowCall
from tests.optimizer.reference import Row, Sources

FRAMES = (
    WHOLE,
    RUNNING,
    RUNNING_ROWS,
    Frame(Bound("row", -1), Bound("row", 1)),
    Frame(Bound("row", -2), Bound("row", -1)),
)
WINDOWS = (TimeWindows(2, 2), TimeWindows(2, 1), TimeWindows(3, 1, cumulative=True), TimeWindows(2, 2, 1))
KINDS: tuple[JoinKind, ...] = ("inner", "inner", "inner", "left", "right", "full", "semi", "anti")


def _schema(names: str) -> Schema:
    return tuple(Field(name, BIGINT) for name in names.split())


SOURCES: tuple[Stream | Relation, ...] = (
    Stream("s", _schema("ts k v w"), 0, Range(10)),
    Stream("t", _schema("ts k v"), 0, Range(20)),
    Relation("f", _schema("k name")),
    Relation("g", _schema("k v name")),
    Relation("c", _schema("k v"), changes=True),
)


def random_sources(chance: random.Random) -> Sources:
    """Some rows for every source."""

    def row(width: int) -> Row:
        return tuple(chance.choice((None, 0, 1, 1, 2)) for _ in range(width))

    return {source.name: [row(len(source.schema)) for _ in range(chance.randrange(7))] for source in SOURCES}


class PlanMaker:
    """Makes plans of a given depth; `failing` puts in predicates that fail on zero."""

    def __init__(self, chance: random.Random, failing: bool) -> None:
        self._chance = chance
        self._failing = failing

    def plan(self, depth: int) -> Node:
        if depth == 0:
            return self._chance.choice(SOURCES)
        makers = (
            self._filter,
            self._filter,
            self._project,
            self._expand,
            self._join,
            self._join,
            self._join,
            self._aggregate,
            self._distinct,
            self._set_operation,
            self._top_k,
            self._over,
            self._over,
            self._first_by_number,
            self._first_by_number,
            self._generate,
            self._assign_windows,
            self._lifetime,
            self._sessions,
        )
        return self._chance.choice(makers)(depth)

    def _below(self, depth: int) -> Node:
        return self.plan(self._chance.randrange(depth))

    def _column(self, schema: Schema) -> Column:
        index = self._chance.randrange(len(schema))
        return Column(index, schema[index].name, BIGINT)

    def _predicate(self, schema: Schema) -> Expression:
        column = self._column(schema)
        match self._chance.randrange(7 if self._failing else 6):
            case 0:
                return Call("is_null", (column,), BOOLEAN)
            case 1:
                return Call("eq", (column, self._column(schema)), BOOLEAN)
            case 2:
                parts = self._predicate(schema), self._predicate(schema)
                return Call(self._chance.choice(("and", "and", "or")), parts, BOOLEAN)
            case 6:
                quotient = Call("divide", (Literal(2, BIGINT), column), BIGINT)
                return Call("gt", (quotient, Literal(1, BIGINT)), BOOLEAN)
            case _:
                literal = Literal(self._chance.randrange(3), BIGINT)
                return Call(self._chance.choice(("eq", "ne", "gt", "le")), (column, literal), BOOLEAN)

    def _filter(self, depth: int) -> Node:
        child = self.plan(depth - 1)
        return Filter(child, self._predicate(child.schema))

    def _expression(self, schema: Schema) -> Expression:
        column = self._column(schema)
        if self._chance.random() < 0.8:
            return column
        return Call("add", (column, self._column(schema)), BIGINT)

    def _project(self, depth: int) -> Node:
        return self._projected(self.plan(depth - 1), self._chance.randrange(1, 4))

    def _projected(self, node: Node, width: int) -> Node:
        names = tuple(f"p{place}" for place in range(width))
        return Project(node, names, tuple(self._expression(node.schema) for _ in range(width)))

    def _expand(self, depth: int) -> Node:
        """Copies of rows; half of the columns are the same in all of them."""
        child, width = self.plan(depth - 1), self._chance.randrange(1, 4)
        same = [self._expression(child.schema) if self._chance.random() < 0.5 else None for _ in range(width)]
        lists = tuple(
            tuple(self._copied(child.schema) if made is None else made for made in same)
            for _ in range(self._chance.randrange(1, 4))
        )
        return Expand(child, tuple(f"e{place}" for place in range(width)), lists)

    def _copied(self, schema: Schema) -> Expression:
        return Literal(None, BIGINT) if self._chance.random() < 0.3 else self._expression(schema)

    def _join(self, depth: int) -> Node:
        sides: Sequence[Node] = (self.plan(depth - 1), self._below(depth))
        left, right = sides if self._chance.random() < 0.7 else sides[::-1]
        keys = {
            (self._chance.randrange(len(left.schema)), self._chance.randrange(len(right.schema)))
            for _ in range(self._chance.choice((0, 1, 1, 1, 2)))
        }
        condition = self._predicate(left.schema + right.schema) if self._chance.random() < 0.3 else None
        return Join(left, right, self._chance.choice(KINDS), tuple(sorted(keys)), condition)

    def _aggregate(self, depth: int) -> Node:
        child = self.plan(depth - 1)
        columns = range(len(child.schema))
        keys = tuple(self._chance.sample(columns, min(len(columns), self._chance.randrange(3))))
        calls = [self._call(child.schema) for _ in range(self._chance.randrange(1, 3))]
        return Aggregate(child, keys, tuple(f"a{place}" for place in range(len(calls))), tuple(calls))

    def _call(self, schema: Schema) -> AggregateCall:
        function = self._chance.choice(("sum", "count", "count", "min", "max", "count_star"))
        if function == "count_star":
            return AggregateCall(function, (), BIGINT)
        return AggregateCall(function, (self._column(schema),), BIGINT, distinct=self._chance.random() < 0.5)

    def _distinct(self, depth: int) -> Node:
        child = self.plan(depth - 1)
        return Distinct(child if self._chance.random() < 0.4 else self._projected(child, self._chance.randrange(1, 3)))

    def _set_operation(self, depth: int) -> Node:
        width = self._chance.randrange(1, 3)
        left, right = (self._projected(node, width) for node in (self.plan(depth - 1), self._below(depth)))
        match self._chance.randrange(3):
            case 0:
                return Union(left, right)
            case 1:
                return Except(left, right, all=self._chance.random() < 0.5)
            case _:
                return Intersect(left, right, all=self._chance.random() < 0.5)

    def _order(self, schema: Schema, count: int) -> tuple[SortKey, ...]:
        columns = self._chance.sample(range(len(schema)), min(count, len(schema)))
        return tuple(SortKey(c, self._chance.random() < 0.5, self._chance.random() < 0.5) for c in columns)

    def _some(self, schema: Schema, most: int) -> tuple[int, ...]:
        return tuple(self._chance.sample(range(len(schema)), min(len(schema), self._chance.randrange(most + 1))))

    def _top_k(self, depth: int) -> Node:
        child = self.plan(depth - 1)
        by = self._some(child.schema, 2) if self._chance.random() < 0.5 else ()
        ranked = self._chance.choice(("", "", "rank", "dense_rank"))
        offset = 0 if ranked else self._chance.choice((0, 0, 1))
        return TopK(child, self._order(child.schema, 1), self._chance.randrange(1, 4), offset, by, ranked)

    def _over(self, depth: int) -> Node:
        child = self.plan(depth - 1)
        order = self._order(child.schema, self._chance.randrange(1, 3))
        calls = tuple(self._window_call(child.schema, order) for _ in range(self._chance.randrange(1, 4)))
        names = tuple(f"o{place}" for place in range(len(calls)))
        return Over(child, self._some(child.schema, 2), tuple(range(len(child.schema))), names, calls)

    def _window_call(self, schema: Schema, order: tuple[SortKey, ...]) -> WindowCall:
        if self._chance.random() < 0.3:
            order = self._order(schema, 1)
        function = self._chance.choice(("row_number", "rank", "dense_rank", "lag", "lead", "first_value", "", "", ""))
        frame, column = self._chance.choice(FRAMES), self._column(schema)
        if not function:
            call = self._call(schema)
            return WindowCall(call.function, call.arguments, BIGINT, order, frame, aggregate=call)  # type: ignore[arg-type]
        if function in ("lag", "lead"):
            return WindowCall(function, (column,), BIGINT, order, WHOLE, self._chance.randrange(1, 3))
        if function == "first_value":
            return WindowCall(function, (column,), BIGINT, order, frame)
        return WindowCall(function, (), BIGINT, order, RUNNING_ROWS)

    def _first_by_number(self, depth: int) -> Node:
        """The first rows of each partition by their numbers, which a rule turns into a TopK."""
        over = self._over(depth)
        assert isinstance(over, Over)
        order = over.calls[0].order
        ranking = WindowCall(self._chance.choice(("row_number", "rank", "dense_rank")), (), BIGINT, order, RUNNING_ROWS)
        number = Column(len(over.schema), "n", BIGINT)
        bound = Literal(self._chance.randrange(1, 4), BIGINT)
        numbered = replace(over, names=(*over.names, "n"), calls=(*over.calls, ranking))
        return Filter(numbered, Call(self._chance.choice(("le", "le", "lt", "eq")), (number, bound), BOOLEAN))

    def _generate(self, depth: int) -> Node:
        """The elements of an array of two columns; their positions as numbers of the usual type."""
        child = self.plan(depth - 1)
        array = Call("array", (self._expression(child.schema), self._column(child.schema)), pa.list_(BIGINT))
        columns = self._some(child.schema, 3)
        made = Generate(child, columns, array, outer=self._chance.random() < 0.3)
        cells = [Column(place, field.name, field.dtype) for place, field in enumerate(made.schema)]
        cast = [cell if cell.dtype == BIGINT else Cast(cell, BIGINT) for cell in cells]
        return Project(made, tuple(f"g{place}" for place in range(len(cast))), tuple(cast))

    def _with_times(self, depth: int) -> tuple[Node, int]:
        """Rows whose column of times has no NULLs."""
        child = self.plan(depth - 1)
        time = self._column(child.schema)
        return Filter(child, Call("is_not_null", (time,), BOOLEAN)), time.index

    def _assign_windows(self, depth: int) -> Node:
        child = self.plan(depth - 1)
        return AssignWindows(child, self._column(child.schema).index, self._chance.choice(WINDOWS))

    def _lifetime(self, depth: int) -> Node:
        child = self.plan(depth - 1)
        start, end = (self._expression(child.schema) if self._chance.random() < 0.6 else None for _ in range(2))
        return Lifetime(child, start, end)

    def _sessions(self, depth: int) -> Node:
        child, time = self._with_times(depth)
        return Sessions(child, self._some(child.schema, 2), time, self._chance.randrange(2), closes=False)


class StreamPlanMaker(PlanMaker):
    """Makes plans of streams only, joined, subtracted and without duplicates: what is chosen by cost."""

    def plan(self, depth: int) -> Node:
        if depth == 0:
            return self._chance.choice(SOURCES[:2])
        makers = (self._project, self._join, self._join, self._distinct, self._set_operation)
        return self._chance.choice(makers)(depth)
