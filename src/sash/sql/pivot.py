"""PIVOT and UNPIVOT in FROM.

PIVOT is rewritten: `PIVOT (SUM(v) FOR k IN (1, 2))` selects the other columns and, per value, `SUM(v) FILTER (WHERE k <=> 1)`
grouped by these columns. As in Spark, a group without any row of a value has NULL for it, even for COUNT. UNPIVOT makes
one row per list of columns of each row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from sqlglot import exp

from sash.errors import TypeMismatchError, UnknownNameError, UnsupportedSqlError
from sash.plan.compound import balanced
from sash.plan.expressions import Column, Expression, Literal
from sash.plan.nodes import Expand, Filter, Node
from sash.plan.types import BOOLEAN, STRING, is_numeric
from sash.sql.aggregates import AGGREGATES
from sash.sql.coercion import unify_alike
from sash.sql.functions import call
from sash.sql.scope import Scope
from sash.sql.source import SqlText, did_you_mean

TABLE = "pivoted rows"
"""The name of the rows in the query that a PIVOT is rewritten to."""

_NULL_OF_NOTHING = frozenset(
    {"sum", "avg", "mean", "min", "max", "first", "last", "any_value", "median", "stddev", "std"}
)
"""Aggregates that are NULL without rows."""


def bind_pivot(
    source: SqlText, node: Node, pivot: exp.Expr, over: Callable[[Mapping[str, Node], exp.Expr], Node]
) -> Node:
    """The plan of a PIVOT of the node's rows; `over` binds a query over given tables.

    Spark keeps the values of all aggregates in a buffer of numbers, which are NULL without rows; where one of them is of
    another type, it computes each as the query is written, and COUNT of nothing is 0.
    """
    made = over({TABLE: node}, pivot_query(source, node, pivot, null_of_nothing=True))
    columns = made.schema[-len(pivot.expressions) :]
    if all(is_numeric(column.dtype) or column.dtype == BOOLEAN for column in columns):
        return made
    return over({TABLE: node}, pivot_query(source, node, pivot, null_of_nothing=False))


def pivot_query(source: SqlText, node: Node, pivot: exp.Expr, *, null_of_nothing: bool) -> exp.Select:
    """The query that a PIVOT of the node's rows stands for, over the table `TABLE`."""
    source.refuse_all_but(pivot, "expressions", "fields", "alias", *_IGNORED)
    (field,) = pivot.args["fields"]
    if not isinstance(field, exp.In) or not field.expressions:
        raise source.error(UnsupportedSqlError, "PIVOT needs FOR column IN (values), with constant values", pivot)
    by = field.this.expressions if isinstance(field.this, exp.Tuple) else [field.this]
    calls = pivot.expressions
    used = {column.name.lower() for part in [*by, *calls] for column in part.find_all(exp.Column)}
    kept = [column.name for column in node.schema if column.name.lower() not in used]
    selected: list[exp.Expr] = [exp.column(exp.to_identifier(name, quoted=True)) for name in kept]
    for value in field.expressions:
        constant, name = (value.this, value.alias) if isinstance(value, exp.PivotAlias) else (value, _text(value))
        condition = _condition(source, by, constant)
        for one in calls:
            suffix = one.alias if isinstance(one, exp.Alias) else one.sql(dialect="spark").lower()
            made = _of_value(
                source, one.this if isinstance(one, exp.Alias) else one, condition, null_of_nothing=null_of_nothing
            )
            selected.append(exp.alias_(made, name if len(calls) == 1 else f"{name}_{suffix}", quoted=True))
    query = exp.Select(expressions=selected).from_(exp.Table(this=exp.to_identifier(TABLE, quoted=True)), copy=False)
    if kept:
        query.set("group", exp.Group(expressions=[column.copy() for column in selected[: len(kept)]]))
    return query


_IGNORED = (
    *("unpivot", "default_on_null", "columns", "identify_pivot_strings", "prefixed_pivot_columns"),
    *("pivot_column_naming", "value_columns_first", "include_nulls"),
)


def _text(value: exp.Expr) -> str:
    """The name of a column that is made for a constant."""
    if isinstance(value, exp.Tuple):
        return f"{{{', '.join(map(_text, value.expressions))}}}"
    if isinstance(value, exp.Literal):
        return str(value.this)
    return value.sql(dialect="spark").lower()


def _condition(source: SqlText, by: list[exp.Expr], value: exp.Expr) -> exp.Expr:
    """The rows of a value."""
    values = value.expressions if isinstance(value, exp.Tuple) and len(by) > 1 else [value]
    if len(values) != len(by):
        raise source.error(TypeMismatchError, f"PIVOT goes by {len(by)} columns, but a value has {len(values)}", value)
    if any(value.find(exp.Column) is not None for value in values):
        raise source.error(UnsupportedSqlError, "the values of PIVOT must be constants", value)
    pairs = [exp.NullSafeEQ(this=key.copy(), expression=_struct(one)) for key, one in zip(by, values, strict=True)]
    return exp.and_(*pairs, copy=False)


def _struct(value: exp.Expr) -> exp.Expr:
    """A value of one column; a list in parentheses is a struct."""
    if not isinstance(value, exp.Tuple):
        return value.copy()
    return exp.Anonymous(this="struct", expressions=[_struct(part) for part in value.expressions])


def _of_value(source: SqlText, made: exp.Expr, condition: exp.Expr, *, null_of_nothing: bool) -> exp.Expr:
    """The expression with its aggregates over the rows of a value; with `null_of_nothing`, NULL where a group has none."""
    root = exp.Paren(this=made.copy())
    found = [part for part in root.find_all(exp.Anonymous) if part.name.lower() in AGGREGATES]
    if not found:
        raise source.error(UnsupportedSqlError, "PIVOT needs aggregates, such as SUM(v)", made)
    for part in found:
        outer: exp.Expr = part
        while isinstance(outer.parent, exp.WithinGroup | exp.Filter | exp.IgnoreNulls | exp.RespectNulls):
            outer = outer.parent
        if isinstance(outer, exp.Filter):
            where = outer.expression
            where.set("this", exp.and_(where.this, condition.copy(), copy=False))
        else:
            outer.replace(exp.Filter(this=outer.copy(), expression=exp.Where(this=condition.copy())))
    inner: exp.Expr = root.this
    if not null_of_nothing or (isinstance(made, exp.Anonymous) and made.name.lower() in _NULL_OF_NOTHING):
        return inner
    rows = exp.Filter(
        this=exp.Anonymous(this="count", expressions=[exp.Star()]), expression=exp.Where(this=condition.copy())
    )
    some = exp.GT(this=rows, expression=exp.Literal.number(0))
    return exp.Case(ifs=[exp.If(this=some, true=inner)])


def unpivot(source: SqlText, node: Node, scope: Scope, clause: exp.Expr) -> Node:
    """The rows of an UNPIVOT: the other columns, the name of the list, and its values."""
    source.refuse_all_but(clause, "expressions", "fields", "alias", *_IGNORED)
    (field,) = clause.args["fields"]
    (values,) = clause.expressions
    targets = [one.name for one in (values.expressions if isinstance(values, exp.Tuple) else [values])]
    labels: list[str] = []
    lists: list[list[Column]] = []
    for choice in field.expressions:
        aliased = isinstance(choice, exp.PivotAlias)
        written = choice.this if aliased else choice
        parts = written.expressions if isinstance(written, exp.Tuple) else [written]
        if len(parts) != len(targets):
            raise source.error(
                TypeMismatchError, f"UNPIVOT makes {len(targets)} columns of {len(parts)}: name as many", choice
            )
        lists.append([_column(source, scope, part) for part in parts])
        labels.append(choice.alias if aliased else "_".join(part.name for part in parts))
    used = {column.index for columns in lists for column in columns}
    kept = [Column(i, f.name, f.dtype) for i, f in enumerate(node.schema) if i not in used]
    unified = [_unified(source, clause, [columns[n] for columns in lists]) for n in range(len(targets))]
    made = tuple((*kept, Literal(label, STRING), *(column[n] for column in unified)) for n, label in enumerate(labels))
    names = (*(column.name for column in kept), field.this.name, *targets)
    rows: Node = Expand(node, names, made)
    if clause.args.get("include_nulls"):
        return rows
    first = len(kept) + 1
    fields = [Column(first + n, name, rows.schema[first + n].dtype) for n, name in enumerate(targets)]
    known = [call("is_not_null", [field]) for field in fields]
    return Filter(rows, balanced(known, lambda left, right: call("or", [left, right])))


def _column(source: SqlText, scope: Scope, node: exp.Expr) -> Column:
    if isinstance(node, exp.Column):
        found = scope.resolve(source, node)
        if isinstance(found, Column):
            return found
    hint = did_you_mean(node.name, [entry.name for entry in scope.entries])
    raise source.error(UnknownNameError, f"UNPIVOT takes columns, and {node.name} is none{hint}", node)


def _unified(source: SqlText, clause: exp.Expr, columns: Sequence[Expression]) -> list[Expression]:
    try:
        return unify_alike(columns, "the columns of UNPIVOT")
    except TypeMismatchError as error:
        raise source.error(TypeMismatchError, str(error), clause) from None
