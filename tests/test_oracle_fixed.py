"""Every fixed case against the oracle, at every instant, however it is cut into shards and micro-batches."""

from __future__ import annotations

import pytest

from tests.oracle.case import Case
from tests.oracle.cases import BY_NAME, CASES, CHANGING
from tests.oracle.check import assert_oracle

CUTS = ((2, 1), (5, 3), (3, 2))
"""(shards, rows per micro-batch): each case runs whole on one shard, and cut in one of these ways."""

IDS = [case.name for case in CASES]


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_whole(case: Case) -> None:
    assert_oracle(case, shards=1)


@pytest.mark.parametrize(("place", "case"), list(enumerate(CASES)), ids=IDS)
def test_cut(place: int, case: Case) -> None:
    shards, batch = CUTS[place % len(CUTS)]
    assert_oracle(case, shards=shards, batch=batch)


@pytest.mark.parametrize("case", CHANGING, ids=[case.name for case in CHANGING])
def test_changing_relation(case: Case) -> None:
    assert_oracle(case, shards=1)


@pytest.mark.parametrize(("place", "case"), list(enumerate(CHANGING)), ids=[case.name for case in CHANGING])
def test_changing_relation_cut(place: int, case: Case) -> None:
    shards, batch = CUTS[place % len(CUTS)]
    assert_oracle(case, shards=shards, batch=batch)


def changes(name: str) -> list[tuple[float, str, tuple[object, ...]]]:
    """The change stream of a case, each instant's changes in the order of their values."""
    result = assert_oracle(BY_NAME[name], shards=1)
    return sorted(
        ((c.ts, c.op, tuple(c.row.values())) for c in result.changes), key=lambda c: (c[0], c[1] == "+", c[2])
    )


def test_paper1_q1_falls_while_nothing_passes_the_filter() -> None:
    sums = [None, 6, 15, 20, 28, 22, 13, 20, 15, 7, None]
    instants = [0, 2, 4, 6, 8, 12, 14, 15, 16, 18, 25]
    expected: list[tuple[float, str, tuple[object, ...]]] = [(0, "+", (None,))]
    for ts, old, new in zip(instants[1:], sums[:-1], sums[1:], strict=True):
        expected += [(ts, "-", (old,)), (ts, "+", (new,))]
    assert changes("paper1_q1_story") == expected


def test_paper1_distinct_reports_each_value_once_per_life() -> None:
    assert changes("paper1_distinct") == [(2, "+", ("a",)), (4, "+", ("d",)), (13, "-", ("d",)), (14, "-", ("a",))]


def test_paper4_join_results_expire_with_their_oldest_row() -> None:
    results = [(100, 150, 195), (100, 180, 195)]
    expected = [(195, "+", row) for row in results] + [(200, "-", row) for row in results]
    assert changes("paper4_worked_example") == expected
