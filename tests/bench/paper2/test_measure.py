"""Paper 2's experiments (section 5), small: the shapes of the figures, in simulation."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from bench.paper2.claims import claims
from bench.paper2.measure import Plan, judged, measure, plots, table
from bench.paper2.packets import answer, packets, scan
from bench.paper2.page import write
from bench.paper2.workload import workload


@pytest.fixture(scope="module")
def results() -> dict[str, object]:
    return judged(measure(Plan([10, 40], 2, [], 0.1, 1.0, 1), "simulated"))


def lines(results: dict, figure: int) -> dict[str, list[float]]:
    (found,) = (kept for kept in results["figures"] if kept["name"] == f"paper2-fig{figure}")
    return {name: [y for _, y in points] for name, points in found["series"].items()}


def test_the_same_seed_gives_the_same_workload() -> None:
    first, again, other = (workload(20, 1.0, 40, seed, snapshots=True) for seed in (1, 1, 2))
    assert first == again
    assert first != other
    assert 4 < max(first.reads) / min(first.reads) < 20  # rates differ up to a hundred times, fixed costs do not


def test_only_the_unordered_scheduler_aborts(results: dict) -> None:
    aborted = lines(results, 8)
    assert aborted["ttu, t = 1 s"] == [0, 0]
    assert aborted["latest-window-serializable, t = 1 s"][1] > 10


def test_answers_of_the_latest_levels_are_fresher(results: dict) -> None:
    for figure in (9, 14):
        shown = lines(results, figure)
        suffix = ", t = 1 s" if figure == 9 else ""
        assert shown[f"ttu{suffix}"][1] < shown[f"latest-window-serializable{suffix}"][1]
        assert shown[f"latest-window-serializable{suffix}"][1] < shown[f"serial{suffix}"][1]


def test_aborts_of_algorithm_1_rise_where_a_scan_takes_as_long_as_an_update(results: dict) -> None:
    (scans,) = (kept["series"] for kept in results["figures"] if kept["name"] == "paper2-scans")
    shares = dict(scans["latest-window-serializable"])
    assert shares[0.9] < shares[1.1] < shares[1.4]
    assert {share for _, share in scans["ttu"]} == {0}


def test_suspension_makes_snapshot_queries_fast(results: dict) -> None:
    response = lines(results, 12)
    assert response["ttu"][1] < response["serial, by priority"][1] / 3 < response["serial"][1] / 3


def test_every_figure_is_drawn_and_every_claim_has_its_numbers(
    results: dict, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names = [*(f"paper2-fig{number}" for number in range(8, 15)), "paper2-scans"]
    assert [figure.name for figure in plots(results)] == names
    assert all(math.isfinite(y) for figure in plots(results) for points in figure.series.values() for _, y in points)
    assert [claim["held"] for claim in results["claims"]] == [claim.held for claim in claims(results)]
    assert table(results).row_count == len(results["claims"])
    page = write(results).read_text(encoding="utf-8")
    assert all(f"figures/{figure.name}.svg" in page for figure in plots(results))


def test_scans_add_up_to_the_answer_over_all_packets() -> None:
    rng = np.random.default_rng(1)
    windows = [packets(rng, 500) for _ in range(3)]
    totals = np.zeros(1_000, np.int64)
    for window in windows:
        np.add.at(totals, window.destination, window.size)
    busiest, percentiles = answer(tuple(scan(window, 1) for window in windows))
    assert totals[busiest[-1]] == totals.max()
    assert percentiles[1] == np.percentile(totals, 50)
