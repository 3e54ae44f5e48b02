"""Columns of values in Avro: of one schema, or each with the number of its schema in a registry.

A value with a number is a zero byte, the number in four bytes, and the record. Values of several schemas come in one batch when
a schema has changed; each is decoded by its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sash.avro.decode import Decoder
from sash.avro.registry import Registry
from sash.avro.schema import parse_avro
from sash.plan.types import Schema
from sash.state.memory import Ints

_HEAD = 5
_NOTHING = -1
"""The place of a value that is not decoded."""


@dataclass(frozen=True)
class PlainRecords:
    """Values of one schema, given as JSON."""

    schema: str
    columns: Schema

    def decode(self, values: pa.Array) -> list[pa.Array]:
        """The columns of the values; a value that is NULL, or not such a record, is NULL in all."""
        data, starts, ends = _places(values)
        return _plain(self).decode(data, starts, ends)


@dataclass(frozen=True)
class FramedRecords:
    """Values with the numbers of their schemas in a registry."""

    registry: Registry
    columns: Schema

    def decode(self, values: pa.Array) -> list[pa.Array]:
        """The columns of the values; a value that is NULL, or not such a record, is NULL in all."""
        data, starts, ends = _places(values)
        framed = (starts >= 0) & (ends - starts >= _HEAD)
        at = np.where(framed, starts, 0)
        numbers = np.full(len(values), _NOTHING, np.int64)
        if framed.any():
            framed &= data[at] == 0
            places = at[framed][:, None] + np.arange(1, _HEAD)
            numbers[framed] = data[places].astype(np.int64) @ np.array([1 << 24, 1 << 16, 1 << 8, 1])
        different = np.unique(numbers)
        parts: list[list[pa.Array]] = []
        order = np.zeros(len(values), np.int64)
        done = 0
        for number in different.tolist():
            mine = np.flatnonzero(numbers == number)
            decoder = None if number == _NOTHING else _framed(self, number)
            begin = np.full(len(mine), _NOTHING, np.int64) if decoder is None else starts[mine] + _HEAD
            parts.append((decoder or _empty(self.columns)).decode(data, begin, ends[mine]))
            order[mine] = done + np.arange(len(mine))
            done += len(mine)
        if len(parts) == 1:
            return parts[0]
        joined = [pa.concat_arrays(pieces) for pieces in zip(*parts, strict=True)]
        return [column.take(pa.array(order)) for column in joined] or _empty(self.columns).decode(data, starts, ends)


@lru_cache(maxsize=100)
def _plain(records: PlainRecords) -> Decoder:
    return Decoder(parse_avro(records.schema), records.columns)


@lru_cache(maxsize=1_000)
def _known(records: FramedRecords, number: int) -> Decoder:
    found = records.registry.schema(number)
    if found is None:
        raise KeyError(number)
    return Decoder(found, records.columns)


def _framed(records: FramedRecords, number: int) -> Decoder | None:
    try:
        return _known(records, number)
    except KeyError:
        return None


@lru_cache(maxsize=100)
def _empty(columns: Schema) -> Decoder:
    """A decoder for what is not decoded."""
    return Decoder(parse_avro('{"type": "record", "name": "nothing", "fields": []}'), columns)


def _places(values: pa.Array) -> tuple[npt.NDArray[np.uint8], Ints, Ints]:
    """The bytes of an array of binary values, and where each begins and ends; a NULL begins before 0."""
    if not len(values):
        return np.zeros(0, np.uint8), np.zeros(0, np.int64), np.zeros(0, np.int64)
    _, offsets, data = values.buffers()
    width = np.int64 if pa.types.is_large_binary(values.type) else np.int32
    bounds = np.frombuffer(offsets, width)[values.offset : values.offset + len(values) + 1].astype(np.int64)
    held = np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    starts = bounds[:-1].copy()
    if values.null_count:
        starts[values.is_null().to_numpy(zero_copy_only=False)] = _NOTHING
    return held, starts, bounds[1:]
