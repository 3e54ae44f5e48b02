"""Arrays that grow inside a kernel, for outputs whose size is not known beforehand."""

from __future__ import annotations

import numpy as np

from sash.state.jit import kernel
from sash.state.memory import Array


@kernel
def grown(array: Array, size: int) -> Array:
    """The array itself if it has `size` elements, else a copy at least twice as long."""
    if len(array) >= size:
        return array
    larger = np.empty(max(2 * len(array), size), array.dtype)
    larger[: len(array)] = array
    return larger
