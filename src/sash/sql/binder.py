"""Binds queries (SELECT, set operators, WITH and parentheses): from the parser's tree to the logical plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from sqlglot import exp

from sash.arguments import check_text
from sash.errors import SqlSyntaxError, TypeMismatchError, UnknownNameError, UnsupportedSqlError
from sash.plan.catalog import Catalog
from sash.plan.expressions import Column, Expression
from sash.plan.nodes import Distinct, Except, Intersect, Node, SortKey, Union, Window
from sash.plan.types import type_name
from sash.sql.coercion import coerce, common_dtype
from sash.sql.dialect import parse_statement
from sash.sql.expressions import ExpressionBinder
from sash.sql.from_clause import FromBinder, renamed, window_of
from sash.sql.ordering import limited, project, sort_items
from sash.sql.scope import Scope
from sash.sql.select_query import bind_select
from sash.sql.source import SqlText
from sash.sql.spark_functions import SparkFunctions


def parse(text: str, catalog: Catalog) -> Node:
    """The bound logical plan of a query."""
    source = SqlText(check_text("a query", text, SqlSyntaxError))
    statement = parse_statement(source)
    window = window_of(statement.window) if statement.window else None
    try:
        plan = Binder(source, catalog, window).query(statement.query)
    except RecursionError:
        raise source.error(UnsupportedSqlError, "the query is nested too deeply") from None
    seen: set[str] = set()
    for position, column in enumerate(plan.schema):
        if column.name.lower() in seen:
            items = statement.query.args.get("expressions") or []
            raise source.error(
                UnsupportedSqlError,
                f"two output columns are called {column.name}: give one of them another name with AS",
                items[position] if len(items) == len(plan.schema) else statement.query,
            )
        seen.add(column.name.lower())
    return plan


@dataclass(frozen=True)
class Binder:
    """Binds queries; `window` is the trailing WINDOW, `ctes` the bound queries of WITH that are in scope."""

    source: SqlText
    catalog: Catalog
    window: Window | None
    ctes: Mapping[str, Node] = field(default_factory=dict)

    def query(self, node: exp.Expr) -> Node:
        """The plan of any query."""
        binder = self._with(node)
        match node:
            case exp.Select():
                tables = FromBinder(self.source, self.catalog, self.window, binder.ctes, binder.query)
                return bind_select(self.source, self.catalog, node, tables)
            case exp.SetOperation():
                return binder._set_operation(node)
            case exp.Subquery():
                self.source.refuse_all_but(node, "this", "with_", "order", "limit", "offset")
                return binder._ordered(node, binder.query(node.this))
            case exp.Values():
                raise self.source.error(UnsupportedSqlError, "Sash does not run VALUES; register a relation", node)
            case _:
                raise self.source.error(UnsupportedSqlError, f"Sash does not run {node.key.upper()} as a query", node)

    def _with(self, node: exp.Expr) -> Binder:
        """The binder with the queries of the node's WITH added to its scope."""
        clause = node.args.get("with_")
        if clause is None:
            return self
        if clause.args.get("recursive"):
            raise self.source.error(UnsupportedSqlError, "Sash does not run recursive queries (WITH RECURSIVE)", clause)
        self.source.refuse_all_but(clause, "expressions")
        binder = self
        names: set[str] = set()
        for cte in clause.expressions:
            self.source.refuse_all_but(cte, "this", "alias")
            name = cte.alias.lower()
            if name in names:
                raise self.source.error(UnknownNameError, f"WITH has two queries called {cte.alias}", cte)
            names.add(name)
            plan = binder.query(cte.this)
            columns = cte.args["alias"].args.get("columns")
            if columns:
                plan = renamed(self.source, plan, columns)
            binder = replace(binder, ctes={**binder.ctes, name: plan})
        return binder

    def _set_operation(self, node: exp.SetOperation) -> Node:
        self.source.refuse_all_but(node, "this", "expression", "distinct", "with_", "order", "limit", "offset")
        left, right = self._aligned(node, self.query(node.this), self.query(node.expression))
        keep_all = node.args.get("distinct") is False
        plan: Node
        match node:
            case exp.Union():
                plan = Union(left, right) if keep_all else Distinct(Union(left, right))
            case exp.Except():
                plan = Except(left, right, keep_all)
            case exp.Intersect():
                plan = Intersect(left, right, keep_all)
            case _:
                raise self.source.error(UnsupportedSqlError, f"Sash does not run {node.key.upper()}", node)
        return self._ordered(node, plan)

    def _aligned(self, node: exp.Expr, left: Node, right: Node) -> tuple[Node, Node]:
        """Both sides with the same types."""
        operator = node.key.upper()
        if len(left.schema) != len(right.schema):
            raise self.source.error(
                TypeMismatchError,
                f"{operator} needs the same number of columns on both sides, not {len(left.schema)} and {len(right.schema)}",
                node,
            )
        dtypes = []
        for position, (one, other) in enumerate(zip(left.schema, right.schema, strict=True), start=1):
            dtype = common_dtype(one.dtype, other.dtype)
            if dtype is None:
                raise self.source.error(
                    TypeMismatchError,
                    f"column {position} of {operator} is {type_name(one.dtype)} on the left "
                    f"and {type_name(other.dtype)} on the right; cast one of them",
                    node,
                )
            dtypes.append(dtype)
        aligned = []
        for side in (left, right):
            columns = [Column(i, f.name, f.dtype) for i, f in enumerate(side.schema)]
            cast: list[Expression] = [coerce(c, dtype) for c, dtype in zip(columns, dtypes, strict=True)]
            aligned.append(project(side, [f.name for f in side.schema], cast))
        return aligned[0], aligned[1]

    def _ordered(self, node: exp.Expr, plan: Node) -> Node:
        """ORDER BY and LIMIT over the output columns of a set operator or of parentheses."""
        order = node.args.get("order")
        keys: list[SortKey] = []
        names = [f.name for f in plan.schema]
        expressions: list[Expression] = [Column(i, f.name, f.dtype) for i, f in enumerate(plan.schema)]
        wide = list(expressions)
        if order is not None:
            spark_functions = SparkFunctions(self.source, self.catalog.spark_type, None)
            binder = ExpressionBinder(self.source, Scope.of(plan, None), spark_functions, "ORDER BY")
            for item in sort_items(self.source, order, lambda part: self._sort_expression(part, binder, expressions)):
                if item.expression not in wide:
                    wide.append(item.expression)
                keys.append(SortKey(wide.index(item.expression), item.descending, item.nulls_first))
        hidden = [f"_order{i}" for i in range(1, len(wide) - len(names) + 1)]
        plan = limited(self.source, node, project(plan, names + hidden, wide), tuple(keys))
        return project(plan, names, expressions) if hidden else plan

    def _sort_expression(self, node: exp.Expr, binder: ExpressionBinder, outputs: list[Expression]) -> Expression:
        if isinstance(node, exp.Literal) and not node.is_string:
            text = str(node.this)
            if not text.isdigit() or not 1 <= int(text) <= len(outputs):
                raise self.source.error(UnknownNameError, f"there is no output column {text}", node)
            return outputs[int(text) - 1]
        return binder.bind(node)
