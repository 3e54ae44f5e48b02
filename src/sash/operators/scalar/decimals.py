"""Decimal arithmetic with Spark's result types: exact, then rounded HALF_UP; NULL if the result does not fit.

Exact intermediate results are 128 or 256 bits wide. Only operands that together need more than 76 digits go through
Python's decimals, row by row.
"""

from __future__ import annotations

import decimal
from collections.abc import Callable
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from sash.operators.scalar.arrays import Array, Datum, broadcast_all, kernel, nullify

HALF_UP: Final = "half_towards_infinity"
_INTEGER_DIGITS = {pa.int8(): 3, pa.int16(): 5, pa.int32(): 10, pa.int64(): 20}
_EXACT = decimal.Context(prec=160, rounding=decimal.ROUND_HALF_UP)
_PYTHON: dict[str, Callable[[decimal.Decimal, decimal.Decimal], decimal.Decimal]] = {
    "add": _EXACT.add,
    "subtract": _EXACT.subtract,
    "multiply": _EXACT.multiply,
    "divide": _EXACT.divide,
    "modulo": _EXACT.remainder,
    "int_divide": _EXACT.divide_int,
}


def shape(dtype: pa.DataType) -> tuple[int, int]:
    """Precision and scale of a decimal type."""
    decimal_type: Any = dtype
    return decimal_type.precision, decimal_type.scale


def rescale(values: Array, dtype: pa.DataType) -> Array:
    """The decimals at another precision and scale, rounded HALF_UP; NULL where they do not fit."""
    if values.type == dtype:
        return values
    (precision, scale), (target_precision, target_scale) = shape(values.type), shape(dtype)
    digits, room = precision - scale, target_precision - target_scale
    if target_scale < scale:
        values = values.cast(_decimal(min(precision + 1, 76), scale))
        values = kernel("round", values, options=pc.RoundOptions(target_scale, HALF_UP))
        digits += 1
    if digits > room:
        limit = pa.scalar(decimal.Decimal(10) ** room, values.type)
        values = nullify(values, kernel("greater_equal", kernel("abs", values), limit))
    return values.cast(dtype)


def truncate(values: Array) -> Array:
    """The decimals without their fractions, at the same scale and one more digit: Arrow wants room even for a 0 before the
    point."""
    precision, scale = shape(values.type)
    return kernel("trunc", values.cast(_decimal(min(precision + 1, 76), scale)))


def zero(dtype: pa.DataType) -> pa.Scalar[Any]:
    """0 as a number of any type."""
    return pa.scalar(decimal.Decimal(0) if pa.types.is_decimal(dtype) else 0, dtype)


def arithmetic(function: str, left: Datum, right: Datum, dtype: pa.DataType) -> Array:
    """add, subtract, multiply, divide or modulo; NULL where the result does not fit `dtype`, or an operand is NULL."""
    left, right = as_decimal(left), as_decimal(right)
    if _digits(function, left.type, right.type, dtype) > 76:
        left, right = _narrow(left), _narrow(right)
    digits = _digits(function, left.type, right.type, dtype)
    if digits > 76:
        return _by_row(function, left, right, dtype)
    if function == "divide":
        precision, scale = shape(right.type)
        left = _upscale(left, shape(dtype)[1] + scale - precision)
    if digits > 38:
        left, right = _widen(left), _widen(right)
    name = "remainder" if function == "modulo" else f"{function}_checked"
    return rescale(kernel(name, left, right), dtype)


def integral_divide(left: Datum, right: Datum) -> Array:
    """The quotient without its fraction, a decimal."""
    left, right = as_decimal(left), as_decimal(right)
    whole = pa.decimal128(38, 0)
    if _digits("divide", left.type, right.type, whole) > 76:
        left, right = _narrow(left), _narrow(right)
    if _digits("divide", left.type, right.type, whole) > 76:
        return _by_row("int_divide", left, right, pa.decimal128(38, 0))
    return truncate(kernel("divide_checked", _widen(left), _widen(right)))


def as_decimal(datum: Datum) -> Datum:
    """An integer operand as a decimal that holds its type; a decimal unchanged."""
    digits = _INTEGER_DIGITS.get(datum.type)
    return datum if digits is None else datum.cast(pa.decimal128(digits, 0))


def unscaled(values: Array) -> Array:
    """The same digits at scale 0."""
    return reinterpret(values, pa.decimal128(shape(values.type)[0], 0))


def reinterpret(values: Array, dtype: pa.DataType) -> Array:
    """The same 128-bit integers under another decimal type, which shifts the decimal point."""
    validity, data = values.buffers()
    return pa.Array.from_buffers(dtype, len(values), [validity, data], values.null_count, values.offset)


def _digits(function: str, left: pa.DataType, right: pa.DataType, dtype: pa.DataType) -> int:
    """The precision that Arrow gives the exact result."""
    (p1, s1), (p2, s2) = shape(left), shape(right)
    if function == "multiply":
        return p1 + p2 + 1
    if function == "divide":
        scale = max(s1, shape(dtype)[1] + s2 - p2)
        return p1 - s1 + s2 + max(4, scale + p2 - s2 + 1)
    return max(p1 - s1, p2 - s2) + max(s1, s2) + 1


def _narrow(datum: Datum) -> Datum:
    """The operand at the smallest precision that holds its values."""
    extremes: list[Any] = list(pc.min_max(datum).values()) if isinstance(datum, pa.Array) else [datum]
    known = [value.as_py() for value in extremes if value.is_valid]
    whole = max((value.adjusted() + 1 for value in known if value), default=1)
    scale = shape(datum.type)[1]
    return datum.cast(_decimal(max(whole, 1) + scale, scale))


def _upscale(datum: Datum, scale: int) -> Datum:
    precision, present = shape(datum.type)
    return datum if scale <= present else datum.cast(_decimal(precision + scale - present, scale))


def _widen(datum: Datum) -> Datum:
    return datum.cast(pa.decimal256(*shape(datum.type)))


def _decimal(precision: int, scale: int) -> pa.DataType:
    return pa.decimal128(precision, scale) if precision <= 38 else pa.decimal256(precision, scale)


def _by_row(function: str, left: Datum, right: Datum, dtype: pa.DataType) -> Array:
    precision, scale = shape(dtype)
    operation, quantum = _PYTHON[function], decimal.Decimal(1).scaleb(-scale)
    limit = decimal.Decimal(10) ** (precision - scale)
    result: list[decimal.Decimal | None] = []
    try:
        for a, b in zip(*(array.to_pylist() for array in broadcast_all([left, right])), strict=True):
            value = None if a is None or b is None else _EXACT.quantize(operation(a, b), quantum)
            result.append(None if value is None or value.copy_abs() >= limit else value)
    except decimal.DecimalException:
        raise pa.ArrowInvalid("divide by zero") from None
    return pa.array(result, dtype)
