"""CAST and TRY_CAST between all types, with Spark's ANSI semantics.

Every conversion below returns NULL where it fails; `cast` then raises, or leaves the NULLs for TRY_CAST.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from sash.errors import EvaluationError, excerpt
from sash.operators.scalar import arrays, decimals, formatting, parsing
from sash.operators.scalar.arrays import Array, Datum, Numbers, kernel
from sash.operators.scalar.mathematics import scaled_half_up
from sash.operators.scalar.nested_casts import cast_nested, same_kind, text_of
from sash.plan.types import is_nested, parts_of, type_name
from sash.time import DAY, SECOND

Conversion: TypeAlias = Callable[[Array, pa.DataType], Array]


def cast(values: Array, dtype: pa.DataType, lenient: bool = False) -> Array:
    """The values as `dtype`; a value that cannot be converted is an error, or NULL if lenient."""
    source = values.type
    if source == dtype:
        return values
    if pa.types.is_null(source):
        return arrays.nulls(len(values), dtype)
    if is_nested(source):
        return _cast_nested(values, dtype, lenient)
    conversion = _CONVERSIONS.get((_kind(source), _kind(dtype)))
    if conversion is None:
        raise EvaluationError(f"cannot cast {type_name(source)} to {type_name(dtype)}; cast to a third type first")
    if pa.types.is_floating(source) and pa.types.is_decimal(dtype):
        # Spark returns NULL, not an error, even without TRY_.
        values = arrays.nullify(values, kernel("invert", kernel("is_finite", values)))
    result = conversion(values, dtype)
    if not lenient and result.null_count > values.null_count:
        failed = values.filter(kernel("and", kernel("is_valid", values), kernel("is_null", result)))[0]
        raise EvaluationError(
            f"CAST({_shown(failed)} AS {type_name(dtype)}) fails: the {type_name(source)} is malformed or out of range; "
            "use TRY_CAST to get NULL instead"
        )
    return result


def _cast_nested(values: Array, dtype: pa.DataType, lenient: bool) -> Array:
    if dtype == pa.string():
        return text_of(values, cast)
    if not same_kind(values.type, dtype):
        raise EvaluationError(f"cannot cast {type_name(values.type)} to {type_name(dtype)}")
    return cast_nested(values, dtype, partial(cast, lenient=lenient))


def _shown(value: pa.Scalar[Any]) -> str:
    try:
        return excerpt(repr(value.as_py()))
    except (OverflowError, ValueError):
        return f"a {type_name(value.type)} outside the years 1 to 9999"


def cast_datum(datum: Datum, dtype: pa.DataType) -> Datum:
    """`cast` of an array or of a constant."""
    if datum.type == dtype:
        return datum
    if isinstance(datum, pa.Array):
        return cast(datum, dtype)
    converted: Datum = cast(arrays.broadcast(datum, 1), dtype)[0]
    return converted


def can_cast(source: pa.DataType, target: pa.DataType) -> bool:
    """Whether there is a conversion between the types."""
    if is_nested(source) and same_kind(source, target):
        return all(map(can_cast, parts_of(source), parts_of(target)))
    if is_nested(source) and target == pa.string():
        return all(can_cast(part, target) for part in parts_of(source))
    return bool(source == target or pa.types.is_null(source) or (_kind(source), _kind(target)) in _CONVERSIONS)


def may_fail(source: pa.DataType, target: pa.DataType) -> bool:
    """Whether a cast between these types may fail on some value."""
    if is_nested(source) and same_kind(source, target):
        return any(map(may_fail, parts_of(source), parts_of(target)))
    if is_nested(source) or pa.types.is_null(source):
        return False
    return not (source == target or (_kind(source), _kind(target)) in _SAFE)


def _kind(dtype: pa.DataType) -> str:
    if pa.types.is_signed_integer(dtype):
        return "integer"
    if pa.types.is_floating(dtype):
        return "float"
    if pa.types.is_decimal(dtype):
        return "decimal"
    return type_name(dtype).lower()


def _arrow(values: Array, dtype: pa.DataType) -> Array:
    return values.cast(dtype, safe=False)


def _integer_to_integer(values: Array, dtype: pa.DataType) -> Array:
    if dtype.bit_width >= values.type.bit_width:
        return values.cast(dtype)
    low, high = (pa.scalar(limit, values.type) for limit in arrays.limits(dtype))
    outside = kernel("or", kernel("less", values, low), kernel("greater", values, high))
    return arrays.nullify(values, outside).cast(dtype)


def _number_to_boolean(values: Array, dtype: pa.DataType) -> Array:
    return kernel("not_equal", values, decimals.zero(values.type))


def _integer_to_decimal(values: Array, dtype: pa.DataType) -> Array:
    return decimals.rescale(values.cast(pa.int64()).cast(pa.decimal128(19, 0)), dtype)


def _integer_to_timestamp(values: Array, dtype: pa.DataType) -> Array:
    low, high = arrays.limits(pa.int64())
    limit = high // SECOND
    seconds = arrays.numbers(values.cast(pa.int64()))
    micros = np.clip(seconds, -limit, limit) * SECOND
    micros = np.where(seconds > limit, high, np.where(seconds < -limit, low, micros))
    return arrays.from_numbers(micros, dtype, [values])


def _float_to_integer(values: Array, dtype: pa.DataType) -> Array:
    return _truncate(arrays.numbers(values).astype(np.float64), kernel("is_null", values), dtype)


def _truncate(doubles: Numbers, nulls: Array, dtype: pa.DataType) -> Array:
    """Doubles without their fractions; NULL for NaN and values out of range."""
    low, high = arrays.limits(dtype)
    with np.errstate(invalid="ignore"):
        bad = ~((np.floor(doubles) <= float(high)) & (np.ceil(doubles) >= float(low)))
        whole = np.trunc(np.where(bad, 0.0, doubles))
        top = whole >= float(high)
        result = np.where(top, high, np.where(top, 0.0, whole).astype(np.int64))
    return arrays.from_numbers(result, dtype, kernel("or", nulls, pa.array(bad)))


def _float_to_decimal(values: Array, dtype: pa.DataType) -> Array:
    doubles = arrays.numbers(values).astype(np.float64)
    scale = decimals.shape(dtype)[1]
    whole, doubtful = scaled_half_up(doubles, scale)
    doubtful |= scale > 22
    digits: Array = pa.array(np.where(doubtful, 0.0, whole).astype(np.int64)).cast(pa.decimal128(19, 0))
    exact = from_validity(decimals.reinterpret(digits, pa.decimal128(38, scale)), values)
    result = decimals.rescale(exact, dtype)
    if not doubtful.any():
        return result
    printed: Array = pa.array(doubles[doubtful]).cast(pa.string())
    return kernel("replace_with_mask", result, pa.array(doubtful), parsing.parse_decimals(printed, dtype))


def from_validity(values: Array, like: Array) -> Array:
    """The values, NULL where `like` is."""
    return arrays.nullify(values, kernel("is_null", like))


def _float_to_timestamp(values: Array, dtype: pa.DataType) -> Array:
    with np.errstate(over="ignore"):
        micros = arrays.numbers(values).astype(np.float64) * SECOND
    micros = np.where(np.isfinite(micros), micros, np.nan)
    return _truncate(micros, kernel("is_null", values), dtype)


def _decimal_to_integer(values: Array, dtype: pa.DataType) -> Array:
    whole = decimals.rescale(decimals.truncate(values), pa.decimal128(38, 0))
    low, high = (pa.scalar(limit).cast(pa.decimal128(38, 0)) for limit in arrays.limits(dtype))
    outside = kernel("or", kernel("less", whole, low), kernel("greater", whole, high))
    return arrays.nullify(whole, outside).cast(dtype)


def _decimal_to_float(values: Array, dtype: pa.DataType) -> Array:
    precision, scale = decimals.shape(values.type)
    if precision <= 15:
        digits = arrays.numbers(decimals.unscaled(values).cast(pa.int64())).astype(np.float64)
        return arrays.from_numbers(digits / 10.0**scale, pa.float64(), [values]).cast(dtype)
    return values.cast(pa.string()).cast(dtype)


def _decimal_to_timestamp(values: Array, dtype: pa.DataType) -> Array:
    micros = kernel(
        "trunc", kernel("multiply", values.cast(pa.decimal256(38, decimals.shape(values.type)[1])), _MICROS)
    )
    return _decimal_to_integer(micros.cast(pa.decimal256(76, 0)), pa.int64()).view(dtype)


def _timestamp_to_integer(values: Array, dtype: pa.DataType) -> Array:
    return _integer_to_integer(arrays.from_numbers(arrays.numbers(values) // SECOND, pa.int64(), [values]), dtype)


def _timestamp_to_float(values: Array, dtype: pa.DataType) -> Array:
    return arrays.from_numbers(arrays.numbers(values) / SECOND, pa.float64(), [values]).cast(dtype)


def _timestamp_to_decimal(values: Array, dtype: pa.DataType) -> Array:
    micros = values.view(pa.int64()).cast(pa.decimal128(19, 0))
    return decimals.rescale(decimals.reinterpret(micros, pa.decimal128(19, 6)), dtype)


def _timestamp_to_timestamp(values: Array, dtype: pa.DataType) -> Array:
    return values.view(dtype)


def _timestamp_to_date(values: Array, dtype: pa.DataType) -> Array:
    return arrays.from_numbers((arrays.numbers(values) // DAY).astype(np.int32), dtype, [values])


def _date_to_timestamp(values: Array, dtype: pa.DataType) -> Array:
    days = arrays.numbers(values).astype(np.int64)
    limit = arrays.limits(pa.int64())[1] // DAY
    outside = pa.array(np.abs(days) > limit)
    return arrays.from_numbers(
        np.clip(days, -limit, limit) * DAY, dtype, kernel("or", kernel("is_null", values), outside)
    )


def _binary_to_string(values: Array, dtype: pa.DataType) -> Array:
    try:
        return values.cast(dtype)
    except pa.ArrowInvalid:
        # Spark keeps bytes that are not UTF-8 and shows them as U+FFFD; an Arrow string cannot hold them.
        return pa.array(
            [None if each is None else each.decode("utf-8", "replace") for each in values.to_pylist()], dtype
        )


_MICROS = pa.scalar(SECOND, pa.int64()).cast(pa.decimal256(19, 0))
_STAMPS = ("timestamp", "timestamp_ntz")
_CONVERSIONS: dict[tuple[str, str], Conversion] = {
    ("boolean", "integer"): _arrow,
    ("boolean", "float"): lambda values, dtype: values.cast(pa.int8()).cast(dtype),
    ("boolean", "decimal"): lambda values, dtype: _integer_to_decimal(values.cast(pa.int8()), dtype),
    ("boolean", "string"): _arrow,
    ("integer", "boolean"): _number_to_boolean,
    ("integer", "integer"): _integer_to_integer,
    ("integer", "float"): _arrow,
    ("integer", "decimal"): _integer_to_decimal,
    ("integer", "string"): _arrow,
    ("integer", "timestamp"): _integer_to_timestamp,
    ("float", "boolean"): _number_to_boolean,
    ("float", "integer"): _float_to_integer,
    ("float", "float"): _arrow,
    ("float", "decimal"): _float_to_decimal,
    ("float", "string"): formatting.format_floats,
    ("float", "timestamp"): _float_to_timestamp,
    ("decimal", "boolean"): _number_to_boolean,
    ("decimal", "integer"): _decimal_to_integer,
    ("decimal", "float"): _decimal_to_float,
    ("decimal", "decimal"): decimals.rescale,
    ("decimal", "string"): formatting.format_decimals,
    ("decimal", "timestamp"): _decimal_to_timestamp,
    ("string", "boolean"): parsing.parse_booleans,
    ("string", "integer"): parsing.parse_integers,
    ("string", "float"): parsing.parse_floats,
    ("string", "decimal"): parsing.parse_decimals,
    ("string", "binary"): _arrow,
    ("string", "date"): parsing.parse_dates,
    ("string", "timestamp"): parsing.parse_timestamps,
    ("string", "timestamp_ntz"): parsing.parse_timestamps,
    ("binary", "string"): _binary_to_string,
    ("date", "string"): formatting.format_dates,
    **{("date", stamp): _date_to_timestamp for stamp in _STAMPS},
    **{(stamp, "string"): formatting.format_timestamps for stamp in _STAMPS},
    **{(stamp, "date"): _timestamp_to_date for stamp in _STAMPS},
    **{(stamp, other): _timestamp_to_timestamp for stamp in _STAMPS for other in _STAMPS},
    ("timestamp", "integer"): _timestamp_to_integer,
    ("timestamp", "float"): _timestamp_to_float,
    ("timestamp", "decimal"): _timestamp_to_decimal,
}
_SAFE = {pair for pair in _CONVERSIONS if pair[1] in ("string", "boolean") and pair[0] != "string"} | {
    ("boolean", "integer"),
    ("boolean", "float"),
    ("integer", "float"),
    ("float", "float"),
    ("decimal", "float"),
    ("string", "binary"),
    ("timestamp", "float"),
    *((stamp, other) for stamp in _STAMPS for other in (*_STAMPS, "date")),
}
