"""The baseline: a loop over a query's rows in transformWithStateInPandas, as one would write it without Sash.

The state holds the rows of the window. Each new row removes the expired ones and outputs the new count of its key. Every
row of the streams is processed, because rows that fail the filter advance the time too; they cost one comparison. This is
less work than any of the queries: expiration waits for the bucket's next row, and nothing is joined or subtracted. Keys
share a few buckets, because a separate state for each of thousands of keys is far slower. Processing only the rows that
pass the filter would be faster by its selectivity, but the clock would be wrong.
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

from bench.queries import WINDOW_SECONDS, WorkloadQuery
from bench.runs import Timing, file_stream, run_frame
from sash.time import SECOND

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_BUCKETS = 16
_OUTPUT = "key INT, ts LONG, rows LONG"
_WINDOW = WINDOW_SECONDS * SECOND


class SlidingCount(StatefulProcessor):
    """Counts the rows of each key of a bucket in the window, row by row."""

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


def run_baseline(spark: SparkSession, query: WorkloadQuery, streams: Mapping[str, Path]) -> Timing:
    """Run the baseline over the rows of all streams."""
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
