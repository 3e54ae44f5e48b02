"""A join below a projection outputs the columns that the projection reads, and keeps no others."""

from __future__ import annotations

from sash.physical.nodes import Join, Project, operations
from sash.plan.catalog import Catalog, StreamEntry
from sash.plan.options import Options
from sash.plan.types import BIGINT, STRING, Field
from sash.planning import plan_query

SCHEMA = (Field("ts", BIGINT), Field("src", BIGINT), Field("dst", BIGINT), Field("note", STRING))
CATALOG = Catalog({name: StreamEntry(name, SCHEMA, "ts") for name in ("a", "b")})


def join_and_project(select: str, strategy: str = "direct") -> tuple[Join, Project]:
    sql = f"SELECT {select} FROM a [RANGE 1 MINUTE] JOIN b [RANGE 1 MINUTE] ON a.src = b.src"
    (stage,) = plan_query(sql, CATALOG, shards=1, options=Options(strategy)).physical.stages
    nodes = operations(stage.root)
    (join,) = [node for node in nodes if isinstance(node, Join)]
    (project,) = [node for node in nodes if isinstance(node, Project)]
    return join, project


def test_the_join_outputs_the_columns_that_are_read() -> None:
    join, project = join_and_project("a.src, b.dst + a.dst AS sum")
    assert (join.left_columns, join.right_columns) == ((0, 1), (1,))
    assert [field.name for field in join.schema] == ["src", "dst", "dst"]
    assert project.inputs == (join,)
    assert [field.name for field in project.schema] == ["src", "sum"]


def test_a_paced_join_keeps_all_columns() -> None:
    join, _ = join_and_project("a.src, b.dst", "input-triggered")
    assert (join.left_columns, join.right_columns) == (None, None)
