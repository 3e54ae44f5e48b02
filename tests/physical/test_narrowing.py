"""A join below a projection gives what this takes, and keeps nothing else; the plan and the answer stay the same."""

from __future__ import annotations

from sash.physical.narrowing import narrow_joins
from sash.physical.nodes import Operation, walk
from sash.plan.catalog import Catalog, StreamEntry
from sash.plan.options import Options
from sash.plan.types import BIGINT, STRING, Field
from sash.planning import plan_query

SCHEMA = (Field("ts", BIGINT), Field("src", BIGINT), Field("dst", BIGINT), Field("note", STRING))
CATALOG = Catalog({name: StreamEntry(name, SCHEMA, "ts") for name in ("a", "b")})


def operations(select: str) -> list[Operation]:
    sql = f"SELECT {select} FROM a [RANGE 1 MINUTE] JOIN b [RANGE 1 MINUTE] ON a.src = b.src"
    (stage,) = plan_query(sql, CATALOG, shards=1, options=Options("direct")).physical.stages
    return [node for node in walk(stage.root) if isinstance(node, Operation)]


def test_the_join_gives_the_columns_that_are_taken() -> None:
    nodes = operations("a.src, b.dst + a.dst AS sum")
    made = narrow_joins(nodes)
    (join,) = [made[id(node)] for node in nodes if node.operator == "Join"]
    (project,) = [made[id(node)] for node in nodes if node.operator == "Project"]
    assert (join.arguments["left_columns"], join.arguments["right_columns"]) == ((0, 1), (1,))
    assert [field.name for field in join.schema] == ["src", "dst", "dst"]
    assert project.inputs == (join,)
    assert project.schema == next(node.schema for node in nodes if node.operator == "Project")


def test_only_joins_below_projections_change() -> None:
    nodes = operations("a.src, b.dst")
    assert {node.operator for node in nodes if id(node) in narrow_joins(nodes)} == {"Join", "Project"}
    assert not narrow_joins([node for node in nodes if node.operator != "Project"])
