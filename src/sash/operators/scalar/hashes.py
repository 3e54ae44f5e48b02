"""HASH (Murmur3 of 32 bits) and XXHASH64 as Spark computes them: each argument's hash is the seed of the next.

The fields of a struct and the elements of an array count as further arguments.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sash.operators.scalar import arrays, decimals
from sash.operators.scalar.arrays import Array, Datum, Numbers
from sash.operators.scalar.encodings import as_bytes
from sash.operators.scalar.function import MANY, Function
from sash.plan.types import is_nested, is_struct

_SEED = 42
_M32, _M64 = 2**32 - 1, 2**64 - 1
_P1, _P2, _P3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
_P4, _P5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5


def _u32(value: int) -> Numbers:
    return np.uint32(value)  # type: ignore[return-value]


def _u64(value: int) -> Numbers:
    return np.uint64(value)  # type: ignore[return-value]


def _rotate32(values: Numbers, count: int) -> Numbers:
    result: Numbers = (values << _u32(count)) | (values >> _u32(32 - count))
    return result


def _rotate64(values: Numbers, count: int) -> Numbers:
    result: Numbers = (values << _u64(count)) | (values >> _u64(64 - count))
    return result


def _murmur_step(seed: Numbers, word: Numbers) -> Numbers:
    mixed = _rotate32(word * _u32(0xCC9E2D51), 15) * _u32(0x1B873593)
    result: Numbers = _rotate32(seed ^ mixed, 13) * _u32(5) + _u32(0xE6546B64)
    return result


def _murmur_end(values: Numbers, length: int) -> Numbers:
    values = values ^ _u32(length)
    values = (values ^ (values >> _u32(16))) * _u32(0x85EBCA6B)
    values = (values ^ (values >> _u32(13))) * _u32(0xC2B2AE35)
    result: Numbers = values ^ (values >> _u32(16))
    return result


def _murmur_numbers(values: Numbers, seed: Numbers) -> Numbers:
    """Of 32-bit or 64-bit integers; the seeds are unsigned."""
    if values.dtype.itemsize == 4:
        return _murmur_end(_murmur_step(seed, values.view(np.uint32)), 4)
    low, high = values.view(np.uint32)[::2], values.view(np.uint32)[1::2]
    return _murmur_end(_murmur_step(_murmur_step(seed, low), high), 8)


def murmur_bytes(value: str | bytes, seed: int) -> int:
    """Words of four bytes, then each byte that is left, as a signed integer."""
    data, hash_ = as_bytes(value), seed & _M32
    words = len(data) // 4
    rest = (byte - 256 if byte > 127 else byte for byte in data[4 * words :])
    for word in (*struct.unpack_from(f"<{words}i", data), *rest):
        mixed = (word & _M32) * 0xCC9E2D51 & _M32
        mixed = ((mixed << 15 | mixed >> 17) & _M32) * 0x1B873593 & _M32
        hash_ ^= mixed
        hash_ = ((hash_ << 13 | hash_ >> 19) & _M32) * 5 + 0xE6546B64 & _M32
    hash_ ^= len(data)
    hash_ = (hash_ ^ hash_ >> 16) * 0x85EBCA6B & _M32
    hash_ = (hash_ ^ hash_ >> 13) * 0xC2B2AE35 & _M32
    hash_ ^= hash_ >> 16
    return hash_ - (hash_ >> 31 << 32)


def _xx_end(values: Numbers) -> Numbers:
    values = (values ^ (values >> _u64(33))) * _u64(_P2)
    values = (values ^ (values >> _u64(29))) * _u64(_P3)
    result: Numbers = values ^ (values >> _u64(32))
    return result


def _xx_numbers(values: Numbers, seed: Numbers) -> Numbers:
    """Of 32-bit or 64-bit integers; the seeds are unsigned."""
    size = values.dtype.itemsize
    hash_ = seed + _u64(_P5) + _u64(size)
    if size == 4:
        hash_ = hash_ ^ (values.view(np.uint32).astype(np.uint64) * _u64(_P1))
        return _xx_end(_rotate64(hash_, 23) * _u64(_P2) + _u64(_P3))
    hash_ = hash_ ^ (_rotate64(values.view(np.uint64) * _u64(_P2), 31) * _u64(_P1))
    return _xx_end(_rotate64(hash_, 27) * _u64(_P1) + _u64(_P4))


def _turn(value: int, count: int) -> int:
    return (value << count | value >> (64 - count)) & _M64


def _xx_round(sum_: int, word: int) -> int:
    return _turn(sum_ + word * _P2 & _M64, 31) * _P1 & _M64


def _xx_bytes(value: str | bytes, seed: int) -> int:
    data, position = as_bytes(value), 0
    if len(data) >= 32:
        sums = [seed + _P1 + _P2 & _M64, seed + _P2 & _M64, seed & _M64, seed - _P1 & _M64]
        while position <= len(data) - 32:
            words = struct.unpack_from("<4Q", data, position)
            sums = [_xx_round(sum_, word) for sum_, word in zip(sums, words, strict=True)]
            position += 32
        hash_ = sum(_turn(sum_, count) for sum_, count in zip(sums, (1, 7, 12, 18), strict=True)) & _M64
        for sum_ in sums:
            hash_ = (hash_ ^ _xx_round(0, sum_)) * _P1 + _P4 & _M64
    else:
        hash_ = seed + _P5 & _M64
    hash_ = hash_ + len(data) & _M64
    while position <= len(data) - 8:
        hash_ = _turn(hash_ ^ _xx_round(0, struct.unpack_from("<Q", data, position)[0]), 27) * _P1 + _P4 & _M64
        position += 8
    if position <= len(data) - 4:
        hash_ ^= struct.unpack_from("<I", data, position)[0] * _P1 & _M64
        hash_ = _turn(hash_, 23) * _P2 + _P3 & _M64
        position += 4
    for byte in data[position:]:
        hash_ = _turn(hash_ ^ byte * _P5 & _M64, 11) * _P1 & _M64
    hash_ = (hash_ ^ hash_ >> 33) * _P2 & _M64
    hash_ = (hash_ ^ hash_ >> 29) * _P3 & _M64
    hash_ ^= hash_ >> 32
    return hash_ - (hash_ >> 63 << 64)


def _hash(
    of_numbers: Callable[[Numbers, Numbers], Numbers], of_bytes: Callable[[str | bytes, int], int]
) -> Callable[[Sequence[Datum], pa.DataType], Array]:
    def add(values: Array, result: Numbers) -> Numbers:
        """The hashes of rows that go on with these values; where one is NULL, the hash stays."""
        if pa.types.is_null(values.type):
            return result
        if is_nested(values.type):
            for part in _parts(values):
                result = add(part, result)
            return result
        words, signed = _words(values), result.dtype
        if words is None:
            seeds: Array = pa.array(result)
            hashed = arrays.numbers(arrays.map_rows(of_bytes, [_text(values), seeds], seeds.type))
        else:
            with np.errstate(over="ignore"):
                hashed = of_numbers(words, result.view(f"u{signed.itemsize}")).view(signed)
        return np.where(values.is_valid().to_numpy(zero_copy_only=False), hashed, result)

    def run(arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
        rows = arrays.rows_of(arguments)
        result: Numbers = np.full(rows, _SEED, f"i{dtype.bit_width // 8}")
        for argument in arguments:
            result = add(arrays.broadcast(argument, rows), result)
        return pa.array(result, dtype)

    return run


def _parts(values: Array) -> Iterator[Array]:
    """What the hash of a struct or an array goes on with: its fields, or its elements, one after the other."""
    if is_struct(values.type):
        yield from values.flatten()
        return
    lengths = pc.fill_null(pc.list_value_length(values), 0).to_numpy(zero_copy_only=False)
    starts = values.offsets.to_numpy()[:-1]
    for place in range(int(lengths.max(initial=0))):
        yield values.values.take(pa.array(starts + place, mask=lengths <= place))


def _words(values: Array) -> Numbers | None:
    """The 32-bit or 64-bit integers that stand for the values; None for bytes."""
    dtype = values.type
    if pa.types.is_string(dtype) or pa.types.is_binary(dtype):
        return None
    if pa.types.is_decimal(dtype):
        return arrays.numbers(decimals.unscaled(values).cast(pa.int64())) if decimals.shape(dtype)[0] <= 18 else None
    numbers = arrays.numbers(values)
    if pa.types.is_floating(dtype):
        # NaN has one representation, and -0.0 is 0.0.
        plain = np.where(np.isnan(numbers), numbers.dtype.type(np.nan), numbers + numbers.dtype.type(0))
        bits: Numbers = plain.view(np.int64 if plain.dtype.itemsize == 8 else np.int32)
        return bits
    return numbers if numbers.dtype == np.int64 else numbers.astype(np.int32)


def _text(values: Array) -> Array:
    """Decimals of more than 18 digits as the bytes of Java's BigInteger."""
    if not pa.types.is_decimal(values.type):
        return values
    digits = decimals.unscaled(values)
    return arrays.map_distinct(digits, lambda number: _big_endian(int(number)), pa.binary())


def _big_endian(number: int) -> bytes:
    size = ((number if number >= 0 else ~number).bit_length() + 8) // 8
    return number.to_bytes(size, "big", signed=True)


FUNCTIONS: dict[str, Function] = {
    "hash": Function(_hash(_murmur_numbers, murmur_bytes), 1, MANY, strict=False),
    "xxhash64": Function(_hash(_xx_numbers, _xx_bytes), 1, MANY, strict=False),
}
