"""Calendar or negative tuples above a negation (paper 5, 5.3.2): a change that pays, one that must not happen, and none
that shows in the answer."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sash.operators import expiration_choice
from sash.operators.expiration_choice import ExpirationChoice, ExpirationPlan
from sash.operators.semi_join import SemiJoin
from sash.planning import plan_query
from sash.state.changes import ChangeBatch
from sash.state.memory import HeapMemory
from sash.testing import Result, replay
from sash.time import FOREVER
from tests.operators.reference import check, clocks, drive_strict, lives
from tests.operators.test_semi_join import answer
from tests.oracle.cases import BY_NAME
from tests.oracle.check import assert_oracle

JOIN = "0.1.Join"
OVER_NEGATION = (
    "join_over_anti",
    "join_of_anti_and_semi",
    "anti_over_anti",
    "join_over_left_join",
    "join_over_except",
    "join_over_except_all_of_lengths",
    "join_of_except_alls",
    "anti_over_except_all",
    "paper5_query5",
)


@dataclass(frozen=True)
class Negation:
    """A negation below a join, the cost of a retraction, and rates of rows of r, in rows a ms, with which few
    of its rows end prematurely, many, and so many that both ways cost about the same."""

    operator: str
    sql: str
    retraction: float
    few: float
    many: float
    border: float

    @property
    def query(self) -> str:
        return f"SELECT t.*, c.v AS w FROM ({self.sql}) AS t JOIN q [RANGE 100 MILLISECONDS] AS c ON t.k = c.k"


NEGATIONS = (
    Negation(
        "0.0.SemiJoin",
        "SELECT a.k, a.v FROM s [RANGE 400 MILLISECONDS] AS a LEFT ANTI JOIN r [RANGE 3 MILLISECONDS] AS b ON a.k = b.k",
        expiration_choice.RETRACTION,
        few=0.01,
        many=1.0,
        border=0.15,
    ),
    Negation(
        "0.0.ExceptAll",
        "SELECT k FROM s [RANGE 400 MILLISECONDS] EXCEPT ALL SELECT k FROM r [RANGE 3 MILLISECONDS]",
        expiration_choice.COUNTED_RETRACTION,
        few=0.2,
        many=6.0,
        border=2.1,
    ),
)
of_both = pytest.mark.parametrize("negation", NEGATIONS, ids=["anti join", "EXCEPT ALL"])


@pytest.fixture(autouse=True)
def negation_stays_below(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a join of few rows would be cheaper below the negation, it stays above all the same."""
    monkeypatch.setattr(
        import_module("sash.testing.replay"), "plan_query", partial(plan_query, disable={"pull_up_negation"})
    )


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
    negation: Negation,
    rows: dict[str, list[dict[str, Any]]],
    monkeypatch: pytest.MonkeyPatch,
    *,
    calendar: bool,
    fixed: bool,
) -> Result:
    """A run that begins one way and, unless it is fixed, goes on as it sees fit; 100 rows stand in a partition or so."""
    monkeypatch.setattr(ExpirationPlan, "calendar", calendar)
    monkeypatch.setattr(expiration_choice, "PATIENCE", 10**9 if fixed else 4000)
    return replay(negation.query, rows, unit="ms", batch=500, shards=1, partitions=40)


def bag(result: Result) -> Counter[tuple[Any, ...]]:
    return Counter((c.ts, c.op, *c.row.values()) for c in result.changes)


@of_both
def test_calendars_pay_where_few_ends_are_premature(negation: Negation, monkeypatch: pytest.MonkeyPatch) -> None:
    """Natural ends need no retractions: the join processes fewer rows, and searches little for retracted ones."""
    rows = streams([(2000, negation.few)])
    fixed, adaptive = (run(negation, rows, monkeypatch, calendar=False, fixed=fixed) for fixed in (True, False))
    assert bag(fixed) == bag(adaptive)
    assert fixed.counts[negation.operator].current_choice == {0: ("ends by negative tuples", "as planned")}
    ((way, why),) = adaptive.counts[negation.operator].current_choice.values()
    assert way == "ends by calendar"
    assert "(change 1):" in why
    assert f"now in the only shard: {way}, {why}" in adaptive.explain()
    saved = fixed.counts[JOIN].taken - adaptive.counts[JOIN].taken
    assert saved > 0.3 * fixed.counts[JOIN].taken
    assert adaptive.counts[JOIN].rows_examined < saved
    assert adaptive.state_rows == fixed.state_rows == 0


@of_both
def test_negative_tuples_pay_where_many_ends_are_premature(negation: Negation, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = streams([(600, negation.few), (900, negation.many)])
    fixed, adaptive = (run(negation, rows, monkeypatch, calendar=True, fixed=fixed) for fixed in (True, False))
    assert bag(fixed) == bag(adaptive)
    assert fixed.counts[negation.operator].current_choice == {0: ("ends by calendar", "as planned")}
    ((way, why),) = adaptive.counts[negation.operator].current_choice.values()
    assert way == "ends by negative tuples"
    assert "(change 1):" in why
    spared = fixed.counts[JOIN].rows_examined - adaptive.counts[JOIN].rows_examined
    assert spared > 0.4 * fixed.counts[JOIN].rows_examined
    assert spared > negation.retraction * (adaptive.counts[JOIN].taken - fixed.counts[JOIN].taken)
    assert adaptive.state_rows == fixed.state_rows == 0


@of_both
def test_calendars_are_not_chosen_because_windows_are_not_full(
    negation: Negation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first decision comes when a window is filled to a few hundredths: hardly a row has ended, and partitions are
    short. What would be in the calendar by then would stay there, to be searched for later."""
    rows = streams([(900, negation.many)])
    monkeypatch.setattr(expiration_choice, "PATIENCE", 200)
    monkeypatch.setattr(ExpirationPlan, "calendar", False)
    result = replay(negation.query, rows, unit="ms", batch=500, shards=1, partitions=40)
    assert result.counts[negation.operator].current_choice == {0: ("ends by negative tuples", "as planned")}
    assert result.counts[JOIN].rows_examined == 0


@pytest.mark.parametrize("calendar", [True, False], ids=["calendar", "negative tuples"])
@of_both
def test_a_share_that_wavers_about_the_border_changes_nothing(
    negation: Negation, calendar: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where both cost about the same, a tenth more or less is not worth a change, for either method."""
    filling = (400, negation.border if calendar else negation.many)
    rows = streams([filling, *((150, negation.border * (1 + 0.1 * (-1) ** n)) for n in range(8))])
    result = run(negation, rows, monkeypatch, calendar=calendar, fixed=False)
    way = "calendar" if calendar else "negative tuples"
    counts = result.counts[negation.operator]
    assert counts.current_choice == {0: (f"ends by {way}", "as planned")}
    share = counts.premature / (counts.given - counts.given_negative)
    assert share * (expiration_choice.CALENDAR_REMOVAL + 100 / 2) == pytest.approx(negation.retraction, rel=0.35)


@pytest.mark.parametrize("case", OVER_NEGATION)
def test_oracle_while_it_changes_with_every_batch(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expiration_choice, "PATIENCE", 1)
    monkeypatch.setattr(expiration_choice, "WORTH", 0.0)
    for batch in (1, 2, 5):
        assert_oracle(BY_NAME[case], shards=1, batch=batch)


@pytest.mark.parametrize("anti", [False, True], ids=["semi", "anti"])
@settings(max_examples=100)
@given(data=st.data())
def test_oracle_of_what_is_handed_over(anti: bool, data: st.DataObject) -> None:
    """With any sequence of methods."""
    kinds = data.draw(st.tuples(st.sampled_from(["fifo", "calendar"]), st.sampled_from(["fifo", "explicit"])))
    inputs = [data.draw(lives(kind)) for kind in kinds]
    calls = data.draw(clocks())
    ways = data.draw(st.lists(st.booleans(), min_size=len(calls), max_size=len(calls)))
    output, _ = drive_strict(
        lambda memory, edges, known: SemiJoin(memory, edges, ((0, 0),), anti, known), kinds, inputs, calls, ways
    )
    check(output, inputs, lambda left, right: answer(left, right, ((0, 0),), anti))


def handed_over(given: int, premature: int) -> ChangeBatch:
    """A batch of `given` rows, some of which are retracted at once."""
    sign = np.concatenate((np.ones(given, np.int8), np.full(premature, -1, np.int8)))
    return ChangeBatch(np.zeros(len(sign), np.int64), np.full(len(sign), FOREVER), sign, ())


@pytest.mark.parametrize(
    ("planned", "share", "changes"),
    [(0.0, 0.3, 0), (0.0, 0.6, 0), (0.0, 1.0, 1), (1.0, 1.0, 0), (1.0, 0.5, 0), (1.0, 0.3, 1)],
    ids=["still pays", "costs a little", "costs more", "would not pay", "would hardly pay", "would pay"],
)
def test_the_way_changes_past_the_border_only(planned: float, share: float, changes: int) -> None:
    """With 36 rows in a partition the border is at 56 %, and searching for all of them costs too much."""
    memory, partitions = HeapMemory(), 100
    known = ExpirationPlan(planned, 36.0 * partitions, partitions)
    kept = ExpirationChoice(memory, known)
    assert kept.calendar == (planned == 0.0)
    batch, standing = handed_over(expiration_choice.PATIENCE, 0), 36 * partitions
    kept.observe(batch, expiration_choice.PATIENCE - standing, int(share * expiration_choice.PATIENCE), 5)
    assert kept.changes == changes
    assert ExpirationChoice(memory, known).calendar == (kept.calendar if not changes else planned != 0.0)


def test_few_rows_are_not_believed() -> None:
    kept = ExpirationChoice(HeapMemory(), ExpirationPlan(None, 0.0, 1))
    kept.observe(handed_over(expiration_choice.PATIENCE - 1, 0), expiration_choice.PATIENCE - 1, 0, 5)
    assert not kept.calendar
    kept.observe(handed_over(1, 0), 1, 0, 7)
    assert kept.calendar
    assert kept.current_choice == ("ends by calendar", "since 7 (change 1): 0% premature, 0.0 rows a partition")
