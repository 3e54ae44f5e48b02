"""The row store: column values by slot, in flat arrays, written from Arrow and read back into Arrow."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sash.state.hashing import byte_buffers, decimal_words, null_mask
from sash.state.jit import kernel
from sash.state.memory import Arrays, Ints, Memory

Bytes = npt.NDArray[np.uint8]
_STORED = {8: np.int8, 16: np.int16, 32: np.int32, 64: np.int64}
_PLAIN = {8: pa.int8(), 16: pa.int16(), 32: pa.int32(), 64: pa.int64()}
_USED, _DEAD = 0, 1


class RowStore:
    """One store per column; slots come from a buffer or an interner."""

    def __init__(self, memory: Memory, dtypes: Sequence[pa.DataType]) -> None:
        self._columns = [_column(memory.scope(f"c{index}"), dtype) for index, dtype in enumerate(dtypes)]

    def put(self, slots: Ints, columns: Sequence[pa.Array]) -> None:
        """Write one row per slot; what was there is forgotten."""
        if not len(slots):
            return
        for store, column in zip(self._columns, columns, strict=True):
            store.put(slots, column)

    def take(self, slots: Ints, columns: Sequence[int] | None = None) -> list[pa.Array]:
        """The rows at these slots, column by column; all columns, or some."""
        chosen = self._columns if columns is None else [self._columns[column] for column in columns]
        return [store.take(slots) for store in chosen]

    def free(self, slots: Ints) -> None:
        """Say that the rows at these slots will not be read again (each once)."""
        for store in self._columns:
            store.free(slots)


def _column(memory: Memory, dtype: pa.DataType) -> _FixedColumn | _DecimalColumn | _BytesColumn | _NullColumn:
    if pa.types.is_null(dtype):
        return _NullColumn()
    if pa.types.is_decimal128(dtype):
        return _DecimalColumn(memory, dtype)
    if pa.types.is_string(dtype) or pa.types.is_binary(dtype):
        return _BytesColumn(memory, dtype)
    return _FixedColumn(memory, dtype)


class _NullColumn:
    """A column of nothing but NULLs."""

    def put(self, slots: Ints, column: pa.Array) -> None:
        pass

    def take(self, slots: Ints) -> pa.Array:
        return pa.nulls(len(slots))

    def free(self, slots: Ints) -> None:
        pass


def _validity(nulls: npt.NDArray[np.uint8]) -> tuple[pa.Buffer | None, int]:
    """An Arrow validity bitmap, from one byte per row that is 1 for NULL."""
    count = int(nulls.sum())
    if not count:
        return None, 0
    return pa.py_buffer(np.packbits(nulls == 0, bitorder="little")), count


def _put_nulls(nulls: npt.NDArray[np.uint8], slots: Ints, column: pa.Array) -> None:
    mask = null_mask(column)
    nulls[slots] = 0 if mask is None else mask


class _FixedColumn:
    """Numbers, dates, times and booleans."""

    def __init__(self, memory: Memory, dtype: pa.DataType) -> None:
        self._dtype = dtype
        self._width = 8 if pa.types.is_boolean(dtype) else dtype.bit_width
        self._arrays = Arrays(memory, {"value": _STORED[self._width], "null": np.uint8})

    def put(self, slots: Ints, column: pa.Array) -> None:
        self._arrays.reserve(int(slots.max()) + 1)
        plain = column.cast(pa.int8()) if pa.types.is_boolean(self._dtype) else column.view(_PLAIN[self._width])
        values = np.frombuffer(plain.buffers()[1], _STORED[self._width])
        self._arrays["value"][slots] = values[plain.offset : plain.offset + len(plain)]
        _put_nulls(self._arrays["null"], slots, column)

    def take(self, slots: Ints) -> pa.Array:
        validity, nulls = _validity(self._arrays["null"][slots])
        values = pa.py_buffer(self._arrays["value"][slots])
        plain = pa.Array.from_buffers(_PLAIN[self._width], len(slots), [validity, values], nulls)
        return plain.cast(pa.bool_()) if pa.types.is_boolean(self._dtype) else plain.view(self._dtype)

    def free(self, slots: Ints) -> None:
        pass


class _DecimalColumn:
    """Decimals, as two words."""

    def __init__(self, memory: Memory, dtype: pa.DataType) -> None:
        self._dtype = dtype
        self._arrays = Arrays(memory, {"low": np.uint64, "high": np.uint64, "null": np.uint8})

    def put(self, slots: Ints, column: pa.Array) -> None:
        self._arrays.reserve(int(slots.max()) + 1)
        words = decimal_words(column)
        self._arrays["low"][slots] = words[:, 0]
        self._arrays["high"][slots] = words[:, 1]
        _put_nulls(self._arrays["null"], slots, column)

    def take(self, slots: Ints) -> pa.Array:
        validity, nulls = _validity(self._arrays["null"][slots])
        words = np.stack((self._arrays["low"][slots], self._arrays["high"][slots]), axis=1)
        return pa.Array.from_buffers(self._dtype, len(slots), [validity, pa.py_buffer(words)], nulls)

    def free(self, slots: Ints) -> None:
        pass


class _BytesColumn:
    """Strings and binaries: bytes in a heap that is compacted when more than half of it is dead."""

    def __init__(self, memory: Memory, dtype: pa.DataType) -> None:
        self._dtype = dtype
        self._memory = memory
        self._arrays = Arrays(memory, {"start": np.int64, "length": np.int64, "null": np.uint8})
        self._heap: Bytes = memory.array("heap", np.uint8, 4096)
        self._marks = memory.array("heap.marks", np.int64, 2)

    def put(self, slots: Ints, column: pa.Array) -> None:
        self._arrays.reserve(int(slots.max()) + 1)
        offsets, data = byte_buffers(column)
        _put_nulls(self._arrays["null"], slots, column)
        needed = int(offsets[-1] - offsets[0])
        self._make_room(needed)
        used = int(self._marks[_USED])
        self._heap[used : used + needed] = data[offsets[0] : offsets[-1]]
        self._arrays["start"][slots] = used + offsets[:-1] - offsets[0]
        self._arrays["length"][slots] = np.diff(offsets)
        self._marks[_USED] = used + needed

    def take(self, slots: Ints) -> pa.Array:
        validity, nulls = _validity(self._arrays["null"][slots])
        starts, lengths = self._arrays["start"][slots], self._arrays["length"][slots]
        offsets = np.zeros(len(slots) + 1, np.int32)
        np.cumsum(lengths, out=offsets[1:])
        data = _gather_bytes(starts, offsets, self._heap)
        buffers = [validity, pa.py_buffer(offsets), pa.py_buffer(data)]
        return pa.Array.from_buffers(self._dtype, len(slots), buffers, nulls)

    def free(self, slots: Ints) -> None:
        if len(slots):
            self._marks[_DEAD] += self._arrays["length"][slots].sum()
            self._arrays["length"][slots] = 0

    def _make_room(self, needed: int) -> None:
        used = int(self._marks[_USED])
        if used + needed <= len(self._heap):
            return
        if 2 * self._marks[_DEAD] > used:
            order = np.argsort(self._arrays["start"], kind="stable")
            used = _compact(order, self._arrays["start"], self._arrays["length"], self._heap)
            self._marks[_USED], self._marks[_DEAD] = used, 0
        if used + needed > len(self._heap):
            self._heap = self._memory.grow("heap", np.uint8, 2 * (used + needed))


@kernel
def _gather_bytes(starts: Ints, offsets: npt.NDArray[np.int32], heap: Bytes) -> Bytes:
    result = np.empty(offsets[-1], np.uint8)
    for row in range(len(starts)):
        start, to = starts[row], offsets[row]
        for index in range(offsets[row + 1] - to):
            result[to + index] = heap[start + index]
    return result


@kernel
def _compact(order: Ints, start: Ints, length: Ints, heap: Bytes) -> int:
    used = 0
    for slot in order:
        if length[slot] > 0:
            for index in range(length[slot]):
                heap[used + index] = heap[start[slot] + index]
            start[slot] = used
            used += length[slot]
    return used
