"""Equality of a text column with a constant, the most common selection, in one loop over the bytes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sash.state.jit import kernel
from sash.state.memory import Ints


@kernel
def places_of(text: npt.NDArray[np.uint8], offsets: Ints, data: npt.NDArray[np.uint8]) -> Ints:
    """The positions, in order, at which a text column without NULLs equals the text."""
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
