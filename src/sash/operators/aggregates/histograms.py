"""HISTOGRAM_NUMERIC where it is exact: each distinct value of the group with the number of its rows.

Spark merges neighbours once there are more values than the histogram may have, in an order that depends on how rows arrive;
such a group is refused.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sash.errors import EvaluationError
from sash.operators.aggregates.base import NO_MASK, Work, array_versions, canonical
from sash.operators.aggregates.collected import Collected
from sash.operators.kernels.touches import Mask
from sash.state.hashing import null_mask
from sash.state.memory import Ints
from sash.state.ordering import encode_order


class Histogram(Collected):
    """The rows of a group by value; each version of the result reads them all."""

    def _write(self, work: Work, nodes: Ints) -> Mask:
        value = canonical(work.batch.columns[self._column])
        self._treap.write(nodes, *encode_order([value], [False], [True], len(value)))
        self._payload.put(nodes, [value])
        mask = null_mask(value)
        return NO_MASK if mask is None else np.array(mask)

    def _result(self, starts: Ints, sizes: Ints, found: Ints) -> pa.Array:
        offsets = np.zeros(len(sizes) + 1, np.int64)
        np.cumsum(sizes, out=offsets[1:])
        (values,) = self._payload.take(found[np.repeat(starts - offsets[:-1], sizes) + np.arange(offsets[-1])])
        codes = array_versions(values).bits
        version = np.repeat(np.arange(len(sizes)), sizes)
        new = np.ones(len(codes), np.bool_)
        new[1:] = (codes[1:] != codes[:-1]) | (version[1:] != version[:-1])
        first = np.flatnonzero(new)
        bins = np.bincount(version[first], minlength=len(sizes))
        most = self._detail.limit or 0
        if len(bins) and bins.max() > most:
            raise EvaluationError(
                f"HISTOGRAM_NUMERIC has {bins.max()} values for {most} bins, and only Spark's estimate is defined then: ask for "
                "more bins, or group by ROUND(x)"
            )
        counts = pa.array(np.diff(first, append=len(codes)).astype(np.float64))
        pairs = pa.StructArray.from_arrays([values.take(pa.array(first)), counts], ["x", "y"])
        ends = np.zeros(len(sizes) + 1, np.int64)
        np.cumsum(bins, out=ends[1:])
        lists = pa.ListArray.from_arrays(pa.array(ends, pa.int32()), pairs)
        return pc.if_else(pa.array(sizes == 0), pa.scalar(None, lists.type), lists)
