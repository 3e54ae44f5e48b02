"""Order-preserving encoding of rows as byte strings, so that rows of any types are compared byte by byte.

A column is one byte that orders NULLs, then the value: numbers big-endian with an inverted sign (NaN above all others,
-0.0 equal to 0.0), strings and binaries with every zero byte escaped and two zero bytes at the end, structs as their
fields, arrays as their elements, each after a byte of one, and a zero byte at the end; inside of both, NULLs come first. A
map, which has no order in SQL, is the array of its entries by key. No encoding is a prefix of another. In a column in
descending order the bytes of the value are inverted.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sash.state.hashing import byte_buffers, decimal_words, fixed_bits, null_mask
from sash.state.jit import kernel
from sash.state.memory import Ints
from sash.state.nested import ByteStrings, concatenate, elements, fields, is_nested

Bytes = npt.NDArray[np.uint8]
Words = npt.NDArray[np.uint64]
_SIGN = np.int64(-(2**63))
_ABSENT, _PRESENT, _ABSENT_LAST = 0, 1, 2


def encode_order(
    columns: Sequence[pa.Array],
    descending: Sequence[bool],
    nulls_first: Sequence[bool],
    rows: int,
    exact_from: int | None = None,
) -> tuple[Ints, Bytes]:
    """The byte string of every row: row r is `data[offsets[r] : offsets[r + 1]]`.

    In the columns after the first `exact_from` ones -0.0 is before 0.0.
    """
    exact = [exact_from is not None and place >= exact_from for place in range(len(columns))]
    lengths = np.zeros(rows, np.int64)
    nulls = [_mask(column) for column in columns]
    nested = {
        place: _encode_nested(column, exact[place]) for place, column in enumerate(columns) if is_nested(column.type)
    }
    for place, (column, mask) in enumerate(zip(columns, nulls, strict=True)):
        if place in nested:
            _measure_nested(nested[place][0], mask, lengths)
        elif pa.types.is_string(column.type) or pa.types.is_binary(column.type):
            _measure_bytes(*_own(column), mask, lengths)
        else:
            _measure_words(_width(column.type), mask, lengths)
    offsets = np.zeros(rows + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    data = np.empty(int(offsets[-1]), np.uint8)
    ends = offsets[:-1].copy()
    described = zip(columns, nulls, descending, nulls_first, strict=True)
    for place, (column, mask, down, first) in enumerate(described):
        absent = _ABSENT if first else _ABSENT_LAST
        flip = 0xFF if down else 0
        if place in nested:
            _write_nested(*nested[place], mask, absent, flip, ends, data)
        elif pa.types.is_string(column.type) or pa.types.is_binary(column.type):
            _write_bytes(*_own(column), mask, absent, flip, ends, data)
        elif pa.types.is_decimal128(column.type):
            words = decimal_words(column)
            high = words[:, 1] ^ _SIGN.view(np.uint64)
            _write_words(high, np.ascontiguousarray(words[:, 0]), 16, mask, absent, flip, ends, data)
        else:
            high = (ordered_bits(column, exact[place]) ^ _SIGN).view(np.uint64)
            _write_words(high, high, _width(column.type), mask, absent, flip, ends, data)
    return offsets, data


def _encode_nested(column: pa.Array, exact: bool) -> ByteStrings:
    """The byte strings of arrays, structs and maps, without the byte that orders NULLs; those of NULLs are undefined."""
    if pa.types.is_struct(column.type):
        return _encode_ascending(fields(column), len(column), exact)
    offsets, inner = elements(column)
    ends, data = _encode_ascending([inner], len(inner), exact)
    if pa.types.is_map(column.type):
        owners = np.repeat(np.arange(len(column)), np.diff(offsets))
        order = _sort_runs(owners, *_encode_ascending(fields(inner)[:1], len(inner), exact))
        ends, data = _encode_ascending([inner.take(pa.array(order))], len(inner), exact)
    each = np.arange(len(inner) + 1)
    ends, data = concatenate([(each, np.ones(len(inner), np.uint8)), (ends, data)], len(inner))
    last = (np.arange(len(column) + 1), np.zeros(len(column), np.uint8))
    return concatenate([(ends[offsets], data), last], len(column))


def _encode_ascending(columns: Sequence[pa.Array], rows: int, exact: bool) -> ByteStrings:
    return encode_order(columns, [False] * len(columns), [True] * len(columns), rows, 0 if exact else None)


def order_rows(ts: Ints, columns: Sequence[pa.Array]) -> Ints:
    """The positions of rows sorted by ts, reordered by ts and then by all columns, NULLs first."""
    order = np.arange(len(ts))
    tied = np.flatnonzero(_share_instant(ts))
    if len(tied):
        index = pa.array(tied)
        keys = [column.take(index) for column in columns]
        offsets, data = encode_order(keys, [False] * len(keys), [True] * len(keys), len(tied))
        order[tied] = tied[_sort_runs(ts[tied], offsets, data)]
    return order


def ordered_bits(column: pa.Array, exact: bool = False) -> Ints:
    """The values of a column that fits in 64 bits as integers in the same order; the values of NULLs are undefined.

    If `exact`, -0.0 is before 0.0.
    """
    bits = fixed_bits(column, exact)
    if bits is None:
        raise TypeError(f"{column.type} does not fit in 64 bits")
    return turn_floats(bits) if pa.types.is_floating(column.type) else bits.copy()


def turn_floats(bits: Ints) -> Ints:
    """The bits of doubles as integers in the doubles' order, and such integers back as bits."""
    return bits ^ ((bits >> 63) & np.int64(2**63 - 1))


def _mask(column: pa.Array) -> npt.NDArray[np.bool_]:
    mask = null_mask(column)
    return np.zeros(0, np.bool_) if mask is None else np.array(mask)


def _own(column: pa.Array) -> tuple[Ints, Bytes]:
    """Offsets and bytes as writable arrays, so that kernels are compiled for one kind of array only."""
    offsets, data = byte_buffers(column)
    first = offsets[0]
    return offsets - first, np.array(data[first : offsets[-1]])


def _width(dtype: pa.DataType) -> int:
    """Bytes of an encoded value; integers and floats all take eight."""
    if pa.types.is_null(dtype):
        return 0
    return 16 if pa.types.is_decimal128(dtype) else 8


@kernel
def _measure_words(width: int, nulls: npt.NDArray[np.bool_], lengths: Ints) -> None:
    for row in range(len(lengths)):
        lengths[row] += 1 if len(nulls) and nulls[row] else 1 + width


@kernel
def _measure_nested(offsets: Ints, nulls: npt.NDArray[np.bool_], lengths: Ints) -> None:
    for row in range(len(lengths)):
        lengths[row] += 1 if len(nulls) and nulls[row] else 1 + offsets[row + 1] - offsets[row]


@kernel
def _write_nested(
    offsets: Ints, data: Bytes, nulls: npt.NDArray[np.bool_], absent: int, flip: int, ends: Ints, out: Bytes
) -> None:
    for row in range(len(ends)):
        to = ends[row]
        if len(nulls) and nulls[row]:
            out[to] = absent
            ends[row] = to + 1
            continue
        out[to] = _PRESENT
        to += 1
        for index in range(offsets[row], offsets[row + 1]):
            out[to] = data[index] ^ np.uint8(flip)
            to += 1
        ends[row] = to


@kernel
def _measure_bytes(offsets: Ints, data: Bytes, nulls: npt.NDArray[np.bool_], lengths: Ints) -> None:
    for row in range(len(lengths)):
        lengths[row] += 1
        if len(nulls) and nulls[row]:
            continue
        lengths[row] += offsets[row + 1] - offsets[row] + 2
        for index in range(offsets[row], offsets[row + 1]):
            if data[index] == 0:
                lengths[row] += 1


@kernel
def _write_words(
    high: Words, low: Words, width: int, nulls: npt.NDArray[np.bool_], absent: int, flip: int, ends: Ints, out: Bytes
) -> None:
    for row in range(len(ends)):
        to = ends[row]
        if len(nulls) and nulls[row]:
            out[to] = absent
            ends[row] = to + 1
            continue
        out[to] = _PRESENT
        for index in range(width):
            word = high[row] if index < 8 else low[row]
            out[to + 1 + index] = np.uint8((word >> np.uint64(56 - 8 * (index & 7))) & np.uint64(0xFF)) ^ np.uint8(flip)
        ends[row] = to + 1 + width


@kernel
def _write_bytes(
    offsets: Ints, data: Bytes, nulls: npt.NDArray[np.bool_], absent: int, flip: int, ends: Ints, out: Bytes
) -> None:
    mask = np.uint8(flip)
    for row in range(len(ends)):
        to = ends[row]
        if len(nulls) and nulls[row]:
            out[to] = absent
            ends[row] = to + 1
            continue
        out[to] = _PRESENT
        to += 1
        for index in range(offsets[row], offsets[row + 1]):
            out[to] = data[index] ^ mask
            to += 1
            if data[index] == 0:
                out[to] = np.uint8(0xFF) ^ mask
                to += 1
        out[to] = mask
        out[to + 1] = mask
        ends[row] = to + 2


def _share_instant(ts: Ints) -> npt.NDArray[np.bool_]:
    """The mask of the sorted times that occur more than once."""
    result = np.zeros(len(ts), np.bool_)
    equal = ts[1:] == ts[:-1]
    result[1:] = equal
    result[:-1] |= equal
    return result


@kernel
def _sort_runs(ts: Ints, offsets: Ints, data: Bytes) -> Ints:
    """The positions of byte strings, with those of each instant, which are consecutive, merge-sorted."""
    order = np.arange(len(ts))
    merged = np.empty(len(ts), np.int64)
    start = 0
    while start < len(ts):
        stop = start + 1
        while stop < len(ts) and ts[stop] == ts[start]:
            stop += 1
        width = 1
        while width < stop - start:
            for low in range(start, stop, 2 * width):
                middle, high = min(low + width, stop), min(low + 2 * width, stop)
                left, right = low, middle
                for position in range(low, high):
                    if left < middle and (right >= high or not _is_below(order[right], order[left], offsets, data)):
                        merged[position] = order[left]
                        left += 1
                    else:
                        merged[position] = order[right]
                        right += 1
            order[start:stop] = merged[start:stop]
            width *= 2
        start = stop
    return order


@kernel
def _is_below(one: int, other: int, offsets: Ints, data: Bytes) -> bool:
    length = min(offsets[one + 1] - offsets[one], offsets[other + 1] - offsets[other])
    for index in range(length):
        a, b = data[offsets[one] + index], data[offsets[other] + index]
        if a != b:
            return bool(a < b)
    return False
