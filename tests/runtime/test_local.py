"""Relations whose updates nobody waits for, in the local runtime: late ones take effect at the clock, none stops a query."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from sash.plan.catalog import Catalog, RelationEntry, StreamEntry
from sash.planning import plan_query
from sash.rows import parse_schema
from sash.runtime.local import LocalRun
from sash.state.changes import ChangeBatch, concat
from sash.time import FOREVER

SCHEMA = parse_schema("k BIGINT, v BIGINT")
Rows = list[tuple[int, int, int, int]]
"""(ts, sign, k, v)"""


def run_of(sql: str, timed: bool = True) -> LocalRun:
    relations = {
        name: RelationEntry(name, SCHEMA, name == "t", changes=True, key=(0,), waits=False, timed=timed)
        for name in ("t", "n")
    }
    stream = StreamEntry("s", parse_schema("ts BIGINT, k BIGINT, v BIGINT"), "ts")
    return LocalRun(plan_query(sql, Catalog({"s": stream}, relations)).physical, {}, shards=3)


def batch(rows: Rows, stream: bool = False) -> ChangeBatch:
    ts, sign, k, v = (np.array([row[i] for row in rows], np.int64) for i in range(4))
    columns = (ts, k, v) if stream else (k, v, ts)
    return ChangeBatch(ts, np.full(len(ts), FOREVER), sign.astype(np.int8), tuple(pa.array(c) for c in columns))


def advance(run: LocalRun, stream: Rows, **updates: Rows) -> list[tuple[int, int, tuple[int, ...]]]:
    rows = {"s": batch(stream, stream=True)} if stream else {}
    rows |= {name: batch(given) for name, given in updates.items()}
    clocks = {name: int(given.ts.max()) for name, given in rows.items()}
    changes = concat([run.advance(rows, clocks)])
    values = zip(*(column.to_pylist() for column in changes.columns), strict=True)
    return sorted(zip(changes.ts.tolist(), changes.sign.tolist(), values, strict=True))


# By its key a relation shares the stage with the stream; by another column its updates have a stage of their own.
@pytest.mark.parametrize("on", ["s.k = t.k", "s.v = t.v"])
def test_late_updates_take_effect_at_the_clock_in_the_order_they_were_made(on: str) -> None:
    run = run_of(f"SELECT s.ts, t.k FROM s [RANGE 1 MINUTE] JOIN t ON {on}")
    assert advance(run, [(5, 1, 1, 7), (10, 1, 1, 7)], t=[(3, 1, 1, 7)]) == [(5, 1, (5, 1))]
    assert advance(run, [], t=[(4, 1, 2, 7), (6, -1, 1, 0), (7, 1, 1, 7), (8, -1, 1, 0)]) == []
    found = advance(run, [(20, 1, 9, 9)])
    assert (10, -1, (5, 1)) in found
    assert all(ts == 10 for ts, _, _ in found)
    assert run.late == 4


@pytest.mark.parametrize("timed", [True, False])
def test_updates_without_times_of_their_own_are_not_late(timed: bool) -> None:
    run = run_of("SELECT s.ts, t.v FROM s [RANGE 1 MINUTE] JOIN t ON s.k = t.k", timed)
    advance(run, [(10, 1, 1, 0)], t=[(0, 1, 1, 7)])
    advance(run, [], t=[(1, 1, 1, 8)])
    assert advance(run, [(20, 1, 1, 0)]) == [(10, 1, (10, 8))]
    assert run.late == int(timed)


@pytest.mark.parametrize("on", ["s.k = n.k", "s.v = n.v"])
def test_a_silent_relation_stops_nothing(on: str) -> None:
    run = run_of(f"SELECT s.ts, n.k FROM s [RANGE 1 MINUTE] LEFT JOIN n ON {on}")
    assert advance(run, [(1, 1, 1, 7), (5, 1, 1, 7)]) == [(1, 1, (1, None))]
    assert advance(run, [(9, 1, 1, 7)], n=[(6, 1, 1, 7)]) == [(5, 1, (5, None))]
    assert advance(run, [(12, 1, 1, 7)]) == [(9, 1, (9, 1))]


def test_relations_alone_are_as_far_as_their_latest_update() -> None:
    run = run_of("SELECT t.k, u.v FROM t JOIN t AS u ON t.v = u.k")
    assert advance(run, [], t=[(5, 1, 1, 2), (6, 1, 2, 3)]) == [(6, 1, (1, 3))]
    assert advance(run, [], t=[(9, -1, 2, 0)]) == [(9, -1, (1, 3))]
