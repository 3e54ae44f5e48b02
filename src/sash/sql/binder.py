"""Binds queries (SELECT, set operators, WITH and parentheses): from the parser's tree to the logical plan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa
from sqlglot import exp

from sash.arguments import check_text, whole_number
from sash.errors import SqlSyntaxError, TypeMismatchError, UnknownNameError, UnsupportedSqlError, excerpt
from sash.plan.catalog import Catalog
from sash.plan.compound import balanced
from sash.plan.expressions import Column, Expression, Literal
from sash.plan.nodes import Distinct, Except, Intersect, Node, Union, Window
from sash.plan.types import type_name
from sash.sql.coercion import coerce, common_dtype
from sash.sql.constants import bind_values
from sash.sql.correlation import Scopes
from sash.sql.dialect import parse_statement, quiet
from sash.sql.emit import emitted, emitting
from sash.sql.expressions import ExpressionBinder
from sash.sql.from_clause import FromBinder, renamed, window_of
from sash.sql.ordering import Query, SortItem, project, refuse_maps, sort_items, sorted_and_limited
from sash.sql.scope import Scope
from sash.sql.select_query import bind_select
from sash.sql.source import SqlText, too_deep
from sash.sql.spark_functions import SparkFunctions
from sash.sql.storage import to_storage
from sash.sql.undeclared import with_declared_windows
from sash.sql.words import word_of


def parse(text: str, catalog: Catalog) -> Node:
    """The bound logical plan of a query."""
    return parse_query(text, catalog).plan


def parse_query(text: str, catalog: Catalog) -> Query:
    """The bound logical plan of a query, and the order in which its rows are shown."""
    with quiet():
        return _parse(SqlText(check_text("a query", text, SqlSyntaxError)), catalog)


def _parse(source: SqlText, catalog: Catalog) -> Query:
    statement = parse_statement(source)
    window = window_of(statement.window) if statement.window else None
    try:
        with emitting(statement.emit is not None):
            query = Binder(source, catalog, window).outermost(statement.query)
        if statement.emit is not None:
            query = replace(query, plan=emitted(source, query.plan, statement.emit))
        _refuse_enormous(source, query.plan)
    except RecursionError:
        raise too_deep(source) from None
    typed = _with_distinct_names(with_declared_windows(query.plan))
    plan = to_storage(typed)
    return replace(query, plan=plan, schema=() if plan is typed else typed.schema)


def _with_distinct_names(plan: Node) -> Node:
    """The plan with different names for all its columns: the first `k` keeps its name, others become `k_2`, `k_3` ..."""
    written = [column.name for column in plan.schema]
    taken = {name.lower() for name in written}
    if len(taken) == len(written):
        return plan
    names: list[str] = []
    last: dict[str, int] = {}
    for name in written:
        if name.lower() not in last:
            last[name.lower()] = 1
            names.append(name)
            continue
        number = last[name.lower()] + 1
        while f"{name}_{number}".lower() in taken:
            number += 1
        last[name.lower()] = number
        names.append(f"{name}_{number}")
        taken.add(names[-1].lower())
    return project(plan, names, [Column(i, field.name, field.dtype) for i, field in enumerate(plan.schema)])


MOST_OPERATORS = 20_000
MOST_OPERATORS_DEEP = 100


def _refuse_enormous(source: SqlText, plan: Node) -> None:
    """Reject a plan that is too deep to be planned or run, or too large; a query of WITH counts wherever it is used."""
    measured: dict[int, tuple[int, int]] = {}
    for node in _inputs_first(plan):
        below = [measured[id(child)] for child in node.children]
        levels = 1 + max((levels for levels, _ in below), default=0)
        count = 1 + sum(count for _, count in below)
        measured[id(node)] = levels, count
        if levels > MOST_OPERATORS_DEEP:
            raise too_deep(source)
        if count > MOST_OPERATORS:
            raise source.error(
                UnsupportedSqlError,
                f"the query has more than {MOST_OPERATORS:,} operators, if every use of a query of WITH is counted: split it",
            )


def _inputs_first(plan: Node) -> Iterator[Node]:
    """The nodes of a plan, each once and after everything below it."""
    seen: set[int] = set()
    pending = [(plan, False)]
    while pending:
        node, inputs_are_done = pending.pop()
        if inputs_are_done:
            yield node
        elif id(node) not in seen:
            seen.add(id(node))
            pending.append((node, True))
            pending.extend((child, False) for child in node.children)


_MODIFIERS = frozenset({"with_", "order", "limit", "offset"})


def _given(node: exp.Expr) -> set[str]:
    return {name for name, value in node.args.items() if value}


@dataclass(frozen=True)
class _Terms:
    """The queries of a UNION ALL, or if `distinct` of a UNION; or a single query."""

    terms: list[Node]
    distinct: bool

    def plan(self) -> Node:
        union = balanced(self.terms, Union)
        return Distinct(union) if self.distinct else union


def _cast(node: Node, dtypes: list[pa.DataType]) -> Node:
    """The node with its columns cast to these types."""
    columns = [Column(i, f.name, f.dtype) for i, f in enumerate(node.schema)]
    cast: list[Expression] = [coerce(c, dtype) for c, dtype in zip(columns, dtypes, strict=True)]
    return project(node, [f.name for f in node.schema], cast)


@dataclass(frozen=True)
class Binder:
    """Binds queries; `window` is the trailing WINDOW, `ctes` the bound queries of WITH that are in scope."""

    source: SqlText
    catalog: Catalog
    window: Window | None
    ctes: Mapping[str, Node] = field(default_factory=dict)
    around: Scopes = ()
    """The queries around the one that is bound, if that is a subquery in an expression or after LATERAL."""

    def nested(self, node: exp.Expr, around: Scopes) -> Node:
        """The plan of a subquery that may refer to columns of the queries around it."""
        return replace(self, around=around).query(node)

    def query(self, node: exp.Expr) -> Node:
        """The plan of any query but the outermost one: its rows have no order."""
        return self.outermost(node).plan

    def over(self, tables: Mapping[str, Node], node: exp.Expr) -> Node:
        """The plan of a query over these tables, by lower-case name, and those in scope."""
        return replace(self, ctes={**self.ctes, **tables}).query(node)

    def outermost(self, node: exp.Expr) -> Query:
        """The plan of any query, and the order of its rows."""
        binder = self._with(node)
        match node:
            case exp.Select():
                tables = FromBinder(
                    self.source,
                    self.catalog,
                    self.window,
                    binder.ctes,
                    binder.query,
                    binder.nested,
                    binder.over,
                    self.around,
                )
                return bind_select(self.source, self.catalog, node, tables)
            case exp.SetOperation():
                return binder._set_operation(node)
            case exp.Subquery():
                self.source.refuse_all_but(node, "this", "with_", "order", "limit", "offset")
                return binder._ordered(node, binder.outermost(node.this))
            case exp.Values():
                self.source.refuse_all_but(node, "expressions", *_MODIFIERS)
                return binder._ordered(node, Query(bind_values(self.source, self.catalog, node)))
            case _:
                raise self.source.error(UnsupportedSqlError, f"Sash does not run {word_of(node)} as a query", node)

    def _with(self, node: exp.Expr) -> Binder:
        """The binder with the queries of the node's WITH added to its scope."""
        clause = node.args.get("with_")
        if clause is None:
            return self
        if clause.args.get("recursive"):
            problem = (
                "Sash does not run recursive queries (WITH RECURSIVE), whose steps would be computed anew at each change; for a "
                "series of numbers use FROM range(n) or explode(sequence(a, b))"
            )
            raise self.source.error(UnsupportedSqlError, problem, clause)
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

    def _set_operation(self, node: exp.SetOperation) -> Query:
        """A chain of set operators, which the parser nests to the left, from its first query on.

        INTERSECT binds more tightly than UNION and EXCEPT: it combines the term before it, not everything before it.
        """
        chain: list[exp.SetOperation] = []
        first: exp.Expr = node
        while isinstance(first, exp.SetOperation) and (first is node or not _MODIFIERS & _given(first)):
            self.source.refuse_all_but(first, "this", "expression", "distinct", *_MODIFIERS)
            chain.append(first)
            first = first.this
        terms: list[tuple[exp.SetOperation, _Terms]] = [(node, _Terms([self.query(first)], distinct=False))]
        for operator in reversed(chain):
            right = self.query(operator.expression)
            if isinstance(operator, exp.Intersect):
                before, left = terms.pop()
                terms.append((before, self._operation(operator, left, right)))
            else:
                terms.append((operator, _Terms([right], distinct=False)))
        union = terms[0][1]
        for between, term in terms[1:]:
            union = self._operation(between, union, term.plan())
        return self._ordered(node, Query(union.plan()))

    def _operation(self, node: exp.SetOperation, left: _Terms, right: Node) -> _Terms:
        """The left side combined with one more query; further terms of a UNION join those before them."""
        dtypes = self._common_types(node, left.terms[0], right)
        keep_all = node.args.get("distinct") is False
        if [field.dtype for field in left.terms[0].schema] != dtypes or (left.distinct and keep_all):
            left = _Terms([_cast(left.plan(), dtypes)], distinct=False)
        if not (isinstance(node, exp.Union) and keep_all):
            refuse_maps(self.source, [Literal(None, dtype) for dtype in dtypes], word_of(node), node)
        right = _cast(right, dtypes)
        match node:
            case exp.Union():
                return _Terms([*left.terms, right], distinct=not keep_all)
            case exp.Except():
                return _Terms([Except(left.plan(), right, keep_all)], distinct=False)
            case exp.Intersect():
                return _Terms([Intersect(left.plan(), right, keep_all)], distinct=False)
            case _:
                raise self.source.error(UnsupportedSqlError, f"Sash does not run {word_of(node)}", node)

    def _common_types(self, node: exp.Expr, left: Node, right: Node) -> list[pa.DataType]:
        """The types that the columns of both sides can have."""
        operator = word_of(node)
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
        return dtypes

    def _ordered(self, node: exp.Expr, query: Query) -> Query:
        """ORDER BY and LIMIT over the output columns of a set operator, of VALUES or of parentheses.

        Parentheses without an ORDER BY of their own have that of the query in them.
        """
        order, plan = node.args.get("order"), query.plan
        names = [f.name for f in plan.schema]
        expressions: list[Expression] = [Column(i, f.name, f.dtype) for i, f in enumerate(plan.schema)]
        items = [SortItem(expressions[key.column], key.descending, key.nulls_first, node) for key in query.order]
        if order is not None:
            spark_functions = SparkFunctions(self.source, self.catalog.spark_type, None, self.catalog.user)
            binder = ExpressionBinder(self.source, Scope.of(plan, None), spark_functions, "ORDER BY")
            items = sort_items(
                self.source,
                order,
                lambda part: self._sort_expression(part, binder, expressions),
                expressions,
                named_all="all" in {name.lower() for name in names},
            )
        return sorted_and_limited(self.source, node, plan, items, names, expressions)

    def _sort_expression(self, node: exp.Expr, binder: ExpressionBinder, outputs: list[Expression]) -> Expression:
        if isinstance(node, exp.Literal) and not node.is_string:
            text = str(node.this)
            position = whole_number(text, len(outputs))
            if not position:
                raise self.source.error(UnknownNameError, f"there is no output column {excerpt(text)}", node)
            return outputs[position - 1]
        return binder.bind(node)
