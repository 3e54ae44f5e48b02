"""The dataflow of a job as the console draws it: legs, operators and outputs, and the edges between them."""

from __future__ import annotations

from typing import Any

from sash.physical.explain import operation_text
from sash.physical.nodes import Leaf, Output, Physical, PhysicalPlan, Stage, StreamLeg, operations
from sash.plan.options import Mode

Values = dict[str, Any]


def plan_values(plan: PhysicalPlan, sinks: dict[str, tuple[str, Mode]]) -> Values:
    """The nodes, edges and stages of a plan; `sinks` has the sink and the mode of every output."""
    nodes = [_leg(number, plan) for number in range(len(plan.legs))]
    edges: list[Values] = []
    for stage in plan.stages:
        names = dict(zip(map(id, operations(stage.root)), stage.operator_names, strict=True))
        nodes += [_operator(node, names[id(node)], stage, plan) for node in operations(stage.root)]
        for node in operations(stage.root):
            edges += [_edge(child, names[id(node)], stage, plan) for child in node.inputs]
    for output in plan.outputs:
        nodes.append(_output(output, sinks))
        root = plan.stages[output.stage]
        edges.append(_edge(root.root, f"out:{output.query}", root, plan))
    return {"nodes": nodes, "edges": edges, "stages": [_stage(stage) for stage in plan.stages]}


def _leg(number: int, plan: PhysicalPlan) -> Values:
    leg = plan.legs[number]
    readers = sum(given.leaf.leg == number for stage in plan.stages for given in stage.inputs)
    name = leg.stream if isinstance(leg, StreamLeg) else leg.relation.name
    columns = ", ".join(field.name for field in leg.schema)
    return {
        "id": f"leg:{number}",
        "label": name,
        "detail": columns,
        "kind": "leg",
        "stage": None,
        "shared": readers,
        "stream": name.lower() if isinstance(leg, StreamLeg) else None,
    }


def _operator(node: Physical, name: str, stage: Stage, plan: PhysicalPlan) -> Values:
    assert not isinstance(node, Leaf)
    text = operation_text(node)
    label, _, detail = text.partition(" ")
    shared = len(plan.queries_of(stage))
    return {"id": name, "label": label, "detail": detail, "kind": "operator", "stage": stage.index, "shared": shared}


def _output(output: Output, sinks: dict[str, tuple[str, Mode]]) -> Values:
    sink, mode = sinks.get(output.query, ("several sinks", "changes"))
    detail = f"{sink}, mode {mode}"
    return {"id": f"out:{output.query}", "label": output.query, "detail": detail, "kind": "output", "stage": None}


def _edge(node: Physical, to: str, stage: Stage, plan: PhysicalPlan) -> Values:
    return {"from": _source(node, stage, plan), "to": to, "pattern": node.pattern.label, "expiry": node.expiry}


def _source(node: Physical, stage: Stage, plan: PhysicalPlan) -> str:
    """The node that feeds an edge; that of a leaf is a leg, or the root of an earlier stage."""
    if not isinstance(node, Leaf):
        found = dict(zip(map(id, operations(stage.root)), stage.operator_names, strict=True))
        return found[id(node)]
    if node.leg is not None:
        return f"leg:{node.leg}"
    assert node.stage is not None
    below = plan.stages[node.stage]
    return _source(below.root, below, plan)


def _stage(stage: Stage) -> Values:
    keys = [", ".join(given.leaf.schema[column].name for column in given.keys) for given in stage.inputs if given.keys]
    by = "one shard" if stage.single else " = ".join(dict.fromkeys(keys)) or "rows"
    return {"index": stage.index, "partition": by, "strategy": stage.strategy}
