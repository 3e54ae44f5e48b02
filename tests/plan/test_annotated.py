from __future__ import annotations

from sash.plan.catalog import Catalog, RelationEntry, StreamEntry
from sash.plan.patterns import Pattern
from sash.planning import plan_query
from sash.rows import parse_schema

SALES = parse_schema("ts BIGINT, item BIGINT")
CATALOG = Catalog(
    {name: StreamEntry(name, SALES, "ts") for name in ("sales", "returns")},
    {
        "prices": RelationEntry("prices", parse_schema("item BIGINT, price BIGINT"), changes=True, key=(0,)),
        "names": RelationEntry("names", parse_schema("item BIGINT, name STRING"), retroactive=False, changes=True),
    },
)


def edges(sql: str) -> list[tuple[str, str]]:
    return [(node.kind, node.pattern.label) for node in plan_query(sql, CATALOG).plan.walk()]


def test_every_edge_has_its_pattern_in_the_order_of_explain() -> None:
    sql = (
        "SELECT n.name, COUNT(*) AS c FROM sales [RANGE 1 HOUR] s JOIN names n ON s.item = n.item "
        "LEFT ANTI JOIN returns [RANGE 1 HOUR] r ON s.item = r.item GROUP BY n.name"
    )
    planned = plan_query(sql, CATALOG)
    assert planned.pattern is planned.plan.pattern is Pattern.REPLACE
    text = planned.explain()
    for node in planned.plan.walk():
        assert f"{node.label}  " in text
    assert ("Join", "STR") in edges(sql)
    assert ("Join", "WKS") in edges(sql), "what met a non-retroactive relation goes as it came"


def test_a_join_with_a_relation_that_changes_is_strict() -> None:
    found = edges("SELECT s.item, p.price FROM sales [RANGE 1 HOUR] s JOIN prices p ON s.item = p.item")
    assert dict(found)["Join"] == "STR"
    assert ("Stream", "WKS") in found
    assert ("Relation", "STR") in found
