"""A join reads DISTINCT's rows where DISTINCT keeps them: no second copy, and the same changes."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from sash.physical import planner
from sash.physical.passes.share_rows import share_rows
from sash.testing import Result, replay

DISTINCTS = (
    "SELECT a.k AS k, a.g AS g, b.v AS v FROM (SELECT DISTINCT k, g FROM s [RANGE 2 SECONDS]) AS a "
    "JOIN (SELECT DISTINCT k, v FROM r [RANGE 1 SECOND]) AS b ON a.k = b.k"
)
ONE = (
    "SELECT a.g AS g, b.v AS v FROM (SELECT DISTINCT k, g FROM s [RANGE 2 SECONDS]) AS a "
    "JOIN r [RANGE 1 SECOND] AS b ON a.k = b.k"
)
BOTH_OF_ONE = (
    "SELECT a.g AS g, b.g AS h FROM (SELECT DISTINCT k, g FROM s [RANGE 2 SECONDS]) AS a "
    "JOIN (SELECT DISTINCT k, g FROM s [RANGE 2 SECONDS]) AS b ON a.k = b.k"
)
QUERIES = {"both sides": DISTINCTS, "one side": ONE, "both sides of one": BOTH_OF_ONE}


def rows(count: int, gap: int, keys: int) -> list[dict[str, Any]]:
    """Rows with a NULL key now and then, and values that come back after they have gone."""
    return [
        {"ts": n * gap, "k": None if n % 11 == 0 else n * n % keys, "g": f"value {n * 7 % 23} of many", "v": n % 5}
        for n in range(count)
    ]


def run(sql: str, batch: int | None, *, shared: bool, monkeypatch: pytest.MonkeyPatch) -> Result:
    with monkeypatch.context() as patch:
        if not shared:
            patch.setattr(planner, "PASSES", tuple(run for run in planner.PASSES if run is not share_rows))
        streams = {"s": rows(900, 9, 40), "r": rows(700, 11, 60)}
        return replay(sql, streams, unit="ms", batch=batch, shards=1)


def bag(result: Result) -> Counter[tuple[Any, ...]]:
    return Counter((c.ts, c.op, *c.row.values()) for c in result.changes)


@pytest.mark.parametrize("batch", [7, 400, None])
@pytest.mark.parametrize("name", QUERIES)
def test_differential_changes_are_those_of_a_join_with_copies(
    name: str, batch: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared, copied = (run(QUERIES[name], batch, shared=given, monkeypatch=monkeypatch) for given in (True, False))
    assert bag(shared) == bag(copied)
    assert shared.state_rows == copied.state_rows == 0


def test_the_join_keeps_none_of_the_rows_and_explain_shows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    shared, copied = (run(DISTINCTS, 100, shared=given, monkeypatch=monkeypatch) for given in (True, False))
    assert shared.actual is not None
    assert copied.actual is not None
    (join,) = [name for name in shared.counts if name.endswith(".Join")]
    assert shared.actual.rows[join] == 0 < copied.actual.rows[join]
    assert shared.actual.bytes < 0.65 * copied.actual.bytes
    assert "[rows of DISTINCT, rows of DISTINCT]" in shared.explain()
