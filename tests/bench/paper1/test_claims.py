"""Paper 1's claims over made-up figures: a claim that is false at one point, or in one run, fails its check."""

from __future__ import annotations

from typing import Any

import pytest

from bench.claim import Claim
from bench.paper1.claims import claims
from bench.paper1.measure import QUERIES, STRATEGIES, by_strategy, rows, table
from bench.paper1.page import figures, page
from bench.pipelines import Workload

ROWS = {
    name: {"rows": [20, 20], "first_kind": [8, 8]}
    if name == "negative-tuple"
    else {"rows": [10, 10], "first_kind": [4, 4]}
    for name in STRATEGIES
}
DELAYS = {"input-triggered": 100.0, "time-probing": 1.0, "hybrid": 2.0, "negative-tuple": 3.0}


def point(late: float = 100.0, **other: float) -> dict[str, Any]:
    delays = {**DELAYS, "input-triggered": late, **{name.replace("_", "-"): ms for name, ms in other.items()}}
    return {
        name: {
            "average_ms": [ms, 1.01 * ms],
            "longest_ms": [2 * ms, 2.02 * ms],
            "changes": 10_000,
            "never": 0,
            "service_us": {"0.0.Join": ms},
        }
        for name, ms in delays.items()
    }


def made() -> dict[str, Any]:
    """Figures in which every claim holds."""
    rates = {
        "input-triggered": [9.0, 9.0],
        "time-probing": [8.0, 8.0],
        "negative-tuple": [1.0, 1.0],
        "hybrid": [7.0, 7.0],
    }
    found = {
        "settings": {"rate": 10, "window_seconds": 2, "changes": 5_000, "seeds": 2},
        "fig8": {query: point() for query in QUERIES},
        "fig9": {
            "q3": {"5": point(100), "10": point(90), "20": point(80)},
            "q4": {"5": point(100), "10": point(70), "20": point(40)},
        },
        "fig10": {"2": point(10), "3": point(20, negative_tuple=4), "4": point(30, negative_tuple=5)},
        "fig11": {"0.1": point(20), "0.5": point(10), "1.0": point(3)},
        "rows": {query: {name: dict(counts) for name, counts in ROWS.items()} for query in QUERIES},
        "fig12": {"q1": rates, "q4": rates},
        "probing": {"q2": {"10": point()["time-probing"]}},
    }
    return {**found, "claims": [vars(claim) for claim in claims(found)]}


def judged(found: dict[str, Any], text: str) -> bool:
    (claim,) = [claim for claim in claims(found) if text in claim.text]
    return claim.held


def test_all_claims_hold_where_they_should() -> None:
    assert [claim.text for claim in claims(made()) if not claim.held] == []


@pytest.mark.parametrize(
    ("text", "figure", "at", "wrong"),
    [
        ("more than ten times", "fig8", ("q5",), point(29)),
        ("time-probing is faster than hybrid", "fig8", ("q3",), point(hybrid=0.9)),
        ("hybrid is faster than negative-tuple", "fig8", ("q4",), point(negative_tuple=1.9)),
        ("Q3: the gap between", "fig9", ("q3", "10"), point(101)),
        ("Q4: the gap between", "fig9", ("q4", "10"), point(39)),
        ("Q4: input-triggered is later", "fig9", ("q4", "20"), point(0.5)),
        ("help input-triggered less for Q3", "fig9", ("q3", "20"), point(4)),
        ("later (average delay)", "fig10", ("3",), point(31)),
        ("later (maximum delay)", "fig10", ("3",), point(9)),
        ("Hybrid is faster", "fig10", ("4",), point(30, hybrid=6)),
        ("lose most by depth", "fig10", ("4",), point(30, hybrid=9, negative_tuple=5)),
        ("average delay falls", "fig11", ("0.5",), point(21)),
        ("maximum delay falls", "fig11", ("0.5",), point(2)),
        ("the same delay", "fig11", ("1.0",), point(4)),
        ("selections and joins take in", "rows", ("q3", "negative-tuple", "first_kind"), [8, 7]),
        ("at least double the rows in", "rows", ("q3", "negative-tuple", "rows"), [20, 19]),
        ("Q4: negative tuples have the lowest", "fig12", ("q4", "hybrid"), [7.0, 0.9]),
        ("Q1: input-triggered has the highest", "fig12", ("q1", "input-triggered"), [9.0, 7.0]),
    ],
)
def test_one_wrong_point_fails_its_claim(text: str, figure: str, at: tuple[str, ...], wrong: object) -> None:
    found = made()
    where: Any = found[figure]
    for key in at[:-1]:
        where = where[key]
    where[at[-1]] = wrong
    assert not judged(found, text)


def test_a_single_run_that_differs_fails_the_order_of_strategies() -> None:
    found = made()
    found["fig8"]["q2"]["hybrid"] = {**found["fig8"]["q2"]["hybrid"], "average_ms": [2.0, 0.5]}
    assert not judged(found, "time-probing is faster than hybrid")


def test_the_page_says_what_does_not_hold() -> None:
    found = made()
    found["fig8"]["q3"] = point(hybrid=0.9)
    found["claims"] = [vars(claim) for claim in claims(found)]
    text = page(found)
    assert "*time-probing is faster than hybrid for every query*: **does not hold here**" in text
    assert "q3 0 of 2" in text
    assert "at least 10,000 changes" in text
    assert len(figures(found)) == 8


def test_every_strategy_of_a_point_has_all_runs_and_enough_changes() -> None:
    at = by_strategy(Workload("q4", rate=10, window=2, length=4), changes=20, seeds=2)
    assert set(at) == set(STRATEGIES)
    for name, by in at.items():
        assert len(by["average_ms"]) == len(by["longest_ms"]) == 2
        assert by["changes"] + by["never"] >= 40, name
        assert all(us > 0 for us in by["service_us"].values())
    late, prompt = (at[name]["average_ms"] for name in ("input-triggered", "time-probing"))
    assert all(one > other for one, other in zip(late, prompt, strict=True))


def test_negative_tuples_double_the_rows_of_selections_and_joins_only() -> None:
    at = rows(Workload("q4", rate=20, window=2, length=4), changes=500, seeds=2)
    for negative, late in zip(at["negative-tuple"]["first_kind"], at["input-triggered"]["first_kind"], strict=True):
        assert 1.9 < negative / late < 2.1
    for negative, late in zip(at["negative-tuple"]["rows"], at["input-triggered"]["rows"], strict=True):
        assert 1 < negative / late < 1.9


def test_figures_are_shown_and_claims_are_on_the_page() -> None:
    found = made()
    assert all(Claim(**claim).line in page(found) for claim in found["claims"])
    assert table(found).row_count == len(QUERIES) + 2
