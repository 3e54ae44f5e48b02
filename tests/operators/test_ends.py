"""Calendar or negative tuples above a negation (paper 5, 5.3.2): a change that pays, one that must not happen, and none
that shows in the answer."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sash.testing
from sash.operators import ends
from sash.operators.ends import Ending, Ends
from sash.operators.semi_join import SemiJoin
from sash.planning import plan_query
from sash.state.changes import FOREVER, ChangeBatch
from sash.state.memory import HeapMemory
from sash.testing import Result, replay
from tests.operators.reference import Life, batches, check, clocks, edge, lives, rows_of
from tests.operators.test_semi_join import answer
from tests.oracle.cases import BY_NAME
from tests.oracle.check import assert_oracle

QUERY = (
    "SELECT t.k AS k, t.v AS v, c.v AS w FROM (SELECT a.k, a.v FROM s [RANGE 400 MILLISECONDS] AS a "
    "LEFT ANTI JOIN r [RANGE 3 MILLISECONDS] AS b ON a.k = b.k) AS t JOIN q [RANGE 100 MILLISECONDS] AS c ON t.k = c.k"
)
NEGATION, JOIN = "0.0.SemiJoin", "0.1.Join"
OVER_NEGATION = ("join_over_anti", "join_of_anti_and_semi", "anti_over_anti", "join_over_left_join")


@pytest.fixture(autouse=True)
def negation_stays_below(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a join of few rows would be cheaper below the negation, it stays above all the same."""
    monkeypatch.setattr(sash.testing, "plan_query", partial(plan_query, disable={"pull_up_negation"}))


def streams(spans: list[tuple[int, float]], seed: int = 3) -> dict[str, list[dict[str, Any]]]:
    """For each span as many ms, with ten rows of s a ms, and as many of r, which take rows of s out of the answer."""
    random = np.random.default_rng(seed)
    made: dict[str, list[dict[str, Any]]] = {"s": [], "r": [], "q": []}
    begun = 0
    for length, rate in spans:
        for name, count in (("s", 10 * length), ("r", int(rate * length)), ("q", length // 10)):
            times = np.sort(random.integers(begun, begun + length, count))
            keys, values = random.integers(0, 200, count), random.integers(0, 9, count)
            found = zip(times.tolist(), keys.tolist(), values.tolist(), strict=True)
            made[name] += [{"ts": ts, "k": key, "v": value} for ts, key, value in found]
        begun += length
    return made


def run(
    rows: dict[str, list[dict[str, Any]]], monkeypatch: pytest.MonkeyPatch, *, calendar: bool, fixed: bool
) -> Result:
    """A run that begins one way and, unless it is fixed, goes on as it sees fit; 100 rows stand in a partition or so."""
    monkeypatch.setattr(Ends, "calendar", calendar)
    monkeypatch.setattr(ends, "PATIENCE", 10**9 if fixed else 4000)
    return replay(QUERY, rows, unit="ms", batch=500, shards=1, partitions=40)


def bag(result: Result) -> Counter[tuple[Any, ...]]:
    return Counter((c.ts, c.op, *c.row.values()) for c in result.changes)


def test_calendars_pay_where_few_ends_are_premature(monkeypatch: pytest.MonkeyPatch) -> None:
    """Natural ends need not be said any more: the join is handed fewer rows, and searches little for those taken back."""
    rows = streams([(2000, 0.01)])
    fixed, adaptive = (run(rows, monkeypatch, calendar=False, fixed=fixed) for fixed in (True, False))
    assert bag(fixed) == bag(adaptive)
    assert fixed.counts[NEGATION].said == {0: ("ends by negative tuples", "as planned")}
    ((way, why),) = adaptive.counts[NEGATION].said.values()
    assert way == "ends by calendar"
    assert "(change 1):" in why
    assert f"in force in the only shard: {way}, {why}" in adaptive.explain()
    saved = fixed.counts[JOIN].taken - adaptive.counts[JOIN].taken
    assert saved > 0.3 * fixed.counts[JOIN].taken
    assert adaptive.counts[JOIN].probes < saved
    assert adaptive.state_rows == fixed.state_rows == 0


def test_negative_tuples_pay_where_many_ends_are_premature(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = streams([(600, 0.01), (900, 1.0)])
    fixed, adaptive = (run(rows, monkeypatch, calendar=True, fixed=fixed) for fixed in (True, False))
    assert bag(fixed) == bag(adaptive)
    assert fixed.counts[NEGATION].said == {0: ("ends by calendar", "as planned")}
    ((way, why),) = adaptive.counts[NEGATION].said.values()
    assert way == "ends by negative tuples"
    assert "(change 1):" in why
    spared = fixed.counts[JOIN].probes - adaptive.counts[JOIN].probes
    assert spared > 0.4 * fixed.counts[JOIN].probes
    assert spared > ends.SAID * (adaptive.counts[JOIN].taken - fixed.counts[JOIN].taken)
    assert adaptive.state_rows == fixed.state_rows == 0


@pytest.mark.parametrize("calendar", [True, False], ids=["calendar", "negative tuples"])
def test_a_share_that_wavers_about_the_border_changes_nothing(calendar: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where both cost about the same, a tenth more or less is not worth a change, whichever way is in force."""
    filling = (400, 0.225 if calendar else 1.0)
    rows = streams([filling, *((150, 0.225 + 0.025 * (-1) ** n) for n in range(8))])
    result = run(rows, monkeypatch, calendar=calendar, fixed=False)
    way = "calendar" if calendar else "negative tuples"
    assert result.counts[NEGATION].said == {0: (f"ends by {way}", "as planned")}
    given = result.counts[NEGATION].given - result.counts[NEGATION].given_negative
    assert 0.26 < result.counts[NEGATION].premature / given < 0.4


@pytest.mark.parametrize("case", OVER_NEGATION)
def test_oracle_while_it_changes_with_every_batch(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ends, "PATIENCE", 1)
    monkeypatch.setattr(ends, "WORTH", 0.0)
    for batch in (1, 2, 5):
        assert_oracle(BY_NAME[case], shards=1, batch=batch)


@pytest.mark.parametrize("anti", [False, True], ids=["semi", "anti"])
@settings(derandomize=True, deadline=None, max_examples=100)
@given(data=st.data())
def test_oracle_of_what_is_handed_over(anti: bool, data: st.DataObject) -> None:
    """Whichever way is in force when: a row ends when it says, or before that by a `-` row that repeats what it said."""
    kinds = data.draw(st.tuples(st.sampled_from(["fifo", "calendar"]), st.sampled_from(["fifo", "explicit"])))
    inputs = [data.draw(lives(kind)) for kind in kinds]
    calls = data.draw(clocks())
    ways = data.draw(st.lists(st.booleans(), min_size=len(calls), max_size=len(calls)))
    memory, edges = HeapMemory(), (edge(kinds[0]), edge(kinds[1]))
    given_out: list[Life] = []
    for calendar, clock, *step in zip(ways, calls, *map(batches, edges, inputs, [calls] * 2), strict=True):
        operator = SemiJoin(memory, edges, ((0, 0),), anti, Ends(0.0, 0.0, 4, fixed=True))
        memory.array("ending.marks", np.float64, 0)[1] = calendar
        output = operator.process(step, clock)
        for ts, sign, exp, row in zip(
            output.ts.tolist(), output.sign.tolist(), output.exp.tolist(), rows_of(output), strict=True
        ):
            life = Life(0, exp, row)
            if sign > 0:
                given_out.append(Life(ts, exp, row))
                continue
            place = next(n for n, one in enumerate(given_out) if one[1:] == life[1:] and one.ts < ts < one.exp)
            given_out[place] = Life(given_out[place].ts, ts, (*row, "ended"))
    output_lives = [Life(life.ts, life.exp, life.row[:2]) for life in given_out]
    check(output_lives, inputs, lambda left, right: answer(left, right, ((0, 0),), anti))


def handed_over(given: int, premature: int) -> ChangeBatch:
    """So many rows, of which some are taken back at once."""
    sign = np.concatenate((np.ones(given, np.int8), np.full(premature, -1, np.int8)))
    return ChangeBatch(np.zeros(len(sign), np.int64), np.full(len(sign), FOREVER), sign, ())


@pytest.mark.parametrize(
    ("planned", "share", "changes"),
    [(0.0, 0.3, 0), (0.0, 0.7, 0), (0.0, 1.0, 1), (1.0, 1.0, 0), (1.0, 0.7, 0), (1.0, 0.3, 1)],
    ids=["still pays", "costs a little", "costs more", "would not pay", "would hardly pay", "would pay"],
)
def test_the_way_changes_past_the_border_only(planned: float, share: float, changes: int) -> None:
    """With 36 rows in a partition the border is at seven tenths, and searching for all of them costs too much."""
    memory, partitions = HeapMemory(), 100
    known = Ends(planned, 36.0 * partitions, partitions)
    kept = Ending(memory, known)
    assert kept.calendar == (planned == 0.0)
    batch, standing = handed_over(ends.PATIENCE, 0), 36 * partitions
    kept.observe(batch, ends.PATIENCE - standing, int(share * ends.PATIENCE), 5)
    assert kept.changes == changes
    assert Ending(memory, known).calendar == (kept.calendar if not changes else planned != 0.0)


def test_few_rows_are_not_believed() -> None:
    kept = Ending(HeapMemory(), Ends(None, 0.0, 1))
    kept.observe(handed_over(ends.PATIENCE - 1, 0), ends.PATIENCE - 1, 0, 5)
    assert not kept.calendar
    kept.observe(handed_over(1, 0), 1, 0, 7)
    assert kept.calendar
    assert kept.remark == ("ends by calendar", "since 7 (change 1): 0% premature, 0.0 rows a partition")
