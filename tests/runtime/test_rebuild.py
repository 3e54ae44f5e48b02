"""A shard built again from its live rows goes on exactly as the one that was lost."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection

import numpy as np
import pyarrow as pa
import pytest

from sash.operators import expiration_choice, reordering
from sash.operators.count_window import last_rows
from sash.operators.current_rows import CurrentRows
from sash.operators.expiration_choice import ExpirationPlan
from sash.physical.nodes import PhysicalPlan, StreamLeg, UpdateLeg, walk
from sash.plan.catalog import Catalog, RelationEntry, StreamEntry
from sash.plan.nodes import Range, Rows
from sash.plan.options import Options
from sash.plan.types import TIMESTAMP, Field
from sash.planning import plan_query
from sash.rows import parse_schema
from sash.runtime.legs import LegRunner
from sash.runtime.shard import Arrival, Shard
from sash.state.changes import ChangeBatch, concat
from sash.state.memory import HeapMemory
from sash.time import FOREVER

SCHEMA = parse_schema("ts BIGINT, k BIGINT, x DOUBLE, g STRING")
QUERIES = {
    "select": "SELECT k, g FROM s [RANGE 50 MICROSECONDS]",
    "sum": "SELECT k, SUM(x) AS total, AVG(x) AS mean, VAR_POP(x) AS spread FROM s [RANGE 50 MICROSECONDS] GROUP BY k",
    "ranks": "SELECT k, MEDIAN(x) AS m, MIN(g) AS g, LAST(x) AS l FROM s [RANGE 50 MICROSECONDS] GROUP BY k",
    "moments": (
        "SELECT g, CORR(k, x) AS c, KURTOSIS(x) AS h, BIT_XOR(k) AS b, MODE(k) AS m, LISTAGG(k, ',') AS l, "
        "COLLECT_SET(x) AS s, MAX_BY(k, x, 2) AS y, PERCENTILE_DISC(0.3) WITHIN GROUP (ORDER BY x DESC) AS p "
        "FROM s [RANGE 50 MICROSECONDS] GROUP BY g"
    ),
    "rows_moments": (
        "SELECT g, SKEWNESS(x) AS h, MODE() WITHIN GROUP (ORDER BY k DESC) AS m, COLLECT_LIST(k) AS l, "
        "LISTAGG(DISTINCT k, ',') AS d, HISTOGRAM_NUMERIC(k, 99) AS y FROM s [ROWS 20] GROUP BY g"
    ),
    "distinct": "SELECT DISTINCT k FROM s [RANGE 50 MICROSECONDS]",
    "count_distinct": "SELECT COUNT(DISTINCT k) AS n FROM s [RANGE 50 MICROSECONDS]",
    "join": "SELECT s.k, s.g, r.x FROM s [RANGE 50 MICROSECONDS] JOIN r [RANGE 30 MICROSECONDS] ON s.k = r.k",
    "distinct_join": "SELECT DISTINCT s.k FROM s [RANGE 50 MICROSECONDS] JOIN r [RANGE 30 MICROSECONDS] ON s.k = r.k",
    "outer": "SELECT s.k, r.x FROM s [RANGE 50 MICROSECONDS] LEFT JOIN r [RANGE 30 MICROSECONDS] ON s.k = r.k AND s.x < r.x",
    "except": "SELECT k, g FROM s [RANGE 50 MICROSECONDS] EXCEPT SELECT k, g FROM r [RANGE 30 MICROSECONDS]",
    "intersect_all": "SELECT k FROM s [RANGE 50 MICROSECONDS] INTERSECT ALL SELECT k FROM r [RANGE 30 MICROSECONDS]",
    "anti": "SELECT s.k, s.g FROM s [RANGE 50 MICROSECONDS] LEFT ANTI JOIN r [RANGE 30 MICROSECONDS] ON s.k = r.k",
    "anti_join": (
        "SELECT t.g, c.x FROM (SELECT s.k, s.g FROM s [RANGE 50 MICROSECONDS] LEFT ANTI JOIN r [RANGE 5 MICROSECONDS] "
        "ON s.k = r.k) AS t JOIN r [RANGE 30 MICROSECONDS] AS c ON t.k = c.k"
    ),
    "anti_join_by_another_column": (
        "SELECT t.k, c.x FROM (SELECT s.k, s.g FROM s [RANGE 50 MICROSECONDS] LEFT ANTI JOIN r [RANGE 5 MICROSECONDS] "
        "ON s.k = r.k) AS t JOIN r [RANGE 30 MICROSECONDS] AS c ON t.g = c.g"
    ),
    "semi_anti_by_another_column": (
        "SELECT t.k, t.y FROM (SELECT s.k, s.x * 2 AS y FROM s [RANGE 50 MICROSECONDS] LEFT SEMI JOIN r [RANGE 15 MICROSECONDS] "
        "ON s.g = r.g WHERE s.x < 30) AS t LEFT ANTI JOIN r [RANGE 5 MICROSECONDS] AS c ON t.k = c.k"
    ),
    "except_all_join": (
        "SELECT t.k, t.g, c.x FROM (SELECT k, g FROM s [RANGE 50 MICROSECONDS] UNION ALL SELECT k, g FROM s "
        "[RANGE 12 MICROSECONDS] EXCEPT ALL SELECT k, g FROM r [RANGE 20 MICROSECONDS]) AS t "
        "JOIN r [RANGE 30 MICROSECONDS] AS c ON t.k = c.k"
    ),
    "top": "SELECT k, x FROM s [RANGE 50 MICROSECONDS] ORDER BY x DESC LIMIT 3",
    "compared": (
        "SELECT k, x FROM s [RANGE 50 MICROSECONDS] WHERE x > (SELECT AVG(x) FROM r [RANGE 5 MICROSECONDS]) "
        "AND k <> (SELECT MAX(k) FROM r [RANGE 7 MICROSECONDS] WHERE k < 4)"
    ),
    "over": (
        "SELECT k, x, ROW_NUMBER() OVER w AS n, LAG(g) OVER w AS l, SUM(x) OVER w AS t, SUM(x) OVER (PARTITION BY k) AS a, "
        "AVG(x) OVER (PARTITION BY k ORDER BY x ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS m "
        "FROM s [RANGE 50 MICROSECONDS] WINDOW w AS (PARTITION BY k ORDER BY ts)"
    ),
    "top_of_each": (
        "SELECT k, x FROM s [RANGE 50 MICROSECONDS] QUALIFY ROW_NUMBER() OVER (PARTITION BY k ORDER BY x DESC) <= 2"
    ),
    "ranks_of_each": (
        "SELECT k, x FROM s [RANGE 50 MICROSECONDS] QUALIFY DENSE_RANK() OVER (PARTITION BY k ORDER BY x DESC) <= 2"
    ),
    "chain": "SELECT n, COUNT(*) AS c FROM (SELECT k, COUNT(DISTINCT g) AS n FROM s [RANGE 50 MICROSECONDS] GROUP BY k) GROUP BY n",
    "not_in": "SELECT k, g FROM s [RANGE 50 MICROSECONDS] WHERE k NOT IN (SELECT k FROM r [RANGE 9 MICROSECONDS] WHERE k > 2)",
    "in_value": (
        "SELECT k, k IN (SELECT k FROM r [RANGE 9 MICROSECONDS] AS b WHERE b.g = a.g) AS i, "
        "(SELECT COUNT(*) FROM r [RANGE 30 MICROSECONDS] AS b WHERE b.x < a.x) AS n FROM s [RANGE 50 MICROSECONDS] AS a"
    ),
    "lateral": (
        "SELECT a.k, b.x FROM s [RANGE 50 MICROSECONDS] AS a, LATERAL "
        "(SELECT x FROM r [RANGE 30 MICROSECONDS] AS b WHERE b.k = a.k ORDER BY x LIMIT 2) AS b"
    ),
    "rows": "SELECT k, g FROM s [ROWS 7]",
    "rows_sum": "SELECT k, SUM(x) AS total, MEDIAN(x) AS m FROM s [ROWS 20] GROUP BY k",
    "rows_join": "SELECT s.k, s.g, r.x FROM s [PARTITION BY k ROWS 2] JOIN r [ROWS 9] ON s.k = r.k",
    "rows_outer": "SELECT s.k, r.x FROM s [ROWS 9] FULL JOIN r [RANGE 30 MICROSECONDS] ON s.k = r.k AND s.x < r.x",
    "rows_distinct": "SELECT DISTINCT k FROM s [ROWS 9] EXCEPT SELECT k FROM r [PARTITION BY g ROWS 1]",
    "sliding": "SELECT k, COUNT(*) AS n FROM s [RANGE 50 MICROSECONDS SLIDE 7 MICROSECONDS] GROUP BY k",
    "relation": "SELECT s.g, t.x FROM s [RANGE 50 MICROSECONDS] JOIN t ON s.k = t.k",
    "relation_outer": "SELECT t.g, COUNT(*) AS n FROM s [RANGE 50 MICROSECONDS] FULL JOIN t ON s.k = t.k GROUP BY t.g",
    "relation_by_another_column": "SELECT s.k, t.k AS j FROM s [RANGE 50 MICROSECONDS] LEFT JOIN t ON s.g = t.g",
    "nrr": "SELECT s.g, n.x FROM s [RANGE 50 MICROSECONDS] JOIN n ON s.k = n.k",
    "nrr_by_another_column": "SELECT s.k, n.k AS j FROM s [RANGE 50 MICROSECONDS] LEFT JOIN n ON s.g = n.g",
    "nrr_group": "SELECT n.g, COUNT(*) AS c FROM s [RANGE 50 MICROSECONDS] JOIN n ON s.k = n.k GROUP BY n.g",
    "nrr_over_group": (
        "SELECT q.k, q.c, n.x FROM (SELECT k, COUNT(*) AS c FROM s [RANGE 50 MICROSECONDS] GROUP BY k) AS q "
        "JOIN n ON q.k = n.k"
    ),
    "nrr_over_distinct": (
        "SELECT q.k, COUNT(*) AS c FROM (SELECT DISTINCT k, g FROM s [RANGE 50 MICROSECONDS]) AS q JOIN n ON q.g = n.g "
        "GROUP BY q.k"
    ),
    "nrr_sliding": (
        "SELECT n.g, COUNT(*) AS c FROM s [RANGE 50 MICROSECONDS SLIDE 17 MICROSECONDS] JOIN n ON s.k = n.k GROUP BY n.g"
    ),
    "nrr_over_join": (
        "SELECT s.g, n.x FROM s [RANGE 50 MICROSECONDS] JOIN r [RANGE 30 MICROSECONDS] ON s.k = r.k JOIN n ON s.k = n.k"
    ),
    "tumble": "SELECT window.start, k, SUM(x) AS t FROM z GROUP BY window(ts, '30 microseconds'), k",
    "hop": (
        "SELECT window_end, k, COUNT(*) AS n FROM TABLE(HOP(TABLE z, DESCRIPTOR(ts), INTERVAL 7 MICROSECONDS, "
        "INTERVAL 30 MICROSECONDS)) GROUP BY window_end, k"
    ),
    "cumulate": (
        "SELECT window_start, window_end, COUNT(DISTINCT k) AS n FROM CUMULATE(TABLE z, DESCRIPTOR(ts), "
        "INTERVAL 10 MICROSECONDS, INTERVAL 40 MICROSECONDS) GROUP BY window_start, window_end"
    ),
    "hop_declared": "SELECT window.end, MEDIAN(x) AS m FROM z [RANGE 25 MICROSECONDS] "
    "GROUP BY window(ts, '30 microseconds', '15 microseconds')",
    "now": "SELECT k, COUNT(*) AS n FROM z [RANGE 40 MICROSECONDS] WHERE ts + INTERVAL 13 MICROSECONDS <= NOW() GROUP BY k",
    "sessions": (
        "SELECT k, session_window.start, session_window.end, COUNT(*) AS n, SUM(x) AS t FROM z [RANGE 30 MICROSECONDS] "
        "GROUP BY k, session_window(ts, '9 microseconds')"
    ),
    "all_sessions": (
        "SELECT session_window.start, COUNT(*) AS n FROM z [RANGE 30 MICROSECONDS] GROUP BY session_window(ts, '2 microseconds')"
    ),
    "emit": (
        "SELECT window_end, k, COUNT(*) AS n FROM HOP(TABLE z, DESCRIPTOR(ts), INTERVAL 7 MICROSECONDS, "
        "INTERVAL 30 MICROSECONDS) GROUP BY window_end, k EMIT ON WINDOW CLOSE"
    ),
    "tumble_join": (
        "SELECT a.k, a.x, b.g FROM TUMBLE(TABLE z, DESCRIPTOR(ts), INTERVAL 30 MICROSECONDS) AS a "
        "JOIN TUMBLE(TABLE z, DESCRIPTOR(ts), INTERVAL 30 MICROSECONDS) AS b ON a.k = b.k AND a.window_end = b.window_end"
    ),
}


def rows(rng: np.random.Generator, start: int, stop: int) -> ChangeBatch:
    count = int(rng.integers(0, 30))
    ts = np.sort(rng.integers(start, stop, count))
    columns = (
        pa.array(ts),
        pa.array(rng.integers(0, 6, count), mask=rng.random(count) < 0.1),
        pa.array(rng.choice([0.1, 0.2, 0.3, 1e16, -1e16, 7.25], count), mask=rng.random(count) < 0.1),
        pa.array(rng.choice(["a", "bb", "a string that is longer than sixteen bytes"], count)),
    )
    return ChangeBatch(ts, np.full(count, FOREVER), np.ones(count, np.int8), columns)


def timed(batch: ChangeBatch) -> ChangeBatch:
    """The rows with their times as timestamps."""
    return batch.with_columns((batch.columns[0].view(TIMESTAMP), *batch.columns[1:]))


def updates(rng: np.random.Generator, start: int, stop: int) -> ChangeBatch:
    """Updates of a relation, with the time at which each was made in the last column."""
    batch = rows(rng, start, stop)
    sign = rng.choice(np.array([1, 1, -1], np.int8), len(batch))
    return ChangeBatch(batch.ts, batch.exp, sign, (*batch.columns[1:], pa.array(batch.ts))).sorted()


class Chain:
    """The stages of a plan, one shard each, any of which may be built again from what it accepted and still lives."""

    def __init__(self, plan: PhysicalPlan) -> None:
        self.plan = plan
        self.legs = [LegRunner(leg.node, {}) for leg in plan.legs]
        self.shards = [Shard(plan, stage, HeapMemory(), {}) for stage in plan.stages]
        self.logs: list[list[list[ChangeBatch]]] = [[[] for _ in stage.inputs] for stage in plan.stages]
        self.current = [CurrentRows() for _ in plan.stages]

    def rebuild(self, some: Collection[int] | None = None) -> None:
        """Build the stages with these numbers again; None: all."""
        for number, stage in enumerate(self.plan.stages):
            if not all(self.logs[number]) or (some is not None and number not in some):
                continue
            old = self.shards[number]
            live = []
            for given, log in zip(stage.inputs, self.logs[number], strict=True):
                leg = None if given.leaf.leg is None else self.plan.legs[given.leaf.leg]
                length = None
                if isinstance(leg, StreamLeg):
                    if isinstance(leg.window, Rows):
                        past, waiting = self.parted(log, old.floor)
                        live.append(concat([last_rows(leg.window, past), waiting]))
                        continue
                    assert isinstance(leg.window, Range)  # updates of relations never expire
                    length = given.leaf.horizon
                kept = [
                    batch
                    for batch in log
                    if len(batch) and int((batch.ts + length if length else batch.exp).max()) >= old.floor
                ]
                rows = concat(kept or [log[0].slice(0, 0)]).sorted()
                # As in `Channel.live`: of a row that expired, its retraction may be in the log alone.
                expired = given.leaf.expiry == "strict"
                live.append(rows.take(np.flatnonzero(rows.exp >= old.floor)) if expired else rows)
            self.shards[number] = Shard(self.plan, stage, HeapMemory(), {})
            self.shards[number].restore(live, old.clocks, old.reached, old.learnt)

    @staticmethod
    def parted(log: list[ChangeBatch], clock: int) -> tuple[ChangeBatch, ChangeBatch]:
        """All rows that were accepted: those before the clock, and those that wait for it."""
        rows = concat(log).sorted()
        split = int(np.searchsorted(rows.ts, clock, side="left"))
        return rows.slice(0, split), rows.slice(split, len(rows))

    def advance(self, streams: dict[str, ChangeBatch], clock: int) -> ChangeBatch:
        outputs = []
        for number, stage in enumerate(self.plan.stages):
            arrivals = []
            for given in stage.inputs:
                if given.leaf.stage is not None:
                    before = outputs[given.leaf.stage]
                    arrivals.append(Arrival(before.changes, before.clock, before.times))
                else:
                    leg = self.plan.legs[given.leaf.leg or 0]
                    assert isinstance(leg, StreamLeg | UpdateLeg)
                    arrivals.append(Arrival(self.legs[given.leaf.leg or 0].run(streams[leg.stream]), clock))
            output = self.shards[number].run(arrivals)
            for log, accepted in zip(self.logs[number], output.intake.accepted, strict=True):
                log.append(accepted)
            outputs.append(output)
            self.current[number].add(output.changes)
        return outputs[-1].changes

    def told(self) -> int:
        """The number of stages whose operators tell their answers; what they tell is what they have output."""
        count = 0
        for shard, current in zip(self.shards, self.current, strict=True):
            answer = shard.answer()
            if answer is not None:
                count += 1
                rows = current.rows()
                assert [row[1:] for row in listed(answer)] == [] if rows is None else untimed(answer) == untimed(rows)
        return count

    @property
    def learnt(self) -> list[object]:
        """What the operators have chosen, why, and what they have counted since."""
        chosen = [operator.current_choice for shard in self.shards for operator in shard.operators]
        return [chosen, [shard.learnt for shard in self.shards]]


def listed(batch: ChangeBatch) -> list[tuple[object, ...]]:
    """The changes, those of one instant in the order of their text: bit for bit, since floats print exactly."""
    values = [column.to_pylist() for column in batch.columns]
    found = zip(batch.ts.tolist(), batch.sign.tolist(), *values, strict=True)
    return sorted(found, key=lambda change: (change[0], change[1], repr(change[2:])))


def untimed(batch: ChangeBatch) -> list[str]:
    return sorted(repr(row[1:]) for row in listed(batch))


CATALOG = Catalog(
    {
        **{stream: StreamEntry(stream, SCHEMA, "ts") for stream in ("s", "r")},
        "z": StreamEntry("z", (Field("ts", TIMESTAMP), *SCHEMA[1:]), "ts"),
    },
    {
        "t": RelationEntry("t", SCHEMA[1:], changes=True, key=(0,)),
        "n": RelationEntry("n", SCHEMA[1:], retroactive=False, changes=True, key=(0,)),
    },
)


def check(plan: PhysicalPlan, seed: int, alone: bool = False) -> Chain:
    """Of two runs one is built again before every batch: their changes are the same, and what it has learnt stays.

    With `alone`, one stage is built again before every batch, in turn.
    """
    rng = np.random.default_rng(seed)
    steady, shaken = Chain(plan), Chain(plan)
    reads_z = any(isinstance(leg, StreamLeg) and leg.stream == "z" for leg in plan.legs)
    for step in range(14):
        start = step * 20
        streams = {"s": rows(rng, start, start + 20), "r": rows(rng, start, start + 20)}
        streams["z"] = timed(rows(rng, start, start + 20)) if reads_z else streams["s"]
        streams |= {"t": updates(rng, start, start + 20), "n": updates(rng, start, start + 20)}
        clock = start + int(rng.integers(0, 20)) if step < 13 else int(FOREVER)
        streams = {n: b.take(np.flatnonzero(b.ts >= max(0, (start - 20)))) for n, b in streams.items()}
        expected = listed(steady.advance(streams, clock))
        before = shaken.learnt
        shaken.rebuild([step % len(plan.stages)] if alone else None)
        assert shaken.learnt == before, (seed, step)
        assert listed(shaken.advance(streams, clock)) == expected, (seed, step)
    return shaken


@pytest.mark.parametrize(
    "strategy", ["auto", "direct", "negative-tuple", "hybrid", "input-triggered", "piggyback", "re-evaluation"]
)
@pytest.mark.parametrize("name", QUERIES)
def test_rebuilt_after_every_batch(name: str, strategy: str) -> None:
    plan = plan_query(QUERIES[name], CATALOG, options=Options(strategy)).physical
    for seed in range(4 if strategy == "auto" else 1):
        check(plan, seed)


@pytest.mark.parametrize(
    "name", ["sum", "ranks", "moments", "rows_moments", "count_distinct", "chain", "tumble", "having"]
)
def test_aggregates_tell_their_answers(name: str) -> None:
    having = "SELECT k, 2 * SUM(x) AS t FROM s [RANGE 50 MICROSECONDS] GROUP BY k HAVING COUNT(*) > 2"
    plan = plan_query({**QUERIES, "having": having}[name], CATALOG).physical
    rng, chain = np.random.default_rng(5), Chain(plan)
    for step in range(8):
        start = 20 * step
        streams = {"s": rows(rng, start, start + 20), "z": timed(rows(rng, start, start + 20))}
        chain.advance(streams, start + 15 if step < 7 else 10_000)
        told = chain.told()
        assert told > 0
        chain.advance({name: batch.slice(0, 0) for name, batch in streams.items()}, start + 15)
        assert chain.told() == told, "telling changes nothing"


@pytest.mark.parametrize(
    "options",
    [
        Options("time-message"),
        Options("time-probing", probe=7),
        Options("hybrid", probe=7),
        Options("piggyback", patience=9),
    ],
    ids=lambda options: options.strategy,
)
@pytest.mark.parametrize(
    "name", ["sum", "distinct_join", "outer", "except", "intersect_all", "rows_outer", "in_value", "sessions"]
)
def test_what_is_learnt_and_waits_is_not_lost(name: str, options: Options) -> None:
    """Where a DISTINCT below is rebuilt, its rows may come at other times, and so may what the operator above learns."""
    plan = plan_query(QUERIES[name], CATALOG, options=options).physical
    for seed in range(3):
        check(plan, seed)


@pytest.mark.parametrize("changing", [False, True], ids=["one way", "changing"])
@pytest.mark.parametrize("calendar", [True, False], ids=["calendar", "negative tuples"])
@pytest.mark.parametrize("name", ["anti_join", "except_all_join"])
def test_negation_rebuilt_below_a_join(
    name: str, calendar: bool, changing: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody sees how the join learns of ends, and what is built again goes on the way that was in use."""
    monkeypatch.setattr(ExpirationPlan, "calendar", calendar)
    monkeypatch.setattr(expiration_choice, "PATIENCE", 1 if changing else 10**9)
    monkeypatch.setattr(expiration_choice, "WORTH", 0.0)
    plan = plan_query(QUERIES[name], CATALOG, {"pull_up_negation"}).physical
    assert any(node.expiry == "strict" for node in walk(plan.stages[0].root))
    for seed in range(4):
        check(plan, seed)


@pytest.mark.parametrize("alone", [False, True], ids=["together", "in turn"])
@pytest.mark.parametrize("changing", [False, True], ids=["one way", "changing"])
@pytest.mark.parametrize("name", ["anti_join_by_another_column", "semi_anti_by_another_column"])
def test_negation_rebuilt_below_another_stage(
    name: str, changing: bool, alone: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other stage has the rows in its log as they were sent: however often the way changes, each ends as it was sent."""
    monkeypatch.setattr(expiration_choice, "PATIENCE", 1 if changing else 10**9)
    monkeypatch.setattr(expiration_choice, "WORTH", 0.0)
    plan = plan_query(QUERIES[name], CATALOG, {"pull_up_negation", "push_down_negation"}).physical
    assert [stage.root.expiry for stage in plan.stages] == ["strict", "explicit"]
    learnt = str([check(plan, seed, alone).learnt for seed in range(4)])
    assert (max(map(int, re.findall(r"\(change (\d+)\)", learnt)), default=0) > 5) == changing


@pytest.mark.parametrize("windows", ["[RANGE 50 MICROSECONDS]", "[ROWS 30]"])
def test_the_order_of_a_join_goes_on(windows: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What has been counted since the last change counts on, so that later changes come when they would have come."""
    monkeypatch.setattr(reordering, "PATIENCE", 40)
    monkeypatch.setattr(reordering, "WORTH", 1.01)
    monkeypatch.setattr(reordering, "MOVED", 1.01)
    sql = (
        f"SELECT a.x AS x, b.x AS y, c.g AS g FROM s {windows} AS a JOIN r {windows} AS b ON a.k = b.k "
        f"JOIN s {windows} AS c ON a.k = c.k WHERE a.x < 30"
    )
    plan = plan_query(sql, CATALOG, options=Options(join="eager-nlj")).physical
    assert any("(change 2)" in str(check(plan, seed).learnt) for seed in range(4))


KEPT = {
    "anti": "SELECT s.k, s.g, s.x * 2 AS y FROM s [RANGE 50 MICROSECONDS] LEFT ANTI JOIN r [RANGE 5 MICROSECONDS] ON s.k = r.k",
    "anti_calendar": (
        "SELECT t.k, t.g FROM (SELECT k, g FROM s [RANGE 50 MICROSECONDS] UNION ALL SELECT k, g FROM s [RANGE 9 MICROSECONDS]) "
        "AS t LEFT ANTI JOIN r [RANGE 5 MICROSECONDS] ON t.k = r.k"
    ),
    "semi": "SELECT s.k, s.g FROM s [RANGE 50 MICROSECONDS] LEFT SEMI JOIN r [RANGE 5 MICROSECONDS] ON s.k = r.k WHERE s.x < 30",
    "except_all": "SELECT k FROM s [RANGE 50 MICROSECONDS] EXCEPT ALL SELECT k FROM r [RANGE 30 MICROSECONDS]",
}


@pytest.mark.parametrize("name", KEPT)
def test_kept_rows_of_a_negation_have_the_same_ends_again(name: str) -> None:
    """The expiration times of a result that is kept are in its files, so a rebuilt shard must not give others."""
    plain = plan_query(KEPT[name], CATALOG, {"pull_up_negation"})
    ending = plain.with_expiration(1, premature=True)
    assert ending.has_expiration
    for seed in range(4):
        check(ending.physical, seed)


@pytest.mark.parametrize("name", KEPT)
def test_rows_with_expiration_times_are_those_without(name: str) -> None:
    """At every instant; each ends at its time or, if the right side takes it away, before."""
    plain = plan_query(KEPT[name], CATALOG, {"pull_up_negation"})
    ending = plain.with_expiration(1, premature=True)
    premature = 0
    for seed in range(4):
        rng = np.random.default_rng(seed)
        runs = Chain(plain.physical), Chain(ending.physical)
        for step in range(14):
            streams = {stream: rows(rng, 20 * step, 20 * step + 20) for stream in ("s", "r")}
            clock = 20 * step + 20 if step < 13 else int(FOREVER)
            without, given = (listed(run.advance(streams, clock)) for run in runs)
            found: Counter[tuple[object, ...]] = Counter()
            for ts, sign, *row, ends in given:
                found[ts, *row] += sign  # type: ignore[assignment,operator]
                assert ends > ts if sign == 1 else ends >= ts  # type: ignore[operator]
                premature += sign == -1 and ends != ts
            for ts, sign, *row in without:
                found[ts, *row] -= sign  # type: ignore[assignment,operator]
            assert not +found
            assert not -found
        assert runs[1].shards[-1].state_rows == 0
    assert premature > 10
