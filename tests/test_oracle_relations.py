"""Random queries over relations that change while they run, against the oracle."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from sash.errors import BadRowError, CatalogError, StrategyError, UnsupportedSqlError
from sash.plan.options import STRATEGIES
from sash.testing import replay
from tests.oracle.case import Case, case, table
from tests.oracle.cases import CHANGING
from tests.oracle.check import assert_oracle, run
from tests.oracle.duck import View, met
from tests.oracle.random_cases import changing_cases, nonretroactive_cases

quick = settings(max_examples=120)

SHARDS = st.sampled_from((1, 2, 3, 5))
RIGHT = tuple(name for name in STRATEGIES if name not in ("update-pattern-aware", "clock-triggered"))
CHOSEN = st.sampled_from(("auto", *RIGHT))
BATCHES = st.sampled_from((None, 1, 2, 3, 5))


@quick
@given(case=changing_cases(), shards=SHARDS, batch=BATCHES, strategy=CHOSEN)
def test_random_query_over_a_relation_that_changes(case: Case, shards: int, batch: int | None, strategy: str) -> None:
    try:
        assert_oracle(case, shards=shards, batch=batch, strategy=strategy)
    except UnsupportedSqlError as refused:
        assume("cannot be joined with rows that may be retracted" not in str(refused))
        raise


@quick
@given(case=nonretroactive_cases(), shards=SHARDS, batch=BATCHES, strategy=CHOSEN)
def test_random_query_over_a_non_retroactive_relation(
    case: Case, shards: int, batch: int | None, strategy: str
) -> None:
    try:
        assert_oracle(case, shards=shards, batch=batch, strategy=strategy)
    except StrategyError as refused:
        assume("cannot be simulated" not in str(refused))
        raise


@pytest.mark.parametrize(
    ("strategy", "case"),
    [(strategy, case) for case in CHANGING for strategy in ("direct", "negative-tuple", "hybrid", "time-message")],
    ids=lambda value: value.name if isinstance(value, Case) else value,
)
def test_fixed_case_by_strategy(strategy: str, case: Case) -> None:
    assert_oracle(case, strategy=strategy, batch=2)


S = table("ts k", (1, 1), (2, 1), (3, 1), (5, 1))
T = table("ts _op k name", (0, "+", 1, "old"), (2, "+", 1, "new"), (4, "-", 1, "new"))
JOIN = "SELECT s.ts AS at, t.name AS name FROM s [RANGE 9 SECONDS] JOIN t ON s.k = t.k"


def changes(**relations: Any) -> list[tuple[float, str, tuple[object, ...]]]:
    result = replay(JOIN, {"s": S}, unit="s", keys={"t": ["k"]}, batch=1, **relations)
    found = [(c.ts, c.op, tuple(c.row.values())) for c in result.changes]
    return sorted(found, key=lambda change: (change[0], change[1] == "+", change[2]))


def test_a_retroactive_update_counts_at_its_instant() -> None:
    assert changes(relations={"t": T}) == [
        (1, "+", (1, "old")),
        (2, "-", (1, "old")),
        (2, "+", (1, "new")),
        (2, "+", (2, "new")),
        (3, "+", (3, "new")),
        *[(4, "-", (at, "new")) for at in (1, 2, 3)],
    ]


def test_paper5_definition_2_a_row_sees_the_updates_before_its_own_instant_only() -> None:
    assert changes(nrrs={"t": T}) == [
        (1, "+", (1, "old")),
        (2, "+", (2, "old")),
        (3, "+", (3, "new")),
        (10, "-", (1, "old")),
        (11, "-", (2, "old")),
        (12, "-", (3, "new")),
    ]


@pytest.mark.parametrize("strategy", ["auto", "direct", "negative-tuple", "hybrid"])
def test_rows_that_look_alike_go_with_what_each_of_them_met(strategy: str) -> None:
    sql = "SELECT q.g, t.x FROM (SELECT DISTINCT k, g FROM s [RANGE 10 SECONDS]) q JOIN t ON q.g = t.g"
    rows = table("ts k g", (1, 1, 1), (3, 2, 1), (5, 1, 1))
    updates = table("ts _op g x", (0, "+", 1, 10), (2, "+", 1, 20))
    result = replay(sql, {"s": rows}, unit="s", nrrs={"t": updates}, keys={"t": ["g"]}, strategy=strategy)
    assert [(c.ts, c.op, c.row["x"]) for c in result.changes] == [
        (1, "+", 10),
        (3, "+", 20),
        (13, "-", 20),
        (15, "-", 10),
    ]


def test_a_deletion_that_finds_nothing_is_counted_and_left_out() -> None:
    result = replay(
        "SELECT k FROM t", {}, {"t": table("ts _op k", (1, "-", 1), (2, "+", 1), (3, "-", 2))}, unit="s", shards=1
    )
    assert [(c.ts, c.op) for c in result.changes] == [(2, "+")]
    assert sum(seen.refused for seen in result.counts.values()) == 2


def test_every_split_of_rows_and_updates_gives_the_same_changes() -> None:
    query = case("split", JOIN, {}, streams={"s": S}, nrrs={"t": T}, keys={"t": ["k"]})
    query = replace(query, streams={"s": S})
    whole = _released(run(query, engine=_ending))
    for size in range(1, 7):
        for shards in (1, 3):
            assert _released(run(query, engine=_ending, batch=size, shards=shards)) == whole


def _released(result: Any) -> list[str]:
    """The changes with the times at which they were released; the numbers of batches are those of the split."""
    return sorted(repr(replace(change, batch=None)) for change in result.changes)


def _ending(sql: str, **options: Any) -> Any:
    return replay(sql, **{**options, "until": 20})


@pytest.mark.parametrize(
    ("sql", "culprit"),
    [
        ("SELECT t.name FROM (SELECT k FROM s EXCEPT SELECT k FROM r) AS q JOIN t ON q.k = t.k", "EXCEPT"),
        ("SELECT t.name FROM (SELECT k FROM s ORDER BY ts LIMIT 3) AS q JOIN t ON q.k = t.k", "LIMIT"),
        ("SELECT t.name FROM s LEFT JOIN r ON s.k = r.k LEFT JOIN t ON r.k = t.k", "LEFT JOIN"),
        ("SELECT t.name FROM s [ROWS 3] JOIN t ON s.k = t.k", r"\[ROWS 3\] of s"),
    ],
)
@pytest.mark.parametrize("kind", ["relations", "nrrs"])
def test_strict_input_is_refused_with_the_reason(sql: str, culprit: str, kind: str) -> None:
    relations: dict[str, Any] = {kind: {"t": T}}
    with pytest.raises(UnsupportedSqlError, match=f"pattern STR, because of .*{culprit}"):
        replay(f"{sql} WINDOW 5 SECONDS", {"s": S, "r": S}, **relations)


def test_strict_input_is_taken_by_a_relation_that_never_changes() -> None:
    fixed = [{"k": 1, "name": "one"}]
    sql = "SELECT t.name FROM (SELECT k FROM s EXCEPT SELECT k FROM r) AS q JOIN t ON q.k = t.k WINDOW 5 SECONDS"
    streams = {"s": S, "r": [{"ts": 1, "k": 1}]}
    assert replay(sql, streams, {"t": fixed}, unit="s").at(7) == [{"name": "one"}]
    assert replay(sql, streams, nrrs={"t": fixed}, unit="s").at(7) == [{"name": "one"}]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT name FROM t",
        "SELECT name, COUNT(*) AS n FROM t GROUP BY name",
        "SELECT k FROM s [RANGE 5 SECONDS] EXCEPT SELECT k FROM t",
        "SELECT t.name FROM t LEFT JOIN s [RANGE 5 SECONDS] ON s.k = t.k",
        "SELECT t.name FROM s [RANGE 5 SECONDS] FULL JOIN t ON s.k = t.k",
        "SELECT t.name FROM t JOIN fixed ON t.k = fixed.k",
    ],
)
def test_a_non_retroactive_relation_is_only_for_rows_to_meet(sql: str) -> None:
    with pytest.raises(UnsupportedSqlError, match="can only be joined with a stream"):
        replay(sql, {"s": S}, {"fixed": [{"k": 1}]}, nrrs={"t": T})


def test_what_is_wrong_with_updates_and_keys_is_said() -> None:
    with pytest.raises(BadRowError, match="_op must be '\\+' or '-'"):
        replay("SELECT k FROM t", {}, {"t": [{"ts": 1, "_op": "?", "k": 1}]})
    with pytest.raises(BadRowError, match="row 0 of relation t has no ts"):
        replay("SELECT k FROM t", {}, {"t": [{"_op": "+", "k": 1}]})
    with pytest.raises(BadRowError, match="relation t has 2 rows of key"):
        replay(JOIN, {"s": S}, {"t": [{"k": 1, "name": "a"}, {"k": 1, "name": "b"}]}, keys={"t": ["k"]})
    with pytest.raises(CatalogError, match="no column 'z'"):
        replay(JOIN, {"s": S}, {"t": T}, keys={"t": ["z"]})


def test_distinct_over_an_input_that_was_cut_can_be_cut_itself() -> None:
    query = case(
        "distinct",
        "",
        {"s": 5},
        sash="SELECT SUM(DISTINCT a.k) AS t FROM {s} AS a JOIN t ON a.k = t.k",
        duck="SELECT CAST(SUM(DISTINCT a.k) AS BIGINT) AS t FROM {s} AS a "
        f"JOIN t_rows AS t ON a.k = t.k AND {met('t', 'a.ts')}",
        nrrs={"t": T},
        keys={"t": ["name"]},
    )
    assert_oracle(query, shards=5, batch=2)


NRR_OVER_JOIN = case(
    "pinned",
    "",
    {"s": 5, "r": 4},
    sash="SELECT a.v AS v, t.name AS name FROM {s} AS a JOIN {r} AS b ON a.k = b.k LEFT JOIN t ON a.k = t.k",
    duck="SELECT a.v AS v, t.name AS name FROM {s} AS a JOIN {r} AS b ON a.k = b.k "
    f"LEFT JOIN t_rows AS t ON a.k = t.k AND {met('t', 'greatest(a.ts, b.ts)')}",
    nrrs={"t": T},
    keys={"t": ["k"]},
)


NRR_BELOW_TOP = case(
    "rows of one slide end apart",
    "",
    {"s": View("s", 6, slide=4)},
    sash="SELECT k, name FROM (SELECT a.k AS k, t.name AS name FROM {s} AS a LEFT JOIN t ON a.k = t.k) AS a "
    "ORDER BY k DESC LIMIT 3",
    duck="SELECT a.k AS k, t.name AS name FROM {s} AS a "
    f"LEFT JOIN t_rows AS t ON a.k = t.k AND {met('t', 'a.ts')} ORDER BY k DESC NULLS LAST LIMIT 3",
    streams={"s": table("ts k", (5, 1), (5, 4), (6, 6), (7, 2), (7, 5), (9, 3), (11, 2), (11, 7))},
    nrrs={"t": T},
)


@pytest.mark.parametrize("shards", [1, 2, 3, 5])
def test_rows_of_several_shards_that_one_slide_takes_in_end_in_their_own_order(shards: int) -> None:
    assert_oracle(NRR_BELOW_TOP, shards=shards, batch=2)


@pytest.mark.parametrize("shards", [1, 2, 3, 5])
@pytest.mark.parametrize("batch", [None, 1, 4])
def test_a_pair_meets_the_relation_when_its_second_row_comes(shards: int, batch: int | None) -> None:
    assert_oracle(NRR_OVER_JOIN, shards=shards, batch=batch)
