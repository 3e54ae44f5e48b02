from __future__ import annotations

import pytest

from sash.plan.expressions import AggregateCall, Call, Column, Literal
from sash.plan.keys import keys
from sash.plan.nodes import (
    Aggregate,
    Distinct,
    Except,
    Filter,
    Intersect,
    Join,
    JoinKind,
    Node,
    Project,
    Range,
    Stream,
    TopK,
    Union,
)
from sash.plan.types import BIGINT, BOOLEAN, Field

S = Stream("s", (Field("a", BIGINT), Field("b", BIGINT)), 0, Range(10))
D = Distinct(S)
A, B = Column(0, "a", BIGINT), Column(1, "b", BIGINT)
BY_B = Aggregate(S, (1,), ("n",), (AggregateCall("count_star", (), BIGINT),))
ALL = Aggregate(S, (), ("n",), (AggregateCall("count_star", (), BIGINT),))


def project(child: Node, *columns: Column | Call) -> Project:
    return Project(child, tuple("xyz"[: len(columns)]), columns)


def join(kind: JoinKind, left: Node = BY_B, right: Node = BY_B, *on: tuple[int, int]) -> Join:
    return Join(left, right, kind, on)


@pytest.mark.parametrize(
    ("plan", "expected"),
    [
        (S, []),
        (D, [[0, 1]]),
        (Filter(D, Literal(True, BOOLEAN)), [[0, 1]]),
        (TopK(D, (), 5), [[0, 1]]),
        (TopK(S, (), 1), [[]]),
        (BY_B, [[0]]),
        (ALL, [[]]),
        (Distinct(BY_B), [[0]]),
        (project(D, B, B, A), [[0, 2]]),
        (project(D, B), []),
        (project(BY_B, Call("add", (A, B), BIGINT), B, A), [[2]]),
        (Union(D, D), []),
        (Except(S, S, all=False), [[0, 1]]),
        (Except(S, D, all=True), []),
        (Except(BY_B, S, all=False), [[0]]),
        (Intersect(S, BY_B, all=True), [[0]]),
        (Intersect(S, S, all=False), [[0, 1]]),
        (join("inner"), [[0, 2]]),
        (join("inner", BY_B, BY_B, (0, 0)), [[0], [2]]),
        (join("inner", BY_B, BY_B, (1, 0)), [[0]]),
        (join("inner", S, BY_B, (0, 0)), []),
        (join("left", BY_B, BY_B, (0, 0)), [[0]]),
        (join("right", BY_B, BY_B, (0, 0)), [[2]]),
        (join("full", BY_B, BY_B, (0, 0)), []),
        (join("left", BY_B, ALL), [[0]]),
        (join("semi", BY_B, S, (0, 0)), [[0]]),
        (join("anti", S, BY_B, (0, 0)), []),
    ],
)
def test_keys(plan: Node, expected: list[list[int]]) -> None:
    assert sorted(sorted(key) for key in keys(plan)) == expected
