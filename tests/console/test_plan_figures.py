"""The figures of the picture of a plan: rows per second of the wall clock, not of the time that batches took."""

from __future__ import annotations

from collections import deque
from typing import Any

import pytest

from sash.console import plan_figures
from sash.console.plan_figures import with_figures

SECOND = 1_000_000
PLAN: dict[str, Any] = {
    "name": "shop",
    "nodes": [
        {"id": "leg:0", "kind": "leg", "label": "sales", "stream": "sales"},
        {"id": "0.0.Aggregate", "kind": "operator", "label": "Aggregate", "stage": 0},
        {"id": "out:totals", "kind": "output", "label": "totals"},
    ],
    "edges": [
        {"from": "leg:0", "to": "0.0.Aggregate", "pattern": "WKS"},
        {"from": "0.0.Aggregate", "to": "out:totals", "pattern": "STR"},
    ],
    "stages": [{"index": 0}],
}
COUNTS = {"rows_in": 60, "rows_out": 30, "state_rows": 5, "state_bytes": 640, "microseconds": 2_000}
REPORT: dict[str, Any] = {
    "jobs": {
        "shop": {
            "batch_ms": 200,
            "operators": {"0.0.Aggregate": COUNTS},
            "streams": {"Sales": {"rows_in": 60}},
            "shards": {"0.0.Aggregate": [COUNTS, COUNTS]},
            "stages": {"0": [{"seconds": 0.1, "state_rows": 5}]},
        }
    },
    "separate": {},
    "queries": {"totals": {"rows_out": 30}},
    "choices": {},
}


@pytest.mark.parametrize(("passed", "seconds"), [(0.5, 2), (12, 12)])
def test_rates_are_of_the_time_between_batches(monkeypatch: pytest.MonkeyPatch, passed: float, seconds: int) -> None:
    monkeypatch.setattr(plan_figures.time, "time", lambda: 103 + passed)
    batches = {"job shop": deque({"time": at * SECOND, "batch_ms": 200} for at in (100, 101, 103))}
    found = with_figures(PLAN, REPORT, batches)
    leg, operator, output = found["nodes"]
    assert leg["rows_per_second"] == found["edges"][0]["rows_per_second"] == 60 / seconds
    assert output["rows_per_second"] == found["edges"][1]["rows_per_second"] == 30 / seconds
    assert (operator["rows_in"], operator["seconds"]) == (60, 0.002)
    assert [shard["seconds"] for shard in operator["shards"]] == [0.002, 0.002]
    assert found["stages"][0]["shards"] == [{"shard": 0, "seconds": 0.1, "state_rows": 5}]


def test_a_job_that_does_not_answer_has_its_plan_without_figures() -> None:
    found = with_figures(PLAN, None, {})
    assert [node["id"] for node in found["nodes"]] == [node["id"] for node in PLAN["nodes"]]
    assert all(edge["rows_per_second"] is None for edge in found["edges"])
