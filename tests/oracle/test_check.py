"""The checker itself: it accepts a right change stream and refuses each kind of wrong one."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import pytest

from tests.oracle.case import Case, case, table
from tests.oracle.check import assert_invariants, assert_oracle
from tests.oracle.duck import Row


@dataclass(frozen=True)
class Change:
    ts: int
    op: str
    row: Row
    released: int | None


@dataclass(frozen=True)
class Result:
    changes: list[Change]
    late: int = 0
    state_rows: int = 0

    def at(self, instant: int) -> list[Row]:
        bag: Counter[tuple[tuple[str, Any], ...]] = Counter()
        for change in self.changes:
            if change.ts <= instant:
                bag[tuple(change.row.items())] += 1 if change.op == "+" else -1
        return [dict(row) for row in (+bag).elements()]


def change(ts: int, op: str, released: int | None = None, **row: Any) -> Change:
    return Change(ts, op, row, released)


COUNT: Case = case(
    "count", "SELECT k, COUNT(*) AS n FROM {s} GROUP BY k", {"s": 5}, streams={"s": table("ts k", (1, 1), (3, 1))}
)
RIGHT = Result(
    [
        change(1, "+", k=1, n=1),
        change(3, "-", k=1, n=1),
        change(3, "+", k=1, n=2),
        change(6, "-", k=1, n=2),
        change(6, "+", k=1, n=1),
        change(8, "-", k=1, n=1),
    ]
)


def check(result: Result) -> None:
    assert_oracle(COUNT, engine=lambda *_, **__: result, shards=1)


def test_a_right_stream_passes() -> None:
    check(RIGHT)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (replace(RIGHT, changes=RIGHT.changes[:-1]), "is wrong"),
        (replace(RIGHT, changes=RIGHT.changes[1:]), "without being there|is wrong"),
        (replace(RIGHT, changes=[*RIGHT.changes, change(9, "-", k=1, n=1)]), "without being there"),
        (replace(RIGHT, changes=[replace(c, ts=7) if c.ts == 6 else c for c in RIGHT.changes]), "is wrong"),
        (replace(RIGHT, changes=[replace(c, row={"k": 1, "n": float(c.row["n"])}) for c in RIGHT.changes]), "is wrong"),
        (replace(RIGHT, changes=[replace(c, row={"k": 1, "m": c.row["n"]}) for c in RIGHT.changes]), "columns"),
        (replace(RIGHT, changes=[replace(c, released=0) for c in RIGHT.changes]), "before its instant"),
        (replace(RIGHT, changes=[*RIGHT.changes, change(9, "+", k=2, n=1), change(9, "-", k=2, n=1)]), "added and rem"),
        (replace(RIGHT, late=1), "late"),
        (replace(RIGHT, state_rows=2), "state left"),
    ],
    ids=["lost", "unborn", "removed twice", "late expiry", "type", "name", "released", "not netted", "late", "state"],
)
def test_a_wrong_stream_is_refused(wrong: Result, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        check(wrong)


def test_time_must_not_go_back() -> None:
    with pytest.raises(AssertionError, match="goes back"):
        assert_invariants(Result([change(3, "+", k=1), change(2, "+", k=2)]))


def test_doubles_match_within_the_tolerance_only() -> None:
    total = case(
        "t", "SELECT SUM(x) AS t FROM {s}", {"s": 5}, streams={"s": table("ts x", (1, 0.1), (1, 0.2))}, until=3
    )

    def engine(value: float) -> Any:
        return lambda *_, **__: Result([change(0, "+", t=None), change(1, "-", t=None), change(1, "+", t=value)])

    assert_oracle(total, engine=engine(0.3))
    with pytest.raises(AssertionError, match="is wrong"):
        assert_oracle(total, engine=engine(0.3 + 1e-7))
