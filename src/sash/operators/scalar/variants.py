"""Functions of VARIANT, which is stored as text."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from functools import partial

import pyarrow as pa

from sash.errors import EvaluationError
from sash.operators.scalar.arrays import Array, Datum, broadcast_all
from sash.operators.scalar.casts import cast
from sash.operators.scalar.function import Function, by_value, one
from sash.plan.json_reader import JsonError, JsonNumber, JsonObject, read_json
from sash.plan.variants import scalar_of, stored_variant, variant_at, variant_json, variant_path, variant_schema


def _parse(text: str) -> str:
    try:
        return stored_variant(text)
    except JsonError:
        raise EvaluationError(f"parse_json: {text[:40]!r} is no JSON; use try_parse_json to get NULL instead") from None


def _try_parse(text: str) -> str | None:
    try:
        return stored_variant(text)
    except JsonError:
        return None


def _get(stored: str, path: str) -> str | None:
    steps = variant_path(path)
    assert steps is not None
    return variant_at(stored, steps)


def to_text(stored: str) -> str | None:
    """CAST(variant AS STRING): a string as it is, anything else as JSON."""
    value = read_json(stored)
    if value is None:
        return None
    return value if isinstance(value, str) else variant_json(stored)


def _cast(lenient: bool, arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
    """Variants as values of a scalar type; NULL of those that are null."""
    (values,) = broadcast_all(arguments)
    encoded = values.dictionary_encode()
    made = [_converted(stored, dtype, lenient) for stored in encoded.dictionary.to_pylist()]
    whole: Array = pa.concat_arrays(made) if made else pa.array([], dtype)
    return whole.take(encoded.indices)


def _converted(stored: str, dtype: pa.DataType, lenient: bool) -> Array:
    value = read_json(stored)
    scalar = scalar_of(value) if isinstance(value, JsonNumber) else value
    if scalar is None:
        return pa.nulls(1, dtype)
    found = pa.nulls(1, dtype) if isinstance(scalar, list | JsonObject) else cast(_column(scalar), dtype, True)
    if found.null_count and not lenient:
        raise EvaluationError(
            f"the variant {stored[:40]} is no {dtype}; use try_variant_get or TRY_CAST to get NULL instead"
        )
    return found


def _column(value: str | bool | float | Decimal) -> Array:
    if isinstance(value, Decimal):
        _, digits, exponent = value.as_tuple()
        scale = max(0, -int(exponent))
        return pa.array([value], pa.decimal128(max(len(digits), scale, 1), scale))
    return pa.array([value])


FUNCTIONS: dict[str, Function] = {
    "variant_parse": by_value(_parse, 1, fails=True),
    "variant_try_parse": by_value(_try_parse, 1),
    "variant_at": by_value(_get, 2),
    "variant_text": by_value(to_text, 1),
    "variant_json": by_value(variant_json, 1),
    "variant_is_null": by_value(lambda stored: stored == "null", 1),
    "variant_schema": by_value(variant_schema, 1),
    "variant_cast": one(partial(_cast, False), fails=True),
    "variant_try_cast": one(partial(_cast, True)),
}
