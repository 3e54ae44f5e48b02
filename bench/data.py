"""Made-up sales as Parquet files: one file per micro-batch and stream, in an order that no listing can confuse."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from sash.time import SECOND

SCHEMA = "store_id INT, item_id INT, price DOUBLE, quantity INT, ts TIMESTAMP"
START = 1_700_000_000 * SECOND
"""The time of the first sale, in microseconds."""


@dataclass(frozen=True)
class Sales:
    """How sales are made up: uniform items, stores and prices, exponential times between two sales.

    Items are 0 .. items - 1, stores 0 .. stores - 1; prices are between 0 and 20, or the integers 0 .. 20.
    """

    rate: float
    whole_prices: bool = False
    items: int = 50_000
    stores: int = 1_000

    def table(self, rows: int, after: int, random: np.random.Generator) -> pa.Table:
        """So many sales, all after the given time."""
        gaps = random.exponential(SECOND / self.rate, rows)
        ts = after + 1 + np.cumsum(gaps).astype(np.int64)
        columns: dict[str, Any] = {
            "store_id": random.integers(0, self.stores, rows, dtype=np.int32),
            "item_id": random.integers(0, self.items, rows, dtype=np.int32),
            "price": random.integers(0, 21, rows).astype(np.float64) if self.whole_prices else 20 * random.random(rows),
            "quantity": random.integers(1, 10, rows, dtype=np.int32),
            "ts": pa.array(ts, pa.timestamp("us", tz="UTC")),
        }
        return pa.table(columns)


def write_stream(directory: Path, sales: Sales, sizes: Sequence[int], seed: int) -> None:
    """Write one file for each size. The files' times of change are a second apart: Spark reads them in that order."""
    directory.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(seed)
    last = START
    for number, rows in enumerate(sizes):
        table = sales.table(rows, last, random)
        last = table.column("ts")[-1].value
        path = directory / f"{number:05d}.parquet"
        pq.write_table(table, path, row_group_size=max(1, rows // 8))
        when = START // SECOND + number
        os.utime(path, (when, when))
