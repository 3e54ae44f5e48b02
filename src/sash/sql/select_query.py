"""One SELECT: FROM, WHERE, GROUP BY, HAVING, the output columns, DISTINCT, ORDER BY and LIMIT, in that order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from sqlglot import exp

from sash.arguments import whole_number
from sash.errors import SqlSyntaxError, UnknownNameError, UnsupportedSqlError, excerpt
from sash.plan.catalog import Catalog
from sash.plan.compound import rewrite
from sash.plan.describe import describe
from sash.plan.expressions import (
    ORDERED,
    AggregateCall,
    Call,
    Column,
    Expression,
    Literal,
    columns_of,
    conjunction,
    conjuncts,
)
from sash.plan.nodes import Aggregate, Distinct, Node, Project
from sash.plan.types import INT, is_struct
from sash.sql.aggregates import AggregateCollector
from sash.sql.expressions import ExpressionBinder
from sash.sql.from_clause import FromBinder
from sash.sql.generators import Generator, bind_generator, generator_name, named_outputs
from sash.sql.grouping import Grouping, normal, read_grouping
from sash.sql.joins import Branch, build, push_equality
from sash.sql.naming import spark_name
from sash.sql.nested_rules import field_of
from sash.sql.now import reads_now, valid_now
from sash.sql.ordering import Query, SortItem, project, refuse_maps, refuse_variants, sort_items, sorted_and_limited
from sash.sql.over import over
from sash.sql.scope import Entry, Scope, without
from sash.sql.session_window import with_session_column
from sash.sql.source import SqlText
from sash.sql.spark_functions import SparkFunctions
from sash.sql.subqueries import Subqueries, as_it_is
from sash.sql.subquery_joins import Translate
from sash.sql.window_function import with_window_column
from sash.sql.windows import WINDOWS, WindowCollector

MOST_COLUMNS = 20_000
_GENERATED = "generated"
"""The function that stands for an output column of a generator: its number, and the number of the column."""


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
            "laterals",
        ),
    )
    from_ = node.args.get("from_")
    tree, scope = from_binder.nothing
    if from_ is not None:
        source.refuse_all_but(from_, "this")
        tree, scope = from_binder.bind(from_.this, node.args.get("joins") or [])
    for lateral in node.args.get("laterals") or []:
        tree, scope = from_binder.generated(tree, scope, lateral)
    spark_functions = SparkFunctions(
        source, catalog.spark_type, None if isinstance(tree, Branch) else tree, catalog.user
    )
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
        self.generators: list[Generator] = []
        self.subqueries.own.aggregate = self.grouped.bind

    @property
    def subqueries(self) -> Subqueries:
        """The subqueries of all clauses."""
        assert self.plain.subqueries is not None
        return self.plain.subqueries

    def bind(self) -> Query:
        items = self._items()
        aliases = {item.name.lower(): item.expression for item in reversed(items)}
        grouping = self._grouping(items, aliases)
        keys = grouping.keys
        having = self.node.args.get("having")
        predicate = None
        if having is not None:
            self.source.refuse_all_but(having, "this")
            first = self._shadowing(aliases, keys)
            binder = replace(self.grouped, clause="HAVING", windows=None, first=first, aliases=aliases)
            predicate = binder.condition(having.this)
        qualify = self._qualify(aliases)
        order = self._order(items)
        if self.collector.groupings and grouping.sets is None and not grouping.grand_total:
            called = self.collector.groupings[0]
            raise self.source.error(
                UnsupportedSqlError, f"{called.name.upper()} needs GROUP BY with GROUPING SETS, ROLLUP or CUBE", called
            )
        node: Node = self.below
        translate: Translate = as_it_is
        if self.node.args.get("group") is not None or self.collector.found or having is not None:
            node = self._aggregate(grouping)
            positions = {key: position for position, key in enumerate(keys)}
            positions |= {normal(key): position for key, position in positions.items()}
            translate = partial(self._above, grouping, positions)
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
        arrays = [translate(each.array, self.node) for each in self.generators]
        node, made = self.subqueries.attach(node, [*expressions, *arrays], translate)
        if self.generators:
            node, made = self._generate(node, made[: len(expressions)], made[len(expressions) :])
        items = [replace(item, expression=expression) for item, expression in zip(items, made, strict=False)]
        order = [replace(key, expression=expression) for key, expression in zip(order, made[len(items) :], strict=True)]
        return self._output(node, items, order)

    def _generate(
        self, node: Node, made: Sequence[Expression], arrays: Sequence[Expression]
    ) -> tuple[Node, list[Expression]]:
        """The rows of the generators in SELECT, and the expressions with what they generate."""
        outputs: list[list[Expression]] = []
        for generator, array in zip(self.generators, arrays, strict=True):
            node, found = replace(generator, array=array).over(node)
            outputs.append(found)

        def change(part: Expression) -> Expression | None:
            if isinstance(part, Call) and part.function == _GENERATED:
                number, place = (int(each.value) for each in part.arguments if isinstance(each, Literal))
                return outputs[number][place]
            return None

        return node, [rewrite(expression, change) for expression in made]

    def _generated(self, node: exp.Expr, binder: ExpressionBinder) -> list[Item]:
        """The output columns of a generator, which stand for what it will generate from the rows of this SELECT."""
        inner = node.this if isinstance(node, exp.Alias | exp.Aliases) else node
        given = node.expressions if isinstance(node, exp.Aliases) else [node.args["alias"]] if node.alias else []
        generator = bind_generator(replace(binder, windows=None), inner)
        if self.generators:
            raise self.source.error(UnsupportedSqlError, "a SELECT may have one generator; use LATERAL VIEW", node)
        names = named_outputs(self.source, generator, given, node)
        sample = generator.outputs(Literal(None, INT), Literal(None, generator.array.dtype.value_type))
        number = Literal(len(self.generators), INT)
        self.generators.append(generator)
        stands = [Call(_GENERATED, (number, Literal(n, INT)), each.dtype) for n, each in enumerate(sample)]
        return [Item(name, each, node) for name, each in zip(names, stands, strict=True)]

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
                self.source.refuse_all_but(star, "except_")
                qualifier = node.table if isinstance(node, exp.Column) else None
                entries = without(self.source, star.args.get("except_") or [], self._star(qualifier, node))
                items.extend(Item(entry.name, entry.expression, node) for entry in entries)
                for entry in entries:
                    aliases.setdefault(entry.name.lower(), entry.expression)
                continue
            if generator_name(node.this if isinstance(node, exp.Alias | exp.Aliases) else node) is not None:
                items.extend(self._generated(node, binder))
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
            found = self.scope.find(qualifier, None)
            if len(found) == 1 and is_struct(found[0].expression.dtype):
                struct = found[0].expression
                return [Entry(None, field.name, field_of(struct, field.name)) for field in struct.dtype]
        return self.scope.star(self.source, qualifier, node)

    def _grouping(self, items: list[Item], aliases: dict[str, Expression]) -> Grouping:
        group = self.node.args.get("group")
        if group is None:
            return Grouping([])
        binder = replace(self.plain, clause="GROUP BY", aliases=aliases)
        if group.args.get("all"):
            if self.scope.find("all", None) or "all" in aliases:
                return Grouping([self._key(exp.column("all"), items, binder)])
            plain = (item.expression for item in items if not self._has_aggregate(item.expression))
            return Grouping(list(dict.fromkeys(plain)))
        return read_grouping(self.source, group, lambda node: self._key(node, items, binder))

    def _key(self, node: exp.Expr, items: list[Item], binder: ExpressionBinder) -> Expression:
        """A key of GROUP BY: an expression, an alias, or the position of an output column."""
        if isinstance(node, exp.Tuple) and not node.expressions:
            raise self.source.error(UnsupportedSqlError, "GROUP BY () has no columns: leave it out", node)
        if isinstance(node, exp.Literal) and not node.is_string:
            key = self._ordinal(node, items).expression
        else:
            key = binder.bind(node)
        if self._has_aggregate(key):
            raise self.source.error(UnsupportedSqlError, "Sash does not run GROUP BY an aggregate", node)
        return key

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
        named_all = "all" in outputs or bool(self.scope.find("all", None))
        made = [item.expression for item in items]
        bind: Callable[[exp.Expr], Expression] = lambda node: self._sort_expression(node, items, binder)  # noqa: E731
        return sort_items(self.source, order, bind, made, named_all=named_all)

    def _sort_expression(self, node: exp.Expr, items: list[Item], binder: ExpressionBinder) -> Expression:
        if isinstance(node, exp.Literal) and not node.is_string:
            return self._ordinal(node, items).expression
        return binder.bind(node)

    def _aggregate(self, grouping: Grouping) -> Node:
        """The aggregation over columns; a projection below computes other expressions."""
        found, keys = self.collector.found, grouping.keys
        refuse_variants(self.source, keys, "GROUP BY", self.node)
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
        positions = tuple(column.index for key in keys if isinstance(column := columns[key], Column))
        if grouping.sets is not None:
            fields = [Column(i, field.name, field.dtype) for i, field in enumerate(child.schema)]
            read_by_calls = {columns[argument] for call in found for argument in call.arguments}
            in_order = any(call.function in ORDERED for call in found)
            kept = [field for field in fields if in_order or field in read_by_calls]
            child = grouping.expand(child, [fields[position] for position in positions], kept)
            columns = {
                e: replace(c, index=kept.index(c)) for e, c in columns.items() if isinstance(c, Column) and c in kept
            }
            positions = tuple(range(len(kept), len(child.schema)))
        calls = []
        for call in found:
            arguments = tuple(a for a in (columns[argument] for argument in call.arguments) if isinstance(a, Column))
            calls.append(
                AggregateCall(
                    call.function, arguments, call.dtype, call.distinct, call.parameter, call.precision, call.detail
                )
            )
        return Aggregate(child, positions, tuple(self.collector.names), tuple(calls))

    def _above(
        self, grouping: Grouping, positions: dict[Expression, int], expression: Expression, node: exp.Expr
    ) -> Expression:
        """The expression over the output of the aggregate."""

        def change(part: Expression) -> Expression | None:
            key = part if part in positions else normal(part)
            if key in positions:
                return Column(positions[key], describe(part), part.dtype)
            if isinstance(part, Column):
                if part.index >= WINDOWS:
                    return part
                if part.index < self.collector.width:
                    raise self.source.error(
                        UnsupportedSqlError,
                        f"the column {part.name} is neither in GROUP BY nor inside an aggregate",
                        node,
                    )
                return Column(grouping.width + part.index - self.collector.width, part.name, part.dtype)
            if isinstance(part, Call) and part.function in ("grouping", "grouping_id"):
                return grouping.call(self.source, part, node)
            return None

        return rewrite(expression, change)

    def _output(self, node: Node, items: list[Item], order: list[SortItem]) -> Query:
        distinct = self.node.args.get("distinct")
        if distinct is not None:
            self.source.refuse_all_but(distinct)
        expressions = [item.expression for item in items]
        names = [item.name for item in items]
        if distinct is not None:
            refuse_maps(self.source, expressions, "DISTINCT", self.node)
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
