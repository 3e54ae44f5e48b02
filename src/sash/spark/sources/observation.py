"""Statistics of the streams that a query reads, which Spark observes batch by batch.

Spark counts rows, finds the first and last times (the peak is the highest rate of a batch), sketches the distinct values (sketches add up over batches) and counts
frequent values approximately. This takes a pass over every column of every row, so it is done on request only.
"""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
from datasketches import hll_sketch, hll_union
from pyspark.sql import Column
from pyspark.sql import functions as sf

from sash.errors import StatisticsError
from sash.plan.nodes import Stream, walk
from sash.plan.statistics import ENOUGH, FREQUENT, Statistics, observed
from sash.plan.types import BIGINT, INT
from sash.planning import Planned
from sash.spark.sources.inputs import QueryInputs
from sash.sql.render import quoted
from sash.time import SECOND

_METRICS = "sash-stream-"
_PRECISION = 12


def observe_streams(inputs: QueryInputs, planned: Sequence[Planned]) -> QueryInputs:
    """The same inputs, with an observation on each stream of the queries."""
    streams = dict(inputs.streams)
    for name, stream in _streams(planned).items():
        source = streams[name]
        streams[name] = replace(source, frame=source.frame.observe(_METRICS + name, *_measures(stream)))
    return replace(inputs, streams=streams)


def _streams(planned: Sequence[Planned]) -> dict[str, Stream]:
    return {node.name.lower(): node for one in planned for node in walk(one.written) if isinstance(node, Stream)}


def _counted(stream: Stream) -> list[tuple[int, str, pa.DataType]]:
    """The columns whose values are counted, with their positions: all comparable ones except the time."""
    return [
        (position, column.name, column.dtype)
        for position, column in enumerate(stream.schema)
        if position != stream.time and not pa.types.is_nested(column.dtype)
    ]


def _survives_json(dtype: pa.DataType) -> bool:
    """Whether values of the type are unchanged by a conversion to JSON and back."""
    return bool(pa.types.is_integer(dtype) or pa.types.is_string(dtype) or pa.types.is_boolean(dtype))


def _measures(stream: Stream) -> list[Column]:
    time = stream.schema[stream.time]
    at = sf.col(quoted(time.name))
    micros = at.cast("bigint") if time.dtype in (BIGINT, INT) else sf.unix_micros(at.cast("timestamp"))
    made = [sf.count(sf.lit(1)).alias("rows"), sf.min(micros).alias("first"), sf.max(micros).alias("last")]
    for position, name, dtype in _counted(stream):
        value = sf.col(quoted(name))
        sketch = sf.hll_sketch_agg(value.cast("string"), sf.lit(_PRECISION))
        made.append(sf.base64(sketch).alias(f"values{position}"))
        if _survives_json(dtype):
            top = sf.call_function("approx_top_k", value, sf.lit(FREQUENT))
            made.append(sf.to_json(top).alias(f"most{position}"))
    return made


@dataclass
class _StreamTotals:
    rows: int = 0
    first: int | None = None
    last: int | None = None
    peak: float | None = None
    values: dict[str, hll_union] = field(default_factory=dict)
    most: dict[str, Counter[Any]] = field(default_factory=dict)


class StreamObservation:
    """The observed statistics of the streams of queries since their start."""

    def __init__(self, planned: Sequence[Planned]) -> None:
        self._streams = _streams(planned)
        self._totals = {name: _StreamTotals() for name in self._streams}
        self._last_batch = -1

    def take(self, reports: Sequence[Any]) -> None:
        """Add the batches of Spark's progress reports that are new."""
        for report in reports:
            if report["batchId"] > self._last_batch:
                self._last_batch = report["batchId"]
                for name, stream in self._streams.items():
                    seen = report["observedMetrics"].get(_METRICS + name)
                    if seen is not None and seen["rows"]:
                        self._add(self._totals[name], stream, seen)

    def statistics(self) -> Mapping[str, Statistics]:
        """Rate, distinct and frequent values by stream; statistics that were not observed stay as declared."""
        made = {}
        for name, totals in self._totals.items():
            if totals.first is None or totals.last is None or totals.last <= totals.first:
                raise StatisticsError(
                    f"no rows of {name} were observed yet, or all have the same time: try again after more rows"
                )
            distinct = {column: union.get_result().get_estimate() for column, union in totals.values.items()}
            known = self._streams[name].statistics
            made[name] = observed(totals.rows, totals.last - totals.first, distinct, known, totals.most, totals.peak)
        return made

    @staticmethod
    def _add(totals: _StreamTotals, stream: Stream, seen: Any) -> None:
        totals.rows += seen["rows"]
        if seen["rows"] >= ENOUGH and seen["last"] > seen["first"]:
            totals.peak = max(totals.peak or 0.0, seen["rows"] * SECOND / (seen["last"] - seen["first"]))
        totals.first = min(seen["first"], totals.first if totals.first is not None else seen["first"])
        totals.last = max(seen["last"], totals.last if totals.last is not None else seen["last"])
        for position, name, dtype in _counted(stream):
            sketch = hll_sketch.deserialize(base64.b64decode(seen[f"values{position}"]))
            totals.values.setdefault(name, hll_union(_PRECISION)).update(sketch)
            if _survives_json(dtype):
                counts = totals.most.setdefault(name, Counter())
                for one in json.loads(seen[f"most{position}"] or "[]"):
                    if one.get("item") is not None:
                        counts[one["item"]] += one["count"]
