"""One SELECT: FROM, WHERE, GROUP BY, HAVING, the output columns, DISTINCT, ORDER BY and LIMIT, in that order."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from sqlglot import exp

from sash.errors import SqlSyntaxError, UnknownNameError, UnsupportedSqlError, excerpt
from sash.plan.catalog import Catalog
from sash.plan.compound import rewrite
from sash.plan.describe import describe
from sash.plan.expressions import ORDERED, AggregateCall, Column, Expression, columns_of, conjunction, conjuncts
from sash.plan.nodes import Aggregate, Distinct, Node, Project
from sash.sql.aggregates import AggregateCollector
from sash.sql.expressions import ExpressionBinder
from sash.sql.from_clause import FromBinder
from sash.sql.joins import Branch, build, push_equality
from sash.sql.naming import spark_name
from sash.sql.now import reads_now, valid_now
from sash.sql.ordering import Query, SortItem, project, sort_items, sorted_and_limited
from sash.sql.over import over
from sash.sql.scope import Entry, Scope
from sash.sql.session_window import with_session_column
from sash.sql.source import SqlText, whole_number
from sash.sql.spark_functions import SparkFunctions
from sash.sql.subqueries import Subqueries, as_it_is
from sash.sql.subquery_joins import Translate
from sash.sql.window_function import with_window_column
from sash.sql.windows import WINDOWS, WindowCollector

MOST_COLUMNS = 20_000
_GROUPINGS = (exp.Rollup, exp.Cube, exp.GroupingSets)


@dataclass(frozen=True)
class Item:
    """An output column."""

    name: str
    expression: Expression
    node: exp.Expr


def bind_select(source: SqlText, catalog: Catalog, node: exp.Select, from_binder: FromBinder) -> Query:
    """The plan of a SELECT, and the order of its rows; the caller handles WITH."""
    source.refuse_all_but(
        node,
        *(
            "with_",
            "expressions",
            "from_",
            "joins",
            "where",
            "group",
            "having",
            "distinct",
            "order",
            "limit",
            "offset",
            "windows",
            "qualify",
        ),
    )
    from_ = node.args.get("from_")
    tree, scope = from_binder.nothing
    if from_ is not None:
        source.refuse_all_but(from_, "this")
        tree, scope = from_binder.bind(from_.this, node.args.get("joins") or [])
    spark_functions = SparkFunctions(source, catalog.spark_type, None if isinstance(tree, Branch) else tree)
    subqueries = from_binder.subqueries(scope)
    plain = ExpressionBinder(source, scope, spark_functions, "WHERE", around=from_binder.around, subqueries=subqueries)
    below: Node
    if (where := node.args.get("where")) is not None:
        parts = conjuncts(plain.predicate(where.this))
        timed = [part for part in parts if reads_now(part)]
        predicate = conjunction([part for part in parts if part not in timed and not push_equality(tree, part)])
        below = valid_now(source, where, build(tree), timed)
        below = below if predicate is None else subqueries.filter(below, predicate, as_it_is)
    else:
        below = build(tree)
    node, scope, below = with_window_column(source, node, plain, below)
    node, scope, below = with_session_column(source, node, replace(plain, scope=scope), below)
    return _Select(source, node, scope, replace(plain, scope=scope, clause="SELECT"), below).bind()


class _Select:
    """The clauses after WHERE."""

    def __init__(self, source: SqlText, node: exp.Select, scope: Scope, binder: ExpressionBinder, below: Node) -> None:
        self.source = source
        self.node = node
        self.scope = scope
        self.below = below
        self.collector = AggregateCollector(len(below.schema))
        self.plain = binder
        self.windows = WindowCollector(source, node.args.get("windows") or [])
        self.grouped = replace(binder, aggregates=self.collector, windows=self.windows)
        self.subqueries.own.aggregate = self.grouped.bind

    @property
    def subqueries(self) -> Subqueries:
        """The subqueries of all clauses."""
        assert self.plain.subqueries is not None
        return self.plain.subqueries

    def bind(self) -> Query:
        items = self._items()
        aliases = {item.name.lower(): item.expression for item in reversed(items)}
        keys = self._keys(items, aliases)
        having = self.node.args.get("having")
        predicate = None
        if having is not None:
            self.source.refuse_all_but(having, "this")
            binder = replace(self.grouped, clause="HAVING", windows=None, first=self._shadowing(aliases, keys))
            predicate = binder.predicate(having.this)
        qualify = self._qualify(aliases)
        order = self._order(items)
        node: Node = self.below
        translate: Translate = as_it_is
        if self.node.args.get("group") is not None or self.collector.found or having is not None:
            node = self._aggregate(keys)
            positions = {key: position for position, key in enumerate(keys)}
            translate = partial(self._above, positions)
            items = [replace(item, expression=translate(item.expression, item.node)) for item in items]
            order = [replace(key, expression=translate(key.expression, key.node)) for key in order]
            if predicate is not None and having is not None:
                node = self.subqueries.filter(node, translate(predicate, having), translate)
            qualify = None if qualify is None else translate(qualify, self.node.args["qualify"])
            self.windows.change(lambda part: translate(part, self.node))
        if self.windows.found:
            node, made = self.subqueries.attach(node, self.windows.expressions, translate)
            self.windows.change(dict(zip(self.windows.expressions, made, strict=True)).__getitem__)
            node, columns = over(node, self.windows)
            items = [replace(item, expression=columns(item.expression)) for item in items]
            order = [replace(key, expression=columns(key.expression)) for key in order]
            qualify = None if qualify is None else columns(qualify)
        if qualify is not None:
            node = self.subqueries.filter(node, qualify, translate)
        expressions = [*(item.expression for item in items), *(key.expression for key in order)]
        node, made = self.subqueries.attach(node, expressions, translate)
        items = [replace(item, expression=expression) for item, expression in zip(items, made, strict=False)]
        order = [replace(key, expression=expression) for key, expression in zip(order, made[len(items) :], strict=True)]
        return self._output(node, items, order)

    def _qualify(self, aliases: dict[str, Expression]) -> Expression | None:
        """The predicate of QUALIFY, over window functions."""
        clause = self.node.args.get("qualify")
        if clause is None:
            return None
        self.source.refuse_all_but(clause, "this")
        predicate = replace(self.grouped, clause="QUALIFY", aliases=aliases).predicate(clause.this)
        if not self.windows.found:
            raise self.source.error(
                UnsupportedSqlError, "QUALIFY needs a window function (OVER) in SELECT or QUALIFY: use WHERE", clause
            )
        return predicate

    def _items(self) -> list[Item]:
        items: list[Item] = []
        aliases: dict[str, Expression] = {}
        binder = replace(self.grouped, aliases=aliases)
        for node in self.node.expressions:
            if isinstance(node, exp.Star) or (isinstance(node, exp.Column) and isinstance(node.this, exp.Star)):
                star = node if isinstance(node, exp.Star) else node.this
                self.source.refuse_all_but(star)
                qualifier = node.table if isinstance(node, exp.Column) else None
                entries = self._star(qualifier, node)
                items.extend(Item(entry.name, entry.expression, node) for entry in entries)
                for entry in entries:
                    aliases.setdefault(entry.name.lower(), entry.expression)
                continue
            expression = binder.bind(node.this if isinstance(node, exp.Alias) else node)
            name = node.alias if isinstance(node, exp.Alias) else spark_name(node)
            items.append(Item(name, expression, node))
            aliases.setdefault(name.lower(), items[-1].expression)
        if not items:
            raise self.source.error(SqlSyntaxError, "SELECT needs at least one output column", self.node)
        if len(items) > MOST_COLUMNS:
            raise self.source.error(
                UnsupportedSqlError, f"a query may have {MOST_COLUMNS:,} output columns, not {len(items):,}", self.node
            )
        return items

    def _star(self, qualifier: str | None, node: exp.Expr) -> list[Entry]:
        """The columns that * stands for; of `t.*`, those of a query around this one if this has no such table."""
        if qualifier is not None and not self.scope.has(qualifier):
            for outer in reversed(self.plain.around):
                if outer.scope.has(qualifier):
                    entries = outer.scope.star(self.source, qualifier, node)
                    return [replace(entry, expression=outer.reference(entry.expression)) for entry in entries]
        return self.scope.star(self.source, qualifier, node)

    def _keys(self, items: list[Item], aliases: dict[str, Expression]) -> list[Expression]:
        group = self.node.args.get("group")
        if group is None:
            return []
        self.source.refuse_all_but(group, "expressions", "all")
        binder = replace(self.plain, clause="GROUP BY", aliases=aliases)
        everything = group.args.get("all") and not self.scope.find("all", None) and "all" not in aliases
        if everything:
            return list(dict.fromkeys(item.expression for item in items if not self._has_aggregate(item.expression)))
        keys: list[Expression] = []
        for node in [exp.column("all")] if group.args.get("all") else group.expressions:
            if isinstance(node, _GROUPINGS):
                name = "GROUPING SETS" if isinstance(node, exp.GroupingSets) else node.key.upper()
                raise self.source.error(UnsupportedSqlError, f"Sash does not run {name}; write a UNION ALL", node)
            if isinstance(node, exp.Literal) and not node.is_string:
                key = self._ordinal(node, items).expression
            else:
                key = binder.bind(node)
            if self._has_aggregate(key):
                raise self.source.error(UnsupportedSqlError, "Sash does not run GROUP BY an aggregate", node)
            if key not in keys:
                keys.append(key)
        return keys

    def _shadowing(self, aliases: dict[str, Expression], keys: list[Expression]) -> dict[str, Expression]:
        """The aliases that HAVING may use: those that are not also the name of a column of GROUP BY."""
        grouped = {entry.name.lower() for entry in self.scope.entries if entry.expression in keys}
        return {name: expression for name, expression in aliases.items() if name not in grouped}

    def _ordinal(self, node: exp.Literal, items: list[Item]) -> Item:
        text = str(node.this)
        position = whole_number(text, len(items))
        if not position:
            raise self.source.error(
                UnknownNameError, f"there is no output column {excerpt(text)}: the query has {len(items)}", node
            )
        return items[position - 1]

    def _has_aggregate(self, expression: Expression) -> bool:
        return any(self.collector.width <= index < WINDOWS for index in columns_of(expression))

    def _order(self, items: list[Item]) -> list[SortItem]:
        order = self.node.args.get("order")
        if order is None:
            return []
        outputs = {item.name.lower(): item.expression for item in reversed(items)}
        binder = replace(self.grouped, clause="ORDER BY", first=outputs)
        named = [(item.name, item.expression) for item in items]
        return sort_items(self.source, order, lambda node: self._sort_expression(node, items, binder), named)

    def _sort_expression(self, node: exp.Expr, items: list[Item], binder: ExpressionBinder) -> Expression:
        if isinstance(node, exp.Literal) and not node.is_string:
            return self._ordinal(node, items).expression
        return binder.bind(node)

    def _aggregate(self, keys: list[Expression]) -> Node:
        """The aggregation over columns; a projection below computes other expressions."""
        found = self.collector.found
        read = [argument for call in found for argument in call.arguments]
        child, made = self.subqueries.attach(self.below, [*keys, *read], as_it_is)
        keys, rest = made[: len(keys)], iter(made[len(keys) :])
        found = [replace(call, arguments=tuple(next(rest) for _ in call.arguments)) for call in found]
        inputs = list(dict.fromkeys([*keys, *(argument for call in found for argument in call.arguments)]))
        columns = {expression: expression for expression in inputs}
        if not all(isinstance(expression, Column) for expression in inputs):
            if any(call.function in ORDERED for call in found):
                whole = [Column(i, field.name, field.dtype) for i, field in enumerate(child.schema)]
                inputs = list(dict.fromkeys([*whole, *inputs]))
            names = [describe(expression) for expression in inputs]
            child = Project(child, tuple(names), tuple(inputs))
            columns = {e: Column(i, names[i], e.dtype) for i, e in enumerate(inputs)}
        calls = []
        for call in found:
            arguments = tuple(a for a in (columns[argument] for argument in call.arguments) if isinstance(a, Column))
            calls.append(
                AggregateCall(
                    call.function, arguments, call.dtype, call.distinct, call.parameter, call.precision, call.detail
                )
            )
        positions = tuple(column.index for key in keys if isinstance(column := columns[key], Column))
        return Aggregate(child, positions, tuple(self.collector.names), tuple(calls))

    def _above(self, positions: dict[Expression, int], expression: Expression, node: exp.Expr) -> Expression:
        """The expression over the output of the aggregate."""

        def change(part: Expression) -> Expression | None:
            if part in positions:
                return Column(positions[part], describe(part), part.dtype)
            if isinstance(part, Column):
                if part.index >= WINDOWS:
                    return part
                if part.index < self.collector.width:
                    raise self.source.error(
                        UnsupportedSqlError,
                        f"the column {part.name} is neither in GROUP BY nor inside an aggregate",
                        node,
                    )
                return Column(len(positions) + part.index - self.collector.width, part.name, part.dtype)
            return None

        return rewrite(expression, change)

    def _output(self, node: Node, items: list[Item], order: list[SortItem]) -> Query:
        distinct = self.node.args.get("distinct")
        if distinct is not None:
            self.source.refuse_all_but(distinct)
        expressions = [item.expression for item in items]
        names = [item.name for item in items]
        if distinct is not None:
            order = [replace(key, expression=self._over_outputs(key, expressions)) for key in order]
            node = Distinct(project(node, names, expressions))
            expressions = [Column(i, field.name, field.dtype) for i, field in enumerate(node.schema)]
        return sorted_and_limited(self.source, self.node, node, order, names, expressions)

    def _over_outputs(self, key: SortItem, outputs: list[Expression]) -> Expression:
        """The sort key of a SELECT DISTINCT, over its output columns."""

        def change(part: Expression) -> Expression | None:
            if part in outputs:
                position = outputs.index(part)
                return Column(position, describe(part), part.dtype)
            if isinstance(part, Column):
                raise self.source.error(
                    UnsupportedSqlError, "with SELECT DISTINCT, ORDER BY may only use output columns", key.node
                )
            return None

        return rewrite(key.expression, change)
