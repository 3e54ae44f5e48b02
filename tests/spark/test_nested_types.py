"""Arrays, structs and maps through legs, scatter, stages, the log and sinks on Spark."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from sash.testing import replay_job

pytestmark = pytest.mark.spark

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
DETAIL = pa.struct(
    [
        ("at", pa.timestamp("us", "UTC")),
        ("tags", pa.list_(pa.string())),
        ("b c", pa.decimal128(10, 2)),
        ("d", pa.date32()),
    ]
)
ROWS = pa.table(
    {
        "ts": [1, 2, 3, 4, 5],
        "k": [1, 2, 1, None, 2],
        "scores": pa.array([[1.5, -0.0], None, [], [None], [1.5, 0.0]], pa.list_(pa.float64())),
        "detail": pa.array(
            [
                {"at": NOON, "tags": ["a", None], "b c": Decimal("1.50"), "d": NOON.date()},
                None,
                {"at": None, "tags": None, "b c": None, "d": None},
                {"at": NOON, "tags": [], "b c": Decimal("-1.00"), "d": None},
                None,
            ],
            DETAIL,
        ),
        "counts": pa.array(
            [[("x", [1])], [], None, [("y", None), ("x", [2, None])], []], pa.map_(pa.string(), pa.list_(pa.int32()))
        ),
    }
)

QUERIES = [
    "SELECT * FROM s [RANGE 3 SECONDS]",
    "SELECT DISTINCT scores, detail FROM s [RANGE 3 SECONDS]",
    "SELECT a.k, a.counts, b.detail FROM s [RANGE 3 SECONDS] a JOIN s [RANGE 3 SECONDS] b ON a.scores = b.scores",
    "SELECT get(detail.tags, 0) AS t, detail.at AS at, MAX(detail) AS m, COUNT(*) AS n FROM s [RANGE 3 SECONDS] GROUP BY ALL",
    "SELECT x, key, k FROM s [RANGE 3 SECONDS] LATERAL VIEW OUTER explode(scores) t AS x LATERAL VIEW explode(counts) u",
]


def folded(result: Any) -> list[str]:
    return sorted(repr((change.ts, change.op, list(change.row.items()))) for change in result.changes)


def test_nested_columns_are_carried_on_spark_as_locally() -> None:
    queries = {f"q{number}": sql for number, sql in enumerate(QUERIES)}
    local, spark = (
        replay_job(queries, {"s": ROWS}, unit="s", batch=2, runtime=runtime) for runtime in ("local", "spark")
    )
    for name, sql in queries.items():
        assert folded(spark[name]) == folded(local[name]), sql
