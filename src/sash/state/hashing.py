"""Rows as 128-bit keys, so that keys of any type are two integers.

A single column of integers, dates, times or booleans is its own key, exactly. Everything else is hashed to 128 bits:
among n different keys the probability of a collision is below n^2 / 2^129 (for a billion keys, 1 in 10^20).
NULL equals NULL, NaN equals NaN, -0.0 equals 0.0, as in GROUP BY, also inside of arrays, structs and maps; the order of a
map's entries does not matter. The hash is the same in every process.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sash.state.columns import stored_values
from sash.state.jit import kernel
from sash.state.memory import Ints
from sash.state.nested import elements, fields, is_nested

Hashes = npt.NDArray[np.uint64]
Keys = tuple[Hashes, Hashes]


def fixed_bits(column: pa.Array, exact: bool = False) -> npt.NDArray[np.int64] | None:
    """The values of a column whose type fits in 64 bits, as integers equal exactly when the values are.

    The values of NULLs are undefined. None for types that do not fit. If `exact`, -0.0 is not 0.0.
    """
    dtype = column.type
    if pa.types.is_floating(dtype):
        values = np.asarray(pc.fill_null(column, 0).to_numpy(zero_copy_only=False), np.float64)
        values = values.copy() if exact else values + 0.0
        values[np.isnan(values)] = np.nan
        return values.view(np.int64)
    if pa.types.is_boolean(dtype):
        return np.asarray(pc.fill_null(column, False).cast(pa.int8()).to_numpy(zero_copy_only=False), np.int64)
    if pa.types.is_null(dtype):
        return np.zeros(len(column), np.int64)
    stored = stored_values(column)
    return None if stored is None else stored.astype(np.int64, copy=False)


def null_mask(column: pa.Array) -> npt.NDArray[np.bool_] | None:
    """The mask of NULLs, or None if there are none."""
    if not column.null_count:
        return None
    return np.asarray(column.is_null().to_numpy(zero_copy_only=False), np.bool_)


def any_null(columns: Sequence[pa.Array]) -> npt.NDArray[np.bool_] | None:
    """The mask of rows with a NULL in these columns, or None if there are none."""
    result: npt.NDArray[np.bool_] | None = None
    for column in columns:
        mask = null_mask(column)
        if mask is not None:
            result = mask if result is None else result | mask
    return result


def hash_rows(columns: Sequence[pa.Array], rows: int, *, exact: bool = False) -> Keys:
    """The 128-bit key of every row, in two halves. If `exact`, rows are told apart by the signs of their zeros, too."""
    if len(columns) == 1:
        word = None if pa.types.is_floating(columns[0].type) else fixed_bits(columns[0])
        if word is not None:
            low = word.view(np.uint64)
            high = np.zeros(rows, np.uint64)
            mask = null_mask(columns[0])
            if mask is not None:
                low = np.where(mask, np.uint64(0), low)
                high[mask] = 1
            return low, high
    low = np.full(rows, 0x9E3779B97F4A7C15, np.uint64)
    high = np.full(rows, 0xC2B2AE3D27D4EB4F, np.uint64)
    for column in columns:
        _hash_column(column, low, high, exact)
    return low, high


def _hash_column(column: pa.Array, low: Hashes, high: Hashes, exact: bool) -> None:
    mask = null_mask(column)
    nulls = mask if mask is not None else np.zeros(0, np.bool_)
    if is_nested(column.type):
        _hash_nested(column, nulls, low, high, exact)
        return
    bits = fixed_bits(column, exact)
    if bits is not None:
        _mix_words(bits.view(np.uint64), nulls, low, high)
    elif pa.types.is_decimal128(column.type):
        words = decimal_words(column)
        _mix_words(np.ascontiguousarray(words[:, 0]), nulls, low, high)
        _mix_words(np.ascontiguousarray(words[:, 1]), nulls, low, high)
    else:
        offsets, data = byte_buffers(column)
        _mix_bytes(offsets, data, nulls, low, high)


def _hash_nested(column: pa.Array, nulls: npt.NDArray[np.bool_], low: Hashes, high: Hashes, exact: bool) -> None:
    """Absorb the hashes of the elements or fields after their number; a NULL has none."""
    if pa.types.is_struct(column.type):
        parts = fields(column)
        _mix_words(np.full(len(column), len(parts), np.uint64), nulls, low, high)
        for part in parts:
            _hash_column(part, low, high, exact)
        return
    offsets, inner = elements(column)
    _mix_words(np.diff(offsets).astype(np.uint64), nulls, low, high)
    inner_low = np.full(len(inner), 0x9E3779B97F4A7C15, np.uint64)
    inner_high = np.full(len(inner), 0xC2B2AE3D27D4EB4F, np.uint64)
    _hash_column(inner, inner_low, inner_high, exact)
    _mix_elements(offsets, inner_low, inner_high, pa.types.is_map(column.type), low, high)


def decimal_words(column: pa.Array) -> npt.NDArray[np.uint64]:
    """The values of a decimal column as rows of (low word, high word)."""
    buffer = column.buffers()[1]
    words = np.frombuffer(buffer, np.uint64)[2 * column.offset : 2 * (column.offset + len(column))]
    return words.reshape(-1, 2)


def byte_buffers(column: pa.Array) -> tuple[Ints, npt.NDArray[np.uint8]]:
    """The offsets and the bytes of a string or binary column."""
    _, offset_buffer, data_buffer = column.buffers()
    if offset_buffer is None or len(column) == 0:
        return np.zeros(len(column) + 1, np.int64), np.empty(0, np.uint8)
    offsets = np.frombuffer(offset_buffer, np.int32)[column.offset : column.offset + len(column) + 1]
    data = np.frombuffer(data_buffer, np.uint8) if data_buffer is not None else np.empty(0, np.uint8)
    return offsets.astype(np.int64), data


@kernel
def mix(value: np.uint64) -> np.uint64:
    """A bijection of 64 bits in which every input bit moves about half of the output bits."""
    value ^= value >> np.uint64(30)
    value *= np.uint64(0xBF58476D1CE4E5B9)
    value ^= value >> np.uint64(27)
    value *= np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


@kernel
def _absorb(low: np.uint64, high: np.uint64, word: np.uint64) -> tuple[np.uint64, np.uint64]:
    low = mix(low ^ word) + high
    high = mix(high + (word * np.uint64(0xD6E8FEB86659FD93))) ^ (low << np.uint64(23) | low >> np.uint64(41))
    return low, high


@kernel
def _mix_words(words: Hashes, nulls: npt.NDArray[np.bool_], low: Hashes, high: Hashes) -> None:
    for row in range(len(words)):
        if len(nulls) and nulls[row]:
            low[row], high[row] = _absorb(low[row], high[row] ^ np.uint64(0xA5A5), np.uint64(0))
        else:
            low[row], high[row] = _absorb(low[row], high[row], words[row])


@kernel
def _mix_bytes(
    offsets: Ints, data: npt.NDArray[np.uint8], nulls: npt.NDArray[np.bool_], low: Hashes, high: Hashes
) -> None:
    for row in range(len(offsets) - 1):
        if len(nulls) and nulls[row]:
            low[row], high[row] = _absorb(low[row], high[row] ^ np.uint64(0xA5A5), np.uint64(0))
            continue
        a, b = low[row], high[row]
        start, stop = offsets[row], offsets[row + 1]
        a, b = _absorb(a, b, np.uint64(stop - start))
        while start < stop:
            word = np.uint64(0)
            count = min(8, stop - start)
            for index in range(count):
                word |= np.uint64(data[start + index]) << np.uint64(8 * index)
            a, b = _absorb(a, b, word)
            start += count
        low[row], high[row] = a, b


@kernel
def _mix_elements(
    offsets: Ints, inner_low: Hashes, inner_high: Hashes, unordered: bool, low: Hashes, high: Hashes
) -> None:
    for row in range(len(offsets) - 1):
        a, b = low[row], high[row]
        total_low, total_high = np.uint64(0), np.uint64(0)
        for index in range(offsets[row], offsets[row + 1]):
            if unordered:
                total_low += inner_low[index]
                total_high += inner_high[index]
            else:
                a, b = _absorb(a, b, inner_low[index])
                a, b = _absorb(a, b, inner_high[index])
        if unordered:
            a, b = _absorb(a, b, total_low)
            a, b = _absorb(a, b, total_high)
        low[row], high[row] = a, b


@kernel
def shards_of(low: Hashes, high: Hashes, shards: int) -> npt.NDArray[np.int64]:
    """The shard that each key belongs to."""
    result = np.empty(len(low), np.int64)
    for row in range(len(low)):
        result[row] = np.int64(mix(low[row] + high[row] * np.uint64(0x9E3779B97F4A7C15)) % np.uint64(shards))
    return result
