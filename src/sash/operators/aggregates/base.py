"""The interface of accumulators: the events they process, and the columns of versions they return."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sash.operators.kernels.touches import Events, Mask
from sash.plan.expressions import AggregateCall
from sash.plan.types import holds
from sash.state.changes import ChangeBatch
from sash.state.hashing import decimal_words, hash_rows, null_mask
from sash.state.interner import Interner
from sash.state.memory import HeapMemory, Ints
from sash.state.nested import elements, fields, is_nested, list_array, struct_array, valid_mask

NO_MASK = np.zeros(0, np.bool_)


@dataclass
class Work:
    """One call of the operator. Positions are first those of the removed rows, then those of the batch (on an explicit
    edge only those of the batch); `slots` are by position, on a stamped edge."""

    batch: ChangeBatch
    events: Events
    counts: Ints
    groups: int
    slots: Ints
    removed: int
    memo: dict[object, object] = field(default_factory=dict)

    @property
    def versions(self) -> int:
        """The number of versions."""
        return len(self.counts)

    @property
    def removed_slots(self) -> Ints:
        return self.slots[: self.removed]

    @property
    def added_slots(self) -> Ints:
        return self.slots[self.removed :]


@dataclass(frozen=True)
class Versions:
    """One output column by version: as Arrow, and as integers that are equal exactly when the values are."""

    array: pa.Array
    bits: Ints
    nulls: Mask = field(default_factory=lambda: NO_MASK)


class Accumulator(ABC):
    """State by group for one or more aggregates that can share it. A group without rows has only zeros."""

    def __init__(self) -> None:
        self._calls: list[AggregateCall] = []

    def want(self, call: AggregateCall) -> int:
        """Add an aggregate; returns the number of its column in the result of `apply`."""
        if call not in self._calls:
            self._calls.append(call)
        return self._calls.index(call)

    @abstractmethod
    def apply(self, work: Work) -> list[Versions]:
        """Apply the events; returns one column per aggregate."""

    def finish(self, work: Work) -> None:  # noqa: B027  (most have nothing to do)
        """Free the state that was needed until the output is complete."""


_PLAIN = {8: (np.int8, pa.int8()), 16: (np.int16, pa.int16()), 32: (np.int32, pa.int32()), 64: (np.int64, pa.int64())}


def fits_word(dtype: pa.DataType) -> bool:
    """Whether values of this type have at most 64 bits."""
    return not (
        pa.types.is_decimal(dtype) or pa.types.is_string(dtype) or pa.types.is_binary(dtype) or is_nested(dtype)
    )


def fixed_versions(bits: Ints, nulls: Mask, dtype: pa.DataType) -> Versions:
    """A column of a type that fits in 64 bits: `bits` are integers, or the bits of doubles."""
    validity, count = validity_of(nulls)
    if not count:
        nulls = NO_MASK
    if pa.types.is_floating(dtype):
        values = bits.view(np.float64)
        raw = values if dtype == pa.float64() else values.astype(np.float32)
        return Versions(pa.Array.from_buffers(dtype, len(bits), [validity, pa.py_buffer(raw)], count), bits, nulls)
    width = 8 if pa.types.is_boolean(dtype) else dtype.bit_width
    narrow, plain = _PLAIN[width]
    buffer = pa.py_buffer(bits.astype(narrow, copy=False))
    array = pa.Array.from_buffers(plain, len(bits), [validity, buffer], count)
    return Versions(array.cast(dtype) if pa.types.is_boolean(dtype) else array.view(dtype), bits, nulls)


def array_versions(array: pa.Array) -> Versions:
    """A column of any type."""
    if is_nested(array.type) or pa.types.is_floating(array.type):
        codes, _ = Interner(HeapMemory()).intern(*hash_rows([array], len(array), exact=True))
        return Versions(array, codes)
    codes = array.dictionary_encode(null_encoding="encode").indices
    return Versions(array, np.array(codes.to_numpy(zero_copy_only=False), np.int64))


def as_doubles(column: pa.Array) -> pa.Array:
    """The column as DOUBLE, each value rounded once (Arrow's cast of decimals is sometimes off by one bit)."""
    if not pa.types.is_decimal(column.type):
        return pc.cast(column, pa.float64(), safe=False)
    words = decimal_words(column).view(np.int64)
    whole = words[:, 0]
    exact = (words[:, 1] == whole >> 63) & (whole > -(2**53)) & (whole < 2**53)
    if column.type.scale > 22 or not (exact | ~np.asarray(column.is_valid())).all():
        return column.cast(pa.string()).cast(pa.float64())
    return pa.array(whole / 10.0**column.type.scale, mask=null_mask(column))


def canonical(column: pa.Array) -> pa.Array:
    """The column with one zero and one NaN, also inside of nested values, so that equal values are the same bits."""
    if is_nested(column.type):
        return _canonical_nested(column) if holds(column.type, pa.types.is_floating) else column
    if not pa.types.is_floating(column.type):
        return column
    values = np.array(pc.fill_null(column, 0).to_numpy(zero_copy_only=False)) + 0.0
    values[np.isnan(values)] = np.nan
    return pa.array(values, column.type, mask=null_mask(column), from_pandas=False)


def _canonical_nested(column: pa.Array) -> pa.Array:
    valid = valid_mask(column)
    if pa.types.is_struct(column.type):
        return struct_array(column.type, list(map(canonical, fields(column))), len(column), valid)
    offsets, inner = elements(column)
    return list_array(column.type, offsets, canonical(inner), valid)


def validity_of(nulls: Mask) -> tuple[pa.Buffer | None, int]:
    """An Arrow validity bitmap, None if nothing is NULL."""
    count = int(nulls.sum())
    return (pa.py_buffer(np.packbits(~nulls, bitorder="little")), count) if count else (None, 0)
