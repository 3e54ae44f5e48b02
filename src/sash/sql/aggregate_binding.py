"""Binds calls of aggregates: their arguments, FILTER, WITHIN GROUP, and the query to which an aggregate belongs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from sash.errors import TypeMismatchError
from sash.plan.expressions import Expression, Literal
from sash.plan.sql_types import is_interval
from sash.plan.types import INT, NULL, STRING, is_array, type_name
from sash.sql import intervals
from sash.sql.aggregate_calls import placed_arguments, read_aggregate
from sash.sql.aggregates import AGGREGATES, bind_aggregate
from sash.sql.coercion import coerce
from sash.sql.functions import call
from sash.sql.naming import spark_name
from sash.sql.nested_rules import field_of
from sash.sql.ordering import direction_of
from sash.sql.row_aggregates import bind_user

if TYPE_CHECKING:
    from sash.sql.expressions import ExpressionBinder


def bind_aggregate_call(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    """An aggregate with the clauses around it: the column of its result."""
    source = binder.source
    clauses = read_aggregate(source, node)
    written = clauses.name
    user = binder.spark_functions.user.aggregates.get(written)
    if written not in AGGREGATES and user is None:
        clause = {"filter": "FILTER", "withingroup": "WITHIN GROUP"}.get(node.key, "NULLS")
        raise binder.unsupported(f"{clause} for a function that is not an aggregate", node)
    if binder.aggregates is None:
        if (found := _outer_aggregate(binder, node)) is not None:
            return found
        hint = "; filter groups with HAVING" if binder.clause in ("WHERE", "ON") else ""
        raise binder.unsupported(f"the aggregate {written} in {binder.clause}{hint}", node)
    inner = replace(
        binder,
        aggregates=binder.aggregates.outer,
        clause="the argument of an aggregate",
        first={},
        aliases={},
        windows=None,
        variables={},
    )
    arguments, descending = placed_arguments(source, clauses)
    if written == "count" and not clauses.distinct and len(arguments) == 1 and isinstance(arguments[0], exp.Star):
        source.refuse_all_but(arguments[0])
        bound: list[Expression] = [Literal(1, INT)]
    else:
        if written == "count" and len(arguments) == 1 and _is_qualified_star(arguments[0]):
            raise binder.unsupported("COUNT of the columns of a table; write COUNT(*), or name the columns", node)
        bound = [part for argument in arguments for part in _argument_columns(written, inner, argument)]
    order = [(inner.bind(key.this), *direction_of(key)) for key in clauses.order or ()]
    filter_ = None if clauses.condition is None else replace(inner, clause="FILTER").predicate(clauses.condition)
    of_interval = bool(bound) and is_interval(bound[0].dtype)
    if AGGREGATES.get(written) in intervals.AGGREGATES and len(bound) == 1 and of_interval:
        return _interval_aggregate(binder, node, AGGREGATES[written], bound[0], clauses.distinct, filter_)
    collector = binder.aggregates

    def add(arguments: list[Expression]) -> Expression:
        if user is not None:
            aggregate = bind_user(user, arguments, clauses.distinct, filter_)
        else:
            aggregate = bind_aggregate(
                AGGREGATES[written],
                arguments,
                clauses.distinct,
                filter_,
                descending=descending,
                ignore_nulls=clauses.ignore_nulls,
                order=order,
            )
        return collector.add(aggregate, spark_name(node))

    try:
        if of_interval and AGGREGATES.get(written) in intervals.PERCENTILES:
            return intervals.percentile(AGGREGATES[written], bound[0], lambda number: add([number, *bound[1:]]))
        if written == "collect_union":
            return _elements_of(add(bound), bound, clauses.respect_nulls)
        if clauses.respect_nulls and AGGREGATES.get(written) in ("collect_list", "collect_set") and len(bound) == 1:
            return _with_nulls(add, bound[0])
        return add(bound)
    except TypeMismatchError as error:
        raise source.error(TypeMismatchError, str(error), node) from None


def _outer_aggregate(binder: ExpressionBinder, node: exp.Expr) -> Expression | None:
    """An aggregate of columns of the query around this one, as in HAVING; None if it is not such."""
    outer = binder.around[-1] if binder.around else None
    columns = list(node.find_all(exp.Column))
    own = any(binder.scope.find(column.name, column.table or None) for column in columns)
    if outer is None or outer.aggregate is None or own or not columns:
        return None
    return outer.reference(outer.aggregate(node))


def _argument_columns(written: str, inner: ExpressionBinder, node: exp.Expr) -> list[Expression]:
    """An argument of an aggregate; the * of COUNT(DISTINCT *) and COUNT(s.*, k) is all columns."""
    qualified = _is_qualified_star(node)
    if written != "count" or not (qualified or isinstance(node, exp.Star)):
        return [inner.bind(node)]
    inner.source.refuse_all_but(node.this if qualified else node)
    entries = inner.scope.star(inner.source, node.table if isinstance(node, exp.Column) else None, node)
    return [entry.expression for entry in entries]


def _interval_aggregate(
    binder: ExpressionBinder,
    node: exp.Expr,
    function: str,
    value: Expression,
    distinct: bool,
    condition: Expression | None,
) -> Expression:
    """SUM or AVG of intervals, from aggregates of the numbers that store them."""
    collector, name = binder.aggregates, spark_name(node)
    assert collector is not None

    def add(part: str, number: Expression) -> Expression:
        bound = bind_aggregate(part, [number], distinct, condition)
        return collector.add(bound, name if part == function else f"{part} of {name}")

    return intervals.aggregate(function, value, add)


def _elements_of(lists: Expression, arguments: list[Expression], respect_nulls: bool) -> Expression:
    """COLLECT_UNION: the elements of all arrays of a group, each once, from the list of the arrays."""
    if not is_array(arguments[0].dtype):
        raise TypeMismatchError(f"collect_union takes an array, not {type_name(arguments[0].dtype)}")
    elements = call("flatten", [lists])
    return call("array_distinct", [elements if respect_nulls else call("array_compact", [elements])])


def _with_nulls(add: Callable[[list[Expression]], Expression], value: Expression) -> Expression:
    """COLLECT_LIST or COLLECT_SET with RESPECT NULLS: of structs with the value, since a struct with a NULL is not NULL."""
    value = coerce(value, INT) if value.dtype == NULL else value
    made = add([call("named_struct", [Literal("value", STRING), value])])
    return field_of(made, "value")


def _is_qualified_star(node: exp.Expr) -> bool:
    return isinstance(node, exp.Column) and isinstance(node.this, exp.Star)
