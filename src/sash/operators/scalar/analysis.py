"""Functions of doubles: trigonometry, logarithms, roots, buckets; and factorials."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import ROUND_HALF_EVEN, Context, Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sash.operators.scalar import arrays, decimals
from sash.operators.scalar.arrays import Array, Datum, Numbers, kernel
from sash.operators.scalar.function import Function, by_value, two

_EXACT = Context(prec=800, rounding=ROUND_HALF_EVEN)


def _elementwise(function: Callable[..., Numbers], count: int = 1, undefined: bool = False) -> Function:
    """A function of doubles by NumPy; if `undefined`, NaN is NULL where no argument is NaN."""

    def run(arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
        values = arrays.broadcast_all(arguments)
        doubles = [arrays.numbers(value).astype(np.float64) for value in values]
        with np.errstate(all="ignore"):
            result = function(*doubles)
        unknown = arrays.null_mask(values)
        if undefined:
            nan = np.isnan(result) & ~np.logical_or.reduce([np.isnan(each) for each in doubles])
            unknown = kernel("or", unknown, pa.array(nan))
        return arrays.from_numbers(result, dtype, unknown)

    return Function(run, count, count)


def _logarithm(base: Numbers, values: Numbers) -> Numbers:
    """The logarithm to a base, undefined unless both are positive."""
    result: Numbers = np.log(values) / np.log(base)
    return np.where((base <= 0) | (values <= 0), np.nan, result)


def _width_bucket(value: float, low: float, high: float, count: int) -> int | None:
    """The bucket of `count` equal ones from `low` to `high`; 0 and count + 1 are outside."""
    if count <= 0 or count == 2**63 - 1 or math.isnan(value) or low == high:
        return None
    if not (math.isfinite(low) and math.isfinite(high)):
        return None
    least, most = min(low, high), max(low, high)
    if low < high:
        if value < least:
            return 0
        return count + 1 if value >= most else int(count * (value - least) / (most - least)) + 1
    if value > most:
        return 0
    return count + 1 if value <= least else int(count * (most - value) / (most - least)) + 1


def _round_half_even(arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
    """BROUND: doubles by their decimal representation."""
    values, places = arguments

    def run(column: Array, digits: int) -> Array:
        if pa.types.is_floating(column.type):
            return arrays.map_rows(lambda value: _even(value, digits), [column], dtype)
        if pa.types.is_integer(column.type):
            if digits >= 0:
                return column
            wide = column.cast(pa.decimal128(38, 0))
            options = pc.RoundOptions(max(digits, -20), "half_to_even")
            return kernel("round", wide, options=options).cast(dtype)
        scale = decimals.shape(column.type)[1]
        wide = column.cast(pa.decimal256(76, scale))
        options = pc.RoundOptions(max(min(digits, scale), -37), "half_to_even")
        return kernel("round", wide, options=options).cast(dtype)

    return arrays.for_each_parameter(run, arrays.broadcast_all([values, places])[0], [places], dtype)


def _even(value: float, digits: int) -> float:
    if not math.isfinite(value):
        return value
    number = Decimal(repr(value))
    exponent = number.as_tuple().exponent
    if isinstance(exponent, int) and exponent >= -digits:
        return value + 0.0
    return float(number.quantize(Decimal(1).scaleb(-digits), context=_EXACT)) + 0.0


def _toward(name: str) -> Function:
    """CEIL and FLOOR of decimals at a number of digits."""

    def run(arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
        values, places = arguments
        mode = "up" if name == "ceil" else "down"

        def rounded(column: Array, digits: int) -> Array:
            scale = decimals.shape(column.type)[1]
            options = pc.RoundOptions(max(min(digits, scale), -37), mode)
            return kernel("round", column.cast(pa.decimal256(76, scale)), options=options).cast(dtype)

        return arrays.for_each_parameter(rounded, arrays.broadcast_all([values, places])[0], [places], dtype)

    return two(run, fails=True)


def _factorial(value: int) -> int | None:
    return math.factorial(value) if 0 <= value <= 20 else None


FUNCTIONS: dict[str, Function] = {
    **{name: _elementwise(getattr(np, name)) for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "rint")},
    "asin": _elementwise(np.arcsin),
    "acos": _elementwise(np.arccos),
    "atan": _elementwise(np.arctan),
    "asinh": _elementwise(np.arcsinh),
    "acosh": _elementwise(np.arccosh),
    "atanh": _elementwise(np.arctanh),
    "atan2": _elementwise(lambda y, x: np.arctan2(y + 0.0, x + 0.0), 2),
    "cot": _elementwise(lambda x: 1 / np.tan(x)),
    "csc": _elementwise(lambda x: 1 / np.sin(x)),
    "sec": _elementwise(lambda x: 1 / np.cos(x)),
    "cbrt": _elementwise(np.cbrt),
    "hypot": _elementwise(np.hypot, 2),
    "expm1": _elementwise(np.expm1),
    "degrees": _elementwise(lambda x: x * 57.29577951308232),
    "radians": _elementwise(lambda x: x * 0.017453292519943295),
    "log1p": _elementwise(lambda x: np.where(x <= -1, np.nan, np.log1p(x)), undefined=True),
    "log": _elementwise(_logarithm, 2, undefined=True),
    "width_bucket": by_value(_width_bucket, 4),
    "bround": two(_round_half_even, fails=True),
    "ceil_to": _toward("ceil"),
    "floor_to": _toward("floor"),
    "factorial": by_value(_factorial, 1),
}
