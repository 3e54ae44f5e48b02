"""Comparisons with Spark's order of values: NaN equals itself and is above every number, -0.0 equals 0.0."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sash.errors import EvaluationError
from sash.operators.scalar.arrays import (
    Array,
    Datum,
    broadcast,
    broadcast_all,
    holds_any,
    kernel,
    nullify,
    nulls,
    rows_of,
)
from sash.operators.scalar.casts import cast, cast_datum
from sash.plan.types import is_nested
from sash.state.ordering import encode_order

_KERNELS = {"eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal"}
_MIRRORED = {"gt": "lt", "ge": "le"}


def comparison(name: str, arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
    """eq, ne, lt, le, gt or ge."""
    return compare(name, *arguments)


def compare(name: str, left: Datum, right: Datum) -> Array:
    """The comparison; NULL where a side is NULL."""
    if is_nested(left.type):
        left, right = ordered_bytes(left), ordered_bytes(right)
    if pa.types.is_boolean(left.type):
        left, right = left.cast(pa.uint8()), right.cast(pa.uint8())
    if not (_has_nan(left) or _has_nan(right)):
        return kernel(_KERNELS[name], left, right)
    if name == "ne":
        return kernel("invert", compare("eq", left, right))
    if name in _MIRRORED:
        return compare(_MIRRORED[name], right, left)
    left, right = broadcast_all([left, right])
    plain, above = kernel(_KERNELS[name], left, right), kernel("is_nan", right)
    if name == "eq":
        above = kernel("and", above, kernel("is_nan", left))
    elif name == "lt":
        above = kernel("and", above, kernel("invert", kernel("is_nan", left)))
    # A NULL on the left must stay NULL beside a NaN on the right.
    return kernel("or", plain, above)


def ordered_bytes(datum: Datum) -> Datum:
    """Arrays and structs as binaries in the same order; NULLs stay."""
    if isinstance(datum, pa.Scalar):
        return ordered_bytes(broadcast(datum, 1))[0]
    offsets, data = encode_order([datum], [False], [True], len(datum))
    buffers = [None, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(data)]
    encoded: Array = pa.Array.from_buffers(pa.binary(), len(datum), buffers, 0)
    return nullify(encoded, kernel("is_null", datum))


def eq_null_safe(arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
    """<=>: equality in which NULL equals NULL."""
    left, right = arguments
    left_null, right_null = (kernel("is_null", argument) for argument in broadcast_all(arguments))
    both = kernel("and", left_null, right_null)
    if pa.types.is_null(left.type) or pa.types.is_null(right.type):
        return both
    return kernel("or", both, kernel("coalesce", compare("eq", left, right), pa.scalar(False)))


def is_in(arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
    """IN: true on a match, NULL without one if the value or an option is NULL, else false."""
    value, options = arguments[0], arguments[1:]
    if pa.types.is_null(value.type):
        return nulls(rows_of(arguments), pa.bool_())
    options = [cast_datum(option, value.type) for option in options]
    if is_nested(value.type):
        value, options = ordered_bytes(value), [ordered_bytes(option) for option in options]
    if not isinstance(value, pa.Array) or any(isinstance(option, pa.Array) for option in options):
        result = compare("eq", *broadcast_all([value, options[0]]))
        for option in options[1:]:
            result = kernel("or_kleene", result, compare("eq", *broadcast_all([value, option])))
        return result
    known = [option for option in options if not isinstance(option, pa.Array) and option.is_valid]
    choices: Array = pa.concat_arrays([broadcast(option, 1) for option in known]) if known else nulls(0, value.type)
    if pa.types.is_floating(value.type):
        zero = pa.scalar(0.0, value.type)
        value, choices = kernel("add", value, zero), kernel("add", choices, zero)
    found = kernel("is_in", value, options=pc.SetLookupOptions(choices, skip_nulls=True))
    unknown = kernel("is_null", value)
    if len(known) < len(options):
        unknown = kernel("invert", found)
    return kernel("if_else", unknown, pa.scalar(None, pa.bool_()), found)


def extreme(name: str, arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
    """greatest ("max") or least ("min") of the arguments that are not NULL."""
    if pa.types.is_null(dtype):
        return nulls(rows_of(arguments), dtype)
    if pa.types.is_boolean(dtype):
        flags = [cast_datum(argument, dtype).cast(pa.uint8()) for argument in arguments]
        return extreme(name, broadcast_all(flags), pa.uint8()).cast(dtype)
    arrays = [cast(array, dtype) for array in broadcast_all(arguments)]
    if is_nested(dtype):
        return _nested_extreme(name, arrays)
    if pa.types.is_timestamp(dtype):  # Arrow has no kernel for those with a zone
        return kernel(f"{name}_element_wise", *(array.cast(pa.int64()) for array in arrays)).cast(dtype)
    result = kernel(f"{name}_element_wise", *arrays)
    if name == "max":
        for array in arrays:
            if _has_nan(array):
                is_nan = kernel("coalesce", kernel("is_nan", array), pa.scalar(False))
                result = kernel("if_else", is_nan, pa.scalar(math.nan, dtype), result)
    return result


def _nested_extreme(name: str, arrays: Sequence[Array]) -> Array:
    result = arrays[0]
    for array in arrays[1:]:
        better = compare("gt" if name == "max" else "lt", array, result)
        better = kernel("coalesce", better, kernel("is_null", result))
        result = kernel("if_else", kernel("and", better, kernel("is_valid", array)), array, result)
    return result


def nullif(arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
    """NULL where the two are equal, else the first."""
    left, right = broadcast_all(arguments)
    if pa.types.is_null(left.type) or pa.types.is_null(right.type):
        return left
    same = kernel("coalesce", compare("eq", left, right), pa.scalar(False))
    return kernel("if_else", same, pa.scalar(None, left.type), left)


def single_value(arguments: Sequence[Datum], dtype: pa.DataType) -> Datum:
    """The value of the only row of a scalar subquery, given the number of its rows; it fails if there are several."""
    count, value = arguments
    most = pc.max(broadcast(count, 1)).as_py()
    if most is not None and most > 1:
        raise EvaluationError(
            f"a scalar subquery has {most:,} rows, not one: add a condition, LIMIT 1, or an aggregate such as MAX"
        )
    return value


def is_nan(arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
    """ISNAN, which is false for NULL."""
    (values,) = broadcast_all(arguments)
    if not pa.types.is_floating(values.type):
        return pa.repeat(False, len(values))
    return kernel("coalesce", kernel("is_nan", values), pa.scalar(False))


def _has_nan(datum: Datum) -> bool:
    if not pa.types.is_floating(datum.type):
        return False
    if isinstance(datum, pa.Array):
        return holds_any(kernel("is_nan", datum))
    return bool(datum.is_valid and math.isnan(datum.as_py()))
