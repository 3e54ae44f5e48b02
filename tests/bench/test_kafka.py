"""The benchmark of Kafka compares what a job wrote with the valid rows."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("confluent_kafka")

from bench.kafka import _INSTANTS, _STEP, WINDOW, Change, _compare, page
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


def test_the_page_states_the_figures() -> None:
    rates = {"connector_events_per_s": 200_000}
    for number, target in enumerate(("topic", "table")):
        rates |= {f"{target}_events_per_s": 50_000 + number, f"{target}_ratio": 0.25}
    checked = {"killed_after_batches": [2, 4, 7], "right_instants": 24, "instants": 25}
    found = {
        "rows": 1_000_000,
        "partitions": 4,
        "rows_per_batch": [50_000, 200_000],
        "turns": 3,
        "topic_messages": 90,
        "topic_repeated": 2,
        "table_changes": 88,
    }
    found |= {f"{target}_{name}": value for target in ("topic", "table") for name, value in checked.items()}
    text = page({**found, **{f"at_{size}_per_batch": rates for size in (50_000, 200_000)}})
    assert "killed by SIGKILL 3 times" in text
    assert "| right instants | 24 of 25 | 24 of 25 |" in text
    assert text.count("| 200,000 | 50,000 (0.25) | 50,001 (0.25) |") == 2
    assert "| connector alone | 0 | 5.0 |\n| Kafka to Kafka | 0 | 20.0 |" in text
