"""The loop of percentiles of values that count several times."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sash.state.jit import kernel
from sash.state.memory import Ints

Floats = npt.NDArray[np.float64]


@kernel
def weighted_percentiles(
    starts: Ints, sizes: Ints, values: Floats, weights: Ints, places: Floats, out: npt.NDArray[np.float64]
) -> None:
    """By place and version: the percentile of the values, which are sorted within each version."""
    for version in range(len(sizes)):
        first, last = starts[version], starts[version] + sizes[version]
        total = np.int64(0)
        for index in range(first, last):
            total += weights[index]
        for place in range(len(places)):
            exact = np.float64(total - 1) * places[place]
            position = np.int64(np.floor(exact))
            share = exact - np.float64(position)
            before = np.int64(0)
            for index in range(first, last):
                before += weights[index]
                if before > position:
                    low = values[index]
                    high = low if share == 0.0 or before > position + 1 else values[index + 1]
                    out[place, version] = low if low == high else (1.0 - share) * low + share * high
                    break
