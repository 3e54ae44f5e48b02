"""Lazy maintenance of join state (paper 5, 2.1): an explicit choice, `purge=`, that does not change the answer."""

from __future__ import annotations

import pytest

from sash.errors import StrategyError
from sash.plan.catalog import Catalog, StreamEntry
from sash.plan.options import Options
from sash.plan.types import BIGINT, Field
from sash.planning import plan_query
from sash.testing import replay

SQL = "SELECT s.k, COUNT(*) AS n FROM s [RANGE 1 SECOND] JOIN r [RANGE 500 MILLISECONDS] ON s.k = r.k GROUP BY s.k"


def explained(options: Options) -> str:
    columns = (Field("ts", BIGINT), Field("k", BIGINT))
    return plan_query(
        SQL, Catalog({name: StreamEntry(name, columns, "ts") for name in "sr"}), options=options
    ).explain()


def test_explain_shows_the_interval_that_was_chosen() -> None:
    assert "PURGED EVERY 7 SECONDS" in explained(Options(purge=7_000_000))


@pytest.mark.parametrize("options", [Options(), Options(purge=0), Options("negative-tuple", purge=7)])
def test_joins_purge_at_once_by_default_and_where_inputs_retract_rows(options: Options) -> None:
    assert "PURGED EVERY" not in explained(options)


def test_the_interval_must_not_be_negative() -> None:
    with pytest.raises(StrategyError, match="must not be negative"):
        Options(purge=-1)


def test_the_answer_is_the_same() -> None:
    streams = {name: [{"ts": 40 * at, "k": at % number} for at in range(60)] for name, number in (("s", 3), ("r", 5))}
    eager = replay(SQL, streams, batch=7, purge=0)
    for purge in (1, 100, 5_000):
        lazy = replay(SQL, streams, batch=7, purge=purge)
        assert sorted(map(repr, lazy.changes)) == sorted(map(repr, eager.changes))
        assert lazy.state_rows == 0
