"""The sales generator of the demonstration: a thread that writes files of random sales in real time."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

SCHEMA = "ts TIMESTAMP, store_id INT, item_id INT, price DOUBLE, quantity INT"
_PERIOD = 0.5
_STORES = 100


class SalesGenerator:
    """Writes a file of sales every half second while entered, except while it is `paused`.

    With `whole`, prices are whole numbers, so that equal prices occur.
    """

    def __init__(self, directory: Path, rate: int, items: int, *, whole: bool = False) -> None:
        directory.mkdir(exist_ok=True)
        self._directory = directory
        self._digits = 0 if whole else 2
        self._rate = rate
        self._items = items
        self._random = np.random.default_rng()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._work, name="sash-sales", daemon=True)
        self.paused = False

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closed.set()
        self._thread.join()

    def _work(self) -> None:
        number = 0
        while not self._closed.wait(_PERIOD):
            if not self.paused:
                number += 1
                hidden = self._directory / f".{number:06d}.parquet"
                pq.write_table(self._sales(), hidden)
                hidden.rename(self._directory / f"{number:06d}.parquet")

    def _sales(self) -> pa.Table:
        """Sales of the last half second; some items sell more often than others."""
        count = max(1, round(self._rate * _PERIOD))
        now = time.time_ns() // 1_000
        ts = np.sort(self._random.integers(now - round(_PERIOD * 1e6), now, count))
        return pa.table(
            {
                "ts": pa.array(ts, pa.timestamp("us", tz="UTC")),
                "store_id": self._random.integers(0, _STORES, count, dtype=np.int32),
                "item_id": (self._items * self._random.random(count) ** 2).astype(np.int32),
                "price": np.round(1 + 19 * self._random.random(count), self._digits),
                "quantity": self._random.integers(1, 6, count, dtype=np.int32),
            }
        )
