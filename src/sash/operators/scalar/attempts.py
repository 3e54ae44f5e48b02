"""TRY_ADD and the like: arithmetic that is NULL where the ANSI operators fail."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import pyarrow as pa

from sash.operators.scalar import arithmetic, arrays, decimals
from sash.operators.scalar.arrays import Array, Datum, kernel
from sash.operators.scalar.casts import cast
from sash.operators.scalar.function import Function, two

_WIDE = pa.decimal256(20, 0)


def _attempt(name: str, arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
    """add, subtract, multiply, divide or modulo; NULL on overflow and for a divisor of zero."""
    left, right = arrays.broadcast_all(arguments)
    if name in ("divide", "modulo"):
        right = arrays.nullify(right, kernel("equal", right, decimals.zero(right.type)))
    if pa.types.is_decimal(dtype):
        return decimals.arithmetic(name, left, right, dtype)
    if name == "modulo":
        return arithmetic.modulo([left, right], dtype)
    if pa.types.is_floating(dtype):
        return kernel(name, left.cast(dtype), right.cast(dtype))
    exact = kernel(name, *(cast(side, pa.decimal128(19, 0)).cast(_WIDE) for side in (left, right)))
    low, high = (pa.scalar(limit).cast(pa.decimal128(19, 0)).cast(exact.type) for limit in arrays.limits(dtype))
    outside = kernel("or", kernel("less", exact, low), kernel("greater", exact, high))
    return arrays.nullify(exact, outside).cast(pa.decimal128(19, 0)).cast(dtype)


FUNCTIONS: dict[str, Function] = {
    f"try_{short}": two(partial(_attempt, name))
    for short, name in (("add", "add"), ("subtract", "subtract"), ("multiply", "multiply"), ("divide", "divide"), ("mod", "modulo"))
}  # fmt: skip
