"""A stateful processor whose stages stay packed until rows come.

To learn the state of a query, Spark starts a Python process that only calls `init`. Importing Sash would take most of its
time, so this module imports none of it.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.stateful_processor import StatefulProcessor

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle, TimerValues

    from sash.spark.stage import StageProcessor


_UNPACKED: dict[bytes, StageProcessor] = {}
"""The last processors that this process ran, by their pickled forms: unpacking that of a large job takes a while."""

_MOST = 8


class PackedProcessor(StatefulProcessor):
    """Runs a stage processor, given in pickled form."""

    def __init__(self, processor: StageProcessor) -> None:
        self._packed = pickle.dumps(processor)

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Declare the state: chunks of bytes in Sash's own format."""
        self._chunks = handle.getMapState("chunks", "number long", "data binary")
        self._processor: StageProcessor | None = None

    def close(self) -> None:
        """Release nothing: no resource outlives a batch."""

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: TimerValues) -> Iterator[pd.DataFrame]:  # noqa: N802, N803  (Spark's names)
        """Run the batch of one shard."""
        if self._processor is None:
            if self._packed not in _UNPACKED:
                while len(_UNPACKED) >= _MOST:
                    del _UNPACKED[next(iter(_UNPACKED))]
                _UNPACKED[self._packed] = pickle.loads(self._packed)  # noqa: S301  (our own bytes)
            self._processor = _UNPACKED[self._packed]
        return self._processor.run(int(key[0]), rows, self._chunks)
