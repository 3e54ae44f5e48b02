"""BITMAP_CONSTRUCT_AGG, BITMAP_OR_AGG and BITMAP_AND_AGG, with the methods of a user's aggregate.

A state is a bitmap of 4,096 bytes, as an integer whose lowest byte is the first, or None of no values.
"""

from __future__ import annotations

from functools import reduce

import pyarrow as pa

from sash.errors import EvaluationError

SIZE = 4096
"""The bytes of a bitmap."""


class BitmapOr:
    """BITMAP_OR_AGG: the bits that are in any bitmap. Shorter bitmaps are filled with zeros."""

    start = 0

    def init(self) -> int | None:
        return None

    def add(self, state: int | None, values: pa.Array) -> int | None:
        known = values.drop_null().unique().to_pylist()
        return reduce(self.merge, (int.from_bytes(value[:SIZE], "little") for value in known), state)

    def merge(self, earlier: int | None, later: int | None) -> int | None:
        if earlier is None or later is None:
            return later if earlier is None else earlier
        return self.combine(earlier, later)

    def combine(self, one: int, other: int) -> int:
        """One bitmap of two."""
        return one | other

    def result(self, state: int | None) -> bytes:
        return (self.start if state is None else state).to_bytes(SIZE, "little")


class BitmapAnd(BitmapOr):
    """BITMAP_AND_AGG: the bits that are in all bitmaps; of no bitmap, all."""

    start = (1 << 8 * SIZE) - 1

    def combine(self, one: int, other: int) -> int:
        return one & other


class BitmapConstruct(BitmapOr):
    """BITMAP_CONSTRUCT_AGG: the bitmap of positions."""

    def add(self, state: int | None, values: pa.Array) -> int | None:
        bits = bytearray(SIZE)
        for position in values.drop_null().unique().to_pylist():
            if not 0 <= position < 8 * SIZE:
                raise EvaluationError(
                    f"bitmap_construct_agg: position {position} is not from 0 to {8 * SIZE - 1}: use bitmap_bit_position"
                )
            bits[position // 8] |= 1 << position % 8
        return self.merge(state, int.from_bytes(bits, "little"))
