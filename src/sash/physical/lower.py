"""Lowering: logical nodes become operators, chosen by the update pattern and the kind of their input edges."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from sash.errors import UnsupportedSqlError
from sash.operators.combine import combinable
from sash.operators.constants import comparison_of, is_exact
from sash.optimizer.plan_cost import PlanCosts
from sash.physical import nodes as physical
from sash.physical.multi_joins import lower_chain
from sash.physical.nodes import (
    STAMPED,
    Expected,
    Leaf,
    Leg,
    Operation,
    OutputEdge,
    OutputExpiry,
    Physical,
    RelationLeg,
    SetMode,
    StreamLeg,
    UpdateLeg,
)
from sash.physical.nrr_joins import (
    has_mixed_times,
    only_stream,
    shifted_condition,
    with_row_identity,
    with_stream,
    without_added_columns,
    without_mirroring,
)
from sash.physical.retractions import with_retractions
from sash.physical.scalar_comparisons import compared_with_scalar
from sash.physical.shapes import (
    expiry_of,
    has_count_window,
    has_distinct,
    has_spark_functions,
    horizon_of,
    is_leg,
    leg_source,
    only_columns,
)
from sash.physical.strategies.base import Placement
from sash.physical.strategies.registry import strategy_of
from sash.plan.canonical import canonical
from sash.plan.expressions import ORDERED, Call, Cast, Column, Expression, Literal, conjunction, conjuncts
from sash.plan.nodes import (
    Aggregate,
    Alike,
    AssignWindows,
    Distinct,
    Except,
    Expand,
    Filter,
    Final,
    Generate,
    Intersect,
    Join,
    Lifetime,
    Node,
    Over,
    Project,
    Range,
    Relation,
    Rows,
    Sessions,
    Stream,
    TopK,
    Union,
    mirrored,
    walk,
)
from sash.plan.options import DEFAULT, Options
from sash.plan.patterns import Pattern, is_nonretroactive, is_table, pattern
from sash.plan.row_times import has_times, with_time
from sash.plan.time_bounds import TimeBounds, needs_bounds, time_bounds
from sash.plan.types import BIGINT, Field, Schema

MADE = Field("_made", BIGINT)
"""The column after a relation's own in its updates: the time at which each was made."""


class Legs:
    """The legs of a job. A leg that an earlier query has is not added again; those of one query stay as they are."""

    def __init__(self) -> None:
        self.all: list[Leg] = []
        self._known: dict[object, int] = {}
        self._before = 0

    def begin_query(self) -> None:
        """Let later queries use the legs so far."""
        for number in range(self._before, len(self.all)):
            self._known.setdefault(_leg_identity(self.all[number]), number)
        self._before = len(self.all)

    def add(self, leg: Leg) -> int:
        """The number of the leg."""
        found = self._known.get(_leg_identity(leg)) if self._known else None
        if found is None:
            self.all.append(leg)
            return len(self.all) - 1
        return found


class Lowering:
    """Lowers the logical plans of queries with the same options, each with `lower_query`.

    Equal nodes of a query are lowered once, so that what is shared stays shared. A node whose canonical form an earlier
    query has, lowered in the same context, becomes the same operator. `retracting` are the DISTINCTs that must retract
    because another stage reads them; `distincts` lists the others. `shared` are canonical forms of joins that several
    queries read, each in its own way: what is computed from them is not part of their operators.
    """

    def __init__(
        self,
        options: Options = DEFAULT,
        shards: int | None = None,
        expire: Placement = "top",
        retracting: frozenset[Distinct] = frozenset(),
        legs: Legs | None = None,
        shared: frozenset[Node] = frozenset(),
    ) -> None:
        strategy = strategy_of(options.strategy)
        self._by_pattern = strategy.by_pattern
        self._retracting_joins = strategy.retracting_joins
        self._expire = expire
        self._below_join = False
        self._legs = Legs() if legs is None else legs
        self._shared = shared
        self.distincts: list[tuple[Distinct, Physical]] = []
        self._costs = PlanCosts()
        self._retracting = retracting
        self._options = options
        # What is computed anew at every instant is not delayed.
        self._chain_options = replace(options, tau=None) if strategy.recomputes else options
        self._shards = shards
        self._grids: dict[Stream, int] = {}
        self._done: dict[Node, Physical] = {}
        self._queries: dict[Node, Physical] = {}
        self._earlier: dict[object, Physical] = {}
        self._latest: dict[object, Physical] = {}

    def lower_query(self, node: Node) -> Physical:
        """The operator tree of a query, which may have operators of earlier queries in it."""
        self._legs.begin_query()
        for identity, made in self._latest.items():
            self._earlier.setdefault(identity, made)
        self._latest, self._done, self._grids = {}, {}, {}
        return self._queries.setdefault(canonical(node), self.lower(node))

    def lower(self, node: Node) -> Physical:
        """The operator tree that computes the node; legs are collected on the way."""
        if node not in self._done:
            self._done[node] = self._earlier_node(node) or self._lowered(node)
        return self._done[node]

    def _earlier_node(self, node: Node) -> Physical | None:
        """The operator of an earlier query that computes the node in the same context."""
        return self._earlier.get(self._identity(node)) if self._earlier else None

    def _lowered(self, node: Node) -> Physical:
        made = self._leg(node) if self._is_leg(node) else self._chain(node) or self._operation(node)
        result = self._with_estimates(made, node)
        if isinstance(node, Distinct) and not isinstance(made, Leaf) and made.expiry in STAMPED:
            self.distincts.append((node, result))
        if not isinstance(result, Leaf):
            self._latest.setdefault(self._identity(node), result)
        return result

    def _identity(self, node: Node) -> object:
        """What the operator of a node depends on: the node, where Expire operators sit, and the grids of its streams."""
        context = self._expire, self._below_join and self._expire == "above joins"
        grids = (
            tuple((below, self._grids[below]) for below in walk(node) if below in self._grids) if self._grids else ()
        )
        return canonical(node), context, grids

    def _with_estimates(self, made: Physical, node: Node) -> Physical:
        """The operator with the estimates of the logical node that it computes."""
        if isinstance(made, Leaf) or made.expected is not None:
            return made
        estimate = self._costs.estimates(node)
        kept, cost = self._costs.state(node), self._costs.of(node)
        expected = Expected(estimate.rate, kept, estimate.premature, estimate.rows, cost)
        return replace(made, expected=expected)

    def _chain(self, node: Node) -> Physical | None:
        """The node as multi-way joins, where it is a chain of inner joins that these are for."""
        if not isinstance(node, Filter | Project | Join) or self._is_above_shared_join(node):
            return None
        below, self._below_join = self._below_join, True
        chain = lower_chain(node, self.lower, self._chain_options, self._shards)
        self._below_join = below
        return chain

    def _is_above_shared_join(self, node: Node) -> bool:
        below = node
        while isinstance(below, Filter | Project):
            below = below.child
        return bool(self._shared) and below is not node and canonical(below) in self._shared

    def _is_leg(self, node: Node) -> bool:
        """With Expire at the bottom a leg scans, and computes nothing but what only Spark can."""
        if self._expire != "bottom" or is_table(node) or has_spark_functions(node):
            return is_leg(node)
        return is_leg(node) and only_columns(node)

    def _input(self, node: Node) -> Physical:
        """The input of an operator that must process expirations."""
        retracted = self._expire == "above joins" and not self._below_join
        return with_retractions(self.lower(node)) if retracted else self.lower(node)

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
        return with_retractions(leaf) if self._expire == "bottom" else leaf

    def _source(self, node: Node) -> Leaf:
        source = leg_source(node)
        if isinstance(source, Relation):
            leg = self._legs.add(RelationLeg(source, node, node.schema))
            return Leaf(output=OutputEdge(node.schema, "mono", Pattern.MONO), leg=leg)
        rows = self._costs.estimates(node).rows
        leg = self._legs.add(StreamLeg(source.name, source.window, node, node.schema))
        expiry = expiry_of(source.window)
        if expiry == "fifo" and not self._by_pattern:
            expiry = "calendar"
        horizon = horizon_of(node) + self._grids.get(source, 0)
        return Leaf(output=OutputEdge(node.schema, expiry, pattern(node), horizon), leg=leg, rows=rows)

    def _operation(self, node: Node) -> Physical:
        match node:
            case Filter():
                child = self.lower(node.child)
                return physical.Filter(predicate=node.predicate, inputs=(child,), output=_passed(node, child))
            case Project():
                child = self.lower(node.child)
                return physical.Project(expressions=node.expressions, inputs=(child,), output=_passed(node, child))
            case Expand():
                child = self.lower(node.child)
                return physical.Expand(lists=node.lists, inputs=(child,), output=_passed(node, child))
            case Generate():
                child = self.lower(node.child)
                return physical.Generate(
                    columns=node.columns,
                    array=node.array,
                    outer=node.outer,
                    inputs=(child,),
                    output=_passed(node, child),
                )
            case AssignWindows():
                child = self.lower(node.child)
                output = _passed(node, child)
                return physical.AssignWindows(time=node.time, windows=node.windows, inputs=(child,), output=output)
            case Lifetime():
                return self._lifetime(node)
            case Sessions():
                return self._sessions(node)
            case Final():
                output = OutputEdge(node.schema, "mono", Pattern.MONO)
                return physical.Final(inputs=(self.lower(node.child),), output=output)
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
                inputs = (self._input(node.child),)
                return physical.TopK(
                    order=node.order,
                    limit=node.limit,
                    offset=node.offset,
                    by=node.by,
                    ranked=node.ranked,
                    inputs=inputs,
                    output=_explicit(node),
                )
            case Over():
                return physical.Over(
                    partition=node.partition,
                    ties=node.ties,
                    calls=node.calls,
                    inputs=(self._input(node.child),),
                    output=_explicit(node),
                )
            case Alike():
                return self._alike(node)
            case Stream():
                return self._count_window(node)
            case Relation():
                return self._updates(node)

    def _lifetime(self, node: Lifetime) -> Physical:
        """Rows that begin or end at other times than below; how they end below is known from their expiration times."""
        child = self._stamped(node.child)
        if child.expiry not in STAMPED:
            raise UnsupportedSqlError(
                "rows made by GROUP BY, DISTINCT, EXCEPT, INTERSECT, LIMIT, an outer join or a [ROWS n] window may end at any "
                "time, so no other end can be set for them: compare with NOW() in a subquery over the stream"
            )
        expiry: OutputExpiry = "mono" if child.expiry == "mono" and node.end is None else "calendar"
        output = replace(_passed(node, child), expiry=expiry)
        made = physical.Lifetime(start=node.start, end=node.end, inputs=(child,), output=output)
        return with_retractions(made) if self._expire == "bottom" else made

    def _sessions(self, node: Sessions) -> Physical:
        """Sessions by key; their rows must come with their expiration times, so that a row has one label."""
        child = self._stamped(node.child)
        output = _explicit(node) if node.closes else _passed(node, child)
        if node.emits:
            output = OutputEdge(node.schema, "calendar", pattern(node), horizon=1)
        made = physical.Sessions(
            keys=node.keys,
            time=node.time,
            gap=node.gap,
            closes=node.closes,
            emits=node.emits,
            gaps=node.gaps,
            inputs=(child,),
            output=output,
        )
        return with_retractions(made) if self._expire == "bottom" else made

    def _count_window(self, node: Stream) -> Operation:
        """The window counts the stream's rows before anything is done with them, so its leg only scans."""
        assert isinstance(node.window, Rows)
        leg = self._legs.add(StreamLeg(node.name, node.window, node, node.schema))
        leaf = Leaf(output=OutputEdge(node.schema, "mono", Pattern.MONO), leg=leg)
        return physical.CountWindow(window=node.window, inputs=(leaf,), output=_explicit(node))

    def _updates(self, node: Relation) -> Operation:
        """A relation that changes: its updates, turned into changes of its rows."""
        schema = (*node.schema, MADE)
        leg = self._legs.add(UpdateLeg(node, schema))
        arriving = OutputEdge(schema, "explicit", Pattern.STR)
        leaf = Leaf(
            output=arriving,
            leg=leg,
            follows=not node.waits,
            timed=node.timed,
            everywhere=node.everywhere,
        )
        return physical.Updates(key=node.key, inputs=(leaf,), output=replace(arriving, schema=node.schema))

    def _alike(self, node: Alike) -> Operation:
        """Alike queries; the first comparison of a value with a constant is searched for, the other conditions are tested."""
        border = len(node.left.schema)
        parts = [] if node.condition is None else conjuncts(node.condition)
        comparison = None
        if node.otherwise is None:
            found = [(part, comparison_of(part, border)) for part in parts]
            part, comparison = next(((part, one) for part, one in found if one is not None), (None, None))
            if comparison is not None and is_exact(node.left.schema[comparison[0]].dtype):
                parts = [one for one in parts if one is not part]
        return physical.Alike(
            keys=node.keys,
            comparison=comparison,
            condition=conjunction(parts),
            otherwise=node.otherwise,
            net=node.net,
            inputs=(self._input(node.left), self.lower(node.right)),
            output=_explicit(node),
        )

    def _distinct(self, node: Distinct) -> Physical:
        child = self._input(node.child)
        if child.expiry not in STAMPED or not self._by_pattern:
            return self._set_operation("distinct", (child,), node)
        expiry: OutputExpiry = "mono" if child.expiry == "mono" else "calendar"
        operation = physical.Distinct(inputs=(child,), output=replace(_passed(node, child), expiry=expiry))
        return with_retractions(operation) if self._retracting_joins or node in self._retracting else operation

    def _aggregate(self, node: Aggregate) -> Operation:
        """A group-by, or a global aggregate: partial where its input runs in several shards, then final in one."""
        timed, counted = has_times(node.child), has_count_window(node.child)
        by_time = timed and any(call.function in ORDERED for call in node.aggregates)
        below, time = node.child, None
        if by_time and counted:
            time = len(below.schema)
            below = with_time(below)
        child = self._stamped(below) if by_time and not counted else self._input(below)
        spread = not isinstance(child, Leaf) and child.expiry in ("fifo", "calendar") and not has_distinct(node.child)
        if not node.keys and spread and node.aggregates and all(combinable(call) for call in node.aggregates):
            return self._partial_and_final(node, child)
        for call in node.aggregates:
            if call.function in ("first", "last") and not timed:
                raise UnsupportedSqlError(
                    f"{call.function.upper()} goes by the times of its rows, and rows made by DISTINCT, GROUP BY, EXCEPT, "
                    "INTERSECT, LIMIT or an outer join have none: use MIN_BY or MAX_BY with a column"
                )
        return physical.Aggregate(
            keys=node.keys,
            aggregates=node.aggregates,
            timed=timed,
            time=time,
            inputs=(child,),
            output=_explicit(node),
        )

    def _partial_and_final(self, node: Aggregate, child: Physical) -> Operation:
        stamped = OutputEdge(node.schema, "calendar", child.pattern, child.horizon)
        partial = physical.Combine(aggregates=node.aggregates, inputs=(child,), output=stamped)
        counted = [call.function in ("count", "count_star") for call in node.aggregates]
        merged = tuple(
            replace(call, function="sum" if count else call.function, arguments=(Column(n, field.name, field.dtype),))
            for n, (call, count, field) in enumerate(zip(node.aggregates, counted, node.schema, strict=True))
        )
        final = physical.Aggregate(keys=(), aggregates=merged, inputs=(partial,), output=_explicit(node))
        if not any(counted):
            return final
        columns = [Column(n, field.name, field.dtype) for n, field in enumerate(node.schema)]
        filled = tuple(
            Call("coalesce", (column, Literal(0, column.dtype)), column.dtype) if count else column
            for column, count in zip(columns, counted, strict=True)
        )
        return physical.Project(expressions=filled, inputs=(final,), output=_explicit(node))

    def _sides(self, node: Except | Intersect) -> tuple[Physical, ...]:
        return (self._input(node.left), self._input(node.right))

    def _set_operation(self, mode: SetMode, inputs: tuple[Physical, ...], node: Node) -> Operation:
        return physical.SetOperation(mode=mode, inputs=inputs, output=_explicit(node))

    def _union(self, left: Physical, right: Physical, schema: Schema, update: Pattern) -> Operation:
        if left.expiry not in STAMPED or right.expiry not in STAMPED:
            inputs = (with_retractions(left), with_retractions(right))
            return physical.Union(inputs=inputs, output=OutputEdge(schema, "explicit", update))
        kinds = {left.expiry, right.expiry}
        expiry: OutputExpiry = "calendar"
        if kinds == {"mono"}:
            expiry = "mono"
        elif kinds == {"fifo"} and update == Pattern.WKS:
            expiry = "fifo"
        horizon = max(left.horizon, right.horizon)
        return physical.Union(inputs=(left, right), output=OutputEdge(schema, expiry, update, horizon))

    def _join(self, node: Join) -> Physical:
        if node.kind in ("inner", "left", "semi", "anti") and is_nonretroactive(node.right):
            return self._nrr_join(node)
        if node.kind in ("inner", "right") and is_nonretroactive(node.left):
            return without_mirroring(self._nrr_join(mirrored(node)), node)
        if node.kind in ("inner", "left", "semi", "anti") and is_table(node.right):
            return self._lookup(node)
        if needs_bounds(node) and self._expire == "bottom":
            left, right = self._stamped(node.left), self._stamped(node.right)
            if node.kind == "inner":
                return with_retractions(self._inner(node, left, right))
        else:
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

    def _nrr_join(self, node: Join) -> Physical:
        """A join with a non-retroactive relation; a stream's rows join it at their own times, before they are sampled.

        A retraction does not tell which of several equal rows ends, and these may have joined different versions. So, where
        rows end by retractions below the join, rows keep what identifies them until they have joined the relation.
        """
        stream = only_stream(node.left)
        slide = stream.window.slide if stream is not None and isinstance(stream.window, Range) else None
        if self._expire == "bottom" and (slide is not None or has_mixed_times(node.left)):
            return with_retractions(self._stamped(node))
        if stream is not None and slide is not None:
            assert isinstance(stream.window, Range)
            plain = replace(stream, window=Range(stream.window.length))
            self._grids[plain] = max(slide, self._grids.get(plain, 0))
            joined = self._nrr_join(replace(node, left=with_stream(node.left, plain)))
            output = replace(joined.output, schema=node.schema)
            if output.expiry == "fifo":
                output = replace(output, expiry=expiry_of(stream.window))
            return physical.Sample(slide=slide, inputs=(joined,), output=output)
        by_time = self._expire == "bottom" and has_times(node.left)
        wider = with_time(node.left) if by_time else with_row_identity(node.left)
        if wider is None:
            return self._plain_nrr_join(node)
        border = len(wider.schema)
        joined = self._plain_nrr_join(replace(node, left=wider, condition=shifted_condition(node, border)))
        return without_added_columns(joined, node, border)

    def _plain_nrr_join(self, node: Join) -> Operation:
        left, right = self.lower(node.left), self.lower(node.right)
        return physical.NrrJoin(
            kind=node.kind,
            keys=node.keys,
            condition=node.condition,
            inputs=(left, right),
            output=_passed(node, left),
        )

    def _lookup(self, node: Join) -> Operation:
        child = self.lower(node.left)
        return physical.Lookup(
            relation=node.right,
            kind=node.kind,
            keys=node.keys,
            condition=node.condition,
            inputs=(child,),
            output=_passed(node, child),
        )

    def _inner(self, node: Join, left: Physical, right: Physical) -> Operation:
        stamped = left.expiry in STAMPED and right.expiry in STAMPED
        expiry: OutputExpiry = "calendar" if stamped else "explicit"
        if left.expiry == right.expiry == "mono":
            expiry = "mono"
        horizon = min((side.horizon for side in (left, right) if side.horizon), default=0) if stamped else 0
        update = pattern(Join(node.left, node.right, "inner", node.keys))
        output = OutputEdge(left.schema + right.schema, expiry, update, horizon)
        purge = self._options.purge if expiry == "calendar" else None
        joined = physical.Join(keys=node.keys, purge=purge or None, inputs=(left, right), output=output)
        bounds = time_bounds(node) if stamped else TimeBounds()
        lives = _shorter(bounds.left, left), _shorter(bounds.right, right)
        if lives != (None, None):
            joined = physical.IntervalJoin(
                keys=node.keys, purge=purge or None, inputs=(left, right), output=output, lives=lives
            )
        if node.condition is None:
            return joined
        return physical.Filter(predicate=node.condition, inputs=(joined,), output=output)

    def _semi(self, node: Join, left: Physical, right: Physical, anti: bool) -> Operation:
        """Semi or anti join; with a condition beyond equal keys, by counting each left row's matches.

        So if its bounds of times make state finite: the join that finds the matches reads rows with their times.
        """
        bounded, retracting = needs_bounds(node), self._expire == "above joins" and not self._below_join
        if retracting and not bounded:
            left, right = with_retractions(left), with_retractions(right)
        output = OutputEdge(left.schema, "explicit", Pattern.STR)
        if node.condition is None and not bounded:
            return physical.SemiJoin(keys=node.keys, anti=anti, inputs=(left, right), output=output)
        if (found := compared_with_scalar(node)) is not None:
            scalar = with_retractions(right)
            return physical.ScalarComparison(**found._asdict(), inputs=(left, scalar), output=output)
        pairs = self._inner(node, left, right)
        matched = physical.Project(
            expressions=tuple(Column(index, field.name, field.dtype) for index, field in enumerate(left.schema)),
            inputs=(pairs,),
            output=replace(pairs.output, schema=left.schema),
        )
        inputs: tuple[Physical, ...] = (left, matched)
        if bounded and (retracting or self._expire == "bottom"):
            inputs = (with_retractions(left), with_retractions(matched))
        return physical.SetOperation(mode="anti" if anti else "semi", inputs=inputs, output=output)

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
        output = OutputEdge(node.schema, alone.expiry, alone.pattern)
        return physical.Project(expressions=tuple(expressions), inputs=(alone,), output=output)


def _leg_identity(leg: Leg) -> object:
    """What makes two legs equal: their kind, and what they compute of their source."""
    return type(leg), canonical(leg.node)


def _shorter(life: int | None, side: Physical) -> int | None:
    """The time for which a row is kept, if that is shorter than until it expires."""
    return None if life is None or 0 < side.horizon <= life else life


def _passed(node: Node, child: Physical) -> OutputEdge:
    """The output edge of a node whose rows live as long as those of its child."""
    return OutputEdge(node.schema, child.expiry, pattern(node), child.horizon)


def _explicit(node: Node) -> OutputEdge:
    """The output edge of a node that ends every row by a retraction."""
    return OutputEdge(node.schema, "explicit", pattern(node))
