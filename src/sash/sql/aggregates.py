"""Aggregate functions: their types, as in Spark, and the aggregates of a query."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa

from sash.errors import TypeMismatchError
from sash.plan.expressions import APPROXIMATE, TIMED, Call, Case, Column, Expression, Literal
from sash.plan.types import BIGINT, BOOLEAN, DOUBLE, INT, NULL, STRING, is_integer, is_numeric, type_name
from sash.sql.coercion import bounded_decimal, coerce, digits_of, is_decimal

AGGREGATES: dict[str, str] = {
    "any_value": "first",
    "approx_count_distinct": "approx_count_distinct",
    "approx_percentile": "approx_percentile",
    "approx_top_k": "approx_top_k",
    "avg": "avg",
    "count": "count",
    "count_if": "count_if",
    "first": "first",
    "first_value": "first",
    "last": "last",
    "last_value": "last",
    "max": "max",
    "max_by": "max_by",
    "mean": "avg",
    "median": "median",
    "min": "min",
    "min_by": "min_by",
    "percentile": "percentile",
    "percentile_approx": "approx_percentile",
    "percentile_cont": "percentile",
    "std": "stddev_samp",
    "stddev": "stddev_samp",
    "stddev_pop": "stddev_pop",
    "stddev_samp": "stddev_samp",
    "sum": "sum",
    "var_pop": "var_pop",
    "var_samp": "var_samp",
    "variance": "var_samp",
}
"""Aggregate functions as users write them -> canonical name."""

_DISTINCT = ("count", "sum", "avg")
_INDIFFERENT = ("min", "max")
_STATISTICS = ("median", "var_pop", "var_samp", "stddev_pop", "stddev_samp")


@dataclass(frozen=True)
class BoundAggregate:
    """An aggregate whose arguments are expressions over the rows of a group."""

    function: str
    arguments: tuple[Expression, ...]
    dtype: pa.DataType
    distinct: bool = False
    parameter: float | None = None
    precision: float | None = None


@dataclass
class AggregateCollector:
    """The aggregates of one SELECT. Each is a column after the `width` columns of FROM.

    `outer` collects the aggregates in the arguments of these, where there may be any: below OVER.
    """

    width: int
    outer: AggregateCollector | None = None
    found: list[BoundAggregate] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    _positions: dict[BoundAggregate, int] = field(default_factory=dict)

    def add(self, aggregate: BoundAggregate, name: str) -> Column:
        """The column of the aggregate; equal aggregates share one."""
        position = self._positions.setdefault(aggregate, len(self.found))
        if position == len(self.found):
            self.found.append(aggregate)
            self.names.append(name)
        return Column(self.width + position, self.names[position], aggregate.dtype)


def bind_aggregate(
    function: str, arguments: list[Expression], distinct: bool, condition: Expression | None
) -> BoundAggregate:
    """The typed aggregate. FILTER (WHERE condition) becomes a CASE in its argument, and so skips rows as NULLs are skipped;
    FIRST and LAST, which do not skip NULLs, take the condition as a second argument."""
    parameter = precision = None
    if function in APPROXIMATE:
        parameter, precision = _estimated(function, arguments)
    if function == "percentile":
        _arity(function, arguments, 2)
        parameter = _fraction(arguments.pop())
    if function == "count_if":
        _arity(function, arguments, 1)
        only = _only(arguments[0], condition)
        return BoundAggregate("count", (Case(((only, Literal(1, INT)),), None, INT),), BIGINT)
    if function == "count" and not arguments:
        raise TypeMismatchError("count takes at least 1 argument; write count(*) to count rows")
    if function == "count" and not distinct:
        arguments, condition = _count_rows(arguments, condition)
        if not arguments:
            return BoundAggregate("count_star", (), BIGINT)
    _arity(function, arguments, 2 if function in ("min_by", "max_by") else 1)
    if distinct and function not in _DISTINCT + _INDIFFERENT:
        raise TypeMismatchError(f"DISTINCT is supported for {', '.join(_DISTINCT + _INDIFFERENT)}, not for {function}")
    distinct = distinct and function in _DISTINCT
    operands = [_operand(function, argument) for argument in arguments]
    dtype = _result_type(function, operands[0])
    if condition is not None and function in TIMED:
        operands.append(condition)
    elif condition is not None:
        operands = [Case(((condition, operand),), None, operand.dtype) for operand in operands]
    return BoundAggregate(function, tuple(operands), dtype, distinct, parameter, precision)


def _only(predicate: Expression, condition: Expression | None) -> Expression:
    if predicate.dtype not in (BOOLEAN, NULL):
        raise TypeMismatchError(f"count_if takes BOOLEAN, not {type_name(predicate.dtype)}")
    predicate = coerce(predicate, BOOLEAN)
    return predicate if condition is None else Call("and", (condition, predicate), BOOLEAN)


def _count_rows(
    arguments: list[Expression], condition: Expression | None
) -> tuple[list[Expression], Expression | None]:
    """COUNT(*), COUNT(1) and COUNT(a, b) as counts of one expression or of rows (no argument)."""
    nullable = [a for a in arguments if not (isinstance(a, Literal) and a.value is not None)]
    if len(nullable) == 1:
        return nullable, condition
    if not nullable and condition is None:
        return [], None
    known: Expression | None = condition
    for argument in nullable:
        part: Expression = Call("is_not_null", (argument,), BOOLEAN)
        known = part if known is None else Call("and", (known, part), BOOLEAN)
    return [Literal(1, INT)], known


def _arity(function: str, arguments: list[Expression], wanted: int) -> None:
    if len(arguments) != wanted:
        several = "; count the rows of a SELECT DISTINCT instead" if function == "count" else ""
        plural = "argument" if wanted == 1 else "arguments"
        raise TypeMismatchError(f"{function} takes {wanted} {plural}, not {len(arguments)}{several}")


def _estimated(function: str, arguments: list[Expression]) -> tuple[float, float | None]:
    """The parameter (percentile or number of values) and the precision of an estimate; the remaining argument is its column."""
    most = 2 if function == "approx_count_distinct" else 3
    if not most - 1 <= len(arguments) <= most:
        raise TypeMismatchError(f"{function} takes {most - 1} or {most} arguments, not {len(arguments)}")
    precision = _number(function, arguments.pop()) if len(arguments) == most else None
    if function == "approx_count_distinct":
        return 0.0, precision
    if function == "approx_percentile":
        return _fraction(arguments.pop()), precision
    return _number(function, arguments.pop()), precision


def _number(function: str, expression: Expression) -> float:
    if isinstance(expression, Literal) and expression.value is not None and is_numeric(expression.dtype):
        number = float(expression.value)
        if number > 0:
            return number
    raise TypeMismatchError(f"{function} needs numbers greater than 0 for its count and its precision")


def _fraction(expression: Expression) -> float:
    if isinstance(expression, Literal) and expression.value is not None and is_numeric(expression.dtype):
        fraction = float(expression.value)
        if 0 <= fraction <= 1:
            return fraction
    raise TypeMismatchError("the second argument of a percentile must be a number from 0 to 1")


def _operand(function: str, argument: Expression) -> Expression:
    """The argument, cast to the type that the aggregate needs."""
    dtype = argument.dtype
    if dtype == NULL:
        return coerce(argument, DOUBLE if function in ("sum", "avg", *_STATISTICS, "percentile") else INT)
    if function in ("sum", "avg", "percentile", "approx_percentile", *_STATISTICS) and not is_numeric(dtype):
        raise TypeMismatchError(f"{function} takes a number, not {type_name(dtype)}; cast it")
    if function in ("percentile", "approx_percentile", *_STATISTICS):
        return coerce(argument, DOUBLE)
    return argument


def _result_type(function: str, operand: Expression) -> pa.DataType:
    dtype = operand.dtype
    match function:
        case "count" | "approx_count_distinct":
            return BIGINT
        case "approx_top_k":
            return STRING
        case "sum":
            if is_decimal(dtype):
                precision, scale = digits_of(dtype)
                return bounded_decimal(precision + 10, scale)
            return BIGINT if is_integer(dtype) else DOUBLE
        case "avg":
            if is_decimal(dtype):
                precision, scale = digits_of(dtype)
                return bounded_decimal(precision + 4, scale + 4)
            return DOUBLE
        case "min" | "max" | "min_by" | "max_by" | "first" | "last":
            return dtype
        case _:
            return DOUBLE
