"""The call of an aggregate as it is written: DISTINCT, WITHIN GROUP, FILTER and IGNORE NULLS around its arguments."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from sash.errors import TypeMismatchError, UnsupportedSqlError
from sash.sql.source import SqlText
from sash.sql.words import word_of


@dataclass(frozen=True)
class AggregateSyntax:
    """The parts of a call, unbound. `order` are the sort keys of WITHIN GROUP."""

    node: exp.Expr
    name: str
    arguments: tuple[exp.Expr, ...]
    distinct: bool = False
    condition: exp.Expr | None = None
    order: tuple[exp.Ordered, ...] | None = None
    ignore_nulls: bool = False
    respect_nulls: bool = False


def read_aggregate(source: SqlText, node: exp.Expr) -> AggregateSyntax:
    """The parts of the call of a function with its clauses."""
    outer = node
    condition: exp.Expr | None = None
    order: tuple[exp.Ordered, ...] | None = None
    ignore = respect = False
    while not isinstance(node, exp.Anonymous | exp.Any):
        match node:
            case exp.IgnoreNulls() | exp.RespectNulls():
                source.refuse_all_but(node, "this")
                ignore |= isinstance(node, exp.IgnoreNulls)
                respect |= isinstance(node, exp.RespectNulls)
            case exp.Filter():
                source.refuse_all_but(node, "this", "expression")
                condition = node.expression.this
            case exp.WithinGroup():
                source.refuse_all_but(node, "this", "expression")
                order = tuple(node.expression.expressions)
            case _:
                raise source.error(UnsupportedSqlError, f"Sash does not run {word_of(outer)} here", outer)
        node = node.this
    if isinstance(node, exp.Any):
        inner = node.this.this if isinstance(node.this, exp.Paren) else node.this
        return AggregateSyntax(outer, "any", (inner,), False, condition, order, ignore, respect)
    arguments, distinct = list(node.expressions), False
    if len(arguments) == 1 and isinstance(arguments[0], exp.Distinct):
        source.refuse_all_but(arguments[0], "expressions")
        arguments, distinct = arguments[0].expressions, True
    arguments = [
        part.this if isinstance(part, exp.Paren) and isinstance(part.this, exp.Star) else part for part in arguments
    ]
    if arguments and isinstance(arguments[0], exp.IgnoreNulls | exp.RespectNulls):
        ignore |= isinstance(arguments[0], exp.IgnoreNulls)
        respect |= isinstance(arguments[0], exp.RespectNulls)
        arguments = [arguments[0].this, *arguments[1:]]
    return AggregateSyntax(outer, node.name.lower(), tuple(arguments), distinct, condition, order, ignore, respect)


_INVERSE = frozenset({"percentile_cont", "percentile_disc", "mode"})
"""Functions of which WITHIN GROUP gives the values."""


def placed_arguments(source: SqlText, call: AggregateSyntax) -> tuple[tuple[exp.Expr, ...], bool]:
    """The arguments with the values of WITHIN GROUP before them, and whether they are in descending order."""
    if call.name in _INVERSE and call.order is not None:
        if len(call.order) != 1:
            raise source.error(TypeMismatchError, f"{call.name} takes one ORDER BY expression", call.node)
        wanted = 0 if call.name == "mode" else 1
        if len(call.arguments) != wanted:
            raise source.error(
                TypeMismatchError,
                f"{call.name} with WITHIN GROUP takes {wanted or 'no'} argument{'' if wanted else 's'}, "
                f"not {len(call.arguments)}",
                call.node,
            )
        if call.distinct:
            raise source.error(UnsupportedSqlError, f"{call.name} with WITHIN GROUP takes no DISTINCT", call.node)
        return (call.order[0].this, *call.arguments), bool(call.order[0].args.get("desc"))
    if call.name in ("percentile_cont", "percentile_disc"):
        raise source.error(
            UnsupportedSqlError, f"{call.name.upper()} needs WITHIN GROUP (ORDER BY ...): write it after it", call.node
        )
    if call.order is not None and call.name not in ("listagg", "string_agg"):
        raise source.error(UnsupportedSqlError, f"Sash does not run WITHIN GROUP for {call.name}", call.node)
    return call.arguments, False
