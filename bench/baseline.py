"""The baseline: a query's rows handed one by one to transformWithStateInPandas.

What can be had without Sash by a loop over rows: the rows of the window are kept in state, and for each row that comes
those that have expired are taken off and the key's new count is put out. Every row of the streams is handed over, since
time goes on with rows that fail the filter too; those cost one comparison. That is less than any of the queries asks for
(expiry waits for the bucket's next row, nothing is joined or subtracted), and keys are gathered in a few buckets, since
a state of its own for each of thousands of keys is slower by far. Counting only rows that pass a filter would make it
faster by the filter's selectivity, and its clock wrong.
"""

from __future__ import annotations

import pickle
from array import array
from collections.abc import Iterator, Mapping
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from bench.queries import WINDOW_SECONDS, Query
from bench.runs import Timing, file_stream, run_frame
from sash.time import SECOND

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_BUCKETS = 16
_OUTPUT = "key INT, ts LONG, rows LONG"
_WINDOW = WINDOW_SECONDS * SECOND


class SlidingCount(StatefulProcessor):
    """How many rows each key of a bucket has in the window, row by row."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._state = handle.getValueState("window", "window BINARY")

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[pd.DataFrame]:  # noqa: N802, N803
        before = self._state.get()
        keys, times = (array("q"), array("q")) if before is None else pickle.loads(before[0])  # noqa: S301
        counts: dict[int, int] = {}
        for known in keys:
            counts[known] = counts.get(known, 0) + 1
        oldest = 0
        for frame in rows:
            results = []
            columns = (frame[name].tolist() for name in ("key", "ts", "kept"))
            for owner, ts, matters in zip(*columns, strict=True):
                while oldest < len(times) and times[oldest] <= ts - _WINDOW:
                    counts[keys[oldest]] -= 1
                    oldest += 1
                if not matters:
                    continue
                keys.append(owner)
                times.append(ts)
                counts[owner] = counts.get(owner, 0) + 1
                results.append((owner, ts, counts[owner]))
            yield pd.DataFrame(results, columns=["key", "ts", "rows"])
        self._state.update((pickle.dumps((keys[oldest:], times[oldest:])),))

    def close(self) -> None:
        pass


def run_baseline(spark: SparkSession, query: Query, streams: Mapping[str, Path]) -> Timing:
    """The rows of all streams, row by row."""
    frames = [file_stream(spark, directory) for directory in streams.values()]
    spread = "ts" if query.key == "0" else query.key
    rows = reduce(lambda left, right: left.unionAll(right), frames).selectExpr(
        f"pmod(hash({spread}), {_BUCKETS}) AS bucket",
        f"CAST({query.key} AS INT) AS key",
        "unix_micros(ts) AS ts",
        f"{query.keeps} AS kept",
    )
    counts = rows.groupBy("bucket").transformWithStateInPandas(SlidingCount(), _OUTPUT, "Append", "None")
    return run_frame(counts)
