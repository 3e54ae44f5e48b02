"""Functions of the bits of integers, and numbers in other bases."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from sash.errors import EvaluationError, excerpt
from sash.operators.scalar import arrays
from sash.operators.scalar.arrays import Array, Datum, kernel
from sash.operators.scalar.function import Function, by_value, one, two

_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_UNSIGNED = 2**64


def _invert(arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
    return kernel("bit_wise_not", *arguments)


def _shift(name: str, arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
    """Java's shifts: the distance counts modulo the number of bits."""
    values, distance = arrays.broadcast_all(arguments)
    bits = arrays.numbers(values)
    count = arrays.numbers(distance).astype(bits.dtype) & (dtype.bit_width - 1)
    if name == "shiftleft":
        result = np.left_shift(bits, count)
    elif name == "shiftright":
        result = np.right_shift(bits, count)
    else:
        unsigned = bits.view(np.dtype(f"u{bits.dtype.itemsize}"))
        result = np.right_shift(unsigned, count.astype(unsigned.dtype)).view(bits.dtype)
    return arrays.from_numbers(result, dtype, [values, distance])


def _shift_function(name: str) -> Function:
    return two(lambda arguments, dtype: _shift(name, arguments, dtype))


def _count_bits(arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
    (values,) = arrays.broadcast_all(arguments)
    wide = arrays.numbers(values.cast(pa.int8()) if pa.types.is_boolean(values.type) else values).astype(np.int64)
    octets = wide.view(np.uint8).reshape(-1, 8)
    return arrays.from_numbers(np.unpackbits(octets, axis=1).sum(axis=1).astype(np.int32), dtype, [values])


def _get_bit(arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
    values, position = arrays.broadcast_all(arguments)
    places = arrays.numbers(position)
    known = ~arrays.null_mask([values, position]).to_numpy(zero_copy_only=False)
    if (known & ((places < 0) | (places >= values.type.bit_width))).any():
        raise EvaluationError(f"bit_get: the positions of bits are 0 to {values.type.bit_width - 1}")
    bits = arrays.numbers(values).astype(np.int64) >> np.where(known, places, 0).astype(np.int64)
    return arrays.from_numbers((bits & 1).astype(np.int8), dtype, [values, position])


def _convert(text: str, source: int, target: int) -> str | None:
    """A number of one base in another, as unsigned 64 bits; signed if the target is negative."""
    if not 2 <= source <= 36 or not 2 <= abs(target) <= 36:
        return None
    text = text.strip(" ")
    if not text:
        return None
    negative, value = text[0] == "-", 0
    for character in text[negative:].upper():
        digit = _DIGITS.find(character) if character.isascii() else -1
        if not 0 <= digit < source:
            break
        value = value * source + digit
        if value >= _UNSIGNED:
            raise EvaluationError(f"conv: '{excerpt(text)}' does not fit in 64 bits")
    if negative and target > 0:
        value = _UNSIGNED - 1 if value >= _UNSIGNED // 2 else -value % _UNSIGNED
    if target < 0 and value >= _UNSIGNED // 2:
        negative, value = True, _UNSIGNED - value
    digits = ""
    while value or not digits:
        value, digit = divmod(value, abs(target))
        digits = _DIGITS[digit] + digits
    return f"-{digits}" if negative and target < 0 else digits


FUNCTIONS: dict[str, Function] = {
    "bit_not": one(_invert),
    **{name: _shift_function(name) for name in ("shiftleft", "shiftright", "shiftrightunsigned")},
    "bit_count": one(_count_bits),
    "bit_get": two(_get_bit, fails=True),
    "conv": by_value(_convert, 3, fails=True),
}
