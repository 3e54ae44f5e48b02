"""session_window against a reference: the sessions of the rows that are valid, at every instant."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from sash.errors import SashError
from sash.testing import replay
from tests.oracle.check import assert_invariants

GAP = 4
SCHEMAS = {"s": "ts TIMESTAMP, k INT, v INT"}
Row = dict[str, Any]


def rows(seed: int, count: int = 60) -> list[Row]:
    """Bursts and pauses, with rows at one instant and rows exactly a gap apart."""
    rng = random.Random(seed)
    made, now = [], 0
    for number in range(count):
        now += rng.choice((0, 0, 1, 1, 2, 3, GAP, GAP, GAP + 1, 9))
        made.append({"ts": now, "k": rng.choice((1, 2, 3, None)), "v": number % 7})
    return made


def chained(given: list[Row], *, keyed: bool) -> list[list[Row]]:
    """The rows of every session: by key, in order of time."""
    found: list[list[Row]] = []
    last: dict[Any, list[Row]] = {}
    for row in sorted(given, key=lambda row: row["ts"]):
        key = row["k"] if keyed else None
        if key not in last or row["ts"] > last[key][-1]["ts"] + GAP:
            last[key] = []
            found.append(last[key])
        last[key].append(row)
    return found


def expected(given: list[Row], now: int, window: int | None, *, keyed: bool) -> Counter[tuple[Any, ...]]:
    """The answer: of the rows so far, those of open sessions; or those in the window, and their sessions."""
    if window is not None:
        valid = chained([row for row in given if row["ts"] <= now < row["ts"] + window], keyed=keyed)
    else:
        valid = chained([row for row in given if row["ts"] <= now], keyed=keyed)
        valid = [session for session in valid if now < session[-1]["ts"] + GAP]
    return Counter(
        (
            session[0]["k"] if keyed else None,
            session[0]["ts"],
            session[-1]["ts"] + GAP,
            len(session),
            sum(row["v"] for row in session),
        )
        for session in valid
    )


def seconds(moment: Any) -> int:
    return round(moment.timestamp())


@pytest.mark.parametrize("keyed", [True, False], ids=["by key", "all"])
@pytest.mark.parametrize("window", [None, 3, 11])
@pytest.mark.parametrize(
    ("strategy", "shards", "batch"),
    [
        ("auto", 1, None),
        ("auto", 3, 1),
        ("negative-tuple", 2, 7),
        ("hybrid", 2, 5),
        ("direct", 1, 4),
        ("input-triggered", 2, 3),
        ("piggyback", 1, 6),
    ],
)
def test_sessions_at_every_instant(
    strategy: Any, shards: int, batch: int | None, window: int | None, keyed: bool
) -> None:
    given = rows(seed=(window or 0) + shards)
    clause = "" if window is None else f"[RANGE {window} SECONDS]"
    key, by = ("k", "k, ") if keyed else ("CAST(NULL AS INT) AS k", "")
    sql = (
        f"SELECT {key}, session_window.start AS a, session_window(ts, '{GAP} seconds').end AS b, COUNT(*) AS n, SUM(v) AS t "
        f"FROM s {clause} GROUP BY {by}session_window(ts, '{GAP} seconds')"
    )
    last = given[-1]["ts"] + 20
    result = replay(
        sql, {"s": given}, unit="s", schemas=SCHEMAS, strategy=strategy, shards=shards, batch=batch, until=last
    )
    for now in range(last):
        found = Counter((row["k"], seconds(row["a"]), seconds(row["b"]), row["n"], row["t"]) for row in result.at(now))
        assert found == expected(given, now, window, keyed=keyed), now
    assert_invariants(result, drained=True, netted=shards == 1)


def test_a_row_retracts_the_session_and_adds_it_anew() -> None:
    sql = "SELECT session_window.end AS e, COUNT(*) AS n FROM s GROUP BY session_window(ts, '4 seconds') HAVING COUNT(*) > 1"
    given = [{"ts": second, "k": 1, "v": 1} for second in (0, 4, 8, 13)]
    result = replay(sql, {"s": given}, unit="s", schemas=SCHEMAS)
    changes = [(change.ts, change.op, seconds(change.row["e"]), change.row["n"]) for change in result.changes]
    assert changes == [(4, "+", 8, 2), (8, "-", 8, 2), (8, "+", 12, 3), (12, "-", 12, 3)]


GAPS = {0: 0, 1: 2, 2: 2, 3: 9, 4: 4, 5: -1, 6: None}
"""The gap of rows by `v`: those whose gap is not greater than 0 or NULL belong to no session."""
BY_VALUE = "CASE v WHEN 0 THEN '0 seconds' WHEN 3 THEN '9 seconds' WHEN 4 THEN '4 seconds' WHEN 5 THEN '-1 seconds' WHEN 6 THEN NULL ELSE INTERVAL 2 SECONDS END"


def extended(given: list[Row], *, keyed: bool) -> list[tuple[list[Row], int]]:
    """The rows of every session and its end, where each row has a gap of its own."""
    found: list[tuple[list[Row], int]] = []
    last: dict[Any, int] = {}
    for row in sorted(given, key=lambda row: row["ts"]):
        gap, key = GAPS[row["v"]], row["k"] if keyed else None
        if gap is None or gap <= 0:
            continue
        if key not in last or row["ts"] > found[last[key]][1]:
            last[key] = len(found)
            found.append(([], 0))
        session, end = found[last[key]]
        found[last[key]] = ([*session, row], max(end, row["ts"] + gap))
    return found


@pytest.mark.parametrize("keyed", [True, False], ids=["by key", "all"])
@pytest.mark.parametrize("emitted", [True, False], ids=["emitted", "open"])
@pytest.mark.parametrize(
    ("strategy", "shards", "batch"), [("auto", 1, None), ("auto", 3, 1), ("negative-tuple", 2, 7), ("piggyback", 1, 6)]
)
def test_sessions_whose_rows_have_gaps_of_their_own(
    strategy: Any, shards: int, batch: int | None, emitted: bool, keyed: bool
) -> None:
    given = rows(seed=17)
    key, by = ("k", "k, ") if keyed else ("CAST(NULL AS INT) AS k", "")
    sql = (
        f"SELECT {key}, session_window.start AS a, session_window.end AS b, COUNT(*) AS n, SUM(v) AS t FROM s "
        f"GROUP BY {by}session_window(ts, {BY_VALUE}){' EMIT ON WINDOW CLOSE' if emitted else ''}"
    )
    last = given[-1]["ts"] + 20
    result = replay(
        sql, {"s": given}, unit="s", schemas=SCHEMAS, strategy=strategy, shards=shards, batch=batch, until=last
    )
    for now in range(last):
        known = extended([row for row in given if row["ts"] <= now], keyed=keyed)
        shown = Counter(
            (part[0]["k"] if keyed else None, part[0]["ts"], end, len(part), sum(row["v"] for row in part))
            for part, end in known
            if (end <= now if emitted else now < end)
        )
        found = Counter((row["k"], seconds(row["a"]), seconds(row["b"]), row["n"], row["t"]) for row in result.at(now))
        assert found == shown, now
    assert_invariants(result, drained=not emitted, netted=shards == 1)


REFUSED = {
    f"SELECT COUNT(*) AS n FROM s [RANGE 9 SECONDS] GROUP BY session_window(ts, {BY_VALUE})": "leave the window of the stream out",
    "SELECT session_window(ts, '4 seconds').start FROM s": "is a key of GROUP BY",
    "SELECT k FROM s GROUP BY k, session_window(ts, '0 seconds')": "greater than 0",
    "SELECT k FROM s GROUP BY k, session_window(ts, v)": "the gap of a session is INT: write an INTERVAL",
    "SELECT COUNT(*) AS n FROM s GROUP BY k + 1, session_window(ts, '4 seconds')": "compute this key in a subquery",
    "SELECT COUNT(*) AS n FROM s [ROWS 5] GROUP BY session_window(ts, '4 seconds')": "by the TIMESTAMP that is the time",
    "SELECT COUNT(*) AS n FROM s [RANGE 9 SECONDS SLIDE 2 SECONDS] GROUP BY session_window(ts, '4 seconds')": "without SLIDE",
}


@pytest.mark.parametrize("sql", REFUSED)
def test_refused(sql: str) -> None:
    with pytest.raises(SashError, match=REFUSED[sql]):
        replay(sql, {"s": rows(1)}, unit="s", schemas=SCHEMAS)
