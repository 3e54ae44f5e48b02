"""Values as text, in the format of Spark."""

from __future__ import annotations

import decimal
import math

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sash.operators.scalar.arrays import Array, holds_any, kernel, map_distinct, within_calendar
from sash.operators.scalar.decimals import shape


def format_floats(values: Array, dtype: pa.DataType) -> Array:
    """Doubles and floats as Java's Double.toString; scientific notation in Python, once per distinct value."""
    low, high = (pa.scalar(limit, values.type) for limit in (1e-3, 1e7))
    size = kernel("abs", values)
    plain = kernel("and", kernel("greater_equal", size, low), kernel("less", size, high))
    # Arrow prints the shortest digits too, but no decimal point after a whole number.
    printed = values.cast(dtype)
    options = pc.ReplaceSubstringOptions(r"^(-?[0-9]+)$", r"\1.0")
    printed = kernel("replace_substring_regex", printed, options=options)
    if not holds_any(kernel("invert", plain)):
        return printed
    rest = kernel("coalesce", kernel("invert", plain), pa.scalar(False))
    if pa.types.is_float32(values.type):
        laid_out = map_distinct(values.filter(rest), lambda value: java_number(value, str(np.float32(value))), dtype)
    else:
        laid_out = map_distinct(values.filter(rest), lambda value: java_number(value, repr(value)), dtype)
    return kernel("replace_with_mask", printed, rest, laid_out)


def java_number(value: float, shortest: str) -> str:
    """The shortest digits that round-trip, in the format of Java.

    >>> java_number(1e10, repr(1e10)), java_number(0.25, repr(0.25))
    ('1.0E10', '0.25')
    """
    if math.isnan(value):
        return "NaN"
    sign = "-" if math.copysign(1.0, value) < 0 else ""
    if math.isinf(value):
        return f"{sign}Infinity"
    if value == 0:
        return f"{sign}0.0"
    _, figures, exponent = decimal.Decimal(shortest).as_tuple()
    assert isinstance(exponent, int)
    point = len(figures) + exponent
    digits = "".join(map(str, figures)).rstrip("0") or "0"
    if not -3 < point <= 7:
        return f"{sign}{digits[0]}.{digits[1:] or '0'}E{point - 1}"
    if point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    return f"{sign}{digits[:point].ljust(point, '0')}.{digits[point:] or '0'}"


def format_decimals(values: Array, dtype: pa.DataType) -> Array:
    """Decimals with all digits of their scale, never in scientific notation."""
    printed = values.cast(dtype)
    if shape(values.type)[1] <= 6:
        return printed
    scientific = kernel("match_substring", printed, options=pc.MatchSubstringOptions("E"))
    if not holds_any(scientific):
        return printed
    plain = map_distinct(values.filter(scientific), lambda value: format(value, "f"), dtype)
    return kernel("replace_with_mask", printed, scientific, plain)


def format_dates(values: Array, dtype: pa.DataType) -> Array:
    """yyyy-MM-dd, with a plus sign before years of five digits."""
    return _sign_long_years(within_calendar(values).cast(dtype))


def format_timestamps(values: Array, dtype: pa.DataType) -> Array:
    """yyyy-MM-dd HH:mm:ss, then the fraction without its trailing zeros."""
    printed = within_calendar(values.view(pa.timestamp("us"))).cast(dtype)
    for pattern, replacement in ((r"\.0+$", ""), (r"(\.[0-9]*[1-9])0+$", r"\1")):
        options = pc.ReplaceSubstringOptions(pattern, replacement)
        printed = kernel("replace_substring_regex", printed, options=options)
    return _sign_long_years(printed)


def _sign_long_years(printed: Array) -> Array:
    options = pc.ReplaceSubstringOptions(r"^([0-9]{5,}-)", r"+\1")
    return kernel("replace_substring_regex", printed, options=options)
