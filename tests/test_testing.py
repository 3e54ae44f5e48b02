"""Replay as in a user's test: answers, changes, times, and error messages."""

from __future__ import annotations

import datetime
import decimal
import random
from collections import Counter
from typing import Any

import pytest

from sash.errors import (
    BadRowError,
    EvaluationError,
    OptionError,
    SashError,
    SqlSyntaxError,
    StatisticsError,
    StrategyError,
    TypeMismatchError,
    UnboundedStateError,
    UnknownNameError,
    UnsupportedSqlError,
    WindowError,
)
from sash.plan.nodes import Except, Join, walk
from sash.testing import Change, replay

ROWS = [{"ts": 200, "k": "a", "v": 1}, {"ts": 800, "k": "b", "v": 2}, {"ts": 800, "k": None, "v": None}]
COUNT = "SELECT k, COUNT(*) AS n FROM s [RANGE 5 SECONDS] GROUP BY k"


def test_the_answer_at_any_instant() -> None:
    result = replay(COUNT, streams={"s": ROWS[:2]}, unit="ms", until=10_000)
    assert result.at(199) == []
    assert result.at(200) == [{"k": "a", "n": 1}]
    assert sorted(row["k"] for row in result.at(5_199)) == ["a", "b"]
    assert result.at(5_200) == [{"k": "b", "n": 1}]
    assert result.at(5_800) == []


def test_the_change_stream() -> None:
    result = replay(COUNT, streams={"s": ROWS[:2]}, unit="ms", until=5_500)
    assert result.changes == [
        Change(200, "+", {"k": "a", "n": 1}, 200),
        Change(800, "+", {"k": "b", "n": 1}, 800),
        Change(5_200, "-", {"k": "a", "n": 1}, 5_200),
    ]


def test_until_is_the_last_instant() -> None:
    streams = {"s": ROWS[:1]}
    assert [change.ts for change in replay(COUNT, streams=streams, until=5_199).changes] == [200]
    assert [change.ts for change in replay(COUNT, streams=streams, until=5_200).changes] == [200, 5_200]
    assert [change.ts for change in replay(COUNT, streams=streams).changes] == [200, 5_200]
    later = {"s": [*ROWS[:1], {"ts": 6_000, "k": "z", "v": 0}]}
    assert [change.ts for change in replay(COUNT, streams=later, until=5_199).changes] == [200]


@pytest.mark.parametrize(("unit", "length"), [("us", "MICROSECONDS"), ("ms", "MILLISECONDS"), ("s", "SECONDS")])
def test_times_are_in_the_unit(unit: str, length: str) -> None:
    result = replay(f"SELECT v FROM s [RANGE 5 {length}]", streams={"s": [{"ts": 7, "v": 1}]}, unit=unit)
    assert [(change.ts, change.op) for change in result.changes] == [(7, "+"), (12, "-")]


def test_times_between_units_are_exact() -> None:
    result = replay("SELECT v FROM s [RANGE 1 MILLISECOND]", streams={"s": [{"ts": 0.5, "v": 1}]}, unit="s")
    assert [change.ts for change in result.changes] == [0.5, 0.501]


def test_the_time_is_also_a_column() -> None:
    result = replay("SELECT ts, v FROM s [RANGE 1 SECOND]", streams={"s": ROWS[:1]})
    assert result.at(200) == [{"ts": 200, "v": 1}]


def test_values_of_every_type_come_back() -> None:
    row = {
        "ts": 1,
        "whole": 7,
        "real": 0.1,
        "exact": decimal.Decimal("12.50"),
        "text": "né",
        "flag": True,
        "day": datetime.date(2024, 2, 29),
        "moment": datetime.datetime(2024, 2, 29, 12, 30, 0, 5),
        "raw": b"\x00\xff",
        "nothing": None,
    }
    columns = ", ".join(name for name in row if name != "ts")
    grouped = f"SELECT {columns}, COUNT(*) AS n FROM s [RANGE 1 SECOND] GROUP BY {columns}"
    assert replay(grouped, streams={"s": [row, dict(row)]}).at(1) == [
        {**{name: value for name, value in row.items() if name != "ts"}, "n": 2}
    ]


def test_an_empty_stream_has_the_columns_it_is_given() -> None:
    result = replay(COUNT, streams={"s": []}, schemas={"s": "ts BIGINT, k STRING"}, until=10)
    assert result.changes == []
    result = replay("SELECT COUNT(*) AS n FROM s [RANGE 1 SECOND]", streams={"s": []}, until=10)
    assert result.at(0) == [{"n": 0}]


def test_rows_of_a_slide_start_together_and_expire_separately_in_any_order() -> None:
    rows = [{"ts": ts, "k": "a"} for ts in (2, 1, 4, 3)]
    sql = "SELECT COUNT(*) AS n FROM s [RANGE 3 SECONDS SLIDE 2 SECONDS]"
    result = replay(sql, streams={"s": rows}, unit="s", until=20)
    assert [result.at(t) for t in (1, 2, 4, 6, 8)] == [[{"n": n}] for n in (0, 2, 3, 1, 0)]


def test_late_rows_are_counted_and_dropped_unless_within_slack() -> None:
    rows = [{"ts": 1_000, "k": "a"}, {"ts": 400, "k": "b"}, {"ts": 1_100, "k": "c"}]
    late = replay(COUNT, streams={"s": rows}, batch=1)
    assert late.late == 1
    assert {row["k"] for row in late.at(1_200)} == {"a", "c"}
    slack = replay(COUNT, streams={"s": rows}, batch=1, slack=600)
    assert slack.late == 0
    whole = replay(COUNT, streams={"s": rows})
    assert [(c.ts, c.op, c.row) for c in slack.changes] == [(c.ts, c.op, c.row) for c in whole.changes]
    assert {c.released - c.ts for c in slack.changes if c.released is not None} == {600}


def test_counts_of_operators() -> None:
    result = replay(COUNT, streams={"s": ROWS})
    (name,) = (name for name in result.counts if name.endswith("Aggregate"))
    assert result.counts[name].taken == 3
    assert result.counts[name].given == 2 * 3
    assert result.counts[name].given_negative == 3


BAD: list[tuple[str, type[SashError], str, dict[str, Any]]] = [
    ("SELECT k FROM s [RANGE 5 SECONDS", SqlSyntaxError, "line 1", {}),
    ("SELEC k FROM s", SqlSyntaxError, "line 1", {}),
    ("SELECT k FROM t [RANGE 5 SECONDS]", UnknownNameError, "t", {}),
    ("SELECT kk FROM s [RANGE 5 SECONDS]", UnknownNameError, "kk", {}),
    ("SELECT nosuch(k) FROM s [RANGE 5 SECONDS]", UnknownNameError, "nosuch", {}),
    ("SELECT k + TRUE FROM s [RANGE 5 SECONDS]", TypeMismatchError, "STRING and BOOLEAN.*column 8", {}),
    ("SELECT SUM(k) FROM s [RANGE 5 SECONDS]", EvaluationError, r"CAST\('a' AS DOUBLE\) fails", {}),
    ("SELECT BIT_AND(k) FROM s [RANGE 5 SECONDS]", TypeMismatchError, "not STRING", {}),
    ("SELECT k FROM s [RANGE 0 SECONDS]", WindowError, "greater than 0.*column 24", {}),
    ("SELECT k FROM s [RANGE -1 SECONDS]", WindowError, "greater than 0", {}),
    (
        "SELECT k, ROW_NUMBER() OVER (ORDER BY v GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM s [NOW]",
        UnsupportedSqlError,
        "GROUPS",
        {},
    ),
    ("SELECT k FROM s [RANGE 5 SECONDS] WHERE k IN (SELECT k FROM s)", UnboundedStateError, "SEMI", {}),
    ("SELECT MEDIAN(v) FROM s", UnboundedStateError, "s", {}),
    ("SELECT a.k FROM s AS a JOIN s AS b ON a.k = b.k", UnboundedStateError, "s", {}),
    ("SELECT 1 / (v - v) AS x FROM s [RANGE 5 SECONDS]", EvaluationError, "division by zero", {}),
    (COUNT, StrategyError, "nosuch", {"strategy": "nosuch"}),
    (COUNT, OptionError, "fortnight", {"unit": "fortnight"}),
    (COUNT, OptionError, "flink", {"runtime": "flink"}),
    (COUNT, OptionError, "batch", {"batch": 0}),
]


@pytest.mark.parametrize(("sql", "error", "message", "options"), BAD, ids=[f"{i}" for i in range(len(BAD))])
def test_errors_name_the_problem(sql: str, error: type[SashError], message: str, options: dict[str, Any]) -> None:
    with pytest.raises(error, match=message):
        replay(sql, streams={"s": ROWS}, **options)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"k": "a"}], "row 0 of stream s has no ts"),
        ([{"ts": None, "k": "a"}], "no ts"),
        ([{"ts": "noon", "k": "a"}], "ts must be"),
        ([{"ts": 0.0005, "k": "a"}], "whole microseconds"),
        ([{"ts": 1, "k": "a"}, {"ts": 2, "k": 3}], "s.k has values of different types"),
        ([{"ts": 1, "k": object()}], "no SQL type"),
    ],
)
def test_bad_rows_are_named(rows: list[dict[str, Any]], message: str) -> None:
    with pytest.raises(BadRowError, match=message):
        replay(COUNT, streams={"s": rows})


def test_rows_must_fit_the_schema_they_are_given() -> None:
    schemas = {"s": "ts BIGINT, k INT"}
    with pytest.raises(BadRowError, match="INT"):
        replay(COUNT, streams={"s": [{"ts": 1, "k": "a"}]}, schemas=schemas)
    with pytest.raises(BadRowError, match="no column 'z'"):
        replay(COUNT, streams={"s": [{"ts": 1, "z": 1}]}, schemas=schemas)


def test_expirations_are_counted_apart_from_messages() -> None:
    rows = [{"ts": ts, "k": ts % 3} for ts in range(30)]
    counts = replay("SELECT k, COUNT(*) AS n FROM s [RANGE 5 SECONDS] GROUP BY k", {"s": rows}, unit="s").counts
    assert (counts["0.0.Aggregate"].expired, counts["0.0.Aggregate"].messages) == (30, 0)


def test_observed_statistics_change_the_plan() -> None:
    """All rows have one value: with these statistics the negation goes below the join, and the answer is the same."""
    sql = (
        "SELECT a.k, c.v FROM a [RANGE 1 SECOND] JOIN c [RANGE 1 SECOND] ON a.k = c.k EXCEPT ALL "
        "SELECT b.k, c.v FROM b [RANGE 1 SECOND] JOIN c [RANGE 1 SECOND] ON b.k = c.k"
    )
    streams = {
        name: [{"ts": step * at, "k": 7, "v": at % 2} for at in range(number)]
        for name, number, step in (("a", 30, 100), ("b", 20, 100), ("c", 3, 1_000))
    }
    sparse = {name: [{**row, "k": number} for number, row in enumerate(rows)] for name, rows in streams.items()}
    first = replay(sql, sparse)
    assert first.statistics["a"].distinct["k"] == 30
    assert first.statistics["a"].rate == pytest.approx(30 / 2.9)
    assert first.statistics["a"].peak is None, "too few rows to tell"
    apart, dense = (replay(sql, streams, statistics=replay(sql, rows).statistics) for rows in (sparse, streams))
    assert apart.planned is not None
    assert dense.planned is not None
    assert isinstance(next(node for node in walk(apart.planned.optimized) if isinstance(node, Join | Except)), Except)
    assert isinstance(next(node for node in walk(dense.planned.optimized) if isinstance(node, Join | Except)), Join)
    assert [apart.at(at) for at in range(0, 4_000, 100)] == [dense.at(at) for at in range(0, 4_000, 100)]


def test_relations_have_statistics_too() -> None:
    result = replay(
        "SELECT s.k FROM s [RANGE 1 SECOND] JOIN t ON s.k = t.k",
        {"s": [{"ts": 0, "k": 1}]},
        {"t": [{"k": 1}, {"k": 2}, {"k": 2}]},
    )
    assert result.statistics["t"].rows == 3
    assert result.statistics["t"].rate is None
    assert result.statistics["t"].distinct == {"k": 2}
    with pytest.raises(StatisticsError, match="no column 'k'"):
        replay("SELECT v FROM t [RANGE 1 SECOND]", {"t": [{"ts": 0, "v": 1}]}, statistics=result.statistics)


def test_equal_rows_of_different_shards_may_cancel_out_at_one_instant() -> None:
    """As docs/semantics.md has it: netting across shards would need an exchange of the whole answer."""
    sql = "SELECT n FROM (SELECT k, count(*) AS n FROM s [RANGE 10 MILLISECONDS] GROUP BY k)"
    draw = random.Random(1)
    rows = [{"ts": ts, "k": k} for ts in range(60) for k in range(8) if draw.random() < 0.5]
    results = {shards: replay(sql, {"s": rows}, shards=shards) for shards in (1, 4)}
    both = {}
    for shards, result in results.items():
        seen: dict[tuple[float, int], set[str]] = {}
        for change in result.changes:
            seen.setdefault((change.ts, change.row["n"]), set()).add(change.op)
        both[shards] = sum(len(signs) == 2 for signs in seen.values())
    assert both[1] == 0
    assert both[4] > 0
    for instant in range(80):
        one, many = (Counter(row["n"] for row in result.at(instant)) for result in results.values())
        assert one == many


OUT_OF_STEP = [
    {"ts": ts + behind, "k": "ab"[ts // 100 % 2], "p": p}
    for ts in range(0, 2_000, 100)
    for p, behind in ((0, 3_600_000), (1, 0))
] + [{"ts": 7_200_000, "k": "end", "p": p} for p in (0, 1)]


@pytest.mark.parametrize("strategy", ["auto", "time-message"])
def test_the_watermark_of_partitions_that_are_out_of_step_is_that_of_the_slowest(strategy: Any) -> None:
    sql = COUNT.replace("5 SECONDS", "500 MILLISECONDS")
    whole = replay(sql, streams={"s": sorted(OUT_OF_STEP, key=lambda row: row["ts"])})
    parts = replay(sql, streams={"s": OUT_OF_STEP}, partition_by={"s": "p"}, batch=3, strategy=strategy)
    assert parts.late == 0
    assert Counter((c.ts, c.op, str(c.row)) for c in parts.changes) == Counter(
        (c.ts, c.op, str(c.row)) for c in whole.changes
    )
    assert replay(sql, streams={"s": OUT_OF_STEP}, batch=3).late, "of one clock, rows of the slow partition are late"


def test_the_partition_of_a_stream_must_be_one_of_its_columns() -> None:
    with pytest.raises(SashError, match="stream s has no column 'q' to be its partition"):
        replay(COUNT, streams={"s": OUT_OF_STEP}, partition_by={"s": "q"})
