"""Aggregate functions: their types, as in Spark, and the aggregates of a query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from sqlglot import exp

from sash.errors import TypeMismatchError
from sash.plan.expressions import (
    APPROXIMATE,
    BITS,
    COLLECTED,
    COMOMENTS,
    PERCENTILES,
    SHAPES,
    SPREADS,
    SUMS,
    TIMED,
    AggregateDetail,
    Call,
    Case,
    Cast,
    Column,
    Expression,
    Literal,
)
from sash.plan.sql_types import VARIANT
from sash.plan.types import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    INT,
    NULL,
    STRING,
    TIMESTAMP,
    is_integer,
    is_nested,
    is_numeric,
    type_name,
)
from sash.sql.coded_aggregates import CODED, bind_coded
from sash.sql.coercion import bounded_decimal, coerce, digits_of, is_decimal
from sash.sql.row_aggregates import BoundAggregate, SortedBy, array_type, bind_histogram, bind_rows

AGGREGATES: dict[str, str] = {
    "any": "bool_or",
    "any_value": "first",
    "approx_count_distinct": "approx_count_distinct",
    "approx_percentile": "approx_percentile",
    "approx_top_k": "approx_top_k",
    "array_agg": "collect_list",
    "avg": "avg",
    "bit_and": "bit_and",
    "bit_or": "bit_or",
    "bit_xor": "bit_xor",
    "bitmap_and_agg": "bitmap_and_agg",
    "bitmap_construct_agg": "bitmap_construct_agg",
    "bitmap_or_agg": "bitmap_or_agg",
    "bool_and": "bool_and",
    "bool_or": "bool_or",
    "collect_list": "collect_list",
    "collect_set": "collect_set",
    "collect_union": "collect_list",
    "corr": "corr",
    "count": "count",
    "count_if": "count_if",
    "count_min_sketch": "count_min_sketch",
    "covar_pop": "covar_pop",
    "covar_samp": "covar_samp",
    "every": "bool_and",
    "first": "first",
    "first_value": "first",
    "histogram_numeric": "histogram_numeric",
    "hll_sketch_agg": "hll_sketch_agg",
    "hll_union_agg": "hll_union_agg",
    **{name: name for name in CODED if name.startswith("kll_")},
    "kurtosis": "kurtosis",
    "last": "last",
    "last_value": "last",
    "listagg": "listagg",
    "max": "max",
    "max_by": "max_by",
    "mean": "avg",
    "median": "median",
    "min": "min",
    "min_by": "min_by",
    "mode": "mode",
    "percentile": "percentile",
    "percentile_approx": "approx_percentile",
    "percentile_cont": "percentile",
    "percentile_disc": "percentile_disc",
    "regr_avgx": "regr_avgx",
    "regr_avgy": "regr_avgy",
    "regr_count": "regr_count",
    "regr_intercept": "regr_intercept",
    "regr_r2": "regr_r2",
    "regr_slope": "regr_slope",
    "regr_sxx": "regr_sxx",
    "regr_sxy": "regr_sxy",
    "regr_syy": "regr_syy",
    "schema_of_variant_agg": "schema_of_variant_agg",
    "skewness": "skewness",
    "some": "bool_or",
    "std": "stddev_samp",
    "stddev": "stddev_samp",
    "stddev_pop": "stddev_pop",
    "stddev_samp": "stddev_samp",
    "string_agg": "listagg",
    "sum": "sum",
    "theta_intersection_agg": "theta_intersection_agg",
    "theta_sketch_agg": "theta_sketch_agg",
    "theta_union_agg": "theta_union_agg",
    "try_avg": "try_avg",
    "try_sum": "try_sum",
    "var_pop": "var_pop",
    "var_samp": "var_samp",
    "variance": "var_samp",
}
"""Aggregate functions as users write them -> canonical name."""

_INDIFFERENT = frozenset({"min", "max", "min_by", "max_by", "first", "last"})
"""Aggregates whose results do not depend on repetitions."""

_REGRESSIONS = ("regr_avgx", "regr_avgy", "regr_count")
_BOOLEANS = {"bool_and": "min", "bool_or": "max"}
_STATISTICS = SPREADS | SHAPES | COMOMENTS | PERCENTILES
_NUMERIC = SUMS | _STATISTICS | {"approx_percentile"}


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
    groupings: list[exp.Expr] = field(default_factory=list)
    """The calls of GROUPING and GROUPING_ID."""

    def add(self, aggregate: BoundAggregate, name: str) -> Column:
        """The column of the aggregate; equal aggregates share one."""
        position = self._positions.setdefault(aggregate, len(self.found))
        if position == len(self.found):
            self.found.append(aggregate)
            self.names.append(name)
        return Column(self.width + position, self.names[position], aggregate.dtype)


def bind_aggregate(
    function: str,
    arguments: list[Expression],
    distinct: bool,
    condition: Expression | None,
    *,
    descending: bool = False,
    ignore_nulls: bool = False,
    order: Sequence[SortedBy] = (),
) -> BoundAggregate:
    """The typed aggregate. FILTER (WHERE condition) becomes a CASE in its argument, and so skips rows as NULLs are skipped;
    FIRST and LAST, which do not skip NULLs, take the condition as a second argument. `descending` is WITHIN GROUP's order of values, `order` that of LISTAGG's rows."""
    _refuse_variants(function, arguments, distinct)
    parameter = precision = fractions = None
    if function in CODED:
        return bind_coded(function, arguments, distinct, condition)
    if function == "histogram_numeric":
        return bind_histogram(arguments, distinct, condition)
    if function in COLLECTED or (function in ("min_by", "max_by") and len(arguments) == 3):
        return bind_rows(function, arguments, distinct, condition, order)
    if function in APPROXIMATE:
        parameter, precision, fractions = _estimated(function, arguments)
    if function in ("percentile", "percentile_disc"):
        most = 3 if function == "percentile" and not descending else 2
        if not 2 <= len(arguments) <= most:
            raise TypeMismatchError(f"{function} takes 2{' or 3' if most == 3 else ''} arguments, not {len(arguments)}")
        parameter, fractions = _fraction(arguments.pop(1))
    if function in TIMED:
        condition = _known(function, arguments, ignore_nulls, condition)
    elif ignore_nulls:
        raise TypeMismatchError(f"IGNORE NULLS is for FIRST, LAST and ANY_VALUE, not for {function}")
    if function in _REGRESSIONS:
        function, arguments = _of_pairs(function, arguments)
    if function == "mode":
        _take_flag(function, arguments)
    if function == "count_if":
        _arity(function, arguments, 1)
        only = _only(arguments[0], condition)
        return BoundAggregate("count", (Case(((only, Literal(1, INT)),), None, INT),), BIGINT, distinct)
    if function == "count" and not arguments:
        raise TypeMismatchError("count takes at least 1 argument; write count(*) to count rows")
    if function == "count" and not distinct:
        arguments, condition = _count_rows(arguments, condition)
        if not arguments:
            return BoundAggregate("count_star", (), BIGINT)
    if function == "percentile" and len(arguments) == 2:
        arguments[1] = _frequency(arguments[1])
        if isinstance(arguments[1], Literal) and arguments[1].value == 1:
            arguments.pop()
    elif function != "count" or not distinct:
        _arity(function, arguments, 2 if function in ("min_by", "max_by") or function in COMOMENTS else 1)
    if distinct and function == "approx_top_k":
        raise TypeMismatchError(f"{function} takes no DISTINCT")
    if function == "approx_top_k" and is_nested(arguments[0].dtype):
        raise TypeMismatchError(
            f"{function} does not take {type_name(arguments[0].dtype)}: take a field or an element of it"
        )
    operands = [_operand(function, argument) for argument in arguments]
    if function == "percentile" and len(arguments) == 2:
        operands[1] = arguments[1]
    function = _BOOLEANS.get(function, function)
    distinct = distinct and function not in _INDIFFERENT
    if function.startswith("regr_"):
        operands.reverse()
    dtype = _result_type(function, operands[0])
    if fractions is not None:
        dtype = array_type(function, dtype)
    if condition is not None and function in TIMED:
        operands.append(condition)
    elif condition is not None:
        operands = [Case(((condition, operand),), None, operand.dtype) for operand in operands]
    detail = (
        AggregateDetail(descending=descending, fractions=fractions) if descending or fractions is not None else None
    )
    return BoundAggregate(function, tuple(operands), dtype, distinct, parameter, precision, detail)


def _refuse_variants(function: str, arguments: Sequence[Expression], distinct: bool) -> None:
    """Raise an error for an aggregate that would have to compare variants."""
    compared = arguments[1:] if function in ("min_by", "max_by") else arguments
    taken = function in TIMED or (function in ("count", "collect_list", "schema_of_variant_agg") and not distinct)
    if not taken and any(argument.dtype == VARIANT for argument in compared):
        raise TypeMismatchError(f"{function} takes no VARIANT, which cannot be compared: cast it")


def _known(
    function: str, arguments: list[Expression], ignore_nulls: bool, condition: Expression | None
) -> Expression | None:
    """The condition of FIRST and LAST, with that of IGNORE NULLS, or of a second argument TRUE."""
    ignore_nulls |= _take_flag(function, arguments)
    if not ignore_nulls or not arguments:
        return condition
    known = Call("is_not_null", (arguments[0],), BOOLEAN)
    return known if condition is None else Call("and", (condition, known), BOOLEAN)


def _take_flag(function: str, arguments: list[Expression]) -> bool:
    """Take a second argument, which must be TRUE or FALSE, off the arguments."""
    if len(arguments) != 2:
        return False
    flag = arguments.pop()
    if not (isinstance(flag, Literal) and isinstance(flag.value, bool)):
        raise TypeMismatchError(f"the second argument of {function} must be TRUE or FALSE")
    return flag.value


def _of_pairs(function: str, arguments: list[Expression]) -> tuple[str, list[Expression]]:
    """REGR_COUNT, REGR_AVGX and REGR_AVGY(y, x) as counts and averages over the pairs without NULL."""
    _arity(function, arguments, 2)
    arguments[:] = [coerce(argument, DOUBLE) if argument.dtype == NULL else argument for argument in arguments]
    y, x = arguments
    if function == "regr_count":
        return "count", [y, x]
    chosen, other = (x, y) if function == "regr_avgx" else (y, x)
    return "avg", [Case(((Call("is_not_null", (other,), BOOLEAN), chosen),), None, chosen.dtype)]


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


def _estimated(
    function: str, arguments: list[Expression]
) -> tuple[float | None, float | None, tuple[float, ...] | None]:
    """The parameter (percentile or number of values) and the precision of an estimate, and several percentiles; the remaining
    argument is its column."""
    most = 2 if function == "approx_count_distinct" else 3
    if not most - 1 <= len(arguments) <= most:
        raise TypeMismatchError(f"{function} takes {most - 1} or {most} arguments, not {len(arguments)}")
    precision = _number(function, arguments.pop()) if len(arguments) == most else None
    if function == "approx_count_distinct":
        return 0.0, precision, None
    if function == "approx_percentile":
        parameter, fractions = _fraction(arguments.pop())
        return parameter, precision, fractions
    return _number(function, arguments.pop()), precision, None


def _number(function: str, expression: Expression) -> float:
    if isinstance(expression, Literal) and expression.value is not None and is_numeric(expression.dtype):
        number = float(expression.value)
        if number > 0:
            return number
    raise TypeMismatchError(f"{function} needs numbers greater than 0 for its count and its precision")


def _fraction(expression: Expression) -> tuple[float | None, tuple[float, ...] | None]:
    """The fraction of a percentile, or the fractions of an ARRAY of them."""
    if isinstance(expression, Call) and expression.function == "array":
        return None, tuple(_one_fraction(part) for part in expression.arguments)
    return _one_fraction(expression), None


def _one_fraction(expression: Expression) -> float:
    while isinstance(expression, Cast) and is_numeric(expression.dtype) and isinstance(expression.argument, Literal):
        expression = expression.argument
    if isinstance(expression, Literal) and expression.value is not None and is_numeric(expression.dtype):
        fraction = float(expression.value)
        if 0 <= fraction <= 1:
            return fraction
    raise TypeMismatchError("the second argument of a percentile must be a number from 0 to 1")


def _frequency(expression: Expression) -> Expression:
    if not is_integer(expression.dtype):
        raise TypeMismatchError(f"the frequency of a percentile must be an integer, not {type_name(expression.dtype)}")
    return expression


def _operand(function: str, argument: Expression) -> Expression:
    """The argument, cast to the type that the aggregate needs."""
    dtype = argument.dtype
    if function in _BOOLEANS:
        if dtype not in (BOOLEAN, NULL, STRING):
            raise TypeMismatchError(f"{function} takes BOOLEAN, not {type_name(dtype)}")
        return Cast(argument, BOOLEAN) if dtype == STRING else coerce(argument, BOOLEAN)
    if function in BITS and dtype != NULL and not is_integer(dtype):
        raise TypeMismatchError(f"{function} takes an integer, not {type_name(dtype)}; cast it")
    if dtype == NULL and function != "mode":
        return coerce(argument, DOUBLE if function in _NUMERIC else BIGINT if function in BITS else INT)
    if function in _NUMERIC and (dtype == STRING or (function in SUMS and dtype == TIMESTAMP)):
        return Cast(argument, DOUBLE)
    if function == "approx_percentile" and pa.types.is_temporal(dtype):
        return argument
    if function in _NUMERIC and not is_numeric(dtype):
        raise TypeMismatchError(f"{function} takes a number, not {type_name(dtype)}; cast it")
    if function in _STATISTICS:
        return coerce(argument, DOUBLE)
    return argument


def _result_type(function: str, operand: Expression) -> pa.DataType:
    dtype = operand.dtype
    match function:
        case "count" | "approx_count_distinct":
            return BIGINT
        case "approx_top_k":
            return STRING
        case "sum" | "try_sum":
            if is_decimal(dtype):
                precision, scale = digits_of(dtype)
                return bounded_decimal(precision + 10, scale)
            return BIGINT if is_integer(dtype) else DOUBLE
        case "avg" | "try_avg":
            if is_decimal(dtype):
                precision, scale = digits_of(dtype)
                return bounded_decimal(precision + 4, scale + 4)
            return DOUBLE
        case (
            "min"
            | "max"
            | "min_by"
            | "max_by"
            | "first"
            | "last"
            | "mode"
            | "bit_and"
            | "bit_or"
            | "bit_xor"
            | "approx_percentile"
        ):
            return dtype
        case _:
            return DOUBLE
