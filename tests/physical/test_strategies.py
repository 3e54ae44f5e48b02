"""Strategies: where Expire sits, who hears what, and how much passes through each operator."""

from __future__ import annotations

from collections import Counter

import pytest

from sash.errors import StrategyError
from sash.physical.nodes import operations
from sash.physical.strategies.registry import STRATEGIES
from sash.plan.catalog import Catalog, StreamEntry
from sash.plan.options import STRATEGIES as NAMES
from sash.plan.options import Options
from sash.planning import Planned, plan_query
from sash.rows import parse_schema
from sash.runtime.legs import static_tables
from sash.runtime.local import LocalRun
from sash.testing import Result, replay

SCHEMA = parse_schema("ts BIGINT, k BIGINT, v BIGINT")
CATALOG = Catalog({name: StreamEntry(name, SCHEMA, "ts") for name in ("s", "r")})
JOIN = "SELECT s.k, COUNT(*) AS n FROM s [RANGE 8 SECONDS] JOIN r [RANGE 8 SECONDS] ON s.k = r.k GROUP BY s.k"
CHAIN = (
    "SELECT v, COUNT(*) AS n FROM (SELECT DISTINCT s.k, r.v FROM s [RANGE 8 SECONDS] JOIN r [RANGE 5 SECONDS] "
    "ON s.k = r.k WHERE s.v > 0 EXCEPT SELECT k, v FROM r [RANGE 3 SECONDS]) GROUP BY v"
)


def plan(sql: str, strategy: str) -> Planned:
    return plan_query(sql, CATALOG, options=Options(strategy))


def operators(planned: Planned) -> list[str]:
    """The operators of the plan, bottom up."""
    return [node.name for stage in planned.physical.stages for node in operations(stage.root)]


def rows(count: int, gap: float, keys: int = 3, start: float = 0) -> list[dict[str, int]]:
    """So many rows, one every `gap` seconds; times are in milliseconds."""
    return [{"ts": round(1000 * (start + n * gap)), "k": n % keys, "v": n // 3 % 4} for n in range(count)]


def taken(result: Result) -> Counter[str]:
    """Rows and negatives into the joins and aggregates of a plan, and messages."""
    total: Counter[str] = Counter()
    for name, counts in result.counts.items():
        if name.endswith(("Join", "Aggregate")):
            total += Counter(rows=counts.taken, negatives=counts.taken_negative, messages=counts.messages)
    return total


def test_every_strategy_has_a_file_and_a_name() -> None:
    assert {*STRATEGIES, "auto"} == set(NAMES)


def test_an_unknown_strategy_names_those_there_are() -> None:
    with pytest.raises(StrategyError, match=r"no strategy 'fast'.*negative-tuple"):
        Options("fast")


def test_expire_sits_at_the_bottom_above_the_joins_or_at_the_top() -> None:
    filtered = JOIN.replace("GROUP", "WHERE s.v > 1 GROUP")
    assert operators(plan(filtered, "negative-tuple"))[:2] == ["Expire", "Filter"]
    assert operators(plan(filtered, "negative-tuple")).count("Expire") == 2
    assert operators(plan(JOIN, "hybrid"))[:2] == ["Join", "Expire"] or operators(plan(JOIN, "hybrid"))[:3] == [
        "Join",
        "Project",
        "Expire",
    ]
    assert "Expire" not in operators(plan(JOIN, "direct"))


def test_hybrid_without_a_join_is_negative_tuple_and_says_so() -> None:
    count = "SELECT k, COUNT(*) AS n FROM s [RANGE 8 SECONDS] WHERE v > 1 GROUP BY k"
    assert operators(plan(count, "hybrid")) == operators(plan(count, "negative-tuple"))
    assert "as in negative-tuple" in plan(count, "hybrid").explain()
    assert "as in negative-tuple" not in plan(JOIN, "hybrid").explain()


def test_direct_keeps_all_of_distinct_and_update_patterns_choose_delta_star() -> None:
    distinct = "SELECT DISTINCT k FROM s [RANGE 8 SECONDS]"
    assert operators(plan(distinct, "direct")) == ["SetOperation"]
    assert operators(plan(distinct, "auto")) == ["Distinct"], "it says itself what ends"


@pytest.mark.parametrize("strategy", [name for name in NAMES if name not in ("input-triggered", "clock-triggered")])
def test_a_batch_releases_all_that_its_clock_reached(strategy: str) -> None:
    streams = {"s": rows(40, 0.5), "r": rows(40, 0.7, keys=4)}
    expected = by_batch(CHAIN, "auto", streams)
    assert by_batch(CHAIN, strategy, streams) == expected
    assert sum(sum(batch.values()) for batch in expected) > 40


def test_input_triggered_releases_the_same_changes_later() -> None:
    streams = {"s": rows(40, 0.5), "r": rows(40, 0.7, keys=4)}
    right, late = by_batch(CHAIN, "auto", streams), by_batch(CHAIN, "input-triggered", streams)
    behind = 0
    for until in range(len(right)):
        due: Counter[object] = sum(right[: until + 1], Counter())
        come: Counter[object] = sum(late[: until + 1], Counter())
        assert not come - due
        behind += (due - come).total()
    assert behind > 0


def by_batch(sql: str, strategy: str, streams: dict[str, list[dict[str, int]]]) -> list[Counter[object]]:
    """The changes that each micro-batch of a local run releases."""
    from sash.testing.inputs import micro_batches, stream_input
    from sash.testing.times import TimeUnit

    planned = plan_query(sql, CATALOG, options=Options(strategy), shards=2)
    feeds = {name: stream_input(name, given, SCHEMA, TimeUnit("ms"), 0) for name, given in streams.items()}
    run = LocalRun(planned.physical, static_tables(planned.physical, {}), 2)
    found = []
    for micro in micro_batches(feeds, 3):
        changes = run.advance(micro.rows, micro.clocks)
        columns = [column.to_pylist() for column in changes.columns]
        found.append(Counter(zip(changes.ts.tolist(), changes.sign.tolist(), *columns, strict=True)))
    return found


def test_negative_tuples_double_what_passes_through_the_pipeline() -> None:
    streams = {"s": rows(200, 0.101, keys=5), "r": rows(200, 0.103, keys=5, start=0.05)}
    triggered = taken(replay(JOIN, streams, strategy="input-triggered"))
    negative = taken(replay(JOIN, streams, strategy="negative-tuple"))
    assert triggered["negatives"] == 0
    assert 1.9 <= negative["rows"] / triggered["rows"] <= 2.1
    assert negative["negatives"] * 2 == negative["rows"]


def test_hybrid_sends_negatives_only_above_the_join() -> None:
    streams = {"s": rows(100, 0.1, keys=5), "r": rows(100, 0.1, keys=5, start=0.05)}
    counts = replay(JOIN, streams, strategy="hybrid").counts
    by_kind = {name.split(".")[-1]: seen for name, seen in counts.items()}
    assert by_kind["Join"].taken_negative == 0
    assert by_kind["Aggregate"].taken_negative == by_kind["Aggregate"].taken // 2 > 0


def test_under_time_message_operators_of_the_first_kind_process_no_negatives() -> None:
    streams = {"s": rows(100, 0.1, keys=5), "r": rows(100, 0.1, keys=5, start=0.05)}
    result = replay(CHAIN, streams, strategy="time-message", patience=0)
    below = [seen for name, seen in result.counts.items() if name.split(".")[-1] == "Join"]
    assert below
    assert all(seen.taken_negative == 0 and seen.messages > 0 for seen in below)
    assert [change.released for change in result.changes] == [change.ts for change in result.changes]


def test_piggyback_costs_what_input_triggered_does_at_a_high_rate() -> None:
    streams = {"s": rows(1000, 0.01, keys=5), "r": rows(1000, 0.01, keys=5, start=0.005)}
    options = {"until": 10_000}
    triggered = taken(replay(JOIN, streams, strategy="input-triggered", **options))
    carried = replay(JOIN, streams, strategy="piggyback", patience=100, **options)
    told = taken(carried)
    assert told["rows"] + told["messages"] <= 1.1 * triggered["rows"]
    assert max(carried.delays) <= 100


def test_piggyback_has_the_delay_of_negative_tuples_at_a_low_rate() -> None:
    streams = {"s": rows(40, 1.3, keys=5), "r": rows(40, 1.7, keys=5)}
    assert set(replay(JOIN, streams, strategy="negative-tuple").delays) == {0}
    assert set(replay(JOIN, streams, strategy="piggyback").delays) == {0}
    assert max(replay(JOIN, streams, strategy="input-triggered").delays) > 1000


def test_piggyback_switches_when_the_rate_changes_and_says_so() -> None:
    slow, fast = rows(10, 2.0), rows(1500, 0.01, start=25)
    again = rows(10, 2.0, start=45)
    count = "SELECT k, COUNT(*) AS n FROM s [RANGE 8 SECONDS] GROUP BY k"
    result = replay(count, {"s": [*slow, *fast, *again]}, strategy="piggyback", patience=100, batch=5, shards=1)
    assert [switches for switches in result.switches.values() if switches] == [2]
    delays = {change.ts: (change.released or 0) - change.ts for change in result.changes}
    assert {delay for ts, delay in delays.items() if ts < 25_000} == {0}
    assert max(delay for ts, delay in delays.items() if 25_000 <= ts < 45_000) > 0
    assert max(delays.values()) <= 100
    steady = replay(count, {"s": slow}, strategy="piggyback", patience=100)
    assert set(steady.switches.values()) == {0}


def test_time_probing_is_late_by_no_more_than_its_period() -> None:
    streams = {"s": rows(60, 0.37, keys=5), "r": rows(60, 0.53, keys=5)}
    result = replay(CHAIN, streams, strategy="time-probing", probe=1000)
    assert 0 < max(result.delays) < 1000
    assert all(change.released is not None for change in result.changes)
    assert set(replay(CHAIN, streams, strategy="time-probing").delays) == {0}


def test_a_row_on_its_way_holds_back_those_who_probe_and_nobody_else() -> None:
    result = replay(JOIN, {"s": rows(20, 1.0), "r": rows(20, 1.0)}, strategy="time-probing", delays={"r": 400})
    arrivals = {change.released for change in result.changes if change.ts < 8000}
    assert arrivals == {1000 * n + 400 for n in range(8)}
    assert {(change.ts, change.released) for change in result.changes if change.ts > 20_000} == {
        (change.ts, change.ts) for change in result.changes if change.ts > 20_000
    }


def test_delays_of_an_operator_that_is_not_there() -> None:
    with pytest.raises(StrategyError, match=r"no operator 'sort'.*aggregate"):
        replay(JOIN, {"s": rows(2, 1), "r": rows(2, 1)}, delays={"sort": 3})
