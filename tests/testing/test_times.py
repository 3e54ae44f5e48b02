"""Times of a replay: numbers in its unit and datetimes, in rows, in `until` and in `at`."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

from sash.errors import BadRowError, CatalogError, OptionError, SashError
from sash.testing import Result, replay

COUNT = "SELECT COUNT(*) AS n FROM s [RANGE 1 HOUR]"
ROWS = "SELECT ts, k FROM s [RANGE 1 HOUR]"
NOON = datetime.datetime(2026, 3, 1, 12, tzinfo=datetime.UTC)
HOUR = datetime.timedelta(hours=1)
EAST = datetime.timezone(3 * HOUR)


def noon(times: list[Any], **options: Any) -> Result:
    return replay(ROWS, {"s": [{"ts": time, "k": key} for key, time in enumerate(times)]}, **options)


@pytest.mark.parametrize("unit", ["us", "ms", "s", "m", "h"])
def test_a_datetime_is_the_same_instant_in_every_unit(unit: str) -> None:
    result = noon([NOON, NOON.astimezone(EAST) + HOUR], unit=unit, until=NOON + 3 * HOUR)
    assert result.at(NOON - HOUR / 60) == []
    assert result.at(NOON) == [{"ts": NOON, "k": 0}]
    assert result.at((NOON + HOUR).astimezone(EAST)) == [{"ts": NOON + HOUR, "k": 1}]
    assert result.at(NOON + 2 * HOUR) == []
    seconds = {"us": 1e-6, "ms": 1e-3, "s": 1, "m": 60, "h": 3_600}[unit]
    assert result.changes[0].ts == NOON.timestamp() / seconds


def test_a_naive_datetime_is_in_utc_and_comes_back_naive() -> None:
    naive = NOON.replace(tzinfo=None)
    result = noon([naive])
    assert result.at(NOON) == result.at(naive) == [{"ts": naive, "k": 0}]


def test_a_date_is_its_midnight() -> None:
    result = noon([NOON.date()], unit="s")
    assert result.at(NOON.replace(hour=0)) == [{"ts": NOON.date(), "k": 0}]
    assert [change.ts for change in result.changes] == [
        NOON.replace(hour=0).timestamp(), NOON.replace(hour=1).timestamp(),
    ]  # fmt: skip


def test_until_may_be_a_datetime() -> None:
    assert [change.op for change in noon([NOON], until=NOON + HOUR).changes] == ["+", "-"]
    almost = NOON + HOUR - datetime.timedelta(microseconds=1)
    assert [change.op for change in noon([NOON], until=almost).changes] == ["+"]


def test_updates_of_a_relation_may_have_datetimes() -> None:
    result = replay(
        "SELECT s.k, t.v FROM s [RANGE 1 HOUR] JOIN t ON s.k = t.k",
        {"s": [{"ts": NOON, "k": 1}]},
        {"t": [{"ts": NOON - HOUR, "_op": "+", "k": 1, "v": 5}, {"ts": NOON + HOUR / 2, "_op": "-", "k": 1, "v": 5}]},
        schemas={"t": "ts TIMESTAMP, _op STRING, k BIGINT, v INT"},
    )
    assert result.at(NOON) == [{"k": 1, "v": 5}]
    assert result.at(NOON + HOUR / 2) == []


def test_numbers_in_other_columns_of_times_are_in_the_unit_too() -> None:
    rows = [{"ts": 60, "due": 3_600, "day": 86_400}]
    result = replay(
        "SELECT due, day FROM s [RANGE 1 HOUR]", {"s": rows}, unit="s", schemas={"s": "ts INT, due TIMESTAMP, day DATE"}
    )
    due = datetime.datetime(1970, 1, 1, 1, tzinfo=datetime.UTC)
    assert result.at(60) == [{"due": due, "day": datetime.date(1970, 1, 2)}]


def test_a_relation_has_instants_as_well() -> None:
    result = replay(
        "SELECT s.k FROM s [RANGE 1 HOUR] JOIN t ON s.k = t.k AND s.ts >= t.since",
        {"s": [{"ts": 59, "k": 1}, {"ts": 60, "k": 1}]},
        {"t": [{"k": 1, "since": 1}]},
        unit="s",
        schemas={"s": "ts TIMESTAMP, k INT", "t": "k INT, since TIMESTAMP"},
    )
    assert [change.ts for change in result.changes if change.op == "+"] == [59, 60]


BAD: list[tuple[Any, str]] = [
    (float("nan"), "finite number of ms"),
    (float("inf"), "finite number of ms"),
    (2**60, "outside of the years 1 to 9999"),
    (-(2**60), "outside of the years 1 to 9999"),
    (10**5000, "outside of the years 1 to 9999"),
    (1e300, "outside of the years 1 to 9999"),
    (0.0005, "whole microseconds"),
    ("noon", "number of ms, or a datetime"),
    (True, "number of ms, or a datetime"),
    (datetime.datetime.max.replace(tzinfo=datetime.timezone(-HOUR)), "years 1 to 9999"),
    ([1], "number of ms, or a datetime"),
]


@pytest.mark.parametrize(("time", "message"), BAD, ids=range(len(BAD)))
def test_times_that_are_none(time: Any, message: str) -> None:
    with pytest.raises(BadRowError, match=f"row 0 of stream s: ts .*{message}"):
        replay(COUNT, {"s": [{"ts": time}]})
    with pytest.raises(OptionError, match=f"until .*{message}"):
        replay(COUNT, {"s": [{"ts": 1}]}, until=time)


@pytest.mark.parametrize("instant", [float("nan"), "noon", None, True, 2**60])
def test_instants_that_are_none(instant: Any) -> None:
    with pytest.raises(OptionError, match="the instant"):
        replay(COUNT, {"s": [{"ts": 1}]}).at(instant)


def test_all_time_is_before_infinity() -> None:
    assert replay(COUNT, {"s": [{"ts": 1}]}, until=10).at(float("inf")) == [{"n": 1}]


@pytest.mark.parametrize(
    ("schema", "error", "message"),
    [
        ("k INT", CatalogError, "no column ts.*add ts TIMESTAMP"),
        ("ts STRING", CatalogError, "ts of stream s is STRING: make it TIMESTAMP"),
        ("ts BOOLEAN", CatalogError, "ts of stream s is BOOLEAN"),
        ("ts DATE", BadRowError, "row 0 of s: ts: it is DATE, so it must be the beginning of a day, not 1"),
        ("ts TINYINT, k INT", BadRowError, "ts is TINYINT, and has a value that cannot be converted"),
    ],
)
def test_time_columns_that_do_not_fit(schema: str, error: type[SashError], message: str) -> None:
    with pytest.raises(error, match=message):
        replay(COUNT, {"s": [{"ts": 1 if "DATE" in schema else 1_000}]}, schemas={"s": schema})
