"""The benchmark of Kafka compares what a job wrote with the valid rows."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("confluent_kafka")

from bench.kafka import _INSTANTS, _STEP, WINDOW, Change, _compare
from sash.testing import replay

ROWS = 30_000


def written() -> tuple[list[Change], np.ndarray, np.ndarray]:
    rnd = np.random.default_rng(1)
    keys, values = rnd.integers(0, 3, ROWS), rnd.integers(0, 9, ROWS)
    rows = [
        {"ts": number * _STEP, "k": int(key), "v": int(value)}
        for number, (key, value) in enumerate(zip(keys, values, strict=True))
    ]
    sql = f"SELECT k, COUNT(*) AS n, SUM(v) AS total FROM s [RANGE {WINDOW} SECONDS SLIDE 1 SECOND] GROUP BY k"
    found = replay(sql, {"s": rows}, unit="us", until=ROWS * _STEP).changes
    return [(one.ts, one.op, *one.row.values()) for one in found], keys, values


def test_right_changes_are_right_at_every_instant_and_others_are_not() -> None:
    changes, keys, values = written()
    assert _compare(changes, keys, values)["right_instants"] == _INSTANTS
    assert _compare(changes[:-40] + changes[-39:], keys, values)["right_instants"] < _INSTANTS, "a change is missing"
    assert _compare([*changes, changes[5]], keys, values)["right_instants"] < _INSTANTS, "a change is repeated"
