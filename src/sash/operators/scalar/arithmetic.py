"""Arithmetic with Spark's ANSI semantics: overflow and division by zero are errors."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from sash.operators.scalar import decimals
from sash.operators.scalar.arrays import Array, Datum, holds_any, kernel, null_mask
from sash.operators.scalar.casts import cast
from sash.plan.types import type_name


def binary(function: str, arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
    """add, subtract, multiply or divide."""
    left, right = arguments
    if pa.types.is_decimal(dtype):
        return _fits(decimals.arithmetic(function, left, right, dtype), arguments, dtype)
    return kernel(f"{function}_checked", _as(left, dtype), _as(right, dtype))


def bitwise(name: str, arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
    """and, or or xor of the bits of two integers."""
    return kernel(f"bit_wise_{name}", *(_as(argument, dtype) for argument in arguments))


def int_divide(arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
    """DIV: the quotient of BIGINTs or decimals without its fraction."""
    left, right = arguments
    if pa.types.is_decimal(left.type) or pa.types.is_decimal(right.type):
        return cast(decimals.integral_divide(left, right), dtype)
    if pa.types.is_floating(left.type) or pa.types.is_floating(right.type):
        return cast(kernel("trunc", kernel("divide_checked", left, right)), dtype)
    return kernel("divide_checked", _as(left, dtype), _as(right, dtype))


def modulo(arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
    """The remainder, with the sign of the dividend."""
    left, right = arguments
    if pa.types.is_decimal(dtype):
        return _fits(decimals.arithmetic("modulo", left, right, dtype), arguments, dtype)
    # The checked kernel reports an overflow for the smallest integer modulo -1, which is 0.
    name = "remainder_checked" if pa.types.is_floating(dtype) else "remainder"
    return kernel(name, _as(left, dtype), _as(right, dtype))


def pmod(arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
    """The remainder, moved to the divisor's side of zero."""
    remainder = modulo(arguments, dtype)
    negative = kernel("less", remainder, decimals.zero(dtype))
    if not holds_any(negative):
        return remainder
    divisor = arguments[1]
    if pa.types.is_decimal(dtype):
        wide = pa.decimal256(60, decimals.shape(dtype)[1])
        moved = decimals.arithmetic("modulo", kernel("add", remainder.cast(wide), divisor), divisor, dtype)
    else:
        moved = modulo([kernel("add", remainder, _as(divisor, dtype)), divisor], dtype)
    return kernel("if_else", negative, moved, remainder)


def _as(operand: Datum, dtype: pa.DataType) -> Datum:
    return operand if operand.type == dtype else operand.cast(dtype)


def _fits(result: Array, arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
    """The result; raises an overflow if it is NULL where no argument is."""
    if result.null_count and holds_any(kernel("and_not", kernel("is_null", result), null_mask(arguments))):
        raise pa.ArrowInvalid(f"overflow of {type_name(dtype)}")
    return result
