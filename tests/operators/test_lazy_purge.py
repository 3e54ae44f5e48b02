"""Lazy maintenance of join state (paper 5, 2.1): an explicit choice, `purge=`, that does not change the answer."""

from __future__ import annotations

from typing import Any

import pytest

from sash.errors import StrategyError
from sash.plan.catalog import Catalog, StreamEntry
from sash.plan.options import Options
from sash.plan.types import BIGINT, Field
from sash.planning import plan_query
from sash.testing import replay

SQL = "SELECT s.k, COUNT(*) AS n FROM s [RANGE 1 SECOND] JOIN r [RANGE 500 MILLISECONDS] ON s.k = r.k GROUP BY s.k"


THREE = (
    "SELECT s.ts AS x, r.ts AS y, q.ts AS z FROM s [RANGE 1 SECOND] JOIN r [RANGE 500 MILLISECONDS] ON s.k = r.k "
    "JOIN q [RANGE 700 MILLISECONDS] ON s.k = q.k"
)
both = pytest.mark.parametrize("sql", [SQL, THREE], ids=["two streams", "three streams"])


def explained(options: Options, sql: str = SQL) -> str:
    columns = (Field("ts", BIGINT), Field("k", BIGINT))
    return plan_query(
        sql, Catalog({name: StreamEntry(name, columns, "ts") for name in "srq"}), options=options
    ).explain()


@both
def test_explain_shows_the_interval_that_was_chosen(sql: str) -> None:
    assert "PURGED EVERY 7 SECONDS" in explained(Options(purge=7_000_000), sql)


@both
@pytest.mark.parametrize("options", [Options(), Options(purge=0), Options("negative-tuple", purge=7)])
def test_joins_purge_at_once_by_default_and_where_inputs_retract_rows(options: Options, sql: str) -> None:
    assert "PURGED EVERY" not in explained(options, sql)


def test_the_interval_must_not_be_negative() -> None:
    with pytest.raises(StrategyError, match="must not be negative"):
        Options(purge=-1)


STREAMS = {
    name: [{"ts": 40 * at, "k": at % number} for at in range(60)] for name, number in (("s", 3), ("r", 5), ("q", 4))
}


@both
@pytest.mark.parametrize("options", [{}, {"join": "eager-nlj"}, {"join": "naive"}, {"tau": 90, "join": "lazy-hash"}])
def test_the_answer_is_the_same(sql: str, options: Any) -> None:
    streams = STREAMS if sql is THREE else {name: STREAMS[name] for name in "sr"}
    eager = replay(sql, streams, batch=7, purge=0, **options)
    for purge in (1, 100, 5_000):
        lazy = replay(sql, streams, batch=7, purge=purge, **options)
        assert sorted(map(repr, lazy.changes)) == sorted(map(repr, eager.changes))
        assert lazy.state_rows == 0


def test_a_join_of_three_evaluates_eagerly_and_purges_lazily() -> None:
    """Paper 4, 3.2: expired rows are removed at the interval, and looked at until then."""
    eager, lazy = (replay(THREE, STREAMS, until=2_000, batch=7, purge=purge) for purge in (0, 5_000))
    assert lazy.state_rows > eager.state_rows
    assert lazy.counts["0.0.MultiJoin"].rows_examined > eager.counts["0.0.MultiJoin"].rows_examined
    assert [(c.ts, c.released) for c in lazy.changes] == [(c.ts, c.released) for c in eager.changes]
