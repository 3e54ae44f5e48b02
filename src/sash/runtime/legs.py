"""Runs legs over Arrow: the filters, projections and static lookups right above a source.

Spark runs a stream's leg in its own engine, up to the first join with a small table. This file runs the part above that, all
legs of the local runtime, and what a plan computes from relations.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from sash.operators.base import Edge, Operator
from sash.operators.expand import Expand as ExpandOperator
from sash.operators.filter import Filter as FilterOperator
from sash.operators.lookup import Lookup
from sash.operators.project import Project as ProjectOperator
from sash.physical.nodes import Lookup as LookupNode
from sash.physical.nodes import PhysicalPlan, RelationLeg, StreamLeg, operations
from sash.physical.shapes import leg_source
from sash.plan.nodes import ONE_ROW, Expand, Filter, Join, Node, Project, Relation, Stream
from sash.plan.nodes import walk as walk_logical
from sash.state.changes import ChangeBatch
from sash.state.memory import HeapMemory
from sash.time import FOREVER


class LegRunner:
    """The operators of one leg, bottom up, or of its part above `below`; a projection runs the filter right below it."""

    def __init__(self, node: Node, tables: Mapping[Node, pa.Table], below: Node | None = None) -> None:
        self._operators: list[Operator] = []
        while node is not below and not isinstance(node, Stream | Relation):
            self._operators.insert(0, _operator(node, tables))
            fused = isinstance(node, Project) and isinstance(node.child, Filter)
            node = node.children[0].children[0] if fused else node.children[0]

    def run(self, batch: ChangeBatch) -> ChangeBatch:
        """The output of the leg for a batch of the source's rows."""
        for operator in self._operators:
            batch = operator.process((batch,), FOREVER)
        return batch


def _operator(node: Node, tables: Mapping[Node, pa.Table]) -> Operator:
    edge = (Edge(tuple(field.dtype for field in node.children[0].schema), "explicit"),)
    match node:
        case Filter():
            return FilterOperator(HeapMemory(), edge, node.predicate)
        case Project(child=Filter(predicate=predicate)):
            selection = FilterOperator(HeapMemory(), edge, predicate)
            return ProjectOperator(HeapMemory(), edge, node.expressions, selection)
        case Project():
            return ProjectOperator(HeapMemory(), edge, node.expressions)
        case Expand():
            return ExpandOperator(HeapMemory(), edge, node.lists)
        case Join():
            return Lookup(HeapMemory(), edge, tables[node.right], node.kind, node.keys, node.condition)
        case _:
            raise AssertionError(f"{type(node).__name__} does not run in a leg")


def stage_tables(plan: PhysicalPlan) -> list[Node]:
    """The parts of the logical plan that read only relations and that stages need as tables."""
    found = [leg.node for leg in plan.legs if isinstance(leg, RelationLeg)]
    found += [node.relation for stage in plan.stages for node in operations(stage.root) if isinstance(node, LookupNode)]
    return list(dict.fromkeys(found))


def _leg_tables(plan: PhysicalPlan) -> list[Node]:
    """The tables that legs look up, for legs that run here."""
    streams = [leg.node for leg in plan.legs if isinstance(leg, StreamLeg)]
    return [below.right for node in streams for below in walk_logical(node) if isinstance(below, Join)]


def static_tables(plan: PhysicalPlan, relations: Mapping[str, pa.Table]) -> dict[Node, pa.Table]:
    """The contents of every static part of the plan, computed from the relations by name."""
    tables: dict[Node, pa.Table] = {}
    for node in dict.fromkeys([*_leg_tables(plan), *stage_tables(plan)]):
        name = leg_source(node).name
        tables[node] = constant_table(node) if name == ONE_ROW.name else _computed(node, relations[name])
    return tables


def constant_table(node: Node) -> pa.Table:
    """The contents of a part of the plan that reads constants only."""
    return _computed(node, pa.table({column.name: pa.array([True], column.dtype) for column in ONE_ROW.schema}))


def _computed(node: Node, table: pa.Table) -> pa.Table:
    """What the node computes from the rows of the relation that it reads."""
    columns = tuple(
        pa.concat_arrays(table.column(field.name).cast(field.dtype).chunks)
        if table.num_rows
        else pa.array([], field.dtype)
        for field in leg_source(node).schema
    )
    rows = table.num_rows
    batch = ChangeBatch(np.zeros(rows, np.int64), np.full(rows, FOREVER), np.ones(rows, np.int8), columns)
    result = LegRunner(node, {}).run(batch)
    names = [f"c{index}" for index in range(len(result.columns))]
    return pa.table(list(result.columns), names=names)
