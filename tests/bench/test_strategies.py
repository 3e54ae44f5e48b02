"""The benchmark of strategies on Spark: its page, and the figures of a query's releases."""

from __future__ import annotations

from typing import Any

from bench.strategies import BASELINES, STRATEGIES, WINDOW, _figures, excess, page
from sash.testing import Change, Result
from sash.time import SECOND


def change(seconds: int, batch: int | None) -> Change:
    return Change(seconds * SECOND, "+", {"n": seconds}, None, batch)


def test_delays_are_those_of_the_batches_that_release_once_the_window_is_full() -> None:
    full = WINDOW + 1
    prompt: dict[Any, int | None] = {(s * SECOND, "+", s): s for s in (1, full, full + 1, full + 2)}
    late = Result([change(1, 9), change(full, full), change(full + 1, full + 3), change(full + 2, None)])
    found = _figures(late, prompt, [(number + 1) * SECOND for number in range(20)])
    assert (found["batches_late"], found["delay_ms"], found["longest_ms"], found["never"]) == (1, 2000, 3000, 1)


def test_the_page_has_a_row_for_every_strategy_and_the_excess_of_piggybacking() -> None:
    counts = {"rows": 100, "negatives": 0, "messages": 5, "time_probes": 0, "switches": 0}
    figures = {**counts, "batches_late": 0.5, "delay_ms": 700, "longest_ms": 1500, "never": 0}
    releases = dict.fromkeys(STRATEGIES, figures)
    assert round(excess(releases), 3) == 0.05
    settings = {"window_s": 10, "length_s": 30, "batch_s": 1.5, "rows_per_batch": 1000}
    found = {"settings": settings, "releases": {"q1": {"5": releases}}, "throughput": {"q1": {"auto": 1_000_000}}}
    assert "Re-evaluation" not in page(found)
    text = page({**found, "recomputed": {"q1": dict.fromkeys(BASELINES, 321)}})
    assert "| Q1 | 321 | 321 | 321 | 321 |" in text
    assert all(f"| {name} | 100 | 0 | 5 |" in text for name in STRATEGIES)
    assert "| Q1 | 5.0% |" in text
    assert "| Q1 | 1,000,000 |" in text
