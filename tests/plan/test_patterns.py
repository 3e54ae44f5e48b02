from __future__ import annotations

from dataclasses import replace

import pytest

from sash.errors import UnboundedStateError
from sash.plan.expressions import AggregateCall, Column, Literal
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
    Relation,
    Rows,
    Stream,
    TopK,
    Unbounded,
    Union,
    Window,
)
from sash.plan.patterns import Pattern, pattern
from sash.plan.types import BIGINT, BOOLEAN, Field
from sash.plan.unbounded import refuse_unbounded

SCHEMA = (Field("ts", BIGINT), Field("k", BIGINT))
KEY = ((1, 1),)


def stream(window: Window, name: str = "s") -> Stream:
    return Stream(name, SCHEMA, 0, window)


HOUR, MINUTE = stream(Range(3_600)), stream(Range(60), "m")
ENDLESS, COUNTED = stream(Unbounded(), "endless"), stream(Rows(10))
TABLE = Relation("f", SCHEMA)
UPDATED = Relation("u", SCHEMA, changes=True)
NRR = Relation("n", SCHEMA, retroactive=False, changes=True)
SUM = AggregateCall("sum", (Column(0, "ts", BIGINT),), BIGINT)


def grouped(child: Node, *calls: AggregateCall) -> Aggregate:
    return Aggregate(child, (1,), tuple(f"a{i}" for i in range(len(calls))), calls)


def join(left: Node, right: Node, kind: JoinKind = "inner") -> Join:
    return Join(left, right, kind, KEY)


@pytest.mark.parametrize(
    ("plan", "expected"),
    [
        (HOUR, Pattern.WKS),
        (stream(Range(3_600, 60)), Pattern.WKS),
        (COUNTED, Pattern.STR),
        (ENDLESS, Pattern.MONO),
        (TABLE, Pattern.MONO),
        (UPDATED, Pattern.STR),
        (Filter(HOUR, Literal(True, BOOLEAN)), Pattern.WKS),
        (Project(COUNTED, ("k",), (Column(1, "k", BIGINT),)), Pattern.STR),
        (Union(HOUR, HOUR), Pattern.WKS),
        (Union(ENDLESS, ENDLESS), Pattern.MONO),
        (Union(HOUR, ENDLESS), Pattern.WK),
        (Union(HOUR, join(HOUR, MINUTE)), Pattern.WK),
        (Union(HOUR, grouped(HOUR, SUM)), Pattern.REPLACE),
        (Union(HOUR, COUNTED), Pattern.STR),
        (join(HOUR, HOUR), Pattern.WK),
        (join(HOUR, ENDLESS), Pattern.WK),
        (join(HOUR, TABLE), Pattern.WKS),
        (join(TABLE, HOUR), Pattern.WKS),
        (join(TABLE, COUNTED), Pattern.STR),
        (join(HOUR, grouped(HOUR, SUM)), Pattern.STR),
        (join(HOUR, UPDATED), Pattern.STR),
        (join(HOUR, NRR), Pattern.WKS),
        (join(NRR, join(HOUR, MINUTE)), Pattern.WK),
        (join(HOUR, TABLE, "semi"), Pattern.WKS),
        (join(HOUR, TABLE, "anti"), Pattern.WKS),
        (join(HOUR, TABLE, "left"), Pattern.WKS),
        (join(TABLE, HOUR, "right"), Pattern.WKS),
        (join(HOUR, TABLE, "right"), Pattern.STR),
        (join(TABLE, HOUR, "left"), Pattern.STR),
        (join(TABLE, HOUR, "semi"), Pattern.STR),
        (join(HOUR, MINUTE, "semi"), Pattern.STR),
        (join(HOUR, MINUTE, "anti"), Pattern.STR),
        (join(HOUR, MINUTE, "full"), Pattern.STR),
        (Distinct(ENDLESS), Pattern.MONO),
        (Distinct(HOUR), Pattern.WK),
        (Distinct(join(HOUR, HOUR)), Pattern.WK),
        (Distinct(COUNTED), Pattern.STR),
        (Distinct(grouped(HOUR, SUM)), Pattern.STR),
        (grouped(HOUR, SUM), Pattern.REPLACE),
        (grouped(COUNTED, SUM), Pattern.REPLACE),
        (Except(HOUR, HOUR, all=False), Pattern.STR),
        (Intersect(HOUR, HOUR, all=False), Pattern.WK),
        (Intersect(HOUR, Distinct(HOUR), all=False), Pattern.STR),
        (TopK(HOUR, (), 3), Pattern.STR),
        (Distinct(TABLE), Pattern.MONO),
    ],
)
def test_paper5_propagation_rules(plan: Node, expected: Pattern) -> None:
    assert pattern(plan) is expected


def test_paper5_erratum6_union_of_different_windows_is_not_fifo() -> None:
    assert pattern(Union(HOUR, MINUTE)) is Pattern.WK
    assert pattern(Union(HOUR, replace(HOUR, window=Range(3_600, 60)))) is Pattern.WK


def test_paper5_erratum7_group_by_is_weak_only_by_replacement() -> None:
    assert Pattern.REPLACE.label == "WK(replace)"
    assert Pattern.MONO < Pattern.WKS < Pattern.WK < Pattern.REPLACE < Pattern.STR


@pytest.mark.parametrize(
    ("plan", "operator"),
    [
        (join(ENDLESS, HOUR), "a join"),
        (Distinct(join(HOUR, Filter(ENDLESS, Literal(True, BOOLEAN)))), "a join"),
        (join(HOUR, ENDLESS, "anti"), "ANTI JOIN"),
        (join(ENDLESS, UPDATED), "a join"),
        (join(TABLE, ENDLESS, "left"), "LEFT JOIN"),
        (Except(Distinct(ENDLESS), HOUR, all=False), "EXCEPT"),
        (Intersect(HOUR, ENDLESS, all=True), "INTERSECT"),
        (TopK(Union(HOUR, ENDLESS), (), 3), "ORDER BY ... LIMIT"),
        (grouped(ENDLESS, SUM, replace(SUM, function="median")), "MEDIAN"),
        (grouped(ENDLESS, replace(SUM, function="count", distinct=True)), "COUNT(DISTINCT ...)"),
        (grouped(ENDLESS, replace(SUM, function="first")), "FIRST"),
    ],
)
def test_state_without_bound_is_refused(plan: Node, operator: str) -> None:
    with pytest.raises(UnboundedStateError) as caught:
        refuse_unbounded(plan)
    assert str(caught.value).startswith(
        f"{operator} would have to remember every row of stream endless for ever: "
        "give it a window, as in endless [RANGE 1 HOUR]"
    )


@pytest.mark.parametrize(
    "plan",
    [
        join(HOUR, MINUTE),
        join(COUNTED, HOUR, "full"),
        Except(COUNTED, COUNTED, all=True),
        TopK(COUNTED, (), 3),
        grouped(COUNTED, replace(SUM, function="first")),
        join(ENDLESS, TABLE),
        join(TABLE, ENDLESS),
        join(ENDLESS, TABLE, "left"),
        join(ENDLESS, NRR),
        Distinct(Union(ENDLESS, HOUR)),
        grouped(ENDLESS, SUM, replace(SUM, function="stddev_pop")),
        grouped(HOUR, replace(SUM, function="median")),
        join(grouped(ENDLESS, SUM), HOUR),
        TopK(grouped(ENDLESS, SUM), (), 3),
    ],
)
def test_state_per_value_or_group_is_not(plan: Node) -> None:
    refuse_unbounded(plan)
