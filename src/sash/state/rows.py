"""The row store: column values by slot, in flat arrays, written from Arrow and read back into Arrow."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sash.state.columns import stored_values
from sash.state.hashing import byte_buffers, decimal_words, null_mask
from sash.state.jit import kernel
from sash.state.memory import Arrays, Ints, Memory
from sash.state.nested import decode_values, encode_values, is_nested

Bytes = npt.NDArray[np.uint8]
_STORED = {8: np.int8, 16: np.int16, 32: np.int32, 64: np.int64}
_USED, _DEAD = 0, 1


class RowStore:
    """One store per column; slots come from a buffer or an interner."""

    def __init__(self, memory: Memory, dtypes: Sequence[pa.DataType]) -> None:
        self._columns = [_column(memory.scope(f"c{index}"), dtype) for index, dtype in enumerate(dtypes)]

    def put(self, slots: Ints, columns: Sequence[pa.Array]) -> None:
        """Write one row per slot, replacing its old contents."""
        if not len(slots):
            return
        size = int(slots.max()) + 1
        for store, column in zip(self._columns, columns, strict=True):
            store.put(slots, column, size)

    def take(self, slots: Ints, columns: Sequence[int] | None = None) -> list[pa.Array]:
        """The columns of the rows at these slots; all columns, or the given ones."""
        chosen = self._columns if columns is None else [self._columns[column] for column in columns]
        return [store.take(slots) for store in chosen]

    def free(self, slots: Ints) -> None:
        """Free the rows at these slots (each once)."""
        for store in self._columns:
            store.free(slots)


def _column(
    memory: Memory, dtype: pa.DataType
) -> _FixedColumn | _DecimalColumn | _BytesColumn | _NestedColumn | _NullColumn:
    if pa.types.is_null(dtype):
        return _NullColumn()
    if is_nested(dtype):
        return _NestedColumn(memory, dtype)
    if pa.types.is_decimal128(dtype):
        return _DecimalColumn(memory, dtype)
    if pa.types.is_string(dtype) or pa.types.is_binary(dtype):
        return _BytesColumn(memory, dtype)
    return _FixedColumn(memory, dtype)


class _NullColumn:
    """A column of NULLs only."""

    def put(self, slots: Ints, column: pa.Array, size: int) -> None:
        pass

    def take(self, slots: Ints) -> pa.Array:
        return pa.nulls(len(slots))

    def free(self, slots: Ints) -> None:
        pass


class _Nulls:
    """The NULLs by slot: one byte per slot once there is any NULL, which the first byte records."""

    def __init__(self, memory: Memory) -> None:
        self._arrays = Arrays(memory, {"null": np.uint8}, 1)

    def put(self, slots: Ints, column: pa.Array, capacity: int) -> None:
        """Record which values are NULL; every slot in use is below the capacity."""
        mask = null_mask(column)
        if mask is None and not self._arrays["null"][0]:
            return
        self._arrays.reserve(1 + capacity)
        nulls = self._arrays["null"]
        nulls[0] = 1
        nulls[1 + slots] = 0 if mask is None else mask

    def take(self, slots: Ints) -> tuple[pa.Buffer | None, int]:
        """An Arrow validity bitmap, and the number of NULLs."""
        nulls = self._arrays["null"]
        if not nulls[0]:
            return None, 0
        chosen = nulls[1 + slots]
        count = int(chosen.sum())
        return (pa.py_buffer(np.packbits(chosen == 0, bitorder="little")), count) if count else (None, 0)


class _FixedColumn:
    """Numbers, dates, times and booleans."""

    def __init__(self, memory: Memory, dtype: pa.DataType) -> None:
        self._dtype = dtype
        self._boolean = pa.types.is_boolean(dtype)
        self._arrays = Arrays(memory, {"value": _STORED[8 if self._boolean else dtype.bit_width]})
        self._nulls = _Nulls(memory)

    def put(self, slots: Ints, column: pa.Array, size: int) -> None:
        self._arrays.reserve(size)
        self._arrays["value"][slots] = stored_values(column.cast(pa.int8()) if self._boolean else column)
        self._nulls.put(slots, column, self._arrays.capacity)

    def take(self, slots: Ints) -> pa.Array:
        validity, nulls = self._nulls.take(slots)
        buffers = [validity, pa.py_buffer(self._arrays["value"][slots])]
        if self._boolean:
            return pa.Array.from_buffers(pa.int8(), len(slots), buffers, nulls).cast(pa.bool_())
        return pa.Array.from_buffers(self._dtype, len(slots), buffers, nulls)

    def free(self, slots: Ints) -> None:
        pass


class _DecimalColumn:
    """Decimals, as two words."""

    def __init__(self, memory: Memory, dtype: pa.DataType) -> None:
        self._dtype = dtype
        self._arrays = Arrays(memory, {"low": np.uint64, "high": np.uint64})
        self._nulls = _Nulls(memory)

    def put(self, slots: Ints, column: pa.Array, size: int) -> None:
        self._arrays.reserve(size)
        words = decimal_words(column)
        self._arrays["low"][slots] = words[:, 0]
        self._arrays["high"][slots] = words[:, 1]
        self._nulls.put(slots, column, self._arrays.capacity)

    def take(self, slots: Ints) -> pa.Array:
        validity, nulls = self._nulls.take(slots)
        words = np.stack((self._arrays["low"][slots], self._arrays["high"][slots]), axis=1)
        return pa.Array.from_buffers(self._dtype, len(slots), [validity, pa.py_buffer(words)], nulls)

    def free(self, slots: Ints) -> None:
        pass


class _BytesColumn:
    """Strings and binaries: bytes in a heap that is compacted when more than half of it is dead."""

    def __init__(self, memory: Memory, dtype: pa.DataType) -> None:
        self._dtype = dtype
        self._memory = memory
        self._arrays = Arrays(memory, {"start": np.int64, "length": np.int64})
        self._nulls = _Nulls(memory)
        self._heap: Bytes = memory.array("heap", np.uint8, 4096)
        self._marks = memory.array("heap.marks", np.int64, 2)

    def put(self, slots: Ints, column: pa.Array, size: int) -> None:
        self._arrays.reserve(size)
        offsets, data = byte_buffers(column)
        self._nulls.put(slots, column, self._arrays.capacity)
        needed = int(offsets[-1] - offsets[0])
        self._make_room(needed)
        used = int(self._marks[_USED])
        self._heap[used : used + needed] = data[offsets[0] : offsets[-1]]
        self._arrays["start"][slots] = used + offsets[:-1] - offsets[0]
        self._arrays["length"][slots] = np.diff(offsets)
        self._marks[_USED] = used + needed

    def take(self, slots: Ints) -> pa.Array:
        validity, nulls = self._nulls.take(slots)
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


class _NestedColumn:
    """Arrays, structs and maps, as bytes."""

    def __init__(self, memory: Memory, dtype: pa.DataType) -> None:
        self._dtype = dtype
        self._bytes = _BytesColumn(memory, pa.binary())

    def put(self, slots: Ints, column: pa.Array, size: int) -> None:
        offsets, data = encode_values(column)
        buffers = [None, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(data)]
        self._bytes.put(slots, pa.Array.from_buffers(pa.binary(), len(column), buffers, 0), size)

    def take(self, slots: Ints) -> pa.Array:
        """The values; NULL at slots that are free, which hold no bytes."""
        offsets, data = byte_buffers(self._bytes.take(slots))
        held = np.diff(offsets) > 0
        values = decode_values(self._dtype, offsets[:-1][held], data)[0]
        return values if held.all() else values.take(pa.array(np.cumsum(held) - 1, mask=~held))

    def free(self, slots: Ints) -> None:
        self._bytes.free(slots)


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
