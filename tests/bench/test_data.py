from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bench.data import Sales, write_stream
from sash.time import SECOND


def test_files_are_in_order_by_name_time_of_change_and_sales(tmp_path: Path) -> None:
    write_stream(tmp_path, Sales(rate=1_000), [500, 300, 200], seed=1)
    files = sorted(tmp_path.iterdir())
    assert [pq.read_metadata(file).num_rows for file in files] == [500, 300, 200]
    changed = [file.stat().st_mtime for file in files]
    assert [later - earlier for earlier, later in pairwise(changed)] == [1, 1]
    times = np.concatenate([pq.read_table(file).column("ts").cast("int64").to_numpy() for file in files])
    assert (np.diff(times) >= 0).all()
    assert len(set(times[[499, 500]])) == 2


def test_the_same_seed_gives_the_same_sales(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_stream(tmp_path / name, Sales(rate=10), [100], seed=3)
    first, second = (pq.read_table(tmp_path / name / "00000.parquet") for name in ("a", "b"))
    assert first.equals(second)


def test_rate_is_of_event_time() -> None:
    sales = Sales(rate=20_000).table(100_000, 0, np.random.default_rng(0))
    assert abs(sales.column("ts")[-1].value - 5 * SECOND) < 0.1 * SECOND


def test_whole_prices_are_the_integers_to_twenty() -> None:
    prices = Sales(rate=1, whole_prices=True).table(10_000, 0, np.random.default_rng(0)).column("price")
    assert set(prices.to_pylist()) == set(map(float, range(21)))
    assert pc.count_distinct(Sales(rate=1).table(1_000, 0, np.random.default_rng(0)).column("price")).as_py() > 900
