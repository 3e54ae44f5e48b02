"""Plans of several queries in one process: a change of one query never waits for an input that only others read."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from sash.errors import CatalogError, OptionError
from sash.plan.catalog import Catalog, StreamEntry
from sash.planning import plan_query, plan_together
from sash.rows import parse_schema
from sash.runtime.local import LocalRun
from sash.state.changes import ChangeBatch
from sash.testing import replay, replay_job
from sash.time import FOREVER, SECOND

SCHEMA = parse_schema("ts BIGINT, k BIGINT")
CATALOG = Catalog({name: StreamEntry(name, SCHEMA, "ts") for name in ("s", "r")})
DISTINCT = "SELECT DISTINCT k FROM s [RANGE 5 SECONDS]"
QUERIES = {
    "distinct": DISTINCT,
    "count": f"SELECT COUNT(*) AS n FROM ({DISTINCT}) AS d",
    "join": f"SELECT d.k FROM ({DISTINCT}) AS d JOIN (SELECT DISTINCT k FROM r [RANGE 5 SECONDS]) AS e ON d.k = e.k",
    "other": "SELECT k FROM r [RANGE 5 SECONDS]",
}


def batch(*rows: tuple[int, int]) -> ChangeBatch:
    """Rows of a stream: seconds and keys."""
    ts = np.array([time * SECOND for time, _ in rows], np.int64)
    columns = (pa.array(ts), pa.array([key for _, key in rows], pa.int64()))
    return ChangeBatch.stamped(ts, np.full(len(rows), FOREVER), columns)


@pytest.mark.parametrize("shards", [1, 3])
def test_a_stalled_stream_delays_only_the_queries_that_read_it(shards: int) -> None:
    job = plan_together({name: plan_query(sql, CATALOG, shards=shards) for name, sql in QUERIES.items()}, shards)
    run = LocalRun(job.physical, {}, shards)

    def advance(rows: dict[str, ChangeBatch], **clocks: int) -> dict[str, list[tuple[int, int]]]:
        made = run.advance_all(rows, {name: clock * SECOND for name, clock in clocks.items()})
        return {
            query.name: [(int(ts) // SECOND, int(sign)) for ts, sign in zip(one.ts, one.sign, strict=True)]
            for query, one in zip(job.queries, made, strict=True)
        }

    first = advance({"s": batch((1, 7)), "r": batch((2, 7))}, s=4, r=1)
    assert first["distinct"] == [(1, 1)]
    assert (1, 1) in first["count"]
    assert first["join"] == first["other"] == []
    second = advance({}, s=10)
    assert second["distinct"] == [(6, -1)]
    assert second["join"] == second["other"] == []
    third = advance({}, r=9)
    assert third == {"distinct": [], "count": [], "join": [(2, 1), (6, -1)], "other": [(2, 1), (7, -1)]}


def test_a_job_is_replayed_with_the_names_options_and_figures_of_each_query() -> None:
    streams = {"s": [{"ts": 1, "k": 1}, {"ts": 2, "k": 1}, {"ts": 4, "k": 2}], "r": [{"ts": 3, "k": 1}]}
    listed = [
        ("plain", DISTINCT),
        ("renamed", DISTINCT.replace("DISTINCT k", "DISTINCT k AS key"), {}),
        ("lazy", DISTINCT, {"tau": 3, "strategy": "time-probing"}),
        ("late", DISTINCT, {"strategy": "input-triggered"}),
    ]
    results = replay_job(listed, streams, unit="s", until=20, batch=1)
    assert list(results) == ["plain", "renamed", "lazy", "late"]
    alone = replay(DISTINCT, streams, unit="s", until=20, batch=1)
    assert results["plain"].changes == alone.changes
    assert [change.row for change in results["renamed"].changes] == [{"key": c.row["k"]} for c in alone.changes]
    assert [change.released for change in results["lazy"].changes] == [
        change.released for change in replay(DISTINCT, streams, unit="s", until=20, tau=3).changes
    ]
    late = replay(DISTINCT, streams, unit="s", until=20, strategy="input-triggered")
    assert [change.released for change in results["late"].changes] == [change.released for change in late.changes]
    assert results["plain"].state_rows == results["plain"].late == 0
    assert any(name.endswith("Distinct") for name in results["renamed"].counts)


def test_late_rows_are_counted_by_the_queries_that_read_their_stream() -> None:
    streams = {"s": [{"ts": 5, "k": 1}, {"ts": 9, "k": 1}, {"ts": 2, "k": 2}], "r": [{"ts": 3, "k": 1}]}
    results = replay_job(QUERIES, streams, unit="s", until=20, batch=1)
    assert {name: result.late for name, result in results.items()} == {"distinct": 1, "count": 1, "join": 1, "other": 0}


def test_wrong_names_and_options_are_refused() -> None:
    with pytest.raises(CatalogError, match="two queries are named a"):
        replay_job([("a", DISTINCT), ("a", DISTINCT)], {"s": []}, schemas={"s": "ts BIGINT, k BIGINT"})
    with pytest.raises(OptionError, match="query a has an unknown option 'taus'"):
        replay_job([("a", DISTINCT, {"taus": 3})], {"s": []}, schemas={"s": "ts BIGINT, k BIGINT"})
