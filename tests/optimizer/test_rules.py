from __future__ import annotations

from sash.optimizer.optimizer import optimize
from sash.optimizer.rules.merge_projections import merge_projections
from sash.optimizer.rules.order_static_joins import order_static_joins
from sash.optimizer.rules.push_distinct_below_join import push_distinct_below_join
from sash.optimizer.rules.push_down_projection import push_down_projection
from sash.optimizer.rules.push_down_selection import push_down_selection
from sash.plan.expressions import AggregateCall, Call, Column, Literal, SparkFunction
from sash.plan.nodes import Aggregate, Distinct, Filter, Join, Node, Project, Range, Relation, Stream, walk
from sash.plan.tree import tree
from sash.plan.types import BIGINT, BOOLEAN, DOUBLE, Field

SCHEMA = (Field("ts", BIGINT), Field("k", BIGINT))
S, T = Stream("s", SCHEMA, 0, Range(10)), Stream("t", SCHEMA, 0, Range(10))
TABLE = Relation("f", SCHEMA)
NRR = Relation("n", SCHEMA, retroactive=False, changes=True)
KEY = ((1, 1),)


def above(column: int) -> Call:
    return Call("gt", (Column(column, "c", BIGINT), Literal(1, BIGINT)), BOOLEAN)


def lines(node: Node) -> list[str]:
    return tree(node).splitlines()


def test_nothing_goes_between_a_row_and_its_non_retroactive_relation() -> None:
    joined = Join(S, NRR, "inner", KEY)
    assert lines(push_down_selection(Filter(joined, Call("and", (above(1), above(2)), BOOLEAN)))) == [
        "Filter ts#2 > 1",
        "  Join inner ON k#1 = k#1",
        "    Filter k#1 > 1",
        "      Stream s [RANGE 10 MICROSECONDS]",
        "    Relation n (non-retroactive)",
    ]


def test_joins_with_tables_stay_above_those_with_a_non_retroactive_relation() -> None:
    plan = Join(Join(S, NRR, "inner", KEY), TABLE, "inner", ((1, 0),))
    assert order_static_joins(plan) == plan


def test_a_non_retroactive_join_stays_below_distinct() -> None:
    plan = Distinct(Project(Join(S, NRR, "inner", KEY), ("k",), (Column(1, "k", BIGINT),)))
    assert list(push_distinct_below_join(plan)) == []
    pruned = push_down_projection(plan)
    assert [node for node in walk(pruned) if isinstance(node, Relation | Join)][-1] == NRR


def test_the_reduction_is_put_in_once() -> None:
    plan = Join(Aggregate(S, (1,), ("n",), (AggregateCall("count_star", (), BIGINT),)), TABLE, "inner", ((0, 0),))
    once = order_static_joins(plan)
    assert tree(once).count("Join semi") == 1
    assert order_static_joins(once) == once
    assert order_static_joins(push_down_projection(once)) == push_down_projection(once)


def test_aggregates_by_order_keep_the_columns_that_break_ties() -> None:
    wide = Stream("s", (*SCHEMA, Field("v", BIGINT)), 0, Range(10))
    last = AggregateCall("last", (Column(1, "k", BIGINT),), BIGINT)
    plan = Aggregate(wide, (), ("k",), (last,))
    assert push_down_projection(plan) == plan


def test_a_column_that_spark_computes_is_not_computed_again_in_a_filter() -> None:
    native = Project(
        S, ("h", "k"), (SparkFunction("hash({0})", (Column(1, "k", BIGINT),), BIGINT), Column(1, "k", BIGINT))
    )
    plan = Filter(native, Call("and", (above(0), above(1)), BOOLEAN))
    assert lines(push_down_selection(plan)) == [
        "Filter h#0 > 1",
        "  Project hash(k#1) AS h, k#1",
        "    Filter k#1 > 1",
        "      Stream s [RANGE 10 MICROSECONDS]",
    ]


def test_what_tells_equal_rows_apart_stays_above_distinct() -> None:
    doubles = Distinct(Stream("s", (Field("x", DOUBLE),), 0, Range(10)))
    quotient = Call("divide", (Literal(1.0, DOUBLE), Column(0, "x", DOUBLE)), DOUBLE)
    plan = Filter(doubles, Call("lt", (quotient, Literal(0.0, DOUBLE)), BOOLEAN))
    assert push_down_selection(plan) == plan


def test_names_of_the_answer_stay_although_inner_ones_go() -> None:
    renamed = Project(S, ("a", "b"), (Column(0, "ts", BIGINT), Column(1, "k", BIGINT)))
    assert merge_projections(renamed) == renamed
    plan = Filter(renamed, above(1))
    done = optimize(plan)
    after, fired = done.plan, done.rules
    assert [field.name for field in after.schema] == ["a", "b"]
    assert lines(after) == [
        "Project ts#0 AS a, k#1 AS b",
        "  Filter k#1 > 1",
        "    Stream s [RANGE 10 MICROSECONDS]",
    ]
    assert "merge_projections" in fired or "push_down_selection" in fired
