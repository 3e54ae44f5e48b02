"""The benchmark of strategies: the figures of a run, its claims over made-up figures, and its page."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bench.pipelines import Workload
from bench.strategies import BASELINES, STRATEGIES, WINDOW, claims, excess, page
from bench.strategy_releases import BatchedRun, measure_releases, run_batches
from sash.runtime.counts import Counts
from sash.time import SECOND

MEASURES = ("rows", "negatives", "messages", "time_probes", "switches", "batches_late", "delay_ms", "longest_ms")


def test_delays_are_those_of_the_batches_that_release_once_the_window_is_full() -> None:
    full = WINDOW + 1
    seconds = np.array([1, full, full + 1, full + 2])
    clocks = np.arange(1, 21) * SECOND
    counts = {"0.0.Expire": Counts(taken=9), "0.1.Join": Counts(taken=30, taken_negative=4, messages=2)}
    run = BatchedRun(seconds * SECOND, np.array([9, full, full + 3, -1]), clocks, clocks, counts, 10, 2000)
    found = run.figures(WINDOW * SECOND)
    assert (found["rows"], found["negatives"], found["messages"]) == (20, 2, 1)
    assert (found["batches_late"], found["delay_ms"], found["longest_ms"]) == (1, 2000, 3000)
    assert (found["changes"], found["never"]) == (2, 1)


def test_a_run_releases_by_its_strategy() -> None:
    workload = Workload("q1", 5, 4, 20)
    since = workload.window * SECOND
    found = {
        name: run_batches(workload, 1.5, name, STRATEGIES[name]).figures(since)
        for name in ("input-triggered", "time-message", "time-probing, 1 s", "negative-tuple")
    }
    assert found["time-message"]["batches_late"] == found["negative-tuple"]["batches_late"] == 0
    assert found["input-triggered"]["delay_ms"] > found["time-message"]["delay_ms"]
    assert found["time-message"]["messages"] > 0 == found["input-triggered"]["messages"]
    assert found["time-probing, 1 s"]["time_probes"] > 0
    assert found["negative-tuple"]["rows"] > 1.3 * found["time-message"]["rows"]
    assert found["time-message"]["changes"] == found["negative-tuple"]["changes"]


def test_runs_are_as_long_as_they_must_be_for_so_many_changes() -> None:
    found = measure_releases(Workload("q1", 5, 2, 4), 1.5, {"time-message": {}}, changes=100, seeds=2)
    assert len(found["time-message"]["changes"]) == 2
    assert min(found["time-message"]["changes"]) >= 100


def made() -> dict[str, Any]:
    """Figures in which every claim holds: two runs at two rates."""

    def point(late: float, message: float) -> dict[str, Any]:
        by: dict[str, Any] = {
            name: {**{measure: [0.0, 0.0] for measure in MEASURES}, "changes": [60, 70], "never": [0, 1]}
            for name in STRATEGIES
        }
        for name, figures in by.items():
            figures["rows"] = [100.0, 110.0]
            figures["delay_ms"] = [900.0, 900.0] if name == "input-triggered" else [700.0, 710.0]
        by["input-triggered"]["batches_late"] = [late, late]
        by["piggyback, 0.5 s"]["messages"] = [message, message]
        return by

    return {
        "settings": {"window_s": 10, "length_s": 30, "batch_s": 1.5, "rows_per_batch": 1000, "seeds": 2},
        "releases": {"q1": {"5": point(0.5, 20.0), "200": point(0.1, 1.0)}},
        "on_spark": {"q1": {"5": {"changes": 50, "same_changes": 50, "counts": 7, "same_counts": 7}}},
        "throughput": {"q1": {"auto": [1_000_000, 2_000_000]}},
        "recomputed": {"q1": {name: [300, 321, 400] for name in BASELINES}},
    }


def test_all_claims_hold_where_they_should() -> None:
    assert [claim.text for claim in claims(made()) if not claim.held] == []
    assert len(claims(made())) == 6


@pytest.mark.parametrize(
    ("text", "rate", "name", "measure", "values"),
    [
        ("whose watermark passes it", "200", "hybrid", "batches_late", [0.0, 0.001]),
        ("is later than these", "200", "input-triggered", "delay_ms", [900.0, 700.0]),
        ("is less late at the high rate", "200", "input-triggered", "batches_late", [0.6, 0.6]),
        ("is within 10 %", "200", "piggyback, 0.5 s", "messages", [1.0, 12.0]),
        ("is smaller at the high rate", "200", "piggyback, 0.5 s", "rows", [100.0, 140.0]),
    ],
)
def test_one_wrong_run_fails_its_claim(text: str, rate: str, name: str, measure: str, values: list[float]) -> None:
    found = made()
    found["releases"]["q1"][rate][name][measure] = values
    assert [claim.held for claim in claims(found) if text in claim.text] == [False]


@pytest.mark.parametrize("part", ["same_changes", "same_counts"])
def test_one_difference_on_spark_fails_its_claim(part: str) -> None:
    found = made()
    found["on_spark"]["q1"]["5"][part] -= 1
    assert [claim.held for claim in claims(found) if "Spark" in claim.text] == [False]


def test_the_page_has_a_row_for_every_strategy_and_the_excess_of_piggybacking() -> None:
    found = made()
    assert [round(share, 3) for share in excess(found["releases"]["q1"]["5"])] == [0.2, 0.182]
    text = page({**found, "claims": [vars(claim) for claim in claims(found)]})
    assert "at least 130 changes" in text
    assert all(f"| {name} | 105 [100-110] | 0 | " in text for name in STRATEGIES)
    assert "| Q1 | 19.1 [18.2-20] | " in text
    assert "| Q1, 5 | 50 | 50 | 7 | 7 |" in text
    assert "| Q1 | 1,500,000 [1,000,000-2,000,000] |" in text
    assert "| Q1 | 321 [300-400] |" in text
