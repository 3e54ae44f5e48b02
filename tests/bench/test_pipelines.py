"""The experiments of papers 1 and 3 at a small size, and their pages."""

from __future__ import annotations

import pytest

from bench import paper1, paper3
from bench.pipelines import Workload


@pytest.mark.parametrize("query", paper1.QUERIES)
def test_input_triggered_is_ten_times_as_late_as_the_others(query: str) -> None:
    workload = Workload(query, rate=10, window=4, length=10)
    service = dict.fromkeys(("Expire", "Aggregate", "Distinct", "Join", "SetOperation"), 500.0)
    late = workload.simulate("input-triggered", service)
    assert len(late.delays) > 5
    for strategy in ("time-probing", "negative-tuple", "hybrid"):
        slow = workload.simulate(strategy, service)
        assert slow.unreleased == 0 or slow.longest > 0
        assert late.average >= 10 * slow.average, strategy


def test_pages_are_written_from_the_figures_of_a_run() -> None:
    run = paper3.measure(window=2, length=4, rates=(2, 50))
    assert "Piggybacking brings the excess" in paper3.page(run)
    assert len(paper3.figures(run)) == 4
    point = {key: {"average_ms": 2.0, "longest_ms": 3.0, "never": 0, "rows": 10} for key in paper1.STRATEGIES}
    made = {
        "settings": {"rate": 10, "window_seconds": 2, "length_seconds": 4},
        "fig8": dict.fromkeys(paper1.QUERIES, point),
        "fig9": {query: {"5": point, "10": point} for query in ("q3", "q4")},
        "fig10": {"2": point, "3": point},
        "fig11": {"0.1": point, "1.0": point},
        "fig12": {query: dict.fromkeys(paper1.STRATEGIES, 1000) for query in ("q1", "q4")},
    }
    assert "does not hold here, by 1 times" in paper1.page(made)
    assert len(paper1.figures(made)) == 6
