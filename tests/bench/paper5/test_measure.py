"""Paper 5's experiments at a small size, with a fixed seed: counts, not times."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.paper5.breakdown import LEGS, REST, breakdown
from bench.paper5.checkpoint import sizes
from bench.paper5.command import judged, measure_all, plots, rows_of, table
from bench.paper5.ends import measure_ends
from bench.paper5.measure import measure, merged
from bench.paper5.page import write
from bench.paper5.queries import CASES, STRATEGIES
from bench.paper5.trace import generated, recorded
from sash.errors import SashError

BY_NAME = {case.name: case for case in CASES}


def by_strategy(name: str, window_rows: int, more: int = 4_000) -> dict[str, dict[str, Any]]:
    results = measure(BY_NAME[name], generated(window_rows + more), 1_000 * window_rows, batch=1_000)
    return {result["strategy"]: result for result in results}


@pytest.mark.parametrize("name", BY_NAME)
def test_all_strategies_give_the_same_answer(name: str) -> None:
    results = by_strategy(name, 3_000)
    assert set(results) == set(STRATEGIES)
    assert len({(result["answer_rows"], result["changes"]) for result in results.values()}) == 1


@pytest.mark.parametrize("name", ["q2-src", "q2-pairs"])
def test_delta_star_keeps_at_most_twice_its_output(name: str) -> None:
    result = by_strategy(name, 5_000)["update-pattern-aware"]
    (kept,) = [rows for operator, rows in result["operator_rows"].items() if operator.endswith("Distinct")]
    assert kept <= 2 * result["answer_rows"]
    assert result["state_rows"] == kept


def test_delta_star_takes_a_tenth_of_the_bytes_of_two_buffers() -> None:
    results = by_strategy("q2-src", 200_000, more=2_000)
    assert results["direct"]["state_bytes"] >= 10 * results["update-pattern-aware"]["state_bytes"]


def test_two_fifths_of_the_results_of_a_negation_end_prematurely() -> None:
    assert by_strategy("q3", 20_000)["update-pattern-aware"]["premature"] == pytest.approx(0.4, abs=0.05)


def test_the_unselective_protocol_has_ten_times_the_results() -> None:
    few, many = (by_strategy(name, 30_000)["direct"]["answer_rows"] for name in ("q1-ftp", "q1-telnet"))
    assert many == pytest.approx(10 * few, rel=0.2)


def test_above_a_negation_both_ways_give_the_same_and_calendars_hand_over_less() -> None:
    matches = {"anti join": (0.02, 0.5), "EXCEPT ALL": (0.1, 2.0)}
    results = measure_ends(10_000, 15_000, matches)
    assert [result["negation"] for result in results] == ["anti join", "anti join", "EXCEPT ALL", "EXCEPT ALL"]
    for few, many in (results[:2], results[2:]):
        assert few["premature"] < 0.2
        assert many["premature"] > 0.5
    for result in results:
        assert len(set(result["changes"].values())) == 1
        assert result["handed_over"]["calendar"] < result["handed_over"]["negative tuples"]


def test_everything_is_shown_and_written(tmp_path: Path) -> None:
    experiments = "generated,recorded,variants,sizes,ends"
    found = measure_all(
        "q1-ftp,q3,q4,q5-below,q5-above", [1_000, 2_000], 12_000, 2, tmp_path, 10_000, experiments=experiments
    )
    figures = judged(found)
    assert len(figures["skipped"]) == 3
    assert len(rows_of(figures["results"])) == 2 * 5
    assert all(len(result["runs"]) == 2 for result in figures["results"])
    assert {choice["trace"] for choice in figures["choices"]} == {"generated"}
    assert table(figures)
    assert len(plots(figures)) == 5 + 1 + 1
    text = write(figures, tmp_path / "paper5.md").read_text(encoding="utf-8")
    assert all(f"## {BY_NAME[name].title}" in text for name in ("q1-ftp", "q3", "q4"))
    assert "calendar or negative tuples" in text
    assert "| q1-ftp | direct |" in text
    assert "| q1-ftp | 5,000 |" in text
    assert "update-pattern-aware(50)" in text
    assert "lbl_pkt4_udp.parquet is not in" in text


def test_unknown_queries_and_experiments_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SashError, match="unknown query 'q9'"):
        measure_all("q9", [1_000], 1_000, 1, tmp_path, 1_000, checkpoint=False)
    with pytest.raises(SashError, match="unknown experiment 'fig9'"):
        measure_all("all", [1_000], 1_000, 1, tmp_path, 1_000, experiments="fig9")


def test_seeds_are_merged_to_medians() -> None:
    def run(ms: float, kept: float) -> list[dict[str, Any]]:
        return [{"ms_per_1000": ms, "state_bytes": int(ms), "kept_per_output": kept, "operator_rows": {}}]

    assert merged([run(3.0, 1.0), run(1.0, 2.0), run(2.0, 1.5)]) == [
        {"ms_per_1000": 2.0, "runs": [3.0, 1.0, 2.0], "state_bytes": 3, "kept_per_output": 2.0}
    ]


def test_recorded_traces_are_split_by_destination() -> None:
    folder = Path(__file__).parents[4] / "shared" / "data"
    traces, missing = recorded(folder)
    if missing:
        pytest.skip(missing[0])
    for trace in traces:
        seen = [set(rows.columns[2].to_pylist()) for rows in trace.links.values()]
        assert not any(one & other for number, one in enumerate(seen) for other in seen[:number])


def test_a_trace_is_repeated_as_it_is() -> None:
    trace = generated(300)
    long = trace.repeated(1_000)
    assert long.rows == 1_200
    for name, rows in trace.links.items():
        found = long.links[name]
        assert (np.diff(found.ts) >= 0).all()
        gaps = found.ts - np.tile(rows.ts, 4)
        assert len(set(gaps.tolist())) == 4, "each turn is the trace, later"
        assert found.columns[1].to_pylist() == 4 * rows.columns[1].to_pylist()


def test_the_breakdown_has_every_operator() -> None:
    parts = breakdown(BY_NAME["q1-ftp"], generated(6_000), 1_000 * 2_000, batch=1_000)
    assert set(parts) == set(STRATEGIES)
    assert {"Join", "Expire", LEGS, REST} <= set(parts["direct"])
    assert "Expire" not in parts["update-pattern-aware"]


def test_changes_of_a_state_store_are_summed_by_version(tmp_path: Path) -> None:
    for partition in "01":
        folder = tmp_path / "0" / partition
        folder.mkdir(parents=True)
        (folder / "3.changelog").write_bytes(b"12345")
        (folder / "4_a1b2-c3.changelog").write_bytes(b"12")
        (folder / "4.zip").write_bytes(b"1234567")
    assert sizes(tmp_path) == ({3: 10, 4: 4}, 14)
