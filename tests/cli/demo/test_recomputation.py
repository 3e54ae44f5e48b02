from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np
import pytest

from sash.cli.demo.job import HOP, HOPPING, QUERY, SILENT, SLIDING, WINDOW
from sash.cli.demo.readings import SECOND, Readings
from sash.cli.demo.recomputation import compare, hopping_error, instants, recomputed
from sash.testing import replay
from tests.cli.demo.sample import history, readings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def some(*rows: tuple[float, str]) -> Readings:
    times, sensors = zip(*rows, strict=True)
    return Readings(np.array(times) * SECOND // 1, np.array(sensors))


def at(given: Readings, *seconds: float) -> list[tuple[tuple[str, str, int], ...]]:
    exact = Readings(given.times.astype(np.int64), given.sensors)
    return recomputed(exact, np.array([round(second * SECOND) for second in seconds]))  # type: ignore[return-value]


def test_a_reading_is_counted_until_exactly_ten_seconds_later_and_missed_after_five() -> None:
    given = some((1.0, "fan"))
    answers = at(given, 0.999999, 1, 5, 5.999999, 6, 10.999999, 11, 15, 601)
    sliding, hopping, silent = (SLIDING, "fan", 1), (HOPPING, "fan", 1), (SILENT, "fan", 0)
    assert answers == [
        (),
        (sliding,),
        (hopping, sliding),
        (hopping, sliding),
        (hopping, silent, sliding),
        (hopping, silent, sliding),
        (hopping, silent),
        (silent,),
        (),
    ]


def test_the_query_gives_what_is_recomputed() -> None:
    given = readings(130)
    rows = [{"ts": ts, "sensor": s} for ts, s in zip(given.times.tolist(), given.sensors.tolist(), strict=True)]
    result = replay(QUERY, {"readings": rows}, unit="us", until=int(given.times[-1]))
    moments = instants(given, int(given.times[0]), int(given.times[-1]))[::40]
    for instant, truth in zip(moments.tolist(), recomputed(given, moments), strict=True):
        assert tuple(sorted(tuple(row.values()) for row in result.at(instant))) == truth


class TestCompare:
    def test_right_answers_are_equal_at_every_instant(self) -> None:
        given = readings(130)
        clock = int(given.times[-1])
        found = compare(given, history(given, clock), clock - 1)
        assert found.differences == ()
        assert found.instants > len(given.times)
        assert found.readings == np.count_nonzero(given.times < clock)

    @pytest.mark.parametrize("lost", [0, 100, 700])
    def test_a_reading_that_was_not_counted_is_found(self, lost: int) -> None:
        given = readings(130)
        clock = int(given.times[-1])
        without = Readings(np.delete(given.times, lost), np.delete(given.sensors, lost))
        differences = compare(given, history(without, clock), clock - 1).differences
        assert differences[0][0] == given.times[lost]

    def test_a_reading_that_was_counted_twice_is_found(self) -> None:
        given = readings(130)
        clock = int(given.times[-1])
        twice = Readings(np.insert(given.times, 50, given.times[50]), np.insert(given.sensors, 50, given.sensors[50]))
        assert compare(given, history(twice, clock), clock - 1).differences[0][0] == given.times[50]


def test_the_error_of_the_hopping_window() -> None:
    given = some((1.0, "fan"), (2.0, "fan"))
    exact = Readings(given.times.astype(np.int64), given.sensors)
    error = hopping_error(exact, 0, 20 * SECOND)
    assert error.largest == 2
    assert error.share == pytest.approx((4 + 4) / 20)  # from 1 to 5, and from 11 to 15


@pytest.mark.spark
def test_the_hopping_window_counts_as_those_of_spark(spark: SparkSession) -> None:
    given = readings(130)
    rows = [
        (datetime.fromtimestamp(at / SECOND, UTC), sensor)
        for at, sensor in zip(given.times.tolist(), given.sensors.tolist(), strict=True)
    ]
    spark.createDataFrame(rows, "ts TIMESTAMP, sensor STRING").createOrReplaceTempView("demo_readings")
    counted = spark.sql(
        "SELECT unix_micros(w.end) AS at, sensor, COUNT(*) AS n FROM "
        f"(SELECT window(ts, '{WINDOW // SECOND} seconds', '{HOP // SECOND} seconds') AS w, sensor FROM demo_readings) "
        "GROUP BY w, sensor"
    ).collect()
    by_end: dict[int, set[tuple[str, str, int]]] = {}
    for row in counted:
        by_end.setdefault(row["at"], set()).add((HOPPING, row["sensor"], row["n"]))
    assert len(by_end) > 6
    ends = np.array(sorted(by_end))
    for end, late in ((ends, 0), (ends, HOP - 1)):
        for instant, answer in zip(ends.tolist(), recomputed(given, end + late), strict=True):
            assert {row for row in answer if row[0] == HOPPING} == by_end[instant]
