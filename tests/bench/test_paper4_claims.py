"""Paper 4's claims over made-up figures: a claim that is false at one point, or in one run, fails its check."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bench.paper4.claims import claims
from bench.paper4.experiments import PAPER
from bench.paper4.page import write

X = (1, 2, 3)


def line(*values: float) -> list[list[Any]]:
    return [[x, [value, 1.001 * value]] for x, value in zip(X, values, strict=True)]


def made() -> dict[str, Any]:
    """Figures in which every claim holds."""
    rates = dict(zip(PAPER, (90.0, 80.0, 70.0, 900.0, 800.0, 700.0), strict=True))
    table = [
        {
            "form": name,
            "best_per_s": [rate, 1.001 * rate],
            "worst_per_s": [rate / 5, rate / 5],
            "best_probes": [100.0, 101.0],
            "worst_probes": [540.0, 541.0],
        }
        for name, rate in rates.items()
    ]
    figures = {
        "fig2": {"naive": line(10, 30, 80), "multi-way": line(10, 20, 40)},
        "fig3a": {"naive": line(90, 60, 50), "lazy": line(30, 35, 40), "general": line(30, 35, 40)},
        "fig3b": {"naive": line(90, 60, 50), "lazy": line(30, 45, 60), "general": line(30, 40, 45)},
        "fig4a": {
            "NLJ": line(9, 8, 7),
            "HASH2": line(22, 21, 20),
            "HASH10": line(30, 31, 29),
            "HASH30": line(40, 41, 42),
        },
        "fig4b": {"equal": line(9, 10, 11), "1 to slow": line(5, 5, 5), "5 to slow": line(10, 12, 14)},
    }
    for name in ("fig2", "fig3b"):
        figures[name] |= {
            f"{kind}, model": [[x, [runs[0]]] for x, runs in points] for kind, points in figures[name].items()
        }
    engine = [dict(row) for row in table]
    return {
        "table8": table,
        "local": engine,
        "spark": [dict(row) for row in table],
        "purging": [
            {"buckets": buckets, "windows": windows, "per_s": [rate, 1.001 * rate]}
            for buckets in (2, None)
            for windows, rate in ((0, 80.0), (1, 90.0), (2, 85.0))
        ],
        "fluctuation": [
            {
                "keys": [5, 5, 5],
                "peak": 10,
                "windows": length,
                "looked_at": {"first": [10, 10], "second": [20, 21], "last": [30, 31]},
                "pair_rows": {"first": [10, 10], "last": [20, 21]},
                "pair_state": {"first": [20, 20], "last": [10, 11]},
            }
            for length in (1, 4)
        ],
        "figures": [{"name": f"paper4-{name}", "runs": runs} for name, runs in figures.items()],
    }


def held(found: dict[str, Any], text: str) -> bool:
    (claim,) = [claim for claim in claims(found) if text in claim.text]
    return claim.held


def test_all_claims_hold_where_they_should() -> None:
    assert [claim.text for claim in claims(made()) if not claim.held] == []


@pytest.mark.parametrize(
    ("text", "form", "key", "values"),
    [
        ("five times as many rows", "lazy-hash 5", "worst_probes", [540.0, 900.0]),
        ("Table 8: the best plan has the higher rate", "eager-nlj", "worst_per_s", [18.0, 95.0]),
        ("four to five times as fast", "eager-hash", "worst_per_s", [400.0, 400.0]),
        ("hash joins have higher rates", "lazy-nlj 10", "best_per_s", [710.0, 710.0]),
        ("(eager, tau 5, tau 10; nested loops", "lazy-nlj 5", "best_per_s", [95.0, 95.0]),
        ("(eager, tau 5, tau 10; hash tables", "lazy-hash 10", "best_per_s", [850.0, 850.0]),
    ],
)
def test_one_wrong_rate_fails_its_claim(text: str, form: str, key: str, values: list[float]) -> None:
    found = made()
    (row,) = [row for row in found["table8"] if row["form"] == form]
    row[key] = values
    assert not held(found, text)


@pytest.mark.parametrize(("key", "where"), [("local", "in one process"), ("spark", "on Spark")])
def test_one_form_without_a_difference_fails_the_claim_about_the_engine(key: str, where: str) -> None:
    found = made()
    found[key][2]["worst_per_s"] = [71.0, 71.0]
    assert not held(found, f"The whole engine {where}")
    assert held(found, "Table 8: the best plan has the higher rate")


@pytest.mark.parametrize(
    ("text", "figure", "name", "points"),
    [
        ("with every further window", "fig2", "naive", line(10, 30, 49)),
        ("counted and rows modelled", "fig2", "multi-way", line(10, 20, 50)),
        ("the naive join costs the most", "fig3a", "naive", line(90, 34, 50)),
        ("lazy and general joins cost the same", "fig3a", "general", line(30, 39, 40)),
        ("Fig 3(b), counted", "fig3b", "lazy", line(30, 39, 42)),
        ("HASH10 has a higher rate than HASH2", "fig4a", "HASH10", line(30, 20, 29)),
        ("nested loops falls", "fig4a", "NLJ", line(9, 10, 7)),
        ("the best tau is longer", "fig4a", "HASH30", line(50, 41, 42)),
        ("without a hash table are the worst", "fig4b", "1 to slow", line(5, 11, 5)),
        ("better than equal shares", "fig4b", "5 to slow", line(10, 12, 10)),
    ],
)
def test_one_wrong_point_fails_its_claim(text: str, figure: str, name: str, points: list[Any]) -> None:
    found = made()
    (one,) = [one for one in found["figures"] if one["name"] == f"paper4-{figure}"]
    one["runs"][name] = points
    assert not held(found, text)


@pytest.mark.parametrize("buckets", [2, None])
def test_an_interval_that_does_not_pay_for_one_hash_size_fails_its_claim(buckets: int | None) -> None:
    found = made()
    for one in found["purging"]:
        if one["buckets"] == buckets and one["windows"]:
            one["per_s"] = [79.0, 79.0]
    assert not held(found, "6.4: removing expired rows")


@pytest.mark.parametrize(("measure", "text"), [("looked_at", "of a fixed order"), ("pair_rows", "two at a time")])
def test_a_stream_that_costs_more_near_the_top_fails_its_claim(measure: str, text: str) -> None:
    found = made()
    found["fluctuation"][1][measure]["first"] = [22, 22]
    assert not held(found, text)


def test_the_page_has_what_was_measured_of_intervals_and_bursts(tmp_path: Path) -> None:
    found = {part: made()[part] for part in ("purging", "fluctuation")}
    text = write({**found, "repeats": 2, "claims": []}, tmp_path / "paper4.md").read_text()
    assert "| a list per key | 80 [80-80.1] | 90 [90-90.1] | 85 [85-85.1] |" in text
    assert "| 5, 5, 5 | 10 | 4 | 1 [1-1] | 2.05 [2-2.1] | 3.05 [3-3.1] | 1 [1-1] |" in text
