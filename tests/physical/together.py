"""Plans of several queries side by side: legs that are equal are shared, stages are not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sash.physical.nodes import Leaf, Leg, Operation, Output, Physical, PhysicalPlan, Stage, StageInput
from sash.plan.catalog import Catalog
from sash.planning import plan_query


def plans_together(plans: Mapping[str, PhysicalPlan]) -> PhysicalPlan:
    """One plan with an output per query."""
    legs: list[Leg] = []
    stages: list[Stage] = []
    outputs: list[Output] = []
    for name, plan in plans.items():
        numbers = []
        for leg in plan.legs:
            if leg not in legs:
                legs.append(leg)
            numbers.append(legs.index(leg))
        first = len(stages)
        outputs += [Output(name, first + output.stage) for output in plan.outputs]
        stages += [_moved(stage, first, numbers) for stage in plan.stages]
    return PhysicalPlan(tuple(legs), tuple(stages), tuple(outputs))


def queries_together(catalog: Catalog, queries: Mapping[str, str], shards: int = 2) -> PhysicalPlan:
    """The plan of these queries."""
    return plans_together({name: plan_query(sql, catalog, shards=shards).physical for name, sql in queries.items()})


def _moved(stage: Stage, first: int, legs: list[int]) -> Stage:
    made: dict[int, Physical] = {}

    def moved(node: Physical) -> Physical:
        if id(node) not in made:
            if isinstance(node, Leaf):
                leg = None if node.leg is None else legs[node.leg]
                made[id(node)] = replace(node, leg=leg, stage=None if node.stage is None else node.stage + first)
            else:
                inputs: tuple[Physical, ...] = tuple(moved(child) for child in node.inputs)
                operation: Operation = replace(node, inputs=inputs)
                made[id(node)] = operation
        return made[id(node)]

    root = moved(stage.root)
    inputs = []
    for given in stage.inputs:
        leaf = moved(given.leaf)
        assert isinstance(leaf, Leaf)
        inputs.append(StageInput(leaf, given.keys, given.local))
    return replace(stage, index=stage.index + first, root=root, inputs=tuple(inputs))
