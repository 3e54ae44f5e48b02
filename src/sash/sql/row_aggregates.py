"""Binds the aggregates that return rows of their group: COLLECT_LIST, COLLECT_SET, LISTAGG, MIN_BY and MAX_BY with k."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from sash.errors import TypeMismatchError
from sash.plan.expressions import USER, AggregateDetail, Case, Cast, Expression, Literal
from sash.plan.types import BINARY, DOUBLE, INT, NULL, STRING, is_integer, is_numeric, is_supported, type_name
from sash.plan.user_code import UserCode
from sash.sql.coercion import castable, coerce

SortedBy = tuple[Expression, bool, bool]
"""A sort key of WITHIN GROUP: its expression, whether it is descending, and whether NULLs come first."""

MOST = 100_000
"""The largest k of MIN_BY and MAX_BY, as in Spark."""


@dataclass(frozen=True)
class BoundAggregate:
    """An aggregate whose arguments are expressions over the rows of a group."""

    function: str
    arguments: tuple[Expression, ...]
    dtype: pa.DataType
    distinct: bool = False
    parameter: float | None = None
    precision: float | None = None
    detail: AggregateDetail | None = None


def bind_rows(
    function: str,
    arguments: Sequence[Expression],
    distinct: bool,
    condition: Expression | None,
    order: Sequence[SortedBy],
) -> BoundAggregate:
    """The typed aggregate; rows for which the condition does not hold are left out as NULLs are."""
    if function == "listagg":
        return _listagg(arguments, distinct, condition, order)
    if function in ("min_by", "max_by"):
        return _first_by(function, arguments, condition)
    if len(arguments) != 1:
        raise TypeMismatchError(f"{function} takes 1 argument, not {len(arguments)}")
    value = coerce(arguments[0], INT) if arguments[0].dtype == NULL else arguments[0]
    distinct = distinct and function != "collect_set"
    return BoundAggregate(function, (_only(value, condition),), array_type(function, value.dtype), distinct)


def array_type(function: str, element: pa.DataType) -> pa.DataType:
    """ARRAY<element>, the type of an aggregate's result."""
    dtype = pa.list_(element)
    if not is_supported(dtype):
        raise TypeMismatchError(f"{function} returns {type_name(dtype)}, which is not a supported column type")
    return dtype


def bind_user(
    code: UserCode, arguments: Sequence[Expression], distinct: bool, condition: Expression | None
) -> BoundAggregate:
    """An aggregate that the user registered; NULLs are passed on to it."""
    if not arguments:
        raise TypeMismatchError(f"{code.name} needs at least 1 argument")
    detail = AggregateDetail(user=code, filtered=condition is not None)
    given = (*arguments, *([] if condition is None else [condition]))
    return BoundAggregate(USER, given, code.dtype, distinct, detail=detail)


def _only(value: Expression, condition: Expression | None) -> Expression:
    return value if condition is None else Case(((condition, value),), None, value.dtype)


def _first_by(function: str, arguments: Sequence[Expression], condition: Expression | None) -> BoundAggregate:
    value, by, most = arguments
    if not (isinstance(most, Literal) and is_integer(most.dtype) and 1 <= (most.value or 0) <= MOST):
        raise TypeMismatchError(f"the third argument of {function} must be a whole number from 1 to {MOST:,}")
    value, by = (coerce(part, INT) if part.dtype == NULL else part for part in (value, by))
    operands = (value, _only(by, condition))
    return BoundAggregate(
        function, operands, array_type(function, value.dtype), detail=AggregateDetail(limit=int(most.value))
    )


def _listagg(
    arguments: Sequence[Expression], distinct: bool, condition: Expression | None, order: Sequence[SortedBy]
) -> BoundAggregate:
    if not 1 <= len(arguments) <= 2:
        raise TypeMismatchError(f"listagg takes 1 or 2 arguments, not {len(arguments)}")
    value = arguments[0]
    if value.dtype not in (STRING, BINARY):
        if not castable(value.dtype, STRING):
            raise TypeMismatchError(f"listagg takes STRING or BINARY, not {type_name(value.dtype)}")
        value = Cast(value, STRING)
    separator = _separator(arguments[1], value.dtype) if len(arguments) == 2 else b""
    keys = [key for key, _, _ in order]
    same = (value, arguments[0], *([value.argument] if isinstance(value, Cast) else []))
    if distinct and any(key not in same for key in keys):
        raise TypeMismatchError("listagg with DISTINCT can only be ordered by its own argument")
    detail = AggregateDetail(order=tuple((down, first) for _, down, first in order), separator=separator)
    return BoundAggregate("listagg", (_only(value, condition), *keys), value.dtype, distinct, detail=detail)


def bind_histogram(arguments: Sequence[Expression], distinct: bool, condition: Expression | None) -> BoundAggregate:
    """HISTOGRAM_NUMERIC(x, bins): an array of values with the numbers of their rows."""
    if len(arguments) != 2:
        raise TypeMismatchError(f"histogram_numeric takes 2 arguments, not {len(arguments)}")
    value, bins = arguments
    if not (isinstance(bins, Literal) and is_integer(bins.dtype) and (bins.value or 0) >= 2):
        raise TypeMismatchError("the second argument of histogram_numeric must be a whole number of 2 or more bins")
    value = coerce(value, DOUBLE) if value.dtype == NULL else value
    if not (is_numeric(value.dtype) or pa.types.is_temporal(value.dtype)):
        raise TypeMismatchError(f"histogram_numeric takes a number or a time, not {type_name(value.dtype)}")
    element = pa.struct([pa.field("x", value.dtype), pa.field("y", DOUBLE)])
    detail = AggregateDetail(limit=int(bins.value))
    dtype = array_type("histogram_numeric", element)
    return BoundAggregate("histogram_numeric", (_only(value, condition),), dtype, distinct, detail=detail)


def _separator(expression: Expression, dtype: pa.DataType) -> bytes:
    if isinstance(expression, Literal):
        if expression.value is None:
            return b""
        if expression.dtype == dtype:
            return expression.value if isinstance(expression.value, bytes) else str(expression.value).encode()
    raise TypeMismatchError(f"the separator of listagg must be a {type_name(dtype)} constant")
