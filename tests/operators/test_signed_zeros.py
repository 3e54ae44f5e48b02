"""0.0 and -0.0 are equal, but aggregates return the one that is in the window, as Spark does."""

from __future__ import annotations

import pytest

from sash.testing import replay

VALUES = [-0.0, 0.0, -0.0]
ROWS = [{"ts": 10 * n, "x": x, "y": n} for n, x in enumerate(VALUES, 1)]
ALONE = [
    "MIN(x)", "MAX(x)", "MIN(DISTINCT x)", "MEDIAN(x)", "PERCENTILE(x, 0.25)", "PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY x)",
    "APPROX_PERCENTILE(x, 0.5)", "FIRST(x)", "LAST(x)", "ANY_VALUE(x)", "MIN_BY(x, y)", "MAX_BY(x, y)", "get(COLLECT_LIST(x), 0)",
    "MIN(array(x))[0]", "MAX(struct(x, y)).x", "MIN(x) FILTER (WHERE y > 0)",
]  # fmt: skip
FRAMES = ["MIN(x) OVER ()", "MAX(x) OVER (ORDER BY y)", "MEDIAN(x) OVER (ORDER BY y)", "FIRST_VALUE(x) OVER ()", "x"]


def shown(sql: str, instants: list[int]) -> list[str]:
    result = replay(sql, {"s": ROWS}, schemas={"s": "ts BIGINT, x DOUBLE, y INT"}, unit="s")
    return [str([row["v"] for row in result.at(instant)]) for instant in instants]


@pytest.mark.parametrize("window", ["RANGE 5 SECONDS", "ROWS 1"])
@pytest.mark.parametrize("call", [*ALONE, *FRAMES])
def test_the_only_zero_of_a_window_has_its_sign(call: str, window: str) -> None:
    assert shown(f"SELECT {call} AS v FROM s [{window}]", [10, 20, 30]) == ["[-0.0]", "[0.0]", "[-0.0]"]


@pytest.mark.parametrize("call", ALONE)
def test_a_zero_that_has_left_does_not_stay(call: str) -> None:
    """From 24 to 25 both zeros are valid, which Spark may answer with either."""
    grouped = f"SELECT y - y AS g, {call} AS v FROM s [RANGE 15 SECONDS] GROUP BY y - y"
    assert shown(grouped, [19, 25, 35])[:2] == ["[-0.0]", "[0.0]"]


def test_the_smallest_zero_is_negative_and_the_largest_is_not() -> None:
    assert shown("SELECT MIN(x) AS v FROM s [RANGE 15 SECONDS]", [20, 30]) == ["[-0.0]", "[-0.0]"]
    assert shown("SELECT MAX(x) AS v FROM s [RANGE 15 SECONDS]", [20, 30]) == ["[0.0]", "[0.0]"]


@pytest.mark.parametrize("call", ["MODE(x)", "get(COLLECT_SET(x), 0)", "PERCENTILE(DISTINCT x, 0.5)"])
def test_keys_are_positive(call: str) -> None:
    assert shown(f"SELECT {call} AS v FROM s [RANGE 5 SECONDS]", [10, 20, 30]) == ["[0.0]"] * 3


def test_changes_of_one_instant_do_not_cancel_if_zeros_have_different_signs() -> None:
    result = replay("SELECT x FROM s [ROWS 1]", {"s": ROWS}, schemas={"s": "ts BIGINT, x DOUBLE, y INT"}, unit="s")
    assert [(change.op, str(change.row["x"])) for change in result.changes] == [
        ("+", "-0.0"), ("-", "-0.0"), ("+", "0.0"), ("-", "0.0"), ("+", "-0.0"),
    ]  # fmt: skip
