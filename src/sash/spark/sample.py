"""A small query over a few rows, which loads the compiled loops that most queries use."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from sash.plan.catalog import Catalog
from sash.planning import plan_query
from sash.rows import parse_schema
from sash.runtime.local import LocalRun
from sash.state.changes import ChangeBatch
from sash.time import FOREVER, MINUTE, SECOND

_QUERY = "SELECT k, COUNT(*) AS n, SUM(v) AS total FROM s [RANGE 1 MINUTE] GROUP BY k"


def run_sample() -> None:
    """Run the query."""
    catalog = Catalog()
    catalog.add_stream("s", parse_schema("ts TIMESTAMP, k INT, v DOUBLE"), "ts")
    run = LocalRun(plan_query(_QUERY, catalog).physical, {}, shards=2)
    ts = np.array([0, SECOND], dtype=np.int64)
    columns = [pa.array(ts, pa.timestamp("us", "UTC")), pa.array([1, 2], pa.int32()), pa.array([1.0, 2.0])]
    run.advance({"s": ChangeBatch.stamped(ts, np.full(2, FOREVER), columns)}, {"s": 2 * MINUTE})
