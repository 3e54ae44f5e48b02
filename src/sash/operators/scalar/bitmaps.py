"""Functions of bitmaps of distinct numbers, which are counted in buckets of 32,768 bits, as in Spark."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from sash.operators.scalar.arrays import Array, Datum, broadcast_all, from_numbers, numbers
from sash.operators.scalar.function import Function, by_value, one

_BITS = 8 * 4096
"""The bits of a bitmap."""


def _position(arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
    """BITMAP_BIT_POSITION: positive numbers begin at bit 0, others count backwards from it; as in Java, signs are kept."""
    (values,) = broadcast_all(arguments)
    number = numbers(values).astype(np.int64)
    with np.errstate(over="ignore"):
        return from_numbers(np.where(number > 0, (number - 1) % _BITS, np.fmod(-number, _BITS)), dtype, [values])


def _bucket(arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
    """BITMAP_BUCKET_NUMBER."""
    (values,) = broadcast_all(arguments)
    number = numbers(values).astype(np.int64)
    toward_zero = (number - np.fmod(number, _BITS)) // _BITS
    return from_numbers(np.where(number > 0, 1 + (number - 1) // _BITS, toward_zero), dtype, [values])


def _count(bitmap: bytes) -> int:
    return int.from_bytes(bitmap).bit_count()


FUNCTIONS: dict[str, Function] = {
    "bitmap_bit_position": one(_position),
    "bitmap_bucket_number": one(_bucket),
    "bitmap_count": by_value(_count, 1),
}
