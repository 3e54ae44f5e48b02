"""Re-evaluation: every answer computed anew from the valid rows, with what that costs, and what is refused."""

from __future__ import annotations

import pytest

from sash.errors import StrategyError
from sash.testing import Result, replay
from tests.oracle.case import Case
from tests.oracle.cases import CHANGING
from tests.oracle.check import assert_oracle

ROWS = [{"ts": 10 * n, "k": n % 4, "v": n} for n in range(60)]
GROUPS = "SELECT k, SUM(v) AS t, LAST(v) AS l FROM s [RANGE 300 MILLISECONDS] GROUP BY k"
SPLITS = ((1, None), (2, 1), (5, 3), (3, 2))


@pytest.mark.parametrize(
    ("shards", "batch", "case"),
    [(*SPLITS[place % len(SPLITS)], case) for place, case in enumerate(CHANGING) if not case.endless],
    ids=lambda value: value.name if isinstance(value, Case) else str(value),
)
def test_relations_that_change(shards: int, batch: int | None, case: Case) -> None:
    assert_oracle(case, strategy="re-evaluation", shards=shards, batch=batch)


def changes(result: Result) -> list[tuple[float, str, tuple[object, ...]]]:
    return sorted((change.ts, change.op, tuple(change.row.values())) for change in result.changes)


@pytest.mark.parametrize("batch", [None, 1, 7])
@pytest.mark.parametrize("shards", [1, 3])
def test_the_changes_are_those_of_the_other_strategies(shards: int, batch: int | None) -> None:
    found = replay(GROUPS, {"s": ROWS}, strategy="re-evaluation", batch=batch, shards=shards)
    assert changes(found) == changes(replay(GROUPS, {"s": ROWS}))
    assert all(change.released == change.ts for change in found.changes)


def test_every_answer_reads_the_whole_window() -> None:
    """Paper 3: consecutive windows are processed independently; incremental evaluation takes each row in once or twice."""
    anew = replay("SELECT SUM(v) AS t FROM s [RANGE 300 MILLISECONDS]", {"s": ROWS}, strategy="re-evaluation", shards=1)
    once = replay(
        "SELECT SUM(v) AS t FROM s [RANGE 300 MILLISECONDS]", {"s": ROWS}, strategy="negative-tuple", shards=1
    )
    taken = {name: counts.taken for name, counts in anew.counts.items()}
    # Each of the 60 rows is valid for 30 instants: it comes at the first, and 29 others come or end while it is there.
    assert taken["0.1.Aggregate"] == 60 * 30
    assert once.counts["0.1.Aggregate"].taken == 2 * 60


def test_only_the_valid_rows_are_kept() -> None:
    result = replay(
        "SELECT k, SUM(v) AS t FROM s [RANGE 100 MILLISECONDS] GROUP BY k",
        {"s": ROWS},
        strategy="re-evaluation",
        until=590,
        batch=1,
    )
    assert result.state_rows == 10


def test_operators_that_decide_which_rows_are_valid_run_as_ever() -> None:
    result = replay("SELECT k, COUNT(*) AS n FROM s [ROWS 8] GROUP BY k", {"s": ROWS}, strategy="re-evaluation")
    assert result.counts["0.0.CountWindow"].taken == len(ROWS)


def test_explain_says_what_is_computed_anew() -> None:
    text = replay(GROUPS, {"s": ROWS}, strategy="re-evaluation").explain()
    assert "every answer is computed anew" in text
    assert "for comparisons only" in text


def test_windows_that_never_end_are_refused_by_name() -> None:
    with pytest.raises(StrategyError, match=r"those of s never end: give s a window of a length"):
        replay("SELECT COUNT(*) AS n FROM s [RANGE UNBOUNDED]", {"s": ROWS}, strategy="re-evaluation")


def test_lazy_joins_and_simulated_delays_are_refused() -> None:
    sql = "SELECT a.v FROM s [RANGE 1 SECOND] AS a JOIN s [RANGE 1 SECOND] AS b ON a.k = b.k"
    with pytest.raises(StrategyError, match="'lazy-hash' only at multiples of tau"):
        replay(sql, {"s": ROWS}, strategy="re-evaluation", join="lazy-hash", tau=100)
    with pytest.raises(StrategyError, match="re-evaluation cannot be simulated"):
        replay(sql, {"s": ROWS}, strategy="re-evaluation", delays={"join": 3})
