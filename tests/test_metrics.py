from __future__ import annotations

import urllib.error
import urllib.request
from typing import Any

import pytest

from sash.metrics import CONTENT_TYPE, MetricsServer, exposition
from sash.spark.batch_metrics import EDGES, percentile


class Query:
    """The part of a running query that the metrics use."""

    def __init__(self, active: bool = True) -> None:
        self.active = active

    def progress(self) -> dict[str, Any]:
        return {
            "batch": 3,
            "watermark": 17,
            "state_rows": 5,
            "rows_per_second": None,
            "total_rows_in": 40,
            "total_late": 2,
            "delay_seconds": {"average": 0.4, "p50": 0.5, "p95": None, "p99": None, "max": 0.7},
            "operators": {"0.1.Aggregate": {"rows_per_second": 12.5}},
        }

    def operators(self) -> dict[str, dict[str, int]]:
        parts = ("rows_in", "rows_in_negative", "rows_out", "rows_out_negative", "expired", "state_rows", "state_bytes")
        return {"0.1.Aggregate": dict(zip(parts, range(1, 8), strict=True))}

    @property
    def delay_sum(self) -> float:
        return 2.5

    def delays(self) -> tuple[int, ...]:
        return (1, 2, *([0] * (len(EDGES) - 2)), 4)


def text(**queries: Query) -> list[str]:
    return exposition(queries).splitlines()  # type: ignore[arg-type]


def test_query_groups_are_labelled_by_window_and_summaries() -> None:
    group = {"window": "s", "summaries": ["count-1", "sums-2"], "queries": 2, "scans": 7, "reads_shared": 5, "bytes": 9}
    lines = exposition({}, [group]).splitlines()
    labels = '{window="s",summaries="count-1, sums-2"}'
    assert f"sash_query_group_queries{labels} 2" in lines
    assert f"sash_query_group_scans_total{labels} 7" in lines
    assert f"sash_query_group_reads_shared_total{labels} 5" in lines
    assert f"sash_query_group_bytes{labels} 9" in lines


def test_metrics_are_labelled_by_query_and_operator() -> None:
    lines = text(q=Query(), other=Query(active=False))
    assert 'sash_up{query="q"} 1' in lines
    assert 'sash_up{query="other"} 0' in lines
    assert 'sash_rows_in_total{query="q"} 40' in lines
    assert 'sash_late_total{query="q"} 2' in lines
    assert 'sash_watermark{query="q"} 17' in lines
    assert 'sash_operator_expired_total{query="q",stage="0",position="1",operator="Aggregate"} 5' in lines
    assert 'sash_operator_state_rows{query="q",stage="0",position="1",operator="Aggregate"} 6' in lines
    assert 'sash_operator_state_bytes{query="q",stage="0",position="1",operator="Aggregate"} 7' in lines
    assert 'sash_operator_rows_per_second{query="q",stage="0",position="1",operator="Aggregate"} 12.5' in lines
    assert 'sash_batch_delay_seconds{query="q",quantile="0.5"} 0.5' in lines
    assert 'sash_batch_delay_seconds{query="q",quantile="1"} 0.7' in lines
    assert not any('quantile="0.95"' in line for line in lines), "longer than the last edge"
    assert not any(line.startswith("sash_rows_per_second{") for line in lines), "not known yet"


class JobQuery(Query):
    """A query of a job, whose windows may not be full."""

    parked = True

    def __init__(self, complete: bool) -> None:
        super().__init__()
        self.complete = complete

    def progress(self) -> dict[str, Any]:
        return super().progress() | ({} if self.complete else {"complete": False, "complete_from": None})


def test_queries_of_jobs_are_parked_or_not_and_complete_or_not() -> None:
    lines = text(separate=Query(), full=JobQuery(complete=True), new=JobQuery(complete=False))
    assert [line for line in lines if line.startswith(("sash_complete", "sash_parked"))] == [
        'sash_parked{query="full"} 1',
        'sash_parked{query="new"} 1',
        'sash_complete{query="full"} 1',
        'sash_complete{query="new"} 0',
    ]


def test_every_family_is_declared_once() -> None:
    lines = text(q=Query(), other=Query())
    declared = [line.split()[2] for line in lines if line.startswith("# TYPE")]
    assert len(declared) == len(set(declared))
    for line in lines:
        if not line.startswith("#"):
            family = line.split("{")[0].removesuffix("_bucket").removesuffix("_count").removesuffix("_sum")
            assert family in declared


def test_delays_are_a_cumulative_histogram() -> None:
    lines = [line for line in text(q=Query()) if line.startswith("sash_output_delay_seconds_bucket")]
    assert [int(line.split()[-1]) for line in lines] == [1, *([3] * (len(EDGES) - 1)), 7]
    assert 'le="+Inf"' in lines[-1]
    assert 'sash_output_delay_seconds_sum{query="q"} 2.5' in text(q=Query())


def test_an_engine_without_queries_has_no_metrics() -> None:
    assert exposition({}).strip() == ""


def test_names_are_escaped() -> None:
    assert 'sash_up{query="a\\"b\\\\c"} 1' in exposition({'a"b\\c': Query()})  # type: ignore[dict-item]


def test_percentiles_are_of_buckets() -> None:
    none = [0] * (len(EDGES) + 1)
    assert percentile(none, 0.5) is None
    assert percentile([98, 1, *none[2:-1], 1], 0.5) == EDGES[0]
    assert percentile([98, 1, *none[2:-1], 1], 0.99) == EDGES[1]
    assert percentile([98, 1, *none[2:-1], 1], 1.0) is None, "longer than the last edge"


def test_a_real_server_answers() -> None:
    server = MetricsServer(lambda: "sash_up 1\n", 0, "127.0.0.1")
    try:
        with urllib.request.urlopen(server.url) as answer:
            assert answer.headers["Content-Type"] == CONTENT_TYPE
            assert answer.read() == b"sash_up 1\n"
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(server.url + "/other")
    finally:
        server.close()
