"""The type of the times of changes."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from sash.physical.nodes import PhysicalPlan, UpdateLeg
from sash.plan.nodes import Stream, walk
from sash.plan.types import BIGINT, DATE, TIMESTAMP, TIMESTAMP_NTZ


def output_time(plan: PhysicalPlan, of_updates: Callable[[str], pa.DataType]) -> pa.DataType:
    """The type of `_ts`: that of the streams' times (without streams: of the updates', by relation), or BIGINT microseconds."""
    streams = [node for leg in plan.legs for node in walk(leg.node) if isinstance(node, Stream)]
    types = {stream.schema[stream.time].dtype for stream in streams}
    if not types:
        types = {of_updates(leg.stream.lower()) for leg in plan.legs if isinstance(leg, UpdateLeg)}
    if TIMESTAMP in types:
        return TIMESTAMP
    return TIMESTAMP_NTZ if types & {TIMESTAMP_NTZ, DATE} else BIGINT
