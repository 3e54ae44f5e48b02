"""Additive summaries: a row of 64-bit integers per group, which merge by addition and subtract exactly.

Counts are integers; sums of integers, decimals and doubles are split into limbs of 32 bits, as in the operators
(`operators/kernels`), so a result does not depend on the order of additions and subtractions. The column of a limb of a
sum of doubles has the limb's number in its name: l34 has the weight 2^(32*34 - BIAS). For holistic aggregates (MEDIAN,
COUNT DISTINCT) the values are additional keys, with their count as the only column. Subtractable and holistic
aggregates of paper 2, 2.1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sash.operators.aggregates.base import NO_MASK, as_doubles, canonical
from sash.operators.aggregates.sums import double_bits
from sash.operators.kernels.limbs import HEADER, Words, span
from sash.operators.kernels.spreads import spread
from sash.operators.kernels.sums import DECIMAL_STRIDE, INTEGER_STRIDE, sum_decimals, sum_doubles, sum_integers
from sash.operators.kernels.touches import Events, Mask
from sash.plan.expressions import Expression
from sash.state.hashing import decimal_words, null_mask
from sash.state.jit import kernel
from sash.state.memory import Ints
from sash.window_store.store.tables import columns_of
from sash.window_store.summaries.base import Groups, RowBatch, Signs, Summary

Flavor = Literal["rows", "known", "integers", "doubles", "decimals", "spread", "values"]
COUNT = "n"
_SPECIAL = ["plus", "minus", "nan"]
_NONE = np.empty(0, np.int64)
_NO_DOUBLES = np.empty(0, np.float64)


@dataclass(frozen=True)
class AdditiveSummary(Summary):
    """Counts and sums per group.

    The `flavor` is what is counted or summed: all rows, the known (non-NULL) values of the argument, sums of integers,
    doubles or decimals, a `spread` (sums and sums of squares), or each of the values that occur (without NULLs).
    """

    file_kind = "Cells"

    flavor: Flavor
    argument: Expression | None = None

    @property
    def subtractable(self) -> bool:
        return True

    @property
    def key_names(self) -> list[str]:
        return [f"k{index}" for index in range(len(self.keys) + (self.flavor == "values"))]

    def build(self, rows: RowBatch) -> pa.Table:
        keys = [canonical(rows.value(key)) for key in self.keys]
        column = None if self.argument is None else rows.value(self.argument)
        signs = rows.signs
        mask = None if column is None else null_mask(column)
        if column is not None and mask is not None and mask.any() and self.flavor in ("values", "known"):
            known = pa.array(np.flatnonzero(~mask))
            keys, column, signs, mask = [k.take(known) for k in keys], column.take(known), signs[~mask], None
        if self.flavor == "values":
            keys.append(canonical(column))
        groups = Groups(keys, len(signs))
        skip = NO_MASK if mask is None or not mask.any() else np.array(mask)
        return self._table(groups, keys, self._sums(column, groups, signs, skip), may_cancel=rows.sign is not None)

    def merge(self, parts: Sequence[pa.Table]) -> pa.Table:
        return self._add(parts, [1] * len(parts))

    def subtract(self, whole: pa.Table, parts: Sequence[pa.Table]) -> pa.Table:
        return self._add([whole, *parts], [1] + [-1] * len(parts))

    def _add(self, parts: Sequence[pa.Table], signs: Sequence[int]) -> pa.Table:
        if len(parts) == 1 and signs[0] == 1:
            return parts[0]
        names = sorted({name for part in parts for name in part.schema.names} - set(self.key_names))
        keys = columns_of(pa.concat_tables([part.select(self.key_names) for part in parts])) if self.key_names else []
        groups = Groups(keys, sum(part.num_rows for part in parts))
        columns = {}
        for name in names:
            total = np.zeros(len(groups), np.int64)
            start = 0
            for part, sign in zip(parts, signs, strict=True):
                if name in part.schema.names:
                    codes = groups.codes[start : start + part.num_rows]
                    _add_to(total, codes, np.array(part.column(name).to_numpy(), np.int64), sign)
                start += part.num_rows
            columns[name] = total
        return self._table(groups, keys, columns, may_cancel=True)

    def _table(
        self, groups: Groups, keys: Sequence[pa.Array], columns: Mapping[str, Ints], *, may_cancel: bool
    ) -> pa.Table:
        """A row per group. Groups whose columns are all 0, which only subtraction and retractions leave, are removed."""
        first = pa.array(groups.first)
        found = [*(key.take(first) for key in keys), *(pa.array(values) for values in columns.values())]
        table = pa.Table.from_arrays(found, names=[*self.key_names, *columns])
        if not may_cancel or not table.num_rows:
            return table
        kept = np.zeros(table.num_rows, np.bool_)
        for values in columns.values():
            kept |= values != 0
        return table if kept.all() else table.filter(pa.array(kept))

    def _sums(self, column: pa.Array | None, groups: Groups, signs: Signs, skip: Mask) -> dict[str, Ints]:
        count = len(groups)
        order = np.arange(len(signs))
        events = Events(order, signs, groups.codes, np.full(len(signs), -1), _NONE, _NONE)
        match self.flavor:
            case "rows" | "known" | "values":
                totals = np.zeros(count, np.int64)
                _add_to(totals, groups.codes, signs.astype(np.int64), 1)
                return {COUNT: totals}
            case "integers":
                values = np.array(pc.fill_null(column, 0).to_numpy(zero_copy_only=False), np.int64)
                state = np.zeros(INTEGER_STRIDE * count, np.int64)
                sum_integers(events, values, skip, state, _NONE, _NO_DOUBLES, _NONE, NO_MASK)
                return _named(state, count, [COUNT, "i0", "i1"])
            case "decimals":
                words = decimal_words(column)
                state = np.zeros(DECIMAL_STRIDE * count, np.int64)
                limit, out = np.zeros(2, np.uint64), np.empty(0, np.uint64)
                low, high = np.array(words[:, 0]), np.array(words[:, 1])
                sum_decimals(events, low, high, skip, state, 1, limit, False, out, _NONE, NO_MASK)
                return _named(state, count, [COUNT, "d0", "d1", "d2", "d3"])
            case "doubles" | "spread":
                return self._limbs(double_bits(as_doubles(column)), events, skip, count)

    def _limbs(self, bits: Words, events: Events, skip: Mask, count: int) -> dict[str, Ints]:
        smallest, largest = map(int, span(bits, skip))
        some = largest >= 0
        low, high = smallest >> 5, (largest >> 5) + 3 if some else smallest >> 5
        state = np.zeros((HEADER + high - low) * count, np.int64)
        names = [COUNT, *_SPECIAL, *(f"l{limb}" for limb in range(low, high))]
        if self.flavor == "doubles":
            sum_doubles(events, bits, skip, state, low, high - low, _NO_DOUBLES, _NONE)
            return _named(state, count, names)
        first, last = smallest >> 4, (2 * largest >> 5) + 5 if some else smallest >> 4
        squares = np.zeros((HEADER + last - first) * count, np.int64)
        spread(
            events, bits, skip, state, low, high - low, squares, first, last - first, _NO_DOUBLES, _NONE, _NONE
        )  # fmt: skip
        found = _named(state, count, names)
        named = _named(squares, count, ["", "", "", "", *(f"q{limb}" for limb in range(first, last))])
        return {**found, **{name: values for name, values in named.items() if name}}


def _named(state: Ints, count: int, names: Sequence[str]) -> dict[str, Ints]:
    by_group = state.reshape(count, len(names))
    return {name: np.ascontiguousarray(by_group[:, index]) for index, name in enumerate(names)}


@kernel
def _add_to(totals: Ints, codes: Ints, values: Ints, sign: int) -> None:
    for index in range(len(codes)):
        totals[codes[index]] += sign * values[index]
