"""Paper 5's claims over made-up figures: a claim that is false at one window fails its check."""

from __future__ import annotations

from typing import Any

import pytest

from bench.paper5.claims import UPA, chosen_times, claims
from bench.paper5.queries import CASES

WINDOWS = (1_000, 10_000)


def result(query: str, strategy: str, rows: int, ms: float, **more: Any) -> dict[str, Any]:
    given = {"query": query, "trace": "generated", "strategy": strategy, "window_rows": rows, "runs": [ms, 1.02 * ms]}
    return {"answer_rows": 100, "state_bytes": 100, "kept_per_output": 1.0, "premature": 0.4, **given, **more}


def made() -> dict[str, Any]:
    """Figures in which every claim holds."""
    results = []
    for case in CASES:
        for rows in WINDOWS:
            times = {"negative-tuple": 20.0, "direct": 21.0, UPA: 2.0}
            if not case.free:
                times = {"negative-tuple": 1.0, "direct": 3.0, UPA: 2.0}
            for strategy, ms in times.items():
                answers = 1_000 if case.name == "q1-telnet" else 100
                size = 100 if strategy == UPA else 1_000
                results.append(result(case.name, strategy, rows, ms, answer_rows=answers, state_bytes=size))
    partitions = [
        result("q1-telnet", f"{name}({count})", rows, 100.0 / count)
        for rows in WINDOWS
        for name in ("direct", UPA)
        for count in (10, 50)
    ]
    lazy = [result("q4", name, rows, ms) for rows in WINDOWS for name, ms in (("at once", 2.0), ("lazy", 1.8))]
    times = {"q5-below": [1.0, 1.0], "q5-above": [2.0, 0.95]}
    choice = {"trace": "generated", "window_rows": 10, "chosen": ["q5-below", "q5-below"], "ms_per_1000": times}
    ends = {"negation": "anti join", "premature": 0.3}
    ends["ms_per_1000"] = {"calendar": [2.0, 2.0], "negative tuples": [1.0, 1.0], "chosen": [1.05, 1.05]}
    written = [{"window_rows": rows, "bytes_per_batch": 100 + rows // 1_000} for rows in WINDOWS]
    return {
        "results": results,
        "partitions": partitions,
        "lazy": lazy,
        "choices": [choice],
        "ends": [ends],
        "answers": [
            {"negation": "anti join", "premature": 0.3, "ms_per_1000": ends["ms_per_1000"] | {"calendar": [2, 2]}}
        ],
        "sent": [{"partitions": 128, "premature": 0.3, "ms_per_1000": dict(ends["ms_per_1000"])}],
        "checkpoint": written,
    }


def held(figures: dict[str, Any], text: str) -> bool:
    (claim,) = [claim for claim in claims(figures) if text in claim.text]
    return claim.held


def change(figures: dict[str, Any], key: str, query: str, strategy: str, rows: int, **values: Any) -> None:
    for one in figures[key]:
        if (one["query"], one["strategy"], one["window_rows"]) == (query, strategy, rows):
            one.update(values)


def test_all_claims_hold_where_they_should() -> None:
    assert [claim.text for claim in claims(made()) if not claim.held] == []


@pytest.mark.parametrize(
    ("text", "key", "at", "values"),
    [
        (
            "DISTINCT sources: update-pattern-aware is the fastest",
            "results",
            ("q2-src", UPA, 1_000),
            {"runs": [21.5, 21.5]},
        ),
        (
            "Query 4: join of DISTINCTs: update-pattern-aware is",
            "results",
            ("q4", "direct", 1_000),
            {"runs": [1.9, 1.9]},
        ),
        (
            "unselective protocol: about 10 times as fast as direct",
            "results",
            ("q1-telnet", "direct", 10_000),
            {"runs": [15, 15]},
        ),
        ("q2-pairs: delta-star keeps", "results", ("q2-pairs", UPA, 1_000), {"kept_per_output": 2.1}),
        ("q2-src: at the largest window the DISTINCT", "results", ("q2-src", UPA, 10_000), {"state_bytes": 101}),
        ("40 % of the expirations", "results", ("q3", UPA, 10_000), {"premature": 0.2}),
        ("negative tuples win", "results", ("q3", "negative-tuple", 10_000), {"runs": [2.1, 2.1]}),
        ("about ten times the results", "results", ("q1-telnet", UPA, 10_000), {"answer_rows": 300}),
        ("direct with 50 partitions", "partitions", ("q1-telnet", "direct(50)", 10_000), {"runs": [10, 10]}),
        ("lazy expiration at 5 %", "lazy", ("q4", "lazy", 1_000), {"runs": [2.1, 2.1]}),
    ],
)
def test_one_wrong_point_fails_its_claim(text: str, key: str, at: tuple[str, str, int], values: dict[str, Any]) -> None:
    figures = made()
    change(figures, key, *at, **values)
    assert not held(figures, text)


def test_a_choice_is_judged_run_by_run() -> None:
    figures = made()
    (choice,) = figures["choices"]
    assert chosen_times(choice) == [1.0, 1.0 / 0.95]
    choice["ms_per_1000"] = {"q5-below": [1.24, 1.24, 1.0], "q5-above": [1.0, 1.0, 1.3]}
    assert chosen_times(choice) == [1.24, 1.24, 1.0]
    (claim,) = [claim for claim in claims(figures) if "optimizer chooses" in claim.text]
    assert not claim.held
    assert "not at generated, 10 rows: 1.24 [1-1.24]" in claim.found
    choice["chosen"] = ["q5-above", "q5-below"]
    assert chosen_times(choice) == [1.24, 1.24, 1.3], "the slower, where the two texts lead to different forms"


def test_a_choice_that_is_slower_than_both_fixed_ways_is_named() -> None:
    figures = made()
    figures["ends"][0]["ms_per_1000"]["chosen"] = [1.3, 1.2]
    (claim,) = [claim for claim in claims(figures) if "Above a negation" in claim.text]
    assert not claim.held
    assert "anti join, 30% premature: 1.25" in claim.found


def test_a_choice_between_stages_that_is_slower_than_both_fixed_ways_is_named() -> None:
    figures = made()
    figures["sent"][0]["ms_per_1000"]["chosen"] = [1.3, 1.2]
    (claim,) = [claim for claim in claims(figures) if "Between stages" in claim.text]
    assert not claim.held
    assert "128 partitions, anti join, 30% premature: 1.25" in claim.found


def test_an_answer_that_ends_faster_by_calendar_in_one_run_fails_its_claim() -> None:
    figures = made()
    figures["answers"][0]["ms_per_1000"]["calendar"] = [2, 0.5]
    assert not held(figures, "answer of a negation itself")


def test_a_batch_writes_more_only_where_it_is_larger() -> None:
    figures = made()
    figures["checkpoint"][0]["bytes_per_batch"] = 150
    assert not held(figures, "does not grow with the window")
