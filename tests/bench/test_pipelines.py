"""The delays of paper 1 in the event-by-event simulation."""

from __future__ import annotations

import pytest

from bench.paper1.measure import QUERIES
from bench.pipelines import Workload


@pytest.mark.parametrize("query", QUERIES)
def test_input_triggered_is_ten_times_as_late_as_the_others(query: str) -> None:
    workload = Workload(query, rate=10, window=4, length=10)
    service = dict.fromkeys(("Expire", "Aggregate", "Distinct", "Join", "SetOperation"), 500.0)
    late = workload.simulate("input-triggered", service)
    assert len(late.delays) > 5
    for strategy in ("time-probing", "negative-tuple", "hybrid"):
        slow = workload.simulate(strategy, service)
        assert slow.unreleased == 0 or slow.longest > 0
        assert late.average >= 10 * slow.average, strategy
