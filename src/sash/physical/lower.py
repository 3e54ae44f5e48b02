"""Lowering: logical nodes become operators, chosen by the update pattern and the kind of their input edges."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa

from sash.errors import UnsupportedSqlError
from sash.operators.combine import combinable
from sash.optimizer.plan_cost import PlanCosts
from sash.physical.explicit import explicit
from sash.physical.meeting import exchanged, has_mixed_times, narrowed, only_stream, shifted, told_apart, with_stream
from sash.physical.multi_join import lower_chain
from sash.physical.nodes import (
    Expected,
    Leaf,
    Leg,
    Operation,
    OutputExpiry,
    Physical,
    RelationLeg,
    StreamLeg,
    UpdateLeg,
)
from sash.physical.shapes import (
    expiry_of,
    has_count_window,
    has_distinct,
    has_natives,
    has_times,
    horizon_of,
    is_leg,
    leg_source,
    only_columns,
)
from sash.physical.strategies.base import Placement
from sash.physical.strategies.registry import strategy_of
from sash.physical.times import with_time
from sash.plan.expressions import ORDERED, Call, Cast, Column, Expression, Literal
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
    Stream,
    TopK,
    Union,
    mirrored,
)
from sash.plan.options import DEFAULT, Options
from sash.plan.patterns import Pattern, is_nonretroactive, is_table, pattern
from sash.plan.types import BIGINT, Field, Schema

_STAMPED = ("mono", "fifo", "calendar")

MADE = Field("_made", BIGINT)
"""The column that stands after a relation's own in its updates: the time at which each was made."""


class Lowering:
    """One pass over a logical plan; equal nodes are lowered once, so that what is shared stays shared.

    `spoken` are the DISTINCTs whose ends must be said because another stage hears them; `distincts` notes the others.
    """

    def __init__(
        self,
        options: Options = DEFAULT,
        shards: int | None = None,
        expire: Placement = "top",
        spoken: frozenset[Distinct] = frozenset(),
    ) -> None:
        strategy = strategy_of(options.strategy)
        self._by_pattern = strategy.by_pattern
        self._speaking = strategy.speaking
        self._expire = expire
        self._below_join = False
        self.legs: list[Leg] = []
        self.distincts: list[tuple[Distinct, Physical]] = []
        self._costs = PlanCosts()
        self._spoken = spoken
        self._options = options
        self._shards = shards
        self._grids: dict[Stream, int] = {}
        self._done: dict[Node, Physical] = {}

    def lower(self, node: Node) -> Physical:
        """The operator tree that computes the node, its legs noted on the way."""
        if node not in self._done:
            made = self._leg(node) if self._is_leg(node) else self._chain(node) or self._operation(node)
            self._done[node] = self._expecting(made, node)
            if isinstance(node, Distinct) and isinstance(made, Operation) and made.expiry in _STAMPED:
                self.distincts.append((node, self._done[node]))
        return self._done[node]

    def _expecting(self, made: Physical, node: Node) -> Physical:
        """The operator with what is expected of the node that it computes."""
        if not isinstance(made, Operation) or made.expected is not None:
            return made
        estimate = self._costs.estimates(node)
        expected = Expected(estimate.rate, self._costs.state(node), estimate.premature, estimate.rows)
        return replace(made, expected=expected)

    def _chain(self, node: Node) -> Physical | None:
        """The node as multi-way joins, where it is a chain of inner joins that these are for."""
        if not isinstance(node, Filter | Project | Join):
            return None
        below, self._below_join = self._below_join, True
        chain = lower_chain(node, self.lower, self._options, self._shards)
        self._below_join = below
        return chain

    def _is_leg(self, node: Node) -> bool:
        """With Expire at the bottom a leg scans, and computes nothing but what only Spark can."""
        if self._expire != "bottom" or is_table(node) or has_natives(node):
            return is_leg(node)
        return is_leg(node) and only_columns(node)

    def _input(self, node: Node) -> Physical:
        """What an operator that must process the ends of rows takes in."""
        speaks = self._expire == "above joins" and not self._below_join
        return explicit(self.lower(node)) if speaks else self.lower(node)

    def _stamped(self, node: Node) -> Physical:
        """The node with no Expire in it: FIRST, LAST, MIN_BY and MAX_BY go by their rows' own times."""
        if self._expire == "top":
            return self.lower(node)
        expire, done = self._expire, self._done
        self._expire, self._done = "top", {}
        child = self.lower(node)
        self._expire, self._done = expire, done
        return child

    def _leg(self, node: Node) -> Physical:
        leaf = self._source(node)
        return explicit(leaf) if self._expire == "bottom" else leaf

    def _source(self, node: Node) -> Leaf:
        source = leg_source(node)
        if isinstance(source, Relation):
            self.legs.append(RelationLeg(source, node, node.schema))
            return Leaf(node.schema, "mono", Pattern.MONO, leg=len(self.legs) - 1)
        rows = self._costs.estimates(node).rows
        self.legs.append(StreamLeg(source.name, source.window, node, node.schema))
        expiry = expiry_of(source.window)
        if expiry == "fifo" and not self._by_pattern:
            expiry = "calendar"
        horizon = horizon_of(node) + self._grids.get(source, 0)
        return Leaf(node.schema, expiry, pattern(node), leg=len(self.legs) - 1, horizon=horizon, rows=rows)

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
                child = self._input(node.child)
                return Operation("TopK", arguments, (child,), node.schema, "explicit", pattern(node))
            case Stream():
                return self._count_window(node)
            case Relation():
                return self._updates(node)

    def _count_window(self, node: Stream) -> Operation:
        """The window counts the stream's rows before anything is done with them, so its leg only scans."""
        self.legs.append(StreamLeg(node.name, node.window, node, node.schema))
        leaf = Leaf(node.schema, "mono", Pattern.MONO, leg=len(self.legs) - 1)
        return Operation("CountWindow", {"window": node.window}, (leaf,), node.schema, "explicit", pattern(node))

    def _updates(self, node: Relation) -> Operation:
        """A relation that changes: its updates, made into changes of its rows."""
        schema = (*node.schema, MADE)
        self.legs.append(UpdateLeg(node, schema))
        leaf = Leaf(schema, "explicit", Pattern.STR, leg=len(self.legs) - 1, follows=not node.waits, timed=node.timed)
        return Operation("Updates", {"key": node.key}, (leaf,), node.schema, "explicit", Pattern.STR)

    def _distinct(self, node: Distinct) -> Physical:
        child = self._input(node.child)
        if child.expiry not in _STAMPED or not self._by_pattern:
            return self._set_operation("distinct", (child,), node)
        expiry: OutputExpiry = "mono" if child.expiry == "mono" else "calendar"
        operation = Operation("Distinct", {}, (child,), node.schema, expiry, pattern(node), child.horizon)
        return explicit(operation) if self._speaking or node in self._spoken else operation

    def _aggregate(self, node: Aggregate) -> Operation:
        """A group-by, or a global aggregate: partial where its input runs in several shards, then final in one."""
        timed, counted = has_times(node.child), has_count_window(node.child)
        by_time = timed and any(call.function in ORDERED for call in node.aggregates)
        below, arguments = node.child, {"keys": node.keys, "aggregates": node.aggregates, "timed": timed}
        if by_time and counted:
            arguments["time"] = len(below.schema)
            below = with_time(below)
        child = self._stamped(below) if by_time and not counted else self._input(below)
        spread = isinstance(child, Operation) and child.expiry in ("fifo", "calendar") and not has_distinct(node.child)
        if not node.keys and spread and node.aggregates and all(combinable(call) for call in node.aggregates):
            return self._partial_and_final(node, child)
        for call in node.aggregates:
            if call.function in ("first", "last") and not timed:
                raise UnsupportedSqlError(
                    f"{call.function.upper()} goes by the times of its rows, and rows made by DISTINCT, GROUP BY, EXCEPT, "
                    "INTERSECT, LIMIT or an outer join have none: use MIN_BY or MAX_BY with a column"
                )
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
        return (self._input(node.left), self._input(node.right))

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
            return exchanged(self._meeting(mirrored(node)), node)
        if node.kind in ("inner", "left", "semi", "anti") and is_table(node.right):
            return self._lookup(node)
        below, self._below_join = self._below_join, self._below_join or node.kind == "inner"
        left, right = self.lower(node.left), self.lower(node.right)
        self._below_join = below
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

    def _meeting(self, node: Join) -> Physical:
        """A join with a non-retroactive relation; rows of a stream meet it at their own times, before they are sampled.

        A `-` row does not say which of several equal rows goes, and these may have met different versions. So, where ends
        are said below the join, rows keep what tells them apart until they have met the relation.
        """
        stream = only_stream(node.left)
        slide = stream.window.slide if stream is not None and isinstance(stream.window, Range) else None
        if self._expire == "bottom" and (slide is not None or has_mixed_times(node.left)):
            return explicit(self._stamped(node))
        if stream is not None and slide is not None:
            assert isinstance(stream.window, Range)
            plain = replace(stream, window=Range(stream.window.length))
            self._grids[plain] = max(slide, self._grids.get(plain, 0))
            met = self._meeting(replace(node, left=with_stream(node.left, plain)))
            arguments: dict[str, Any] = {"slide": slide}
            return Operation("Sample", arguments, (met,), node.schema, met.expiry, met.pattern, met.horizon)
        wider = with_time(node.left) if self._expire == "bottom" and has_times(node.left) else told_apart(node.left)
        if wider is None:
            return self._met(node)
        border = len(wider.schema)
        return narrowed(self._met(replace(node, left=wider, condition=shifted(node, border))), node, border)

    def _met(self, node: Join) -> Operation:
        left, right = self.lower(node.left), self.lower(node.right)
        arguments = {"kind": node.kind, "keys": node.keys, "condition": node.condition}
        return Operation(
            "NrrJoin", arguments, (left, right), node.schema, left.expiry, pattern(node), horizon=left.horizon
        )

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
        arguments: dict[str, Any] = {"keys": node.keys}
        purge = self._options.purge
        if purge and expiry == "calendar":
            arguments["purge"] = purge
        joined = Operation("Join", arguments, (left, right), schema, expiry, update, horizon)
        if node.condition is None:
            return joined
        return Operation("Filter", {"predicate": node.condition}, (joined,), schema, expiry, update, horizon)

    def _semi(self, node: Join, left: Physical, right: Physical, anti: bool) -> Physical:
        """Semi or anti join; with a condition beyond equal keys, by counting each left row's matches."""
        if self._expire == "above joins" and not self._below_join:
            left, right = explicit(left), explicit(right)
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
