"""What the 60 s group-by benchmark keeps in memory, in bytes per row of its window."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from bench.data import SCHEMA, START, Sales
from bench.growth import CASES
from bench.queries import WINDOW_SECONDS
from sash.plan.catalog import Catalog, StreamEntry
from sash.planning import plan_query
from sash.rows import parse_schema
from sash.runtime.local import LocalRun
from sash.state.changes import ChangeBatch
from sash.time import FOREVER, SECOND

_BATCH = 50_000


def group_by_state(window_rows: int) -> dict[str, Any]:
    """Run the group-by of `sash bench growth` over a window of so many rows until it has been full for half its length."""
    case = next(case for case in CASES if case.name == "group-by")
    sales = Sales(window_rows / WINDOW_SECONDS, items=max(1, window_rows // case.rows_per_key))
    planned = plan_query(case.sql, Catalog({"sales": StreamEntry("sales", parse_schema(SCHEMA), "ts")}))
    run = LocalRun(planned.physical, {})
    random, last = np.random.default_rng(5), START
    for _ in range(-(-3 * window_rows // (2 * _BATCH))):
        table = sales.table(_BATCH, last, random)
        ts = table.column("ts").combine_chunks().cast(pa.int64()).to_numpy().copy()
        columns = tuple(column.combine_chunks() for column in table.columns)
        last = int(ts[-1])
        run.advance({"sales": ChangeBatch.stamped(ts, np.full(len(ts), FOREVER), columns)}, {"sales": last})
    held = sum(run.stage_bytes.values())
    live = int(window_rows * min(1.0, (last - START) / (WINDOW_SECONDS * SECOND)))
    return {"window_rows": window_rows, "state_bytes": held, "bytes_per_row": round(held / live, 1), "sql": case.sql}
