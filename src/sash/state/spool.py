"""A spool: one change batch kept between calls, as bytes in a flat array."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from sash.state.changes import ChangeBatch
from sash.state.encoding import decode, encode
from sash.state.memory import Memory


class Spool:
    """Holds one pending batch, or none."""

    def __init__(self, memory: Memory, dtypes: Sequence[pa.DataType]) -> None:
        self._memory = memory
        self._dtypes = dtypes
        self._size = memory.array("size", np.int64, 2)
        self._bytes = memory.array("bytes", np.uint8, 1024)

    @property
    def rows(self) -> int:
        """The number of pending rows."""
        return int(self._size[1])

    def load(self) -> ChangeBatch:
        """The pending batch."""
        size = int(self._size[0])
        if not size:
            return ChangeBatch.empty(self._dtypes)
        return decode(self._bytes[:size].tobytes())

    def save(self, batch: ChangeBatch) -> None:
        """Replace the pending batch."""
        data = np.frombuffer(encode(batch), np.uint8) if len(batch) else self._bytes[:0]
        if len(data) > len(self._bytes):
            self._bytes = self._memory.grow("bytes", np.uint8, 2 * len(data))
        self._bytes[: len(data)] = data
        self._size[:] = len(data), len(batch)
