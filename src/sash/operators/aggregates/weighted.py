"""PERCENTILE with frequencies: each value counts as often as its row's frequency says.

The rows of a group are kept in the order of their values; each version of the result reads them all.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from sash.errors import EvaluationError
from sash.operators.aggregates.base import Work, as_doubles
from sash.operators.aggregates.collected import Collected
from sash.operators.aggregates.ranks import arrays_of
from sash.operators.kernels.touches import Mask
from sash.operators.kernels.weighted import weighted_percentiles
from sash.plan.types import BIGINT, DOUBLE
from sash.state.hashing import any_null
from sash.state.memory import Ints
from sash.state.ordering import encode_order


class WeightedPercentiles(Collected):
    """The columns are the value and its frequency. Rows without either, or with frequency 0, are left out."""

    def _payload_types(self, dtypes: Sequence[pa.DataType]) -> tuple[pa.DataType, ...]:
        return DOUBLE, BIGINT

    @property
    def _distinct_columns(self) -> tuple[int, ...]:
        return self._column, self._order[0]

    def _write(self, work: Work, nodes: Ints) -> Mask:
        columns = [work.batch.columns[self._column], work.batch.columns[self._order[0]]]
        values, weights = as_doubles(columns[0]), columns[1].cast(BIGINT)
        self._treap.write(nodes, *encode_order([values, weights], [False] * 2, [True] * 2, len(work.batch)))
        self._payload.put(nodes, [values, weights])
        given = np.asarray(weights.fill_null(0).to_numpy(zero_copy_only=False), np.int64)
        if (given < 0).any():
            raise EvaluationError("PERCENTILE has a frequency below 0: filter such rows out")
        missing = any_null(columns)
        skip: Mask = given == 0
        return skip if missing is None else skip | missing

    def _result(self, starts: Ints, sizes: Ints, found: Ints) -> pa.Array:
        values, weights = (np.asarray(part.to_numpy(zero_copy_only=False)) for part in self._payload.take(found))
        call = self._calls[0]
        fractions = self._detail.fractions
        places = np.array([call.parameter] if fractions is None else fractions, np.float64)
        out = np.zeros((len(places), len(sizes)), np.float64)
        weighted_percentiles(starts, sizes, np.array(values), np.array(weights), places, out)
        parts = [pa.array(row, mask=sizes == 0) for row in out]
        return parts[0] if fractions is None else arrays_of(parts)
