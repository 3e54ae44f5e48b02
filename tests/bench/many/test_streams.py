"""The streams that Spark makes: times in order, skewed keys, and the shares of events that pass filters."""

from __future__ import annotations

from typing import TYPE_CHECKING

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from bench.many.streams import ACCOUNTS, SCHEMAS, rows_of
from bench.many.workload import BROAD, NARROW, alike

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RATE = 10_000
SECONDS = 30

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def tables(spark: SparkSession) -> dict[str, pa.Table]:
    """Thirty seconds of each stream, numbered and dated as the rate source does, which rounds to milliseconds."""
    numbered = spark.range(RATE * SECONDS).selectExpr(
        "id AS value", f"timestamp_millis(CAST(floor(id * 1000 / {RATE} + 0.5D) AS BIGINT)) AS timestamp"
    )
    return {name: rows_of(name, numbered, RATE).toArrow() for name in SCHEMAS}


@pytest.mark.parametrize("stream", SCHEMAS)
def test_times_are_in_order_and_in_their_second(tables: dict[str, pa.Table], stream: str) -> None:
    times = tables[stream].column("ts").cast(pa.int64()).to_numpy()
    assert np.all(np.diff(times) > 0)
    assert np.array_equal(times // 1_000_000, np.arange(RATE * SECONDS) // RATE)


@pytest.mark.parametrize("stream", SCHEMAS)
def test_filters_are_broad_or_narrow(tables: dict[str, pa.Table], stream: str) -> None:
    rows = tables[stream]
    assert rows.num_rows == RATE * SECONDS
    for filters, least, most in ((BROAD, 0.13, 0.7), (NARROW, 0.0005, 0.1)):
        for condition in filters[stream]:
            (share,) = duckdb.sql(f"SELECT AVG(CASE WHEN {condition} THEN 1.0 ELSE 0 END) FROM rows").fetchall()[0]
            assert least <= share <= most, condition


def test_accounts_are_skewed(tables: dict[str, pa.Table]) -> None:
    accounts = tables["payments"].column("account").to_numpy()
    assert np.mean(accounts < ACCOUNTS // 100) == pytest.approx(0.1, abs=0.01)
    assert len(np.unique(accounts)) > ACCOUNTS / 2


def test_one_percent_of_merchants_pass_a_having(tables: dict[str, pa.Table]) -> None:
    payments = tables["payments"]
    totals = payments.group_by("merchant").aggregate([("amount", "sum")]).column("amount_sum").to_numpy()
    thresholds = [float(query.sql.rpartition("> ")[2]) for query in alike(1_000, RATE)[1::2]]
    shares = [np.mean(totals > threshold) for threshold in thresholds]
    assert len(thresholds) == 500
    assert np.mean(shares) == pytest.approx(0.01, abs=0.002)
    assert max(shares) <= 0.02
