"""Rows under evaluation: columns with their times and signs, and expressions over them, each computed once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sash.operators.scalar import evaluate
from sash.plan.expressions import Expression
from sash.state.memory import Ints
from sash.window_store.cutting import columns_of, times
from sash.window_store.manifest import ENDS, SIGN, TIME

Signs = npt.NDArray[np.int8]


@dataclass
class Rows:
    """Some rows. `ts` is None where they have no times of their own; `sign` is None where all of them are there."""

    columns: Sequence[pa.Array]
    count: int
    ts: Ints | None = None
    sign: Signs | None = None
    _values: dict[Expression, pa.Array] = field(default_factory=dict)

    @staticmethod
    def of(table: pa.Table) -> Rows:
        """The rows of a sub-window's file."""
        signed = SIGN in table.schema.names
        sign = np.array(table.column(SIGN).to_numpy(), np.int8) if signed else None
        columns = columns_of(table.drop_columns([name for name in (TIME, SIGN, ENDS) if name in table.schema.names]))
        return Rows(columns, table.num_rows, times(table), sign)

    def value(self, expression: Expression) -> pa.Array:
        """The expression in every row."""
        if expression not in self._values:
            found = evaluate(expression, self.columns, self.count)
            self._values[expression] = found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found
        return self._values[expression]

    def where(self, predicate: Expression) -> Rows:
        """The rows for which it is true."""
        kept = np.asarray(self.value(predicate).fill_null(False).to_numpy(zero_copy_only=False), np.bool_)
        return self if kept.all() else self.take(np.flatnonzero(kept))

    def take(self, positions: Ints) -> Rows:
        """The rows at these positions, in this order."""
        index = pa.array(positions)
        columns = [column.take(index) for column in self.columns]
        ts = None if self.ts is None else self.ts[positions]
        return Rows(columns, len(positions), ts, None if self.sign is None else self.sign[positions])

    def project(self, expressions: Sequence[Expression]) -> Rows:
        """Rows of other columns."""
        return Rows([self.value(expression) for expression in expressions], self.count, self.ts, self.sign)

    @property
    def signs(self) -> Signs:
        """The sign of every row."""
        return np.ones(self.count, np.int8) if self.sign is None else self.sign
