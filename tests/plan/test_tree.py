from __future__ import annotations

from sash.plan.expressions import AggregateCall, Call, Column, Literal
from sash.plan.nodes import Aggregate, Filter, Join, Range, Relation, Rows, SortKey, Stream, TopK, Unbounded
from sash.plan.tree import duration_text, label, tree
from sash.plan.types import BIGINT, BOOLEAN, DOUBLE, Field

SCHEMA = (Field("ts", BIGINT), Field("item", BIGINT))
ITEM = Column(1, "stale name", BIGINT)


def test_a_plan_is_one_line_per_node_with_the_names_that_columns_have_there() -> None:
    sales = Stream("sales", SCHEMA, 0, Range(60_000_000, 1_500_000))
    positive = Filter(sales, Call("gt", (ITEM, Literal(0, BIGINT)), BOOLEAN))
    joined = Join(positive, Relation("items", SCHEMA), "left", ((1, 0),), Call("is_null", (ITEM,), BOOLEAN))
    median = AggregateCall("percentile", (ITEM,), DOUBLE, parameter=0.5)
    top = TopK(Aggregate(joined, (1,), ("m",), (median,)), (SortKey(1, True, False), SortKey(0, False, False)), 3, 2)
    assert tree(top).splitlines() == [
        "TopK 3 OFFSET 2 BY m#1 DESC, item#0 NULLS LAST",
        "  Aggregate percentile(item#1, 0.5) AS m BY item#1",
        "    Join left ON item#1 = ts#0 WHERE item#1 IS NULL",
        "      Filter item#1 > 0",
        "        Stream sales [RANGE 1 MINUTE SLIDE 1500 MILLISECONDS]",
        "      Relation items",
    ]


def test_windows_and_relations_say_what_they_are() -> None:
    assert label(Stream("s", SCHEMA, 0, Rows(5, (1,)))) == "Stream s [PARTITION BY item ROWS 5]"
    assert label(Stream("s", SCHEMA, 0, Unbounded())) == "Stream s [RANGE UNBOUNDED]"
    assert label(Relation("r", SCHEMA, changes=True)) == "Relation r (changes)"
    assert label(Relation("r", SCHEMA, retroactive=False, changes=True)) == "Relation r (non-retroactive)"


def test_durations_use_the_largest_unit_that_divides() -> None:
    assert duration_text(86_400_000_000) == "1 DAY"
    assert duration_text(1) == "1 MICROSECOND"
