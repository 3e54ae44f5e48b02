"""EMIT ON WINDOW CLOSE: one insertion per row of the answer, when its window ends, and never a retraction."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from sash.errors import UnsupportedSqlError
from sash.testing import replay

SCHEMAS = {"s": "ts TIMESTAMP, k INT, v INT"}
HOP = "HOP(TABLE s, DESCRIPTOR(ts), INTERVAL {step} SECONDS, INTERVAL {size} SECONDS)"


def rows(seed: int) -> list[dict[str, Any]]:
    rng = random.Random(seed)
    times = sorted(rng.randrange(100) for _ in range(70))
    return [{"ts": ts, "k": rng.choice((1, 2, None)), "v": rng.randrange(9)} for ts in times]


def windows(given: list[dict[str, Any]], size: int, step: int) -> dict[int, list[dict[str, Any]]]:
    """The rows of every window, by its end."""
    found: dict[int, list[dict[str, Any]]] = {}
    for row in given:
        start = row["ts"] // step * step
        while start + size > row["ts"]:
            found.setdefault(start + size, []).append(row)
            start -= step
    return found


def emitted(sql: str, given: list[dict[str, Any]], **options: Any) -> Counter[tuple[Any, ...]]:
    result = replay(f"{sql} EMIT ON WINDOW CLOSE", {"s": given}, unit="s", schemas=SCHEMAS, until=200, **options)
    assert {change.op for change in result.changes} == {"+"}
    assert result.state_rows == 0
    return Counter((change.ts, *change.row.values()) for change in result.changes)


@pytest.mark.parametrize(("size", "step"), [(10, 10), (12, 4), (10, 4)])
@pytest.mark.parametrize(
    ("strategy", "shards", "batch"),
    [("auto", 1, None), ("auto", 3, 1), ("negative-tuple", 2, 7), ("hybrid", 2, 5), ("direct", 1, 9)],
)
def test_each_window_is_emitted_once(strategy: Any, shards: int, batch: int | None, size: int, step: int) -> None:
    given = rows(size + step)
    ends = windows(given, size, step)
    table = HOP.format(size=size, step=step)
    options = {"strategy": strategy, "shards": shards, "batch": batch}
    grouped = emitted(f"SELECT k, COUNT(*) AS n, SUM(v) AS t FROM {table} GROUP BY window_end, k", given, **options)
    assert grouped == Counter(
        (end, key, len(found), sum(row["v"] for row in found))
        for end, members in ends.items()
        for key in (1, 2, None)
        if (found := [row for row in members if row["k"] == key])
    )
    plain = emitted(f"SELECT k, v FROM {table} WHERE v > 3", given, **options)
    assert plain == Counter(
        (end, row["k"], row["v"]) for end, members in ends.items() for row in members if row["v"] > 3
    )
    distinct = emitted(f"SELECT DISTINCT v FROM {table}", given, **options)
    assert distinct == Counter((end, v) for end, members in ends.items() for v in {row["v"] for row in members})


def test_windows_are_joined_when_they_end() -> None:
    given = rows(3)
    tumble = "TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '10' SECONDS))"
    sql = f"SELECT a.v, b.v AS w FROM {tumble} AS a JOIN {tumble} AS b ON a.k = b.k AND a.window_end = b.window_end"
    ends = windows(given, 10, 10)
    assert emitted(sql, given, batch=5) == Counter(
        (end, one["v"], other["v"])
        for end, members in ends.items()
        for one in members
        for other in members
        if one["k"] is not None and one["k"] == other["k"]
    )


GAP = 4


@pytest.mark.parametrize(
    ("strategy", "shards", "batch"),
    [("auto", 1, None), ("auto", 3, 1), ("negative-tuple", 2, 7), ("hybrid", 2, 5), ("direct", 1, 9)],
)
def test_each_session_is_emitted_when_it_ends(strategy: Any, shards: int, batch: int | None) -> None:
    rng, given, now = random.Random(7), list[dict[str, Any]](), 0
    for _ in range(60):
        now += rng.choice((0, 0, 1, 2, GAP, GAP + 1, 9))
        given.append({"ts": now, "k": rng.choice((1, 2, None)), "v": rng.randrange(9)})
    sessions: list[list[dict[str, Any]]] = []
    for key in (1, 2, None):
        for row in (row for row in given if row["k"] == key):
            if not sessions or sessions[-1][0]["k"] != key or row["ts"] > sessions[-1][-1]["ts"] + GAP:
                sessions.append([])
            sessions[-1].append(row)
    options = {"strategy": strategy, "shards": shards, "batch": batch}
    window = f"session_window(ts, '{GAP} seconds')"
    grouped = emitted(
        "SELECT k, unix_seconds(session_window.start) AS begun, unix_seconds(session_window.end) AS ended, COUNT(*) AS n, "
        f"SUM(v) AS t FROM s GROUP BY k, {window} HAVING COUNT(*) > 1",
        given,
        **options,
    )
    assert grouped == Counter(
        (end, found[0]["k"], found[0]["ts"], end, len(found), sum(row["v"] for row in found))
        for found in sessions
        for end in (found[-1]["ts"] + GAP,)
        if len(found) > 1
    )
    highest = emitted(f"SELECT DISTINCT MAX(v) AS v FROM s GROUP BY k, {window}", given, **options)
    assert highest == Counter({(found[-1]["ts"] + GAP, max(row["v"] for row in found)) for found in sessions})


REFUSED = {
    "SELECT k FROM s": "assign the rows of s",
    "SELECT window.start FROM s [RANGE 1 HOUR] GROUP BY window(ts, '1 minute')": "without a window in brackets",
    "SELECT COUNT(*) AS n FROM TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL 1 MINUTE)": "group by the window",
    "SELECT k FROM s [RANGE 1 HOUR] GROUP BY k, session_window(ts, '1 minute')": "without a window in brackets",
}


@pytest.mark.parametrize("sql", REFUSED)
def test_refused(sql: str) -> None:
    with pytest.raises(UnsupportedSqlError, match=REFUSED[sql]):
        replay(f"{sql} EMIT ON WINDOW CLOSE;", {"s": rows(1)}, unit="s", schemas=SCHEMAS)
