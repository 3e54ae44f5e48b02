from __future__ import annotations

from pathlib import Path

import numpy as np

from sash.cli.demo.job import SILENCE
from sash.cli.demo.readings import SECOND, SENSORS, Readings, SensorFeed
from tests.cli.demo.sample import START, STEP


def test_files_hold_all_readings_in_order_of_time(tmp_path: Path) -> None:
    feed = SensorFeed(tmp_path, START)
    written = [feed.write_until(START + step * STEP) for step in range(1, 41)]
    stored, kept = Readings.in_folder(tmp_path), feed.readings
    assert sum(written) == len(stored.times) > 100
    assert (stored.times == kept.times).all()
    assert (stored.sensors == kept.sensors).all()
    assert (np.diff(kept.times) >= 0).all()
    assert kept.times[0] >= START
    assert kept.times[-1] <= START + 40 * STEP


def test_a_sensor_that_is_not_silent_never_seems_so(tmp_path: Path) -> None:
    feed = SensorFeed(tmp_path, START)
    feed.write_until(START + 60 * SECOND)
    for sensor in SENSORS:
        assert np.diff(feed.readings.of(sensor)).max() < SILENCE / 2


def test_a_silent_sensor_sends_nothing_until_it_is_back(tmp_path: Path) -> None:
    feed = SensorFeed(tmp_path, START)
    feed.write_until(START + 10 * SECOND)
    feed.silent.add("pump")
    feed.write_until(START + 20 * SECOND)
    feed.silent.clear()
    feed.write_until(START + 30 * SECOND)
    times = feed.readings.of("pump") - START
    assert not ((times > 10 * SECOND) & (times <= 20 * SECOND)).any()
    assert (times > 20 * SECOND).any()


def test_there_may_be_no_readings(tmp_path: Path) -> None:
    assert SensorFeed(tmp_path, START).write_until(START - 1) == 0
    assert len(Readings.in_folder(tmp_path).times) == 0
