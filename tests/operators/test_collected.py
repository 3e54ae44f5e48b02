"""Aggregates that return the rows of their group, against recomputation at every instant."""

from __future__ import annotations

import random
from typing import Any

import pytest

from sash.errors import EvaluationError, SashError
from sash.testing import replay

SCHEMA = "ts BIGINT, k BIGINT, v BIGINT, w STRING"
Row = dict[str, Any]


def rows(seed: int, count: int = 70) -> list[Row]:
    generator = random.Random(seed)
    return [
        {
            "ts": n // 3,
            "k": generator.randrange(2),
            "v": generator.choice([None, 1, 2, 3]),
            "w": generator.choice("abc"),
        }
        for n in range(count)
    ]


def ordered(data: list[Row]) -> list[Row]:
    return sorted(data, key=lambda r: (r["ts"], r["k"], -9 if r["v"] is None else r["v"], r["w"]))


def expected(group: list[Row]) -> Row:
    """The answer over the rows of a group, in order."""
    known = [row for row in group if row["v"] is not None]
    first: dict[int, tuple[int, int]] = {}
    for row in known:
        first.setdefault(row["v"], (row["ts"], row["v"]))
    by_value = sorted(known, key=lambda r: r["v"])
    return {
        "a": [row["v"] for row in known],
        "b": sorted(first, key=lambda value: first[value]),
        "c": [row["w"] for row in group if row["v"] == 2],
        "d": [row["w"] for row in by_value[:2]] or None,
        "e": [row["w"] for row in reversed(by_value)][:2] or None,
        "f": [{"x": v, "y": float(sum(r["v"] == v for r in known))} for v in sorted(first)] or None,
        "g": list(dict.fromkeys(row["w"] for row in group)),
    }


def without_key(answer: list[Row]) -> dict[int, Row]:
    return {row["k"]: {name: value for name, value in row.items() if name != "k"} for row in answer}


SQL = (
    "SELECT k, COLLECT_LIST(v) AS a, COLLECT_SET(v) AS b, ARRAY_AGG(w) FILTER (WHERE v = 2) AS c, MIN_BY(w, v, 2) AS d, "
    "MAX_BY(w, v, 2) AS e, HISTOGRAM_NUMERIC(v, 3) AS f, COLLECT_LIST(DISTINCT w) AS g FROM s [{}] GROUP BY k"
)


@pytest.mark.parametrize(("batch", "shards"), [(None, 1), (11, 3)])
@pytest.mark.parametrize("strategy", ["auto", "negative-tuple"])
def test_lists_over_a_time_window(batch: int | None, shards: int, strategy: Any) -> None:
    data = rows(21)
    result = replay(
        SQL.format("RANGE 4 SECONDS"), {"s": data}, strategy=strategy, unit="s", batch=batch, shards=shards,
        schemas={"s": SCHEMA},
    )  # fmt: skip
    for ts in range(30):
        valid = ordered([row for row in data if ts - 4 < row["ts"] <= ts])
        wanted = {k: expected([row for row in valid if row["k"] == k]) for k in {row["k"] for row in valid}}
        assert without_key(result.at(ts)) == wanted, ts
    assert result.state_rows == 0


def test_lists_over_a_count_window() -> None:
    data = ordered(rows(22))
    result = replay(SQL.format("ROWS 8"), {"s": data}, unit="s", batch=5, schemas={"s": SCHEMA})
    for ts in range(0, 24, 2):
        valid = [row for row in data if row["ts"] <= ts][-8:]
        wanted = {k: expected([row for row in valid if row["k"] == k]) for k in {row["k"] for row in valid}}
        assert without_key(result.at(ts)) == wanted, ts


def test_empty_lists_of_a_global_aggregate() -> None:
    sql = "SELECT COLLECT_LIST(v) AS a, COLLECT_SET(v) AS b, MAX_BY(v, v, 2) AS c, HISTOGRAM_NUMERIC(v, 2) AS d FROM s [RANGE 1 SECOND]"
    result = replay(sql, {"s": [{"ts": 3, "k": 1, "v": 5, "w": "a"}]}, unit="s", schemas={"s": SCHEMA}, until=9)
    none = {"a": [], "b": [], "c": None, "d": None}
    assert result.at(0) == result.at(4) == [none]
    assert result.at(3) == [{"a": [5], "b": [5], "c": [5], "d": [{"x": 5, "y": 1.0}]}]


def test_a_histogram_with_too_few_bins_is_refused() -> None:
    with pytest.raises(EvaluationError, match="HISTOGRAM_NUMERIC has 3 values for 2 bins"):
        replay(
            "SELECT HISTOGRAM_NUMERIC(v, 2) AS a FROM s [RANGE 9 SECONDS]",
            {"s": rows(1)},
            unit="s",
            schemas={"s": SCHEMA},
        )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("MAX_BY(w, v, 0)", "must be a whole number from 1 to 100,000"),
        ("LISTAGG(w, k)", "separator of listagg must be a STRING constant"),
        ("LISTAGG(DISTINCT w) WITHIN GROUP (ORDER BY v)", "can only be ordered by its own argument"),
        ("HISTOGRAM_NUMERIC(w, 3)", "takes a number or a time, not STRING"),
        ("HLL_SKETCH_AGG(v)", "a sketch cannot take back rows that leave a window"),
    ],
)
def test_what_cannot_be_is_refused(call: str, message: str) -> None:
    with pytest.raises(SashError, match=message):
        replay(f"SELECT {call} AS a FROM s [RANGE 9 SECONDS]", {"s": rows(1)}, unit="s", schemas={"s": SCHEMA})
