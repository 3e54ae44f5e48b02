"""Arrays, structs and maps: their parts as flat columns, and their values as byte strings that are read back unchanged.

A value is one byte that is 0 for NULL, and then: of a fixed width, its bytes; of bytes, their number (four bytes) and
themselves; of a struct, its fields, one after the other; of an array, the number of elements and the size of each (four
bytes), and the elements; a map is an array of structs. So every value says where it ends, and whole columns are read and
written at once, level by level.
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

Bytes = npt.NDArray[np.uint8]
ByteStrings = tuple[Ints, Bytes]
"""Offsets and bytes: string r is `data[offsets[r] : offsets[r + 1]]`."""

_COUNT = 4


def is_nested(dtype: pa.DataType) -> bool:
    """Whether the type is an array, a struct or a map."""
    return bool(pa.types.is_list(dtype) or pa.types.is_struct(dtype) or pa.types.is_map(dtype))


def elements(column: pa.Array) -> tuple[Ints, pa.Array]:
    """The offsets of each row's elements, and the elements; those of a map are structs of key and value.

    Rows that are NULL have no elements.
    """
    if pa.types.is_map(column.type):
        column = column.cast(pa.list_(entry_type(column.type)))
    counts = pc.fill_null(column.value_lengths(), 0).to_numpy(zero_copy_only=False)
    offsets = np.zeros(len(column) + 1, np.int64)
    np.cumsum(counts, out=offsets[1:])
    return offsets, column.flatten()


def entry_type(dtype: pa.DataType) -> pa.DataType:
    """The type of a map's entries."""
    return pa.struct([pa.field("key", dtype.key_type), pa.field("value", dtype.item_type)])


def fields(column: pa.Array) -> list[pa.Array]:
    """The fields of a struct; NULL where the struct is."""
    parts: list[pa.Array] = column.flatten()
    return parts


def list_array(dtype: pa.DataType, offsets: Ints, values: pa.Array, valid: npt.NDArray[np.bool_] | None) -> pa.Array:
    """The array or map column whose row r has the elements from offsets[r] to offsets[r + 1]."""
    rows = len(offsets) - 1
    if pa.types.is_map(dtype):
        parts = [dtype.key_field, dtype.item_field]
        values = pa.StructArray.from_arrays(values.flatten(), fields=parts)
    validity, missing = validity_of(valid)
    buffers = [validity, pa.py_buffer(offsets.astype(np.int32))]
    return pa.Array.from_buffers(dtype, rows, buffers, missing, children=[values])


def struct_array(
    dtype: pa.DataType, parts: Sequence[pa.Array], rows: int, valid: npt.NDArray[np.bool_] | None
) -> pa.Array:
    """The struct column of these fields."""
    validity, missing = validity_of(valid)
    return pa.Array.from_buffers(dtype, rows, [validity], missing, children=list(parts))


def validity_of(valid: npt.NDArray[np.bool_] | None) -> tuple[pa.Buffer | None, int]:
    """An Arrow validity bitmap and the number of NULLs."""
    if valid is None or valid.all():
        return None, 0
    return pa.py_buffer(np.packbits(valid, bitorder="little")), int((~valid).sum())


def valid_mask(column: pa.Array) -> npt.NDArray[np.bool_] | None:
    """The mask of values that are not NULL; None if all are not."""
    if not column.null_count:
        return None
    return np.asarray(column.is_valid().to_numpy(zero_copy_only=False), np.bool_)


def encode_values(column: pa.Array) -> ByteStrings:
    """The values of a column of any type as byte strings."""
    valid = valid_mask(column)
    dtype, rows = column.type, len(column)
    flags = np.ones(rows, np.uint8) if valid is None else valid.astype(np.uint8)
    if pa.types.is_struct(dtype):
        return concatenate([_fixed(flags.reshape(-1, 1)), *map(encode_values, fields(column))], rows)
    if pa.types.is_list(dtype) or pa.types.is_map(dtype):
        offsets, inner = elements(column)
        ends, data = encode_values(inner)
        head = np.empty((rows, 1 + _COUNT), np.uint8)
        head[:, 0] = flags
        head[:, 1:] = _words(np.diff(offsets))
        sizes = (_COUNT * offsets, _words(np.diff(ends)).reshape(-1))
        return concatenate([_fixed(head), sizes, (ends[offsets], data)], rows)
    if pa.types.is_string(dtype) or pa.types.is_binary(dtype):
        offsets, data = _bytes_of(column)
        head = np.empty((rows, 1 + _COUNT), np.uint8)
        head[:, 0] = flags
        head[:, 1:] = _words(np.diff(offsets))
        return concatenate([_fixed(head), (offsets, data)], rows)
    words = _fixed_bytes(column)
    return _fixed(np.concatenate((flags.reshape(-1, 1), words), axis=1))


def decode_values(dtype: pa.DataType, starts: Ints, data: Bytes) -> tuple[pa.Array, Ints]:
    """The column whose values begin at these positions of the data, and where each value ends."""
    rows = len(starts)
    valid = data[starts] != 0 if rows else np.zeros(0, np.bool_)
    at = starts + 1
    if pa.types.is_struct(dtype):
        parts = []
        for field in dtype:
            part, at = decode_values(field.type, at, data)
            parts.append(part)
        return struct_array(dtype, parts, rows, valid), at
    if pa.types.is_list(dtype) or pa.types.is_map(dtype):
        counts, at = _count(data, at), at + _COUNT
        offsets = _cumulated(counts)
        owner = np.repeat(np.arange(rows), counts)
        within = np.arange(offsets[-1]) - offsets[owner]
        sizes = _count(data, at[owner] + _COUNT * within)
        ends = _cumulated(sizes)
        at = at + _COUNT * counts
        inner_type = entry_type(dtype) if pa.types.is_map(dtype) else dtype.value_type
        inner, _ = decode_values(inner_type, at[owner] + ends[:-1] - ends[offsets[owner]], data)
        return list_array(dtype, offsets, inner, valid), at + ends[offsets[1:]] - ends[offsets[:-1]]
    validity, missing = validity_of(valid)
    if pa.types.is_string(dtype) or pa.types.is_binary(dtype):
        counts, at = _count(data, at), at + _COUNT
        offsets = _cumulated(counts)
        buffers = [validity, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(_gather(at, offsets, data))]
        return pa.Array.from_buffers(dtype, rows, buffers, missing), at + counts
    if pa.types.is_null(dtype):
        return pa.nulls(rows), at
    width = 1 if pa.types.is_boolean(dtype) else dtype.bit_width // 8
    values = np.ascontiguousarray(data[at.reshape(-1, 1) + np.arange(width)])
    stored = pa.int8() if pa.types.is_boolean(dtype) else dtype
    made = pa.Array.from_buffers(stored, rows, [validity, pa.py_buffer(values)], missing)
    return made.cast(dtype), at + width


def concatenate(parts: Sequence[ByteStrings], rows: int) -> ByteStrings:
    """The strings of several columns put together, row by row."""
    offsets = np.zeros(rows + 1, np.int64)
    for ends, _ in parts:
        offsets[1:] += np.diff(ends)
    np.cumsum(offsets, out=offsets)
    data = np.empty(int(offsets[-1]), np.uint8)
    at = offsets[:-1].copy()
    for ends, source in parts:
        _append(ends, source, at, data)
    return offsets, data


def _fixed(table: Bytes) -> ByteStrings:
    """Rows of bytes as strings of one length."""
    rows, width = table.shape
    return np.arange(rows + 1) * width, np.ascontiguousarray(table).reshape(-1)


def _fixed_bytes(column: pa.Array) -> Bytes:
    rows, dtype = len(column), column.type
    if pa.types.is_null(dtype):
        return np.empty((rows, 0), np.uint8)
    if pa.types.is_boolean(dtype):
        return np.asarray(pc.fill_null(column, False).cast(pa.int8()).to_numpy(zero_copy_only=False), np.uint8).reshape(
            rows, 1
        )
    values = stored_values(column)
    if values is not None:
        return np.ascontiguousarray(values).view(np.uint8).reshape(rows, values.dtype.itemsize)
    width = dtype.bit_width // 8
    data = np.frombuffer(column.buffers()[1], np.uint8, rows * width, column.offset * width) if rows else _NOTHING
    return data.reshape(rows, width)


def _bytes_of(column: pa.Array) -> ByteStrings:
    """The strings of a string or binary column; none of a NULL."""
    if column.null_count:
        column = pc.fill_null(column, b"" if pa.types.is_binary(column.type) else "")
    _, offset_buffer, data_buffer = column.buffers()
    if not len(column):
        return np.zeros(1, np.int64), _NOTHING
    offsets = np.frombuffer(offset_buffer, np.int32)[column.offset : column.offset + len(column) + 1].astype(np.int64)
    data = np.frombuffer(data_buffer, np.uint8) if data_buffer is not None else _NOTHING
    return offsets - offsets[0], np.array(data[offsets[0] : offsets[-1]])


def _words(numbers: Ints) -> Bytes:
    return np.ascontiguousarray(numbers.astype("<i4")).view(np.uint8).reshape(len(numbers), _COUNT)


def _count(data: Bytes, at: Ints) -> Ints:
    """The numbers of four bytes at these positions."""
    table = np.ascontiguousarray(data[at.reshape(-1, 1) + np.arange(_COUNT)])
    return table.view("<i4").reshape(-1).astype(np.int64)


def _cumulated(counts: Ints) -> Ints:
    offsets = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=offsets[1:])
    return offsets


_NOTHING = np.empty(0, np.uint8)


@kernel
def _append(ends: Ints, source: Bytes, at: Ints, data: Bytes) -> None:
    for row in range(len(at)):
        to = at[row]
        for index in range(ends[row], ends[row + 1]):
            data[to] = source[index]
            to += 1
        at[row] = to


@kernel
def _gather(starts: Ints, offsets: Ints, data: Bytes) -> Bytes:
    result = np.empty(offsets[-1], np.uint8)
    for row in range(len(starts)):
        for index in range(offsets[row + 1] - offsets[row]):
            result[offsets[row] + index] = data[starts[row] + index]
    return result
