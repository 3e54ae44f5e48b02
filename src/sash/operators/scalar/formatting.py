"""Values as text, in the format of Spark."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sash.operators.scalar.arrays import Array, holds_any, kernel, map_distinct, within_calendar
from sash.operators.scalar.decimals import shape
from sash.plan.java_numbers import java_number


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
