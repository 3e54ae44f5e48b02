"""Statistics of the streams that a query reads, observed by Spark as it reads them, batch by batch.

Rows and times are counted, values by sketches, which add up over batches; frequent values by Spark's own approximate
count of them. It costs a pass over every column of every row, so it is done only where it is asked for.
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
from sash.plan.statistics import FREQUENT, Statistics, observed
from sash.plan.types import BIGINT, INT
from sash.planning import Planned
from sash.spark.plan import Inputs
from sash.sql.render import quoted

_METRICS = "sash-stream-"
_PRECISION = 12


def observing(inputs: Inputs, planned: Planned) -> Inputs:
    """The same inputs, with the streams of the query observed."""
    streams = dict(inputs.streams)
    for name, stream in _streams(planned).items():
        source = streams[name]
        streams[name] = replace(source, frame=source.frame.observe(_METRICS + name, *_measures(stream)))
    return replace(inputs, streams=streams)


def _streams(planned: Planned) -> dict[str, Stream]:
    return {node.name.lower(): node for node in walk(planned.written) if isinstance(node, Stream)}


def _counted(stream: Stream) -> list[tuple[int, str, pa.DataType]]:
    """The columns whose values are counted, by place: all that can be compared, but for the time."""
    return [
        (place, column.name, column.dtype)
        for place, column in enumerate(stream.schema)
        if place != stream.time and not pa.types.is_nested(column.dtype)
    ]


def _is_listed(dtype: pa.DataType) -> bool:
    """Whether frequent values of the type come back from JSON as what they were."""
    return bool(pa.types.is_integer(dtype) or pa.types.is_string(dtype) or pa.types.is_boolean(dtype))


def _measures(stream: Stream) -> list[Column]:
    time = stream.schema[stream.time]
    at = sf.col(quoted(time.name))
    micros = at.cast("bigint") if time.dtype in (BIGINT, INT) else sf.unix_micros(at.cast("timestamp"))
    made = [sf.count(sf.lit(1)).alias("rows"), sf.min(micros).alias("first"), sf.max(micros).alias("last")]
    for place, name, dtype in _counted(stream):
        value = sf.col(quoted(name))
        sketch = sf.hll_sketch_agg(value.cast("string"), sf.lit(_PRECISION))
        made.append(sf.base64(sketch).alias(f"values{place}"))
        if _is_listed(dtype):
            made.append(sf.to_json(sf.call_function("approx_top_k", value, sf.lit(FREQUENT))).alias(f"most{place}"))
    return made


@dataclass
class _Seen:
    rows: int = 0
    first: int | None = None
    last: int | None = None
    values: dict[str, hll_union] = field(default_factory=dict)
    most: dict[str, Counter[Any]] = field(default_factory=dict)


class Observation:
    """What was observed of a query's streams since its start."""

    def __init__(self, planned: Planned) -> None:
        self._streams = _streams(planned)
        self._seen = {name: _Seen() for name in self._streams}
        self._counted = -1

    def take(self, entries: Sequence[Any]) -> None:
        """Count the batches of Spark's reports that are new."""
        for entry in entries:
            if entry["batchId"] > self._counted:
                self._counted = entry["batchId"]
                for name, stream in self._streams.items():
                    seen = entry["observedMetrics"].get(_METRICS + name)
                    if seen is not None and seen["rows"]:
                        self._add(self._seen[name], stream, seen)

    def statistics(self) -> Mapping[str, Statistics]:
        """By stream: rate, numbers of values, frequent values; what was not seen stays as it was known."""
        made = {}
        for name, seen in self._seen.items():
            if seen.first is None or seen.last is None or seen.last <= seen.first:
                raise StatisticsError(f"no rows of {name} were observed yet, or all at one instant: ask again later")
            distinct = {column: union.get_result().get_estimate() for column, union in seen.values.items()}
            known = self._streams[name].statistics
            made[name] = observed(seen.rows, seen.last - seen.first, distinct, known, seen.most)
        return made

    @staticmethod
    def _add(known: _Seen, stream: Stream, seen: Any) -> None:
        known.rows += seen["rows"]
        known.first = min(seen["first"], known.first if known.first is not None else seen["first"])
        known.last = max(seen["last"], known.last if known.last is not None else seen["last"])
        for place, name, dtype in _counted(stream):
            sketch = hll_sketch.deserialize(base64.b64decode(seen[f"values{place}"]))
            known.values.setdefault(name, hll_union(_PRECISION)).update(sketch)
            if _is_listed(dtype):
                counts = known.most.setdefault(name, Counter())
                for one in json.loads(seen[f"most{place}"] or "[]"):
                    if one.get("item") is not None:
                        counts[one["item"]] += one["count"]
