"""Paper 2's claims over made-up figures: a claim that is false at one point, or in one run, fails its check."""

from __future__ import annotations

from typing import Any

import pytest

from bench.paper2.claims import claims

LEVELS = ("serial", "window-serializable", "latest-window-serializable", "ttu")
NS = (10, 20)


def line(*points: float) -> list[list[Any]]:
    return [[n, [value, 1.01 * value]] for n, value in zip(NS, points, strict=True)]


def made() -> dict[str, Any]:
    """Figures in which every claim holds."""
    by_t = [", t = 1 s", ", t = 5 s"]
    lws, ttu = LEVELS[2:]
    aborted = {
        lws + by_t[0]: line(20, 60),
        lws + by_t[1]: line(10, 30),
        ttu + by_t[0]: line(0, 0),
        ttu + by_t[1]: line(0, 0),
    }
    ages = dict(zip(LEVELS, (4.0, 5.0, 3.0, 2.0), strict=True))
    fresh = {name: line(age, 2 * age) for name, age in ages.items()}
    figures = {
        "paper2-fig8": aborted,
        "paper2-fig9": {name + t: points for name, points in fresh.items() for t in by_t},
        "paper2-fig10": {name + t: line(2, 3) if name == lws else line(1, 2) for name in LEVELS for t in by_t},
        "paper2-fig11": {name + t: line(9, 8) for name in LEVELS for t in by_t},
        "paper2-fig12": {"serial": line(10, 20), ttu: line(1, 2), lws: line(1.5, 3)},
        "paper2-fig13": fresh,
        "paper2-fig14": fresh,
    }
    measures = {
        name: {
            "aborted": [0.6, 0.6] if name == lws else [0.0, 0.0],
            "throughput of serial": [1.0, 0.97],
            "throughput": [9.0, 9.7],
            "freshness": [age, age],
            "freshness across an update": [age, age],
            "age of snapshots": [age, age],
            "response": [0.1, 0.1] if name == ttu else [1.0, 1.0],
        }
        for name, age in ages.items()
    }
    return {
        "figures": [{"name": name, "runs": runs} for name, runs in figures.items()],
        "real time": [{"n": 100, "t": 0.1, "levels": measures}],
        "real time with snapshot queries": [{"n": 100, "levels": measures}],
        "on Spark": [{"every": 500, "levels": {name: dict(one) for name, one in measures.items()}}],
    }


def held(results: dict[str, Any], text: str) -> bool:
    (claim,) = [claim for claim in claims(results) if text in claim.text]
    return claim.held


def test_all_claims_hold_where_they_should() -> None:
    assert [claim.text for claim in claims(made()) if not claim.held] == []


@pytest.mark.parametrize(
    ("text", "figure", "series", "points"),
    [
        ("Simulated: ttu aborts no query", 8, "ttu, t = 5 s", [[10, [0, 0.1]], [20, [0, 0]]]),
        ("more than half of the queries", 8, "latest-window-serializable, t = 1 s", [[10, [20, 20]], [20, [45, 54]]]),
        ("more frequent with n (t = 1 s)", 8, "latest-window-serializable, t = 1 s", line(70, 60)),
        ("at t = 1 s than at t = 5 s", 8, "latest-window-serializable, t = 5 s", line(21, 30)),
        (
            "Simulated: ttu's answers to periodic queries are fresher than those of serial",
            9,
            "serial, t = 5 s",
            line(1.9, 8),
        ),
        ("to snapshot queries are fresher than those of window-serializable", 13, "window-serializable", line(5, 3.9)),
        ("beside snapshots are fresher than those of latest-window", 14, "latest-window-serializable", line(1, 6)),
        ("time between executions is the longest", 10, "latest-window-serializable, t = 1 s", line(2, 1.9)),
        ("Simulated: ttu's throughput", 11, "ttu, t = 1 s", [[10, [9, 8.5]], [20, [8, 8]]]),
        ("Simulated: suspension answers", 12, "ttu", [[10, [1, 4]], [20, [2, 2]]]),
        ("snapshot queries take longer where some are aborted", 12, "latest-window-serializable", line(0.9, 3)),
    ],
)
def test_one_wrong_point_fails_its_claim(text: str, figure: int, series: str, points: list[Any]) -> None:
    results = made()
    (found,) = [one for one in results["figures"] if one["name"] == f"paper2-fig{figure}"]
    found["runs"] = {**found["runs"], series: points}
    assert not held(results, text)


@pytest.mark.parametrize(
    ("text", "key", "values"),
    [
        ("On Spark: ttu's snapshots are younger than those of serial", "age of snapshots", [2.0, 4.5]),
        ("On Spark: suspension answers", "response", [0.1, 0.4]),
        ("On Spark: ttu aborts no query", "aborted", [0.0, 0.1]),
        ("On Spark: ttu's answers to periodic queries are fresher than those of serial", "freshness", [2.0, 4.5]),
        ("On Spark: ttu's throughput", "throughput", [9.0, 8.5]),
    ],
)
def test_one_wrong_turn_on_spark_fails_its_claim(text: str, key: str, values: list[float]) -> None:
    results = made()
    results["on Spark"][0]["levels"]["ttu"][key] = values
    assert not held(results, text)


def test_a_run_on_spark_in_which_no_level_aborts_shows_nothing_of_aborts() -> None:
    results = made()
    results["on Spark"][0]["levels"]["latest-window-serializable"]["aborted"] = [0.0, 0.0]
    assert not held(results, "On Spark: ttu aborts no query")


@pytest.mark.parametrize(
    ("text", "key", "values"),
    [
        ("In real time, n = 100: ttu aborts no query", "aborted", [0.0, 0.1]),
        ("In real time, n = 100: ttu's throughput", "throughput of serial", [0.9, 0.95]),
        ("ttu's answers are fresher than those of serial", "freshness", [2.0, 4.5]),
        ("came between are fresher than those of window-serializable", "freshness across an update", [2.0, 5.5]),
    ],
)
def test_one_wrong_run_in_real_time_fails_its_claim(text: str, key: str, values: list[float]) -> None:
    results = made()
    results["real time"][0]["levels"]["ttu"][key] = values
    assert not held(results, text)
