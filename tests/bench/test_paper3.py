"""Paper 3's measurements at a small size, and its claims over made-up figures, which fail where they are false."""

from __future__ import annotations

from typing import Any

import pytest

from bench.paper3.claims import claims
from bench.paper3.measure import BASELINES, STRATEGIES, judged, measure, table
from bench.paper3.page import figures, page


def point(rows: tuple[float, float, float, float], carried_ms: float = 0.0) -> dict[str, Any]:
    return {
        name: {
            "rows": [count, count],
            "first_kind": [count / 1.5 if name == "negative-tuple" else count] * 2,
            "longest_ms": [carried_ms if name == "piggyback" else 0.0] * 2,
            "average_ms": [1.0, 1.0],
            "negatives_below_second_kind": [0, 0],
            "changes": 100,
        }
        for name, count in zip(STRATEGIES, rows, strict=True)
    }


def made() -> dict[str, Any]:
    """Figures in which every claim holds."""
    rates = {"2": point((10, 30, 25, 25)), "10": point((10, 30, 25, 20), 50.0), "100": point((10, 30, 25, 10.5), 90.0)}
    taken = {"re-evaluation": (100.0, 400.0), "negative-tuple": (4.0, 4.0), "input-triggered": (2.0, 2.0)}
    baseline = {
        rows: {name: {"rows": [counts[at]] * 2, "ms": [counts[at] / 10] * 2} for name, counts in taken.items()}
        for at, rows in enumerate(("50", "100"))
    }
    return {
        "settings": {"window_seconds": 10, "rows": 500, "seeds": 2, "patience_ms": 100.0},
        "q2": rates,
        "q3": {rate: {name: dict(by) for name, by in at.items()} for rate, at in rates.items()},
        "baseline": {"q2": baseline},
    }


def held(found: dict[str, Any], text: str) -> bool:
    (claim,) = [claim for claim in claims(found) if text in claim.text]
    return claim.held


def test_all_claims_hold_where_they_should() -> None:
    assert [claim.text for claim in claims(made()) if not claim.held] == []


@pytest.mark.parametrize(
    ("text", "rate", "name", "key", "values"),
    [
        ("at least double", "10", "negative-tuple", "rows", [30, 19]),
        ("that selections and joins take in", "10", "negative-tuple", "first_kind", [20, 22]),
        ("within 10 %", "100", "piggyback", "rows", [10.5, 11.5]),
        ("Q3: piggybacking's excess falls", "10", "piggyback", "rows", [26, 26]),
        ("never sends more", "100", "piggyback", "rows", [26, 10]),
        ("has the delay of negative tuples", "2", "piggyback", "longest_ms", [0.0, 10.0]),
        ("late by at most its patience", "10", "piggyback", "longest_ms", [50.0, 201.0]),
        ("to zero", "10", "time-message", "negatives_below_second_kind", [0, 1]),
    ],
)
def test_one_wrong_run_fails_its_claim(text: str, rate: str, name: str, key: str, values: list[float]) -> None:
    found = made()
    found["q3"][rate][name][key] = values
    assert not held(found, text)


@pytest.mark.parametrize(
    ("text", "rows", "key", "values"),
    [
        ("what negative-tuple saves", "100", "rows", [100.0, 100.0]),
        ("what input-triggered saves", "100", "rows", [90.0, 90.0]),
        ("incremental evaluation is faster", "50", "ms", [10.0, 0.3]),
    ],
)
def test_one_wrong_baseline_fails_its_claim(text: str, rows: str, key: str, values: list[float]) -> None:
    found = made()
    found["baseline"]["q2"][rows]["re-evaluation"][key] = values
    assert not held(found, text)


def test_a_small_run_has_all_figures_and_its_page() -> None:
    found = judged(measure(window=2, rows=40, changes=20, seeds=2, rates=(2, 40), window_rows=(10, 20)))
    for query in ("q2", "q3"):
        assert list(found[query]) == ["2", "40"]
        assert set(found["baseline"][query]["10"]) == set(BASELINES)
        for at in found[query].values():
            assert all(len(by["rows"]) == 2 for by in at.values())
            assert all(by["changes"] >= 30 for by in at.values())
            assert all(
                1.8 <= one / two <= 2.2
                for one, two in zip(*(at[name]["first_kind"] for name in STRATEGIES[1::-1]), strict=True)
            )
            assert at["negative-tuple"]["longest_ms"] == at["time-message"]["longest_ms"] == [0.0, 0.0]
    text = page(found)
    assert all(claim["text"] in text for claim in found["claims"])
    assert len(figures(found)) == 4
    assert table(found).row_count == 4
