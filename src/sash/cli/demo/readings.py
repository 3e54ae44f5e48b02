"""The readings of the story: a few sensors that send often, in bursts now and then, until they fall silent."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

SENSORS = ("boiler", "fan", "mixer", "oven", "press", "pump")
SECOND = 1_000_000
"""A second in microseconds: all times are microseconds since 1970."""

_GAP = (0.3 * SECOND, 0.5 * SECOND)
"""The time between two readings of a sensor, at least and at most."""
_BURST_GAP = (0.05 * SECOND, 0.1 * SECOND)
_BURST_PERIOD, _BURST_START, _BURST_END = 13 * SECOND, 4 * SECOND, 7 * SECOND


@dataclass(frozen=True)
class Readings:
    """The times and sensors of readings, in order of time."""

    times: NDArray[np.int64]
    sensors: NDArray[np.str_]

    @classmethod
    def in_folder(cls, folder: Path) -> Self:
        """All readings of a folder, read from its files."""
        tables = [pq.ParquetFile(path).read() for path in sorted(folder.glob("*.parquet"))]
        times = [table.column("ts").cast(pa.int64()).to_numpy() for table in tables]
        sensors = [np.asarray(table.column("sensor").to_pylist(), dtype=np.str_) for table in tables]
        if not tables:
            return cls(np.empty(0, np.int64), np.empty(0, np.str_))
        order = np.argsort(np.concatenate(times), kind="stable")
        return cls(np.concatenate(times)[order], np.concatenate(sensors)[order])

    def of(self, sensor: str) -> NDArray[np.int64]:
        """The times of one sensor's readings."""
        times: NDArray[np.int64] = self.times[self.sensors == sensor]
        return times


class SensorFeed:
    """Writes the readings of all sensors to a folder, one file per call of `write_until`; those that are `silent` send none."""

    def __init__(self, folder: Path, start: int, seed: int = 7) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.silent: set[str] = set()
        self._start = start
        self._random = np.random.default_rng(seed)
        self._next = {sensor: start + int(self._random.uniform(0, _GAP[1])) for sensor in SENSORS}
        self._files = 0
        self.readings = Readings(np.empty(0, np.int64), np.empty(0, np.str_))
        """All readings so far."""

    def write_until(self, now: int) -> int:
        """Write the readings that are due since the last call, and return their number."""
        due = sorted(self._due(now))
        if due:
            times, sensors, values = zip(*due, strict=True)
            columns = {"ts": pa.array(times, pa.timestamp("us", tz="UTC")), "sensor": sensors, "value": values}
            draft = self.folder / f".{self._files:06d}.parquet"
            pq.write_table(pa.table(columns), draft)
            draft.rename(self.folder / f"{self._files:06d}.parquet")
            self._files += 1
            earlier = self.readings
            self.readings = Readings(np.append(earlier.times, times), np.append(earlier.sensors, sensors))
        return len(due)

    def _due(self, now: int) -> list[tuple[int, str, float]]:
        due = []
        for sensor in SENSORS:
            while self._next[sensor] <= now:
                at = self._next[sensor]
                value = round(20 + 5 * self._random.random(), 2)
                if sensor not in self.silent:
                    due.append((at, sensor, value))
                burst = _BURST_START <= (at - self._start) % _BURST_PERIOD < _BURST_END
                self._next[sensor] = at + int(self._random.uniform(*(_BURST_GAP if burst else _GAP)))
        return due
