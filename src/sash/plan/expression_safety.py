"""Which expressions may fail on some rows, and which distinguish values that compare as equal."""

from __future__ import annotations

import pyarrow as pa

from sash.plan.compound import walk
from sash.plan.expressions import Call, Case, Cast, Column, Expression, Lambda, Literal, SparkFunction, Variable
from sash.plan.types import DATE, DOUBLE, NULL, STRING, TIMESTAMP, holds, is_integer

_SAFE = frozenset(
    {"eq", "ne", "lt", "le", "gt", "ge", "eq_null_safe", "and", "or", "not", "in", "is_null", "is_not_null", "is_nan"}
    | {"coalesce", "greatest", "least", "nullif", "sign", "sqrt", "exp", "ln", "log10", "log2", "pow"}
    | {"upper", "lower", "reverse", "initcap", "trim", "ltrim", "rtrim", "length", "substring", "concat", "concat_ws"}
    | {"replace", "left", "right", "instr", "starts_with", "ends_with", "contains", "ascii", "translate"}
    | {"year", "month", "day", "quarter", "weekofyear", "dayofweek", "dayofyear", "hour", "minute", "second"}
    | {"datediff", "date_trunc", "unix_timestamp", "unix_seconds", "unix_millis", "unix_micros", "last_day"}
    | {"bit_and", "bit_or", "bit_xor", "array", "struct", "map_keys", "map_values", "map_entries", "map_contains_key"}
    | {"size", "get_field", "get", "array_contains"}
    | {"transform", "filter", "exists", "forall", "aggregate", "zip_with", "map_filter", "transform_values"}
    | {"window_start", "window_end"}
)
"""Functions that never fail. Any other function is assumed to fail on some arguments."""

_SAFE_ON_DOUBLES = frozenset({"add", "subtract", "multiply", "negate", "abs"})
_SAFE_WITH_LITERAL_PATTERN = frozenset({"like", "ilike"})

_IGNORES_SIGN_OF_ZERO = frozenset(
    {"eq", "ne", "lt", "le", "gt", "ge", "eq_null_safe", "and", "or", "not", "in", "is_null", "is_not_null", "is_nan"}
    | {"coalesce", "add", "subtract", "multiply", "negate", "abs"}
    | {"array", "struct", "size", "get_field", "get_item", "get", "element_at", "try_element_at", "array_contains"}
)
"""Functions that return equal values for 0.0 and -0.0."""


def may_fail(expression: Expression) -> bool:
    """Whether the expression can raise an error on some row, so that no rewrite may show it more rows."""
    return any(_fails_itself(part) for part in walk(expression))


def _fails_itself(expression: Expression) -> bool:
    match expression:
        case Column() | Literal() | Case() | Variable() | Lambda():
            return False
        case Call():
            name = expression.function
            if name in _SAFE_ON_DOUBLES:
                return not pa.types.is_floating(expression.dtype)
            if name in _SAFE_WITH_LITERAL_PATTERN:
                return not all(isinstance(pattern, Literal) for pattern in expression.arguments[1:])
            return name not in _SAFE
        case Cast():
            return not expression.lenient and not _widens(expression.argument.dtype, expression.dtype)
        case SparkFunction():
            return True


def _widens(source: pa.DataType, target: pa.DataType) -> bool:
    """Whether every value of `source` can be cast to `target`."""
    if source in (target, NULL) or target == STRING or (source == DATE and target == TIMESTAMP):
        return True
    if is_integer(source):
        return (is_integer(target) and source.bit_width <= target.bit_width) or bool(pa.types.is_floating(target))
    if pa.types.is_decimal(source) and pa.types.is_decimal(target):
        fits: bool = target.scale >= source.scale and (
            target.precision - target.scale >= source.precision - source.scale
        )
        return fits
    return target == DOUBLE and bool(pa.types.is_floating(source) or pa.types.is_decimal(source))


def respects_equality(expression: Expression) -> bool:
    """Whether rows that are equal for DISTINCT, GROUP BY and joins give equal values.

    0.0 and -0.0 are equal, but dividing by them or converting them to text distinguishes them.
    """
    parts = list(walk(expression))
    if not any(isinstance(part, Column) and holds(part.dtype, pa.types.is_floating) for part in parts):
        return True
    return all(_ignores_sign_of_zero(part) for part in parts)


def _ignores_sign_of_zero(expression: Expression) -> bool:
    match expression:
        case Column() | Literal() | Case() | Variable() | Lambda():
            return True
        case Call():
            return expression.function in _IGNORES_SIGN_OF_ZERO
        case Cast():
            return bool(pa.types.is_floating(expression.dtype))
        case SparkFunction():
            return False
