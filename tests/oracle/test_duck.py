"""The oracle itself, on answers worked out by hand."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from tests.oracle.case import S, table
from tests.oracle.cases import BY_NAME, CASES
from tests.oracle.check import oracle_of, plain, until_of
from tests.oracle.duck import Oracle, View, canonical, declared
from tests.oracle.fixed import (
    collections,
    generators,
    grouping,
    interval_joins,
    nested,
    now,
    over,
    statistics,
    time_windows,
)
from tests.oracle.translate import duck_sql_from


def answers(name: str, *instants: int) -> list[list[tuple[Any, ...]]]:
    oracle = oracle_of(BY_NAME[name])
    return [plain(oracle.at(instant).bag) for instant in instants]


def test_a_row_is_valid_from_its_ts_to_ts_plus_length_excluded() -> None:
    oracle = Oracle("SELECT v FROM s", {"s": table("ts v", (3, 7))}, {"s": View("s", 4)})
    assert [plain(oracle.at(instant).bag) for instant in (0, 2, 3, 6, 7, 99)] == [[], [], [(7,)], [(7,)], [], []]
    assert oracle.instants(until=10) == [0, 1, 2, 3, 4, 6, 7, 8, 10]


def test_a_slide_moves_both_ends_up_to_its_grid() -> None:
    rows = table("ts v", (3, 1), (5, 2), (6, 3))
    oracle = Oracle("SELECT v FROM s", {"s": rows}, {"s": View("s", 2, slide=5)})
    seen = {instant: plain(oracle.at(instant).bag) for instant in (3, 4, 5, 9, 10)}
    assert seen == {3: [], 4: [], 5: [(2,)], 9: [(2,)], 10: []}


def test_a_slide_no_longer_than_the_window_keeps_every_row_a_while() -> None:
    oracle = Oracle("SELECT v FROM s", {"s": table("ts v", (3, 1))}, {"s": View("s", 5, slide=2)})
    assert [len(oracle.at(instant).bag) for instant in (3, 4, 7, 8)] == [0, 1, 1, 0]


def test_the_last_rows_are_by_ts_then_by_columns_with_nulls_first() -> None:
    rows = table("ts v", (1, 5), (2, 9), (2, None), (2, 4))
    oracle = Oracle("SELECT v FROM s", {"s": rows}, {"s": View("s", rows=2)})
    assert plain(oracle.at(1).bag) == [(5,)]
    assert plain(oracle.at(2).bag) == [(4,), (9,)]


def test_the_last_rows_of_each_partition() -> None:
    rows = table("ts k v", (1, 1, 1), (2, 2, 2), (3, 1, 3))
    oracle = Oracle("SELECT v FROM s", {"s": rows}, {"s": View("s", rows=1, partition=("k",))})
    assert plain(oracle.at(2).bag) == [(1,), (2,)]
    assert plain(oracle.at(3).bag) == [(2,), (3,)]


def test_now_is_valid_at_its_own_instant_only() -> None:
    assert answers("now", 0, 1, 2, 3) == [[], [(1, 4), (2, 7)], [(1, 4), (1, 4)], []]


def test_a_relation_follows_its_updates() -> None:
    updates = table("ts _op v", (0, "+", 1), (4, "+", 1), (5, "-", 1), (7, "-", 1))
    oracle = Oracle("SELECT v FROM items", {}, {}, {"items": updates})
    assert [sum(oracle.at(instant).bag.values()) for instant in (0, 3, 4, 5, 6, 7)] == [1, 1, 2, 1, 1, 0]


def test_two_windows_of_one_stream_are_two_views() -> None:
    oracle = Oracle(
        "SELECT COUNT(*) AS n FROM s UNION ALL SELECT -COUNT(*) FROM long",
        {"s": S},
        {"s": View("s", 1), "long": View("s", 100)},
    )
    assert plain(oracle.at(6).bag) == [(-8,), (2,)]


def test_paper1_q1_falls_without_arrivals() -> None:
    sums = [rows[0][0] for rows in answers("paper1_q1_story", 0, 8, 11, 12, 13, 14, 15, 16, 18, 25)]
    assert sums == [None, 28, 28, 22, 22, 13, 20, 15, 7, None]


def test_paper4_worked_example() -> None:
    both = [(100, 150, 195), (100, 180, 195)]
    assert answers("paper4_worked_example", 194, 195, 199, 200, 205) == [[], both, both, [], []]


def test_bag_difference_and_duplicates() -> None:
    assert answers("except_all_key", 0, 2, 3) == [[], [(1,), (1,), (1,)], [(1,)]]
    assert answers("union_all_key", 2) == [[(1,), (1,), (1,), (2,), (2,)]]
    assert answers("intersect_key", 2, 3) == [[(2,)], [(1,), (2,)]]


def test_nulls_group_together_and_never_join() -> None:
    assert (None, 1) in answers("count_star_by_group", 4)[0]
    keys = {row[0] for rows in answers("inner", *range(30)) for row in rows}
    assert 4 not in keys
    assert 25 not in keys


def test_values_are_compared_with_their_types() -> None:
    distinct = [canonical(value) for value in (1, 1.0, True, "1", None, b"1")]
    assert len(set(distinct)) == len(distinct)
    assert canonical(float("nan")) == canonical(float("nan"))
    assert canonical(-0.0) == canonical(0.0)


def test_declared_columns() -> None:
    assert declared("ts BIGINT,m DECIMAL(10,2), g STRING") == {"ts": "BIGINT", "m": "DECIMAL(10, 2)", "g": "STRING"}


def test_case_names_are_unique() -> None:
    assert [name for name, count in Counter(case.name for case in CASES).items() if count > 1] == []


UNTRANSLATED = {
    *("top_ascending", "top_descending", "top_nulls_last", "top_nulls_first", "top_by_two", "top_offset"),
    *("top_over_group", "top_over_join", "group_over_top", "first_last", "first_last_global", "min_by_ties"),
}
"""Cases whose answer hangs on an order that only their hand-written text spells out."""

SPELT_OUT = (collections, generators, grouping, interval_joins, nested, now, over, statistics, time_windows)
"""Modules of cases whose constructs DuckDB has in other words, or not at all."""

UNTRANSLATED |= {case.name for module in SPELT_OUT for case in module.CASES} | {"not_in_value_two_columns"}


@pytest.mark.parametrize(
    "name", [case.name for case in CASES if case.name not in UNTRANSLATED and len(case.name) % 3 == 0]
)
def test_translation_agrees_with_the_hand_written_text(name: str) -> None:
    case = BY_NAME[name]
    duck, views = duck_sql_from(case.sql, case.streams, case.unit)
    translated = Oracle(duck, case.streams, views, case.relations, case.schemas, case.unit)
    for instant in oracle_of(case).instants(until_of(case)):
        assert translated.at(instant).bag == oracle_of(case).at(instant).bag, f"at {instant}: {duck}"
