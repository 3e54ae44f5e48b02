"""Type coercion: Spark's rules in ANSI mode (AnsiTypeCoercion, DecimalPrecision), applied by inserting casts."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

import pyarrow as pa

from sash.errors import TypeMismatchError
from sash.plan import types
from sash.plan.expressions import Cast, Expression, Literal
from sash.plan.sql_types import VARIANT, DayTimeInterval, YearMonthInterval, common_interval, is_interval

MAX_PRECISION = 38
MIN_ADJUSTED_SCALE = 6
_PRECEDENCE = (types.TINYINT, types.SMALLINT, types.INT, types.BIGINT, types.FLOAT, types.DOUBLE)
_DIGITS: dict[pa.DataType, int] = {types.TINYINT: 3, types.SMALLINT: 5, types.INT: 10, types.BIGINT: 20}
_TEMPORAL = (types.DATE, types.TIMESTAMP_NTZ, types.TIMESTAMP)


def is_decimal(dtype: pa.DataType) -> bool:
    """DECIMAL of any precision."""
    return bool(pa.types.is_decimal(dtype))


def digits_of(dtype: pa.DataType) -> tuple[int, int]:
    """Precision and scale of a DECIMAL."""
    assert isinstance(dtype, pa.Decimal128Type), dtype
    return dtype.precision, dtype.scale


def bounded_decimal(precision: int, scale: int) -> pa.DataType:
    """DECIMAL(precision, scale) cut to 38 digits.

    >>> bounded_decimal(48, 2)
    Decimal128Type(decimal128(38, 2))
    """
    return pa.decimal128(min(precision, MAX_PRECISION), min(scale, MAX_PRECISION))


def adjusted_decimal(precision: int, scale: int) -> pa.DataType:
    """DECIMAL(precision, scale); beyond 38 digits the scale is reduced, down to 6, so that the integer part fits."""
    if precision <= MAX_PRECISION:
        return pa.decimal128(precision, scale)
    integer_digits = precision - scale
    return pa.decimal128(MAX_PRECISION, max(MAX_PRECISION - integer_digits, min(scale, MIN_ADJUSTED_SCALE)))


def decimal_for(expression: Expression) -> pa.DataType:
    """The decimal type that holds an integer or decimal; an integer literal needs only the digits it has."""
    dtype = expression.dtype
    if is_decimal(dtype):
        return dtype
    if isinstance(expression, Literal) and isinstance(expression.value, int):
        return pa.decimal128(len(str(abs(expression.value))), 0)
    return pa.decimal128(_DIGITS[dtype], 0)


def wider_decimal(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    """The decimal type that holds both."""
    (p1, s1), (p2, s2) = digits_of(left), digits_of(right)
    scale = max(s1, s2)
    return bounded_decimal(max(p1 - s1, p2 - s2) + scale, scale)


def common_type(left: Expression, right: Expression) -> pa.DataType | None:
    """The type in which two expressions can be compared or merged; None if there is none."""
    return _common(left.dtype, right.dtype, left, right)


def common_type_of(expressions: Sequence[Expression]) -> pa.DataType | None:
    """The type in which all the expressions can be compared or merged; None if there is none."""
    result: pa.DataType = types.NULL
    for expression in expressions:
        merged = common_dtype(result, expression.dtype)
        if merged is None:
            return None
        result = merged
    return result


def common_dtype(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    """The type that holds the values of both types; None if there is none."""
    return _common(left, right, None, None)


def tightest(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    """The type of both without a loss, as functions of arrays need it: no strings as numbers, no new decimals."""
    merged = common_dtype(left, right)
    if merged is None or merged in (left, right):
        loses = types.STRING in (left, right) and types.NULL not in (left, right)
        return None if loses and left != right else merged
    if types.is_nested(left):
        parts = [tightest(*pair) for pair in zip(types.parts_of(left), types.parts_of(right), strict=True)]
        return None if None in parts else merged
    return None if is_decimal(left) or is_decimal(right) else merged


def _common(left: pa.DataType, right: pa.DataType, a: Expression | None, b: Expression | None) -> pa.DataType | None:
    if right in (left, types.NULL):
        return left
    if left == types.NULL:
        return right
    if types.is_numeric(left) and types.is_numeric(right):
        return _common_numeric(left, right, a, b)
    if left in _TEMPORAL and right in _TEMPORAL:
        return _TEMPORAL[max(_TEMPORAL.index(left), _TEMPORAL.index(right))]
    if types.is_nested(left) and types.is_nested(right):
        return _common_nested(left, right)
    if is_interval(left) and is_interval(right):
        return common_interval(left, right)
    if types.STRING in (left, right):
        return _with_string(right if left == types.STRING else left)
    return None


def _common_nested(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    """Part by part; structs need the same names, in any case, and take those of the left one."""
    parts = [types.parts_of(left), types.parts_of(right)]
    if len(parts[0]) != len(parts[1]):
        return None
    merged = [common_dtype(one, other) for one, other in zip(*parts, strict=True)]
    known = [part for part in merged if part is not None]
    if len(known) < len(merged):
        return None
    if types.is_struct(left) and types.is_struct(right):
        names = [[field.name for field in dtype] for dtype in (left, right)]
        if [name.lower() for name in names[0]] != [name.lower() for name in names[1]]:
            return None
        return types.struct_of(list(zip(names[0], known, strict=True)))
    if types.is_array(left) and types.is_array(right):
        return types.array_of(known[0])
    return types.map_of(*known) if types.is_map(left) and types.is_map(right) else None


def _common_numeric(left: pa.DataType, right: pa.DataType, a: Expression | None, b: Expression | None) -> pa.DataType:
    if is_decimal(left) or is_decimal(right):
        if pa.types.is_floating(left) or pa.types.is_floating(right):
            return types.DOUBLE
        return wider_decimal(_as_decimal(left, a), _as_decimal(right, b))
    wider = _PRECEDENCE[max(_PRECEDENCE.index(left), _PRECEDENCE.index(right))]
    return types.DOUBLE if wider == types.FLOAT else wider


def _as_decimal(dtype: pa.DataType, expression: Expression | None) -> pa.DataType:
    if expression is not None:
        return decimal_for(expression)
    return dtype if is_decimal(dtype) else pa.decimal128(_DIGITS[dtype], 0)


def _with_string(other: pa.DataType) -> pa.DataType | None:
    if types.is_nested(other) or is_interval(other) or other == VARIANT:
        return None
    if types.is_integer(other):
        return types.BIGINT
    if types.is_numeric(other):
        return types.DOUBLE
    return other


def coerce(expression: Expression, dtype: pa.DataType) -> Expression:
    """The expression as that type; literals are converted instead of cast if the conversion is exact."""
    if expression.dtype == dtype:
        return expression
    if isinstance(expression, Literal):
        if expression.value is None:
            return Literal(None, dtype)
        if types.is_numeric(expression.dtype) and types.is_numeric(dtype):
            return _retyped(expression, dtype) or Cast(expression, dtype)
    return Cast(expression, dtype)


def _retyped(literal: Literal, dtype: pa.DataType) -> Literal | None:
    """A number as a constant of another type; None if it may not fit."""
    value = literal.value
    if is_decimal(dtype) and not isinstance(value, float):
        precision, scale = digits_of(dtype)
        number = Decimal(value)
        whole = number == number.to_integral_value()
        fits = max(0, number.adjusted() + 1) <= precision - scale
        return Literal(number, dtype) if fits and (whole or scale >= digits_of(literal.dtype)[1]) else None
    if isinstance(value, int) and types.is_integer(dtype):
        return Literal(value, dtype) if -(2 ** (dtype.bit_width - 1)) <= value < 2 ** (dtype.bit_width - 1) else None
    if dtype == types.DOUBLE and (isinstance(value, Decimal) or (isinstance(value, int) and abs(value) <= 2**53)):
        return Literal(float(value), dtype)
    return None


def implicit(expression: Expression, dtype: pa.DataType, what: str) -> Expression:
    """The expression as an argument of that type, with a cast where Spark casts implicitly."""
    have = expression.dtype
    if have != dtype and not _may_become(have, dtype):
        raise TypeMismatchError(f"{what} takes {types.type_name(dtype)}, not {types.type_name(have)}")
    return coerce(expression, dtype)


def _may_become(have: pa.DataType, want: pa.DataType) -> bool:
    if have == types.NULL:
        return True
    if types.is_nested(have) or types.is_nested(want) or is_interval(want) or VARIANT in (have, want):
        return bool(common_dtype(have, want) == want)
    if have == types.STRING:
        return True
    if want == types.STRING:
        return bool(have != types.BINARY)
    if types.is_numeric(have) and types.is_numeric(want):
        return True
    return have in _TEMPORAL and want in _TEMPORAL


def unify(expressions: Sequence[Expression], what: str) -> list[Expression]:
    """The expressions in their common type."""
    dtype = common_type_of(expressions)
    if dtype is None:
        names = ", ".join(dict.fromkeys(types.type_name(expression.dtype) for expression in expressions))
        raise TypeMismatchError(f"the types of {what} have no common type: {names}; cast one of them")
    return [coerce(expression, dtype) for expression in expressions]


def unify_alike(expressions: Sequence[Expression], what: str) -> list[Expression]:
    """The expressions in their common type, which for VALUES and UNPIVOT does not make numbers of strings."""
    known = {expression.dtype for expression in expressions if expression.dtype != types.NULL}
    if types.STRING in known and len(known) > 1:
        names = ", ".join(dict.fromkeys(types.type_name(expression.dtype) for expression in expressions))
        raise TypeMismatchError(f"the types of {what} have no common type: {names}; cast one of them")
    return unify(expressions, what)


def becomes_variant(dtype: pa.DataType, *, structs: bool = False) -> bool:
    """Whether values of the type become variants, of those with structs and maps inside only if `structs`."""
    if types.is_nested(dtype):
        kept = types.is_array(dtype) or (structs and (types.is_struct(dtype) or dtype.key_type == types.STRING))
        return kept and all(becomes_variant(part, structs=structs) for part in types.parts_of(dtype))
    return not types.is_sql_type(dtype)


def _variant_becomes(dtype: pa.DataType) -> bool:
    """Whether variants become values of the type."""
    if types.is_map(dtype) and dtype.key_type != types.STRING:
        return False
    return all(map(_variant_becomes, types.parts_of(dtype))) and not types.is_sql_type(dtype)


def castable(have: pa.DataType, want: pa.DataType) -> bool:
    """Whether CAST may turn one type into the other (ANSI)."""
    if have == VARIANT and want != VARIANT:
        return _variant_becomes(want)
    if want == VARIANT and have not in (VARIANT, types.NULL):
        return becomes_variant(have)
    if types.is_nested(have) and types.holds(have, types.is_sql_type):
        return bool(have == want)
    if types.is_nested(have) and types.is_nested(want):
        kinds = [[kind(dtype) for kind in (types.is_array, types.is_struct, types.is_map)] for dtype in (have, want)]
        parts = [types.parts_of(dtype) for dtype in (have, want)]
        return kinds[0] == kinds[1] and len(parts[0]) == len(parts[1]) and all(map(castable, *parts))
    if types.is_nested(want):
        return bool(have == types.NULL)
    if have in (want, types.NULL):
        return True
    if types.STRING in (have, want):
        return True
    if is_interval(have) or is_interval(want):
        return _castable_interval(have, want)
    if types.is_numeric(have) or have == types.BOOLEAN:
        return (
            types.is_numeric(want)
            or want == types.BOOLEAN
            or (want == types.TIMESTAMP and types.is_numeric(have))
            or (want == types.BINARY and types.is_integer(have))
        )
    if have in _TEMPORAL:
        return want in _TEMPORAL or (have == types.TIMESTAMP and types.is_numeric(want))
    return False


def _castable_interval(have: pa.DataType, want: pa.DataType) -> bool:
    """Intervals of one kind, integers as a number of the last field, and such numbers as integers or decimals."""
    for kind in (DayTimeInterval, YearMonthInterval):
        if isinstance(have, kind):
            return isinstance(want, kind) or types.is_integer(want) or is_decimal(want)
    return types.is_integer(have)
