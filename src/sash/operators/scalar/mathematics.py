"""Rounding, logarithms and powers; doubles are rounded HALF_UP in their decimal representation."""

from __future__ import annotations

import decimal
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sash.operators.scalar import arrays, decimals
from sash.operators.scalar.arrays import Array, Datum, Numbers, kernel

# Below this, the first fractional digits of a double times a power of ten are exact.
_CERTAIN = 2.0**50


def toward(name: str, arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
    """ceil or floor: a DECIMAL for decimals, otherwise a BIGINT."""
    (values,) = arrays.broadcast_all(arguments)
    if pa.types.is_decimal(values.type):
        precision, scale = decimals.shape(values.type)
        return kernel(name, values.cast(pa.decimal256(precision + 1, scale))).cast(dtype)
    if pa.types.is_integer(values.type):
        return values.cast(dtype)
    whole = kernel(name, values.cast(pa.float64()))
    # Spark returns 0 for NaN, and an overflow error outside the range of BIGINT.
    return kernel("if_else", kernel("is_nan", whole), pa.scalar(0.0), whole).cast(pa.int64()).cast(dtype)


def round_number(arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
    """ROUND(x, d): HALF_UP at d digits after the point, or before it if d is negative."""
    values, digits = arguments[0], arguments[1] if len(arguments) > 1 else pa.scalar(0)

    def run(values: Array, places: int) -> Array:
        if pa.types.is_floating(values.type):
            result = round_half_up(arrays.numbers(values).astype(np.float64), places)
            return arrays.from_numbers(result.astype(values.type.to_pandas_dtype()), values.type, [values]).cast(dtype)
        if pa.types.is_integer(values.type) and places >= 0:
            return values.cast(dtype)
        if pa.types.is_integer(values.type) and places < -18:
            places, values = min(places, -20), values.cast(pa.decimal128(38, 0))
        if pa.types.is_decimal(values.type):
            scale = decimals.shape(values.type)[1]
            wide = values.cast(pa.decimal256(76, scale))
            places = max(min(places, scale), -37)
            wide = kernel("round", wide, options=pc.RoundOptions(places, decimals.HALF_UP))
            return wide.cast(dtype)
        return kernel("round", values, options=pc.RoundOptions(places, decimals.HALF_UP)).cast(dtype)

    return arrays.for_each_parameter(run, values, [digits], dtype)


def round_half_up(values: Numbers, places: int) -> Numbers:
    """Doubles rounded as Java's BigDecimal rounds what Double.toString prints."""
    if abs(places) > 22:
        return _exactly(values, places) + 0.0
    whole, doubtful = scaled_half_up(values, places)
    power = 10.0 ** abs(places)
    with np.errstate(all="ignore"):
        result = whole / power if places >= 0 else whole * power
    result = np.where(np.isfinite(values), result, values)
    if doubtful.any():
        result[doubtful] = _exactly(values[doubtful], places)
    return result + 0.0


def scaled_half_up(values: Numbers, places: int) -> tuple[Numbers, Numbers]:
    """Doubles times 10^places as integers, HALF_UP, and a mask of those too close to a tie, or too large, to be exact."""
    power = 10.0 ** abs(places)
    with np.errstate(all="ignore"):
        scaled = np.abs(values * power if places >= 0 else values / power)
        below = np.floor(scaled)
        near = np.abs(scaled - below - 0.5) <= 1e-15 * np.maximum(scaled, 1.0)
        whole = np.copysign(np.where(scaled - below >= 0.5, below + 1.0, below), values)
    return whole, np.isfinite(values) & (near | (scaled >= _CERTAIN))


def function(name: str, arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
    """A function of doubles by its Arrow kernel: sqrt, exp, power."""
    return kernel(name, *(argument.cast(pa.float64()) for argument in arguments))


def sign(arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
    """1.0 or -1.0; zeros keep their signs."""
    values = arrays.broadcast_all(arguments)[0].cast(pa.float64())
    return kernel("if_else", kernel("equal", values, pa.scalar(0.0)), values, kernel("sign", values))


def logarithm(name: str, arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
    """ln, log10 or log2; NULL, as in Spark, if the argument is not positive."""
    values = arrays.broadcast_all(arguments)[0].cast(pa.float64())
    return kernel(name, arrays.nullify(values, kernel("less_equal", values, pa.scalar(0.0))))


def _exactly(values: Numbers, places: int) -> Numbers:
    """Round with Python's decimals, once per distinct value."""
    distinct, inverse = np.unique(values, return_inverse=True)
    rounded = [_exact_half_up(value, places) for value in distinct.tolist()]
    return np.array([float(value) for value in rounded], dtype=np.float64)[inverse.reshape(-1)]


def _exact_half_up(value: float, places: int) -> decimal.Decimal:
    """The decimal representation of a finite double, rounded HALF_UP."""
    printed = decimal.Decimal(repr(value))
    exponent = printed.as_tuple().exponent
    if not isinstance(exponent, int) or exponent >= -places:
        return printed
    context = decimal.Context(prec=800, rounding=decimal.ROUND_HALF_UP)
    return printed.quantize(decimal.Decimal(1).scaleb(-places), context=context)
