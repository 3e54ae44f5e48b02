"""One SELECT: FROM, WHERE, GROUP BY, HAVING, the output columns, DISTINCT, ORDER BY and LIMIT, in that order."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlglot import exp

from sash.errors import SqlSyntaxError, UnknownNameError, UnsupportedSqlError, excerpt
from sash.plan.catalog import Catalog
from sash.plan.compound import rewrite
from sash.plan.describe import describe
from sash.plan.expressions import ORDERED, AggregateCall, Column, Expression, columns_of, conjunction, conjuncts
from sash.plan.nodes import Aggregate, Distinct, Filter, Node, Project, SortKey
from sash.sql.aggregates import AggregateCollector
from sash.sql.expressions import ExpressionBinder
from sash.sql.from_clause import FromBinder
from sash.sql.joins import Branch, build, push_equality
from sash.sql.naming import spark_name
from sash.sql.ordering import SortItem, limited, project, sort_items
from sash.sql.over import over
from sash.sql.scope import Scope
from sash.sql.source import SqlText, whole_number
from sash.sql.spark_functions import SparkFunctions
from sash.sql.windows import WINDOWS, WindowCollector

MOST_COLUMNS = 20_000
_GROUPINGS = (exp.Rollup, exp.Cube, exp.GroupingSets)


@dataclass(frozen=True)
class Item:
    """An output column."""

    name: str
    expression: Expression
    node: exp.Expr


def bind_select(source: SqlText, catalog: Catalog, node: exp.Select, from_binder: FromBinder) -> Node:
    """The plan of a SELECT; the caller handles WITH."""
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
    if from_ is None:
        raise source.error(UnsupportedSqlError, "Sash does not run SELECT without FROM", node)
    source.refuse_all_but(from_, "this")
    tree, scope = from_binder.bind(from_.this, node.args.get("joins") or [])
    spark_functions = SparkFunctions(source, catalog.spark_type, None if isinstance(tree, Branch) else tree)
    plain = ExpressionBinder(source, scope, spark_functions, "WHERE")
    below: Node
    if (where := node.args.get("where")) is not None:
        rest = [part for part in conjuncts(plain.predicate(where.this)) if not push_equality(tree, part)]
        predicate = conjunction(rest)
        below = build(tree)
        below = below if predicate is None else Filter(below, predicate)
    else:
        below = build(tree)
    return _Select(source, node, scope, replace(plain, clause="SELECT"), below).bind()


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

    def bind(self) -> Node:
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
        node = self.below
        if self.node.args.get("group") is not None or self.collector.found or having is not None:
            node = self._aggregate(keys)
            positions = {key: position for position, key in enumerate(keys)}
            items = [replace(item, expression=self._above(item.expression, positions, item.node)) for item in items]
            order = [replace(key, expression=self._above(key.expression, positions, key.node)) for key in order]
            if predicate is not None and having is not None:
                node = Filter(node, self._above(predicate, positions, having))
            qualify = None if qualify is None else self._above(qualify, positions, self.node.args["qualify"])
            self.windows.change(lambda part: self._above(part, positions, self.node))
        if self.windows.found:
            node, columns = over(node, self.windows)
            items = [replace(item, expression=columns(item.expression)) for item in items]
            order = [replace(key, expression=columns(key.expression)) for key in order]
            qualify = None if qualify is None else columns(qualify)
        if qualify is not None:
            node = Filter(node, qualify)
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
                entries = self.scope.star(self.source, qualifier, node)
                items.extend(Item(entry.name, entry.expression, node) for entry in entries)
                for entry in entries:
                    aliases.setdefault(entry.name.lower(), entry.expression)
                continue
            inner, name = (node.this, node.alias) if isinstance(node, exp.Alias) else (node, spark_name(node))
            items.append(Item(name, binder.bind(inner), node))
            aliases.setdefault(name.lower(), items[-1].expression)
        if not items:
            raise self.source.error(SqlSyntaxError, "SELECT needs at least one output column", self.node)
        if len(items) > MOST_COLUMNS:
            raise self.source.error(
                UnsupportedSqlError, f"a query may have {MOST_COLUMNS:,} output columns, not {len(items):,}", self.node
            )
        return items

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
        return sort_items(self.source, order, lambda node: self._sort_expression(node, items, binder))

    def _sort_expression(self, node: exp.Expr, items: list[Item], binder: ExpressionBinder) -> Expression:
        if isinstance(node, exp.Literal) and not node.is_string:
            return self._ordinal(node, items).expression
        return binder.bind(node)

    def _aggregate(self, keys: list[Expression]) -> Node:
        """The aggregation over columns; a projection below computes other expressions."""
        found = self.collector.found
        inputs = list(dict.fromkeys([*keys, *(argument for call in found for argument in call.arguments)]))
        child = self.below
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
                AggregateCall(call.function, arguments, call.dtype, call.distinct, call.parameter, call.precision)
            )
        positions = tuple(column.index for key in keys if isinstance(column := columns[key], Column))
        return Aggregate(child, positions, tuple(self.collector.names), tuple(calls))

    def _above(self, expression: Expression, positions: dict[Expression, int], node: exp.Expr) -> Expression:
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

    def _output(self, node: Node, items: list[Item], order: list[SortItem]) -> Node:
        distinct = self.node.args.get("distinct")
        if distinct is not None:
            self.source.refuse_all_but(distinct)
        expressions = [item.expression for item in items]
        names = [item.name for item in items]
        keys = []
        for key in order:
            if key.expression not in expressions:
                if distinct is not None:
                    raise self.source.error(
                        UnsupportedSqlError, "with SELECT DISTINCT, ORDER BY may only use output columns", key.node
                    )
                expressions.append(key.expression)
                names.append(f"_order{len(expressions) - len(items)}")
            keys.append(SortKey(expressions.index(key.expression), key.descending, key.nulls_first))
        node = project(node, names, expressions)
        if distinct is not None:
            node = Distinct(node)
        node = limited(self.source, self.node, node, tuple(keys))
        if len(expressions) > len(items):
            visible = range(len(items))
            node = project(node, names[: len(items)], [Column(i, names[i], expressions[i].dtype) for i in visible])
        return node
