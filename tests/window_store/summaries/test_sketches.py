from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from sash.errors import UnsupportedSqlError
from sash.testing import replay
from tests.window_store.feeding import Fed, layout


@pytest.fixture
def fed(tmp_path: Path) -> Fed:
    """4,000 rows: v has 1,500 values, the small ones more often; x is uniform in [0, 1)."""
    found = Fed(tmp_path, layout(10, 4))
    rng = np.random.default_rng(5)
    ts = np.sort(rng.integers(0, 40, 4000))
    v = np.minimum(rng.geometric(0.002, 4000), 1500)
    columns = {"_ts": ts, "ts": ts, "k": pa.array(["a", "b"] * 2000), "v": v, "x": rng.random(4000)}
    found.writer.apply(0, pa.table(columns), 40)
    return found


def test_estimates_keep_the_error_that_they_state(fed: Fed) -> None:
    sql = (
        "SELECT k, APPROX_COUNT_DISTINCT(v, 0.02) AS about, COUNT(DISTINCT v) AS exactly, "
        "APPROX_PERCENTILE(x, 0.9, 100) AS high, APPROX_TOP_K(v, 3) AS top FROM s GROUP BY k"
    )
    for access in ("WS", "SS", "SS"):
        (answer,) = fed.snapshot(sql, access=access)
        for row in answer.to_pylist():
            assert row["about"] == pytest.approx(row["exactly"], rel=4 * 0.02)
            assert row["high"] == pytest.approx(0.9, abs=0.02)
            top = json.loads(row["top"])
            assert len(top) == 3
            counts = [fed.snapshot(f"SELECT COUNT(*) AS n FROM s WHERE k = '{row['k']}' AND v = {item['item']}")[0]
                      .to_pylist()[0]["n"] for item in top]  # fmt: skip
            assert [item["count"] for item in top] == pytest.approx(counts, abs=0.002 * 2000)
    stated = answer.errors
    assert "relative standard deviation 0.0163" in stated["approx_count_distinct(v, 0.02)"]
    assert set(stated) == {"approx_count_distinct(v, 0.02)", "approx_percentile(x, 0.9, 100)", "approx_top_k(v, 3)"}
    assert all(error in answer.explain() for error in stated.values())
    fed.close()


def test_nothing_to_estimate(fed: Fed) -> None:
    sql = "SELECT APPROX_COUNT_DISTINCT(v) AS n, APPROX_PERCENTILE(x, 0.5) AS p, APPROX_TOP_K(k, 2) AS t FROM s WHERE v < 0"
    (answer,) = fed.snapshot(sql)
    assert answer.to_pylist() == [{"n": 0, "p": None, "t": "[]"}]
    fed.close()


def test_standing_queries_are_exact_and_have_no_sketches() -> None:
    rows = [{"ts": ts, "v": ts % 700} for ts in range(1_000)]
    result = replay("SELECT APPROX_COUNT_DISTINCT(v) AS n FROM s [RANGE 1 HOUR]", {"s": rows})
    assert result.at(1_000) == [{"n": 700}]
    with pytest.raises(UnsupportedSqlError, match=r"engine\.snapshot"):
        replay("SELECT APPROX_TOP_K(v, 2) AS n FROM s [NOW]", {"s": rows})
