"""Finds a text among many: the commonest selection there is, in one loop over the bytes of a column."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sash.state.jit import kernel
from sash.state.memory import Ints


@kernel
def places_of(text: npt.NDArray[np.uint8], offsets: Ints, data: npt.NDArray[np.uint8]) -> Ints:
    """The positions, in order, at which a column of texts without NULLs has this one."""
    places = np.empty(len(offsets) - 1, np.int64)
    size, found = len(text), 0
    for row in range(len(offsets) - 1):
        start = offsets[row]
        if offsets[row + 1] - start != size:
            continue
        same = True
        for index in range(size):
            if data[start + index] != text[index]:
                same = False
                break
        if same:
            places[found] = row
            found += 1
    return places[:found]
