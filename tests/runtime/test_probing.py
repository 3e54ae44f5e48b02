"""Probes of time climb one level per period; those in a gap are computed, and only counted."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from sash.runtime.probing import Probing
from sash.runtime.times import Ends, Times
from sash.state.changes import ChangeBatch
from sash.state.memory import HeapMemory
from sash.testing import Result, replay
from sash.time import BEGINNING, FOREVER

CHAIN = (
    "SELECT n, COUNT(*) AS groups FROM (SELECT k, COUNT(*) AS n FROM (SELECT DISTINCT k, v FROM s [RANGE 10 SECONDS]) AS d "
    "GROUP BY k) AS g GROUP BY n"
)


def rows(*ts: int) -> ChangeBatch:
    return ChangeBatch.stamped(np.array(ts, np.int64), np.array(ts, np.int64) + 9, [pa.array(ts, pa.int64())])


def climb(probing: Probing, levels: int, arrivals: ChangeBatch, clocks: list[int]) -> list[int]:
    """What a chain of operators has learnt after slices that end at these clocks, with rows at the lowest alone."""
    learnt = [0] * (levels + 1)
    begun = 0
    for clock in clocks:
        probing.pass_to(clock)
        probing.answer(0, [probing.instants[position] for position in probing.passed])
        end = int(np.searchsorted(arrivals.ts, clock))
        for level in range(1, levels + 1):
            came = [arrivals.slice(begun, end)] if level == 1 else [arrivals.slice(0, 0)]
            learnt[level] = probing.learn(level, [level - 1], came, learnt[level])
            if level == 1 and end > begun:
                learnt[level] = max(learnt[level], int(arrivals.ts[end - 1]) + 1)
        begun = end
    return learnt[1:]


def stepwise(levels: int, arrivals: ChangeBatch, period: int, start: int, now: int) -> list[int]:
    """The same by looping over every instant."""
    learnt = [0] * (levels + 1)
    for instant in range(start, now + 1):
        if instant > start and instant % period == 0:
            before = [instant, *learnt[1:]]
            learnt = [0, *(max(learnt[level], before[level - 1]) for level in range(1, levels + 1))]
        if instant < now and instant in arrivals.ts:
            learnt[1] = max(learnt[1], instant + 1)
    return learnt[1:]


@pytest.mark.parametrize("clocks", [[100], [23, 60, 61, 100]], ids=["one slice", "four slices"])
@pytest.mark.parametrize("period", [1, 7, 30, 99, 300])
@pytest.mark.parametrize("times", [(), (3,), (55, 97), (12, 13, 29, 90)])
def test_probes_are_computed_as_if_each_were_made(times: tuple[int, ...], period: int, clocks: list[int]) -> None:
    probing = Probing.between(2, 100, period, 4)
    assert climb(probing, 4, rows(*times), clocks) == stepwise(4, rows(*times), period, 2, 100)
    assert len(probing.instants) <= 4
    assert probing.count == 100 // period - 2 // period


def test_there_is_no_probe_before_the_first_clock_and_after_the_end() -> None:
    assert Probing.between(int(BEGINNING), 100, 7, 3).count == 0
    assert Probing.between(5, int(FOREVER), 7, 3).count == 0


@pytest.mark.parametrize("shards", [1, 3])
def test_an_operator_at_depth_d_learns_at_most_d_periods_late(shards: int) -> None:
    """The rows that the query counts end while others, which it filters out, move the clock by a second each."""
    ticking = {"unit": "s", "until": 60, "batch": 1, "shards": shards, "strategy": "time-probing"}
    counted = [{"ts": ts, "k": ts % 3, "v": ts % 5} for ts in range(6)]
    ended = [*counted, *({"ts": ts, "k": None, "v": None} for ts in range(6, 40))]
    filtered = CHAIN.replace("FROM s [RANGE 10 SECONDS]", "FROM s [RANGE 10 SECONDS] WHERE k IS NOT NULL")
    on_time, late = (replay(filtered, {"s": ended}, **ticking, **given) for given in ({}, {"probe": 4}))
    behind = [b - a for a, b in zip(batches(on_time), batches(late), strict=True)]
    assert max(behind) > 4
    assert min(behind) >= 0
    assert max(behind) <= 4 * levels(late)


def batches(result: Result) -> list[int]:
    changes = sorted((change.ts, change.op, repr(change.row), change.batch) for change in result.changes)
    return [-1 if batch is None else batch for *_, batch in changes]


def levels(result: Result) -> int:
    return len(result.counts)


def test_ends_are_given_once_and_in_order() -> None:
    rng, ends, expected = np.random.default_rng(3), Ends(HeapMemory()), []
    given: list[int] = []
    for step in range(60):
        exp = rng.integers(step * 10, step * 10 + 400, int(rng.integers(0, 40)))
        known = [end for end in expected if end >= step * 10]
        expected = sorted({*known, *exp.tolist()})
        passed = ends.pass_to(exp, step * 10 + 10)
        assert passed.tolist() == [end for end in expected if end < step * 10 + 10]
        given += passed.tolist()
    assert given == sorted(given)


def test_the_times_of_an_edge_are_those_of_the_slowest_sender() -> None:
    one, other = Times(10, 8, 7, ((4, 3), (8, 6)), True), Times(12, 5, 9, ((8, 7),), True)
    assert Times.slowest([one, other]) == Times(10, 5, 7, ((8, 6),), True)
    assert Times.from_text(one.to_text()) == one
