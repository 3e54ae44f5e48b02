"""Lowering: logical nodes become operators, chosen by the update pattern and the kind of their input edges."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa

from sash.errors import UnsupportedSqlError
from sash.operators.combine import combinable
from sash.physical.nodes import Leaf, Leg, Operation, OutputExpiry, Physical, RelationLeg, StreamLeg, UpdateLeg
from sash.plan.expressions import Call, Cast, Column, Expression, Literal
from sash.plan.nodes import (
    Aggregate,
    Distinct,
    Except,
    Filter,
    Intersect,
    Join,
    Node,
    Project,
    Range,
    Relation,
    Rows,
    Stream,
    TopK,
    Unbounded,
    Union,
    mirrored,
    walk,
    with_children,
)
from sash.plan.patterns import Pattern, is_nonretroactive, is_table, pattern
from sash.plan.types import BIGINT, Field, Schema

_STAMPED = ("mono", "fifo", "calendar")

MADE = Field("_made", BIGINT)
"""The column that stands after a relation's own in its updates: the time at which each was made."""


class Lowering:
    """One pass over a logical plan; equal nodes are lowered once, so that what is shared stays shared.

    `spoken` are the DISTINCTs whose ends must be said because another stage hears them; `distincts` notes the others.
    """

    def __init__(self, spoken: frozenset[Distinct] = frozenset()) -> None:
        self.legs: list[Leg] = []
        self.distincts: list[tuple[Distinct, Operation]] = []
        self._spoken = spoken
        self._grids: dict[Stream, int] = {}
        self._done: dict[Node, Physical] = {}

    def lower(self, node: Node) -> Physical:
        """The operator tree that computes the node, its legs noted on the way."""
        if node not in self._done:
            self._done[node] = self._leg(node) if is_leg(node) else self._operation(node)
        return self._done[node]

    def _leg(self, node: Node) -> Leaf:
        source = leg_source(node)
        if isinstance(source, Relation):
            self.legs.append(RelationLeg(source, node, node.schema))
            return Leaf(node.schema, "mono", Pattern.MONO, leg=len(self.legs) - 1)
        if isinstance(source.window, Rows):
            raise UnsupportedSqlError(
                f"count windows [ROWS n] are not supported yet: give stream {source.name} a [RANGE ...] window"
            )
        self.legs.append(StreamLeg(source.name, source.window, node, node.schema))
        expiry: OutputExpiry = "mono" if isinstance(source.window, Unbounded) else "fifo"
        horizon = _horizon(node) + self._grids.get(source, 0)
        return Leaf(node.schema, expiry, pattern(node), leg=len(self.legs) - 1, horizon=horizon)

    def _operation(self, node: Node) -> Physical:
        match node:
            case Filter():
                return self._stateless("Filter", node, predicate=node.predicate)
            case Project():
                return self._stateless("Project", node, expressions=node.expressions)
            case Join():
                return self._join(node)
            case Aggregate():
                return self._aggregate(node)
            case Distinct():
                return self._distinct(node)
            case Union():
                return self._union(self.lower(node.left), self.lower(node.right), node.schema, pattern(node))
            case Except():
                return self._set_operation("except_all" if node.all else "except", self._sides(node), node)
            case Intersect():
                return self._set_operation("intersect_all" if node.all else "intersect", self._sides(node), node)
            case TopK():
                arguments = {"order": node.order, "limit": node.limit, "offset": node.offset}
                child = self.lower(node.child)
                return Operation("TopK", arguments, (child,), node.schema, "explicit", pattern(node))
            case Relation():
                return self._updates(node)
            case Stream():
                raise AssertionError("streams are legs")

    def _updates(self, node: Relation) -> Operation:
        """A relation that changes: its updates, made into changes of its rows."""
        schema = (*node.schema, MADE)
        self.legs.append(UpdateLeg(node, schema))
        leaf = Leaf(schema, "explicit", Pattern.STR, leg=len(self.legs) - 1, follows=not node.waits, timed=node.timed)
        return Operation("Updates", {"key": node.key}, (leaf,), node.schema, "explicit", Pattern.STR)

    def _distinct(self, node: Distinct) -> Operation:
        child = self.lower(node.child)
        if child.expiry not in _STAMPED:
            return self._set_operation("distinct", (child,), node)
        expiry: OutputExpiry = "mono" if child.expiry == "mono" else "calendar"
        operation = Operation("Distinct", {}, (child,), node.schema, expiry, pattern(node), child.horizon)
        self.distincts.append((node, operation))
        return _expired(operation) if node in self._spoken else operation

    def _aggregate(self, node: Aggregate) -> Operation:
        """A group-by, or a global aggregate: partial where its input runs in several shards, then final in one."""
        child = self.lower(node.child)
        spread = isinstance(child, Operation) and child.expiry in ("fifo", "calendar") and not _has_distinct(node.child)
        if not node.keys and spread and node.aggregates and all(combinable(call) for call in node.aggregates):
            return self._partial_and_final(node, child)
        timed = _has_times(node.child)
        for call in node.aggregates:
            if call.function in ("first", "last") and not timed:
                raise UnsupportedSqlError(
                    f"{call.function.upper()} goes by the times of its rows, and rows made by DISTINCT, GROUP BY, EXCEPT, "
                    "INTERSECT, LIMIT or an outer join have none: use MIN_BY or MAX_BY with a column"
                )
        arguments = {"keys": node.keys, "aggregates": node.aggregates, "timed": timed}
        return Operation("Aggregate", arguments, (child,), node.schema, "explicit", pattern(node))

    def _partial_and_final(self, node: Aggregate, child: Physical) -> Operation:
        partial = Operation(
            "Combine", {"aggregates": node.aggregates}, (child,), node.schema, "calendar", child.pattern, child.horizon
        )
        counted = [call.function in ("count", "count_star") for call in node.aggregates]
        merged = tuple(
            replace(call, function="sum" if count else call.function, arguments=(Column(n, field.name, field.dtype),))
            for n, (call, count, field) in enumerate(zip(node.aggregates, counted, node.schema, strict=True))
        )
        arguments = {"keys": (), "aggregates": merged}
        final = Operation("Aggregate", arguments, (partial,), node.schema, "explicit", pattern(node))
        if not any(counted):
            return final
        columns = [Column(n, field.name, field.dtype) for n, field in enumerate(node.schema)]
        filled = tuple(
            Call("coalesce", (column, Literal(0, column.dtype)), column.dtype) if count else column
            for column, count in zip(columns, counted, strict=True)
        )
        return Operation("Project", {"expressions": filled}, (final,), node.schema, "explicit", pattern(node))

    def _sides(self, node: Except | Intersect) -> tuple[Physical, ...]:
        return (self.lower(node.left), self.lower(node.right))

    def _stateless(self, operator: str, node: Filter | Project, **arguments: Any) -> Operation:
        child = self.lower(node.child)
        return Operation(operator, arguments, (child,), node.schema, child.expiry, pattern(node), child.horizon)

    def _set_operation(self, mode: str, inputs: tuple[Physical, ...], node: Node) -> Operation:
        return Operation("SetOperation", {"mode": mode}, inputs, node.schema, "explicit", pattern(node))

    def _union(self, left: Physical, right: Physical, schema: Schema, update: Pattern) -> Operation:
        horizon = max(left.horizon, right.horizon)
        if left.expiry in _STAMPED and right.expiry in _STAMPED:
            kinds = {left.expiry, right.expiry}
            expiry: OutputExpiry = "calendar"
            if kinds == {"mono"}:
                expiry = "mono"
            elif kinds == {"fifo"} and update == Pattern.WKS:
                expiry = "fifo"
            return Operation("Union", {}, (left, right), schema, expiry, update, horizon)
        return Operation("Union", {}, (explicit(left), explicit(right)), schema, "explicit", update)

    def _join(self, node: Join) -> Physical:
        if node.kind in ("inner", "left", "semi", "anti") and is_nonretroactive(node.right):
            return self._meeting(node)
        if node.kind in ("inner", "right") and is_nonretroactive(node.left):
            return self._exchanged(self._meeting(mirrored(node)), node)
        if node.kind in ("inner", "left", "semi", "anti") and is_table(node.right):
            return self._lookup(node)
        left, right = self.lower(node.left), self.lower(node.right)
        match node.kind:
            case "inner":
                return self._inner(node, left, right)
            case "semi" | "anti":
                return self._semi(node, left, right, anti=node.kind == "anti")
            case "left" | "right" | "full":
                result: Physical = self._inner(node, left, right)
                if node.kind in ("left", "full"):
                    alone = self._semi(node, left, right, anti=True)
                    result = self._union(result, self._padded(alone, node, left=True), node.schema, Pattern.STR)
                if node.kind in ("right", "full"):
                    alone = self._semi(mirrored(node), right, left, anti=True)
                    result = self._union(result, self._padded(alone, node, left=False), node.schema, Pattern.STR)
                return result

    def _meeting(self, node: Join) -> Operation:
        """A join with a non-retroactive relation; rows of a stream meet it at their own times, before they are sampled."""
        stream = _only_stream(node.left)
        if stream is not None and isinstance(stream.window, Range) and stream.window.slide is not None:
            slide = stream.window.slide
            plain = replace(stream, window=Range(stream.window.length))
            self._grids[plain] = max(slide, self._grids.get(plain, 0))
            met = self._meeting(replace(node, left=_with_stream(node.left, plain)))
            arguments: dict[str, Any] = {"slide": slide}
            return Operation("Sample", arguments, (met,), node.schema, met.expiry, met.pattern, met.horizon)
        left, right = self.lower(node.left), self.lower(node.right)
        arguments = {"kind": node.kind, "keys": node.keys, "condition": node.condition}
        return Operation(
            "NrrJoin", arguments, (left, right), node.schema, left.expiry, pattern(node), horizon=left.horizon
        )

    @staticmethod
    def _exchanged(joined: Operation, node: Join) -> Operation:
        """The columns of a mirrored join in the order of the join as it was."""
        split = len(node.right.schema)
        expressions = tuple(
            Column((index + split) % len(node.schema), field.name, field.dtype)
            for index, field in enumerate(node.schema)
        )
        arguments = {"expressions": expressions}
        return Operation("Project", arguments, (joined,), node.schema, joined.expiry, joined.pattern, joined.horizon)

    def _lookup(self, node: Join) -> Operation:
        child = self.lower(node.left)
        arguments = {"relation": node.right, "kind": node.kind, "keys": node.keys, "condition": node.condition}
        return Operation("Lookup", arguments, (child,), node.schema, child.expiry, pattern(node), child.horizon)

    def _inner(self, node: Join, left: Physical, right: Physical) -> Physical:
        stamped = left.expiry in _STAMPED and right.expiry in _STAMPED
        expiry: OutputExpiry = "calendar" if stamped else "explicit"
        if left.expiry == right.expiry == "mono":
            expiry = "mono"
        horizon = min((side.horizon for side in (left, right) if side.horizon), default=0) if stamped else 0
        schema = left.schema + right.schema
        update = pattern(Join(node.left, node.right, "inner", node.keys))
        joined = Operation("Join", {"keys": node.keys}, (left, right), schema, expiry, update, horizon)
        if node.condition is None:
            return joined
        return Operation("Filter", {"predicate": node.condition}, (joined,), schema, expiry, update, horizon)

    def _semi(self, node: Join, left: Physical, right: Physical, anti: bool) -> Physical:
        """Semi or anti join; with a condition beyond equal keys, by counting each left row's matches."""
        if node.condition is None:
            arguments = {"keys": node.keys, "anti": anti}
            return Operation("SemiJoin", arguments, (left, right), left.schema, "explicit", Pattern.STR)
        pairs = self._inner(node, left, right)
        columns = tuple(Column(index, field.name, field.dtype) for index, field in enumerate(left.schema))
        matched = Operation(
            "Project", {"expressions": columns}, (pairs,), left.schema, pairs.expiry, pairs.pattern, pairs.horizon
        )
        mode = "anti" if anti else "semi"
        return Operation("SetOperation", {"mode": mode}, (left, matched), left.schema, "explicit", Pattern.STR)

    def _padded(self, alone: Physical, node: Join, left: bool) -> Operation:
        """Rows without a match, the other side's columns NULL."""
        split = len(node.left.schema)
        expressions: list[Expression] = []
        for index, field in enumerate(node.schema):
            mine = (index < split) == left
            position = index if left else index - split
            expressions.append(
                Column(position, field.name, field.dtype) if mine else Cast(Literal(None, pa.null()), field.dtype)
            )
        arguments = {"expressions": tuple(expressions)}
        return Operation("Project", arguments, (alone,), node.schema, alone.expiry, alone.pattern)


def explicit(node: Physical) -> Physical:
    """The same rows with every end said: an Expire operator, where rows expire by themselves."""
    return node if node.expiry in ("explicit", "mono") else _expired(node)


def _expired(node: Physical) -> Operation:
    return Operation("Expire", {}, (node,), node.schema, "explicit", node.pattern)


def is_leg(node: Node) -> bool:
    """Whether the node runs straight above a source: nothing but filters, projections and static lookups."""
    match node:
        case Stream():
            return True
        case Relation():
            return not node.changes
        case Filter() | Project():
            return is_leg(node.child)
        case Join():
            return (
                node.kind in ("inner", "left", "semi", "anti")
                and is_leg(node.left)
                and not is_table(node.left)
                and is_table(node.right)
            )
        case _:
            return False


def _only_stream(node: Node) -> Stream | None:
    """The stream whose rows come out of the node one by one, as they came; None where rows are put together."""
    while not isinstance(node, Stream):
        looks_up = isinstance(node, Join) and (is_table(node.right) or is_nonretroactive(node.right))
        if not isinstance(node, Filter | Project) and not looks_up:
            return None
        node = node.children[0]
    return node


def _with_stream(node: Node, stream: Stream) -> Node:
    """The node over another stream."""
    if isinstance(node, Stream):
        return stream
    return with_children(node, (_with_stream(node.children[0], stream), *node.children[1:]))


def leg_source(node: Node) -> Stream | Relation:
    """The stream (or relation) that a leg reads."""
    while not isinstance(node, Stream | Relation):
        node = node.children[0]
    return node


def _has_times(node: Node) -> bool:
    """Whether every row of the node has the time of the stream rows it was made of."""
    match node:
        case Stream():
            return True
        case Filter() | Project():
            return _has_times(node.child)
        case Union():
            return _has_times(node.left) and _has_times(node.right)
        case Join():
            sides = [_has_times(side) or is_table(side) or is_nonretroactive(side) for side in (node.left, node.right)]
            looked_up = is_table(node.right) or is_nonretroactive(node.right)
            lookup = looked_up and node.kind in ("left", "semi", "anti")
            return all(sides) and (node.kind == "inner" or lookup)
        case _:
            return False


def _has_distinct(node: Node) -> bool:
    """Whether the lives of the node's rows depend on rows that are gone (see stages._repeatable)."""
    return any(isinstance(below, Distinct) for below in walk(node))


def _horizon(node: Node) -> int:
    """The longest life of a row of a leg, in microseconds; 0 where it has no end."""
    source = leg_source(node)
    if isinstance(source, Stream) and isinstance(source.window, Range):
        return source.window.length + (source.window.slide or 0)
    return 0
