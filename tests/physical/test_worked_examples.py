"""The worked examples of papers 1 and 3, strategy by strategy, with the wrong answers where the papers show them."""

from __future__ import annotations

import pytest

from sash.testing import Result, replay

PRICES = [(1, 6), (2, 9), (5, 5), (8, 8), (11, 2), (13, 1), (14, 7)]
"""Over 10 ticks, of prices above 4: SUM 28 at 8; 6 ends at 11 and 9 at 12, while nothing passes the filter; 7 at 14."""
Q1 = "SELECT SUM(price) AS total FROM s WHERE price > 4 WINDOW 10 SECONDS"
STORY = [(0, None), (1, 6), (2, 15), (5, 20), (8, 28), (11, 22), (12, 13), (14, 20), (15, 15), (18, 7), (24, None)]
ON_TIME = ("auto", "direct", "negative-tuple", "hybrid", "time-message", "piggyback", "time-probing")
AT_ONCE = (*ON_TIME, "re-evaluation")
"""Re-evaluation cannot be simulated, so it has no slow operators."""


def story(strategy: str, **options: object) -> Result:
    streams = {"s": [{"ts": ts, "price": price} for ts, price in PRICES]}
    return replay(Q1, streams, unit="s", until=30, strategy=strategy, **options)  # type: ignore[arg-type]


def sums(result: Result) -> list[tuple[float, int | None]]:
    return [(change.ts, change.row["total"]) for change in result.changes if change.op == "+"]


@pytest.mark.parametrize("strategy", AT_ONCE)
def test_paper1_q1_becomes_22_then_13_though_nothing_passes_the_filter(strategy: str) -> None:
    result = story(strategy)
    assert sums(result) == STORY
    assert all(change.released == change.ts for change in result.changes)


def test_paper1_q1_input_triggered_says_22_and_13_only_with_the_7() -> None:
    result = story("input-triggered")
    assert sums(result) == STORY
    released = {
        change.row["total"]: change.released for change in result.changes if change.op == "+" and change.ts < 15
    }
    assert released == {None: 0, 6: 1, 15: 2, 20: 14, 28: 8, 22: 14, 13: 14}
    assert [change.released for change in result.changes if change.ts >= 15] == [None] * 6


def test_paper1_q1_clock_triggered_says_8_when_the_7_is_three_ticks_late() -> None:
    wrong = story("clock-triggered", delays={"filter": 3})
    assert (15, 8) in sums(wrong)
    assert 8 not in {total for _, total in STORY}
    assert not {(14, 20), (15, 15)} & set(sums(wrong))
    assert sums(story("clock-triggered")) == STORY


@pytest.mark.parametrize("strategy", ON_TIME)
def test_paper1_q1_stays_right_when_the_filter_is_slow(strategy: str) -> None:
    result = story(strategy, delays={"filter": 3})
    assert sums(result) == STORY
    assert all(0 <= (change.released or 0) - change.ts <= 3 for change in result.changes)


@pytest.mark.parametrize("strategy", [*AT_ONCE, "input-triggered"])
def test_paper1_q2_an_arrival_on_r_invalidates_at_that_instant(strategy: str) -> None:
    sql = (
        "SELECT s.item, MAX(s.quantity) AS most FROM s [RANGE 10 SECONDS] LEFT ANTI JOIN r [RANGE 10 SECONDS] "
        "ON s.item = r.item GROUP BY s.item"
    )
    streams = {
        "s": [{"ts": 1, "item": "A", "quantity": 4}, {"ts": 2, "item": "B", "quantity": 3}],
        "r": [{"ts": 5, "item": "A"}],
    }
    result = replay(sql, streams, unit="s", strategy=strategy)
    taken_back = [change for change in result.changes if change.op == "-" and change.row["item"] == "A"]
    assert [(change.ts, change.released) for change in taken_back] == [(5, 5)]
    assert result.at(5) == [{"item": "B", "most": 3}]


FAVOURITES = [{"item": item} for item in ("a", "b", "c")]
BOUGHT = [(0, "a"), (1, "b"), (2, "c"), (4, "a"), (5, "z"), (6, "z")]


def favourites(strategy: str) -> Result:
    return replay(
        "SELECT COUNT(*) AS n FROM s [RANGE 5 SECONDS] JOIN favourites AS f ON s.item = f.item",
        {"s": [{"ts": ts, "item": item} for ts, item in BOUGHT]},
        relations={"favourites": FAVOURITES},
        unit="s",
        strategy=strategy,
    )


def counted(result: Result, now: float) -> int:
    """What a user sees at an instant: the last count that was released by then."""
    seen = [change for change in result.changes if change.op == "+" and change.released is not None]
    number: int = [change.row["n"] for change in seen if (change.released or 0) <= now][-1]
    return number


@pytest.mark.parametrize("strategy", AT_ONCE)
def test_paper3_favourites_fall_to_3_and_2_while_other_items_are_bought(strategy: str) -> None:
    assert [counted(favourites(strategy), now) for now in (4, 5, 6)] == [4, 3, 2]


def test_paper3_input_triggered_still_says_4() -> None:
    assert [counted(favourites("input-triggered"), now) for now in (4, 5, 6)] == [4, 4, 4]
    assert favourites("input-triggered").at(6) == [{"n": 2}]
