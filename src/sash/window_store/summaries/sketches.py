"""Sketches: approximate aggregates of bounded size with a known error, from the DataSketches library.

HyperLogLog estimates distinct counts, KLL percentiles, and weighted frequent items the most frequent values. Sketches
merge but do not subtract (paper 2, 2.1 uses Count-Min and Flajolet-Martin sketches).
"""

from __future__ import annotations

import json
import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import datasketches as ds
import numpy as np
import pyarrow as pa

from sash.operators.aggregates.base import as_doubles, canonical
from sash.plan.expressions import Expression
from sash.state.hashing import hash_rows, null_mask
from sash.window_store.store.tables import columns_of
from sash.window_store.summaries.base import Groups, RowBatch, Summary

SKETCH = "sketch"


@dataclass(frozen=True)
class Sketch(Summary):
    """One sketch per group. `function` is approx_count_distinct, approx_percentile or approx_top_k.

    `precision` is the relative standard deviation of a distinct count, the accuracy (1 / rank error) of a percentile, or
    the number of values that frequent items keep.
    """

    file_kind = "Sketch"

    function: str
    argument: Expression
    precision: float

    def build(self, rows: RowBatch) -> pa.Table:
        keys = [canonical(rows.value(key)) for key in self.keys]
        column = canonical(rows.value(self.argument))
        mask = null_mask(column)
        if mask is not None and mask.any():
            known = pa.array(np.flatnonzero(~mask))
            keys, column = [key.take(known) for key in keys], column.take(known)
        groups = Groups(keys, len(column))
        order = np.argsort(groups.codes, kind="stable")
        borders = np.searchsorted(groups.codes[order], np.arange(len(groups) + 1))
        column = column.take(pa.array(order))
        fill = _FILL[self.function]
        made = []
        for start, stop in pairwise(borders):
            sketch = self._new()
            fill(sketch, column.slice(int(start), int(stop - start)))
            made.append(self._serialized(sketch))
        return self._table(groups, keys, made)

    def merge(self, parts: Sequence[pa.Table]) -> pa.Table:
        if len(parts) == 1:
            return parts[0]
        table = pa.concat_tables(parts)
        keys = self.key_columns(table)
        groups = Groups(keys, table.num_rows)
        blobs = table.column(SKETCH).to_pylist()
        merged: list[Any] = [None] * len(groups)
        for code, blob in zip(groups.codes.tolist(), blobs, strict=True):
            merged[code] = self._joined(merged[code], self.load(blob))
        return self._table(groups, keys, [self._serialized(sketch) for sketch in merged])

    def _table(self, groups: Groups, keys: Sequence[pa.Array], sketches: list[bytes]) -> pa.Table:
        first = pa.array(groups.first)
        columns = [*(key.take(first) for key in keys), pa.array(sketches, pa.binary())]
        return pa.Table.from_arrays(columns, names=[*self.key_names, SKETCH])

    def load(self, blob: bytes) -> Any:
        """Deserialize a sketch."""
        match self.function:
            case "approx_count_distinct":
                return ds.hll_sketch.deserialize(blob)
            case "approx_percentile":
                return ds.kll_doubles_sketch.deserialize(blob)
            case _:
                return ds.frequent_strings_sketch.deserialize(blob)

    def evaluate(self, table: pa.Table, positions: Sequence[int], parameter: float, dtype: pa.DataType) -> pa.Array:
        """The estimate per group. `positions` are the rows of the groups in the summary, -1 for groups without one."""
        (blobs,) = columns_of(table.select([SKETCH]))
        found = []
        for position in positions:
            sketch = None if position < 0 else self.load(blobs[position].as_py())
            found.append(self._estimate(sketch, parameter))
        return pa.array(found, dtype)

    @property
    def error(self) -> str:
        """The error bound of the estimate."""
        sketch = self._new()
        match self.function:
            case "approx_count_distinct":
                return f"relative standard deviation {_hll_error(sketch.lg_config_k):.4f}"
            case "approx_percentile":
                return f"rank within {sketch.normalized_rank_error(False):.5f} with 99 % confidence"
            case _:
                return f"counts within {sketch.epsilon:.5f} of the number of rows"

    def _new(self) -> Any:
        match self.function:
            case "approx_count_distinct":
                size = next((lg for lg in range(4, 21) if _hll_error(lg) <= self.precision), 21)
                return ds.hll_sketch(size, ds.HLL_8)
            case "approx_percentile":
                return ds.kll_doubles_sketch(_kll_size(1 / self.precision))
            case _:
                return ds.frequent_strings_sketch(max(3, math.ceil(math.log2(self.precision * 4 / 3))))

    def _joined(self, one: Any, other: Any) -> Any:
        if one is None:
            return other
        if self.function != "approx_count_distinct":
            one.merge(other)
            return one
        union = ds.hll_union(one.lg_config_k)
        union.update(one)
        union.update(other)
        return union.get_result(ds.HLL_8)

    def _serialized(self, sketch: Any) -> bytes:
        packed = sketch.serialize_compact() if self.function == "approx_count_distinct" else sketch.serialize()
        return bytes(packed)

    def _estimate(self, sketch: Any, parameter: float) -> Any:
        match self.function:
            case "approx_count_distinct":
                return 0 if sketch is None else round(sketch.get_estimate())
            case "approx_percentile":
                return None if sketch is None or sketch.is_empty() else sketch.get_quantile(parameter, True)
            case _:
                if sketch is None:
                    return "[]"
                items = sketch.get_frequent_items(ds.frequent_items_error_type.NO_FALSE_NEGATIVES)
                ranked = sorted(((-count, item) for item, count, *_ in items))[: int(parameter)]
                return json.dumps([{"item": item, "count": -count} for count, item in ranked], ensure_ascii=False)


def _hll_error(lg: int) -> float:
    return 1.04 / math.sqrt(2**lg)


def _kll_size(error: float) -> int:
    """The smallest sketch size with at most this rank error, or the largest size that the library offers."""
    low, high = 8, 65535
    while low < high:
        middle = (low + high) // 2
        if ds.kll_doubles_sketch(middle).normalized_rank_error(False) <= error:
            high = middle
        else:
            low = middle + 1
    return low


def _each(update: Callable[..., None], *arguments: list[Any]) -> None:
    """Call a function for every item, without a loop in Python."""
    deque(map(update, *arguments), maxlen=0)


def _distinct(sketch: Any, column: pa.Array) -> None:
    low, _ = hash_rows([column], len(column))
    _each(sketch.update, np.unique(low).view(np.int64).tolist())


def _ranked(sketch: Any, column: pa.Array) -> None:
    sketch.update(np.array(as_doubles(column).to_numpy(zero_copy_only=False), np.float64))


def _frequent(sketch: Any, column: pa.Array) -> None:
    counted = column.cast(pa.string()).value_counts()
    _each(sketch.update, counted.field("values").to_pylist(), counted.field("counts").to_pylist())


_FILL: dict[str, Callable[[Any, pa.Array], None]] = {
    "approx_count_distinct": _distinct,
    "approx_percentile": _ranked,
    "approx_top_k": _frequent,
}
