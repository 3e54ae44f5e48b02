"""The index over the constants of alike queries: finds, for a batch of rows, the queries that have each of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sash.operators.kernels import alike as loop
from sash.operators.live_rows import own
from sash.operators.lookup import index_of
from sash.operators.scalar import evaluate
from sash.plan.compound import rewrite
from sash.plan.expressions import Call, Column, Expression, Literal
from sash.state.columns import gather, stored_values
from sash.state.hashing import any_null, decimal_words
from sash.state.memory import Ints

Comparison = tuple[int, str, int]
"""A column of the rows, the function that compares it, and the column of the constants that it is compared with."""

_COMPARISONS: Final = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
_DIGITS: Final = 18
"""Decimals of this precision fit into 64 bits."""


def comparison_of(condition: Expression, border: int) -> Comparison | None:
    """The condition as a comparison that can be searched for; constants are the columns from the border on.

    Large decimals are searched for by the integers nearest to them (`is_exact`), and equal ones are found, too.
    """
    match condition:
        case Call(function=function, arguments=(Column() as one, Column() as other)) if function in _COMPARISONS:
            if one.dtype != other.dtype or not _has_order(one.dtype):
                return None
            if one.index < border <= other.index:
                return one.index, _searched(function, one.dtype), other.index - border
            if other.index < border <= one.index:
                return other.index, _searched(_COMPARISONS[function], one.dtype), one.index - border
    return None


def is_exact(dtype: pa.DataType) -> bool:
    """Whether a search for values of the type finds no others, so that they need not be tested again."""
    return not pa.types.is_decimal(dtype) or dtype.precision <= _DIGITS


def _searched(function: str, dtype: pa.DataType) -> str:
    return function if is_exact(dtype) else {"lt": "le", "gt": "ge"}.get(function, function)


def _has_order(dtype: pa.DataType) -> bool:
    """Whether values of the type have integers in the same order."""
    floating = pa.types.is_floating(dtype)
    return dtype == pa.float64() or pa.types.is_decimal128(dtype) or (pa.types.is_primitive(dtype) and not floating)


def _order(column: pa.Array) -> Ints:
    """Integers in the order of the values; those of NULLs are undefined."""
    if pa.types.is_decimal128(column.type):
        return loop.order_of_decimals(own(decimal_words(column)))
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.int8())
    values = stored_values(column)
    assert values is not None
    return loop.order_of_doubles(own(values)) if column.type == pa.float64() else values.astype(np.int64)


class ConstantsIndex:
    """Constants sorted by the code of their keys and then by the constant that a value is compared with.

    Constants with a NULL in a key or in the compared column match nothing.
    """

    def __init__(
        self,
        columns: Sequence[pa.Array],
        rows: int,
        keys: Sequence[tuple[int, int]],
        comparison: Comparison | None,
        condition: Expression | None,
    ) -> None:
        self.columns, self.rows = columns, rows
        self._keys, self._comparison, self._condition = keys, comparison, condition
        self._tests = not keys and comparison is None and condition is not None
        searched = [columns[key] for _, key in keys]
        compared = searched if comparison is None else [*searched, columns[comparison[2]]]
        nulls = any_null(compared)
        kept = np.arange(rows) if nulls is None else np.flatnonzero(~nulls)
        codes = np.zeros(len(kept), np.int64)
        self._index = None
        if keys:
            self._index = index_of(gather(searched, kept), len(kept))
            codes = self._index.codes
        values = np.zeros(len(kept), np.int64)
        if comparison is not None:
            values = _order(gather([columns[comparison[2]]], kept)[0])
        order = np.lexsort((values, codes))
        self._sorted, self._order = values[order], kept[order]
        self._starts = np.searchsorted(codes[order], np.arange(int(codes.max(initial=0)) + 2))

    def pairs(self, columns: Sequence[pa.Array], rows: int) -> tuple[Ints, Ints]:
        """The pairs (row, position of the constants) of equal keys for which the comparison is true, in order of rows."""
        if not rows or not self.rows:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        if self._tests:
            return self._tested(columns, rows)
        codes = np.zeros(rows, np.int64)
        if self._index is not None:
            found, known = self._index.find([columns[key] for key, _ in self._keys], rows)
            codes = np.full(rows, -1, np.int64)
            codes[found] = known
        if self._comparison is None:
            return loop.pairs_of(*loop.ranges_of(codes, self._starts), self._order)
        column, function, _ = self._comparison
        nulls = any_null([columns[column]])
        if nulls is not None:
            codes[nulls] = -1
        side = 1 if function in ("le", "ge") else 0
        values = _order(columns[column])
        first, last = loop.search(codes, values, self._starts, self._sorted, side, function in ("gt", "ge"))
        return loop.pairs_of(first, last, self._order)

    def passing(self, owners: Ints, partners: Ints, columns: Sequence[pa.Array]) -> Ints:
        """The positions of the pairs for which the condition is true, in order; `columns` are those of the rows."""
        if self._condition is None or self._tests or not len(owners):
            return np.arange(len(owners))
        pairs = [*gather(columns, owners), *gather(self.columns, partners)]
        return _true(evaluate(self._condition, pairs, len(owners)))

    def _tested(self, columns: Sequence[pa.Array], rows: int) -> tuple[Ints, Ints]:
        """The pairs for which the condition is true, tested for one row of constants after the other."""
        assert self._condition is not None
        border, found = len(columns), []
        for number in range(self.rows):
            constants = [Literal(column[number].as_py(), column.type) for column in self.columns]
            found.append(_true(evaluate(_filled(self._condition, border, constants), columns, rows)))
        owners = np.concatenate(found)
        partners = np.repeat(np.arange(self.rows), [len(one) for one in found])
        order = np.argsort(owners, kind="stable")
        return owners[order], partners[order]


def _filled(condition: Expression, border: int, constants: Sequence[Literal]) -> Expression:
    """The condition with the columns from the border on replaced by constants."""
    return rewrite(
        condition,
        lambda part: constants[part.index - border] if isinstance(part, Column) and part.index >= border else None,
    )


def _true(values: pa.Array) -> Ints:
    positions: Ints = pc.indices_nonzero(pc.fill_null(values, False)).to_numpy().view(np.int64)
    return positions
