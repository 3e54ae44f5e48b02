"""EXPLAIN: the logical plan with the update pattern of every edge, and the stages, buffers and legs that run it."""

from __future__ import annotations

from collections.abc import Sequence

from sash.physical.nodes import Leaf, Operation, Physical, PhysicalPlan, RelationLeg, Stage, StreamLeg
from sash.plan.describe import describe, describe_aggregate
from sash.plan.nodes import Node
from sash.plan.patterns import pattern
from sash.plan.tree import label, tree
from sash.plan.types import Schema

_INDENT = "  "
_STATELESS = frozenset({"Combine", "Filter", "Lookup", "Project", "Union"})
_ARROW = "->"

Line = tuple[str, str]
"""What stands on the left of a line, and what is said of its output edge on the right."""


def explain(sql: str, optimized: Node, rules: Sequence[str], physical: PhysicalPlan) -> str:
    """The plan of a query as text."""
    count = len(physical.stages)
    sections = [
        ["Query", *_indented(sql.strip().splitlines())],
        ["Logical plan (-> update pattern)", *_columns(_logical(optimized, 1))],
        ["Rules that changed it", _INDENT + (", ".join(rules) or "none")],
        [
            f"Physical plan: {count} stage{'' if count == 1 else 's'} (-> how rows end, update pattern)",
            *_columns([line for stage in physical.stages for line in _stage(stage, physical)]),
        ],
        ["Legs, straight above the sources", *_legs(physical)],
    ]
    return "\n\n".join("\n".join(section) for section in sections) + "\n"


def _indented(lines: Sequence[str]) -> list[str]:
    return [_INDENT + line for line in lines]


def _columns(lines: Sequence[Line]) -> list[str]:
    """The left parts, and what is said of the edges in a column of its own."""
    width = max(len(left) for left, _ in lines)
    return [f"{left:<{width}}  {_ARROW} {right}" if right else left for left, right in lines]


def _logical(node: Node, depth: int) -> list[Line]:
    below = [line for child in node.children for line in _logical(child, depth + 1)]
    return [(_INDENT * depth + label(node), pattern(node).label), *below]


def _stage(stage: Stage, plan: PhysicalPlan) -> list[Line]:
    where = "one shard" if stage.single else "partitioned by " + _partitioning(stage)
    keys = {id(given.leaf): given.keys for given in stage.inputs}
    return [(f"{_INDENT}Stage {stage.index}, {where}", ""), *_operators(stage.root, 2, keys, plan, set())]


def _partitioning(stage: Stage) -> str:
    """The key columns of the first input that has any; the others' stand at their leaves."""
    given = max(stage.inputs, key=lambda given: len(given.keys))
    return _names(given.leaf.schema, given.keys)


def _operators(
    node: Physical, depth: int, keys: dict[int, tuple[int, ...]], plan: PhysicalPlan, seen: set[int]
) -> list[Line]:
    indent = _INDENT * depth
    if isinstance(node, Leaf):
        by = f" by {_names(node.schema, keys[id(node)])}" if keys[id(node)] else ""
        return [(f"{indent}{_origin(node, plan)}{by}", _edge(node))]
    text = f"{indent}{_operation(node)}{_state(node)}"
    if id(node) in seen:
        return [(f"{text} (the one above)", _edge(node))]
    seen.add(id(node))
    below = [line for child in node.inputs for line in _operators(child, depth + 1, keys, plan, seen)]
    return [(text, _edge(node)), *below]


def _origin(leaf: Leaf, plan: PhysicalPlan) -> str:
    if leaf.leg is None:
        return f"Stage {leaf.stage}"
    leg = plan.legs[leaf.leg]
    return f"Leg {leaf.leg}: {leg.stream if isinstance(leg, StreamLeg) else leg.relation.name}"


def _edge(node: Physical) -> str:
    ends = {"mono": "never", "fifo": "stamped fifo", "calendar": "stamped", "explicit": "explicit"}[node.expiry]
    return f"{ends}, {node.pattern.label}"


def _state(node: Operation) -> str:
    """The buffer that each input's rows are kept in, where the operator has any."""
    if node.operator in _STATELESS:
        return ""
    kept = node.inputs if node.operator != "NrrJoin" or node.expiry == "explicit" else node.inputs[1:]
    return f" [{', '.join(_buffer(node.operator, child) for child in kept)}]"


def _buffer(operator: str, child: Physical) -> str:
    if operator == "Distinct":
        return "calendar"
    match child.expiry:
        case "fifo" | "calendar":
            return child.expiry
        case "mono":
            return "fifo" if operator == "Join" else "hash"
        case "explicit":
            return "hash"


def _operation(node: Operation) -> str:
    """The operator and what it was told, with columns by name."""
    arguments = node.arguments
    schema = node.inputs[0].schema
    match node.operator:
        case "Filter":
            return f"Filter {describe(arguments['predicate'])}"
        case "Project":
            return f"Project {', '.join(describe(expression) for expression in arguments['expressions'])}"
        case "Aggregate" | "Combine":
            calls = ", ".join(describe_aggregate(call) for call in arguments["aggregates"])
            by = _names(schema, arguments.get("keys", ()))
            return " ".join(part for part in (node.operator, calls, f"BY {by}" if by else "") if part)
        case "Join" | "SemiJoin":
            name = "AntiJoin" if arguments.get("anti") else node.operator
            return f"{name}{_on(arguments['keys'], schema, node.inputs[1].schema)}"
        case "NrrJoin":
            return f"NrrJoin {arguments['kind']}{_on(arguments['keys'], schema, node.inputs[1].schema)}"
        case "Updates":
            return "Updates" if arguments["key"] is None else f"Updates BY {_names(schema, arguments['key'])}"
        case "Lookup":
            relation: Node = arguments["relation"]
            on = _on(arguments["keys"], schema, relation.schema)
            return f"Lookup {arguments['kind']} {label(relation)}{on}"
        case "SetOperation":
            return f"SetOperation {arguments['mode']}"
        case "TopK":
            order = ", ".join(
                f"{schema[key.column].name}{' DESC' if key.descending else ''}" for key in arguments["order"]
            )
            return f"TopK {arguments['limit']}{f' BY {order}' if order else ''}"
        case other:
            return other


def _on(keys: Sequence[tuple[int, int]], left: Schema, right: Schema) -> str:
    pairs = [f"{left[a].name} = {right[b].name}" for a, b in keys]
    return f" ON {' AND '.join(pairs)}" if pairs else ""


def _names(schema: Schema, columns: Sequence[int]) -> str:
    return ", ".join(schema[column].name for column in columns)


def _legs(plan: PhysicalPlan) -> list[str]:
    lines = []
    for index, leg in enumerate(plan.legs):
        kind = {StreamLeg: "stream", RelationLeg: "relation"}.get(type(leg), "relation's updates")
        lines += [f"{_INDENT}Leg {index}, a {kind}", *_indented(_indented(tree(leg.node).splitlines()))]
    return lines
