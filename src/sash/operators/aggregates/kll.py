"""Aggregates of KLL sketches, with the methods of a user's aggregate.

Sketches that were merged in another order have other bytes. So a state is the values themselves, with the number of each, and
the sketch is made of them when it is asked for: every way of merging gives the same answer.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from sash.operators.scalar.kll import ITEMS, Sketch, merge, of_values, read, write

State = tuple[Any, ...]
"""The fields of a Sketch, or none: a state may consist of plain values and arrays."""


class KllSketch:
    """KLL_SKETCH_AGG of a kind of values, given by its place in ITEMS."""

    def __init__(self, kind: int, k: int | None = None) -> None:
        self._kind, self._k = tuple(ITEMS)[kind], k

    def init(self) -> State:
        return ()

    def add(self, state: State, values: pa.Array) -> State:
        known = values.drop_null()
        return self.merge(state, tuple(self._sketch(known))) if len(known) else state

    def merge(self, earlier: State, later: State) -> State:
        if not earlier or not later:
            return earlier or later
        return tuple(merge([Sketch(*earlier), Sketch(*later)]))

    def result(self, state: State) -> bytes:
        return write(self._kind, Sketch(*state) if state else of_values(self._kind, []), self._k)

    def _sketch(self, values: pa.Array) -> Sketch:
        return of_values(self._kind, values.to_numpy(zero_copy_only=False))


class KllMerge(KllSketch):
    """KLL_MERGE_AGG of sketches, of the least size of these unless one is given."""

    def _sketch(self, values: pa.Array) -> Sketch:
        return merge([read(self._kind, sketch, f"kll_merge_agg_{self._kind}") for sketch in values.to_pylist()])
