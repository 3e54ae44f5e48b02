"""COUNT_MIN_SKETCH in Spark's format, with the methods of a user's aggregate. Its counters are sums, so it takes rows back."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from sash.operators.scalar.hashes import murmur_bytes
from sash.state.memory import Ints

_PRIME = (1 << 31) - 1
_INT = 1 << 32


@dataclass
class Counters:
    """The number of values, and the counters by row of the table and hash."""

    total: int
    table: Ints


class CountMin:
    """The sketch of one relative error, confidence and seed."""

    def __init__(self, eps: float, confidence: float, seed: int) -> None:
        self._width = math.ceil(2 / eps)
        self._depth = math.ceil(-math.log1p(-confidence) / math.log(2))
        self._factors = java_integers(seed, self._depth)

    def init(self) -> Counters:
        return Counters(0, np.zeros((self._depth, self._width), np.int64))

    def add(self, state: Counters, values: pa.Array) -> Counters:
        return self._counted(state, values, 1)

    def remove(self, state: Counters, values: pa.Array) -> Counters:
        return self._counted(state, values, -1)

    def result(self, state: Counters) -> bytes:
        head = struct.pack(">iqii", 1, state.total, self._depth, self._width)
        return head + struct.pack(f">{self._depth}q", *self._factors) + state.table.astype(">i8").tobytes()

    def _counted(self, state: Counters, values: pa.Array, sign: int) -> Counters:
        counted = values.drop_null().value_counts()
        found, counts = counted.field("values"), np.asarray(counted.field("counts"), np.int64) * sign
        state.total += int(counts.sum())
        for row, buckets in enumerate(self._buckets(found)):
            np.add.at(state.table[row], buckets, counts)
        return state

    def _buckets(self, values: pa.Array) -> list[Ints]:
        """The counter of each value, by row of the table."""
        if pa.types.is_integer(values.type):
            numbers = np.asarray(values.cast(pa.int64()), np.int64)
            return [self._bucket(numbers, factor) for factor in self._factors]
        firsts = [murmur_bytes(value, 0) for value in values.to_pylist()]
        seconds = [murmur_bytes(value, first) for value, first in zip(values.to_pylist(), firsts, strict=True)]
        first, second = np.array(firsts, np.int64), np.array(seconds, np.int64)
        return [np.abs(np.fmod(_narrow(first + row * second), self._width)) for row in range(self._depth)]

    def _bucket(self, numbers: Ints, factor: int) -> Ints:
        with np.errstate(over="ignore"):
            hashed = numbers * np.int64(factor)
            hashed += hashed >> 32
        return (hashed & _PRIME) % self._width


def _narrow(numbers: Ints) -> Ints:
    """The numbers as Java's int."""
    narrowed: Ints = ((numbers + _INT // 2) % _INT) - _INT // 2
    return narrowed


def java_integers(seed: int, count: int) -> list[int]:
    """The first numbers of Java's `new Random(seed).nextInt(Integer.MAX_VALUE)`."""
    state, found = (seed ^ 0x5DEECE66D) & ((1 << 48) - 1), list[int]()
    while len(found) < count:
        state = (state * 0x5DEECE66D + 0xB) & ((1 << 48) - 1)
        if state >> 17 < _PRIME:
            found.append(state >> 17)
    return found
