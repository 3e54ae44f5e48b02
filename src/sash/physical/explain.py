"""EXPLAIN: the logical plan with every edge's update pattern and estimates, and the stages, buffers and legs that run it.

EXPLAIN ALL adds the plans that were proposed and cost more, EXPLAIN ANALYZE (`analyze.py`) what a run did.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from sash.operators.expiration_choice import ExpirationPlan
from sash.optimizer.optimizer import Optimized
from sash.optimizer.plan_cost import PlanCosts
from sash.physical.join_plan import describe_join, describe_order
from sash.physical.lending import lends
from sash.physical.nodes import (
    Leaf,
    Operation,
    Physical,
    PhysicalPlan,
    RelationLeg,
    Stage,
    StreamLeg,
    calendar_of,
    partitions_of,
)
from sash.physical.strategies.paths import describe_strategy
from sash.physical.strategies.registry import strategy_of
from sash.plan.describe import describe, describe_aggregate
from sash.plan.nodes import Node, Rows
from sash.plan.patterns import pattern
from sash.plan.tree import duration_text, label, tree
from sash.plan.types import Schema

_INDENT = "  "
_STATELESS = frozenset({"Combine", "Filter", "Lookup", "Project", "Union"})
_ARROW = "->"
_ENDS = {
    "mono": "never",
    "fifo": "stamped fifo",
    "calendar": "stamped",
    "strict": "stamped or explicit",
    "explicit": "explicit",
}

Line = tuple[str, str]
"""What stands on the left of a line, and what is said of its output edge on the right."""


def explain(
    sql: str,
    optimized: Optimized,
    physical: PhysicalPlan,
    *,
    alternatives: bool = False,
    remarks: Mapping[int, Sequence[str]] = MappingProxyType({}),
) -> str:
    """The plan of a query as text; with `alternatives`, also the plans that it was chosen from.

    `remarks` are what there is to add to stages and operators, by identity.
    """
    count = len(physical.stages)
    sections = [
        ["Query", *_indented(sql.strip().splitlines())],
        [
            "Logical plan (-> update pattern; estimates: rows per second out, rows kept, cost per second)",
            *_columns(_logical(optimized.plan, PlanCosts(), 1)),
        ],
        [f"Rules that changed it, and its cost: {rounded(optimized.cost)} in the end", *_steps(optimized)],
        *([["Alternatives that cost more", *_alternatives(optimized)]] if alternatives else []),
        [
            f"Physical plan: {count} stage{'' if count == 1 else 's'} (-> how rows end, update pattern)",
            *_indented(remarks.get(id(physical), ())),
            *_columns([line for stage in physical.stages for line in _stage(stage, physical, remarks)]),
        ],
        ["Strategy: " + physical.strategy, *_indented(describe_strategy(physical))],
        ["Legs, straight above the sources", *_legs(physical)],
    ]
    return "\n\n".join("\n".join(section) for section in sections) + "\n"


def _steps(optimized: Optimized) -> list[str]:
    width = max((len(step.rule) for step in optimized.steps), default=0)
    lines = [
        f"{_INDENT}{step.rule:<{width}}  {rounded(step.before)} {_ARROW} {rounded(step.after)}"
        for step in optimized.steps
    ]
    return lines or [_INDENT + "none"]


def _alternatives(optimized: Optimized) -> list[str]:
    lines = []
    for one in optimized.rejected:
        lines.append(f"{_INDENT}{one.rule}: {rounded(one.cost)} instead of {rounded(one.instead)}")
        lines += _indented(_indented(tree(one.plan).splitlines()))
    return lines or [_INDENT + "none"]


def rounded(value: float) -> str:
    """Three digits say enough of a guess.

    >>> [rounded(value) for value in (0.0, 0.0333, 12.34, 1234.0, 86_400_000.0)]
    ['0', '0.0333', '12.3', '1,230', '86,400,000']
    """
    if not value:
        return "0"
    digits = 2 - math.floor(math.log10(abs(value)))
    text = f"{round(value, digits):,.{max(digits, 0)}f}"
    return text.rstrip("0").rstrip(".") if digits > 0 else text


def _indented(lines: Sequence[str]) -> list[str]:
    return [_INDENT + line for line in lines]


def _columns(lines: Sequence[Line]) -> list[str]:
    """The left parts, and what is said of the edges in a column of its own."""
    width = max(len(left) for left, right in lines if right)
    return [f"{left:<{width}}  {_ARROW} {right}" if right else left for left, right in lines]


def _logical(node: Node, costs: PlanCosts, depth: int) -> list[Line]:
    below = [line for child in node.children for line in _logical(child, costs, depth + 1)]
    kept, cost = costs.state(node), costs.of(node)
    said = [f"{pattern(node).label}; {rounded(costs.estimates(node).rate)}/s"]
    said += [f"{rounded(kept)} kept"] if kept else []
    said += [f"cost {rounded(cost)}"] if cost else []
    return [(_INDENT * depth + label(node), ", ".join(said)), *below]


def _stage(stage: Stage, plan: PhysicalPlan, remarks: Mapping[int, Sequence[str]]) -> list[Line]:
    where = "one shard" if stage.single else "partitioned by " + _partitioning(stage)
    keys = {id(given.leaf): given.keys for given in stage.inputs}
    added = [(f"{_INDENT * 3}{remark}", "") for remark in remarks.get(id(stage), ())]
    below = _operators(stage.root, 2, keys, plan, set(), remarks)
    return [(f"{_INDENT}Stage {stage.index}, {where}", ""), *added, *below]


def _partitioning(stage: Stage) -> str:
    """The key columns of the first input that has any; the others' stand at their leaves."""
    given = max(stage.inputs, key=lambda given: len(given.keys))
    return _names(given.leaf.schema, given.keys)


def _operators(
    node: Physical,
    depth: int,
    keys: dict[int, tuple[int, ...]],
    plan: PhysicalPlan,
    seen: set[int],
    remarks: Mapping[int, Sequence[str]],
) -> list[Line]:
    indent = _INDENT * depth
    if isinstance(node, Leaf):
        by = f" by {_names(node.schema, keys[id(node)])}" if keys[id(node)] else ""
        return [(f"{indent}{_origin(node, plan)}{by}", _edge(node))]
    text = f"{indent}{_operation(node)}{_state(node, plan)}"
    reasons = [(f"{indent}{_INDENT * 2}{reason}", "") for reason in (*_reasons(node), *remarks.get(id(node), ()))]
    if id(node) in seen:
        return [(f"{text} (the one above)", _edge(node))]
    seen.add(id(node))
    below = [line for child in node.inputs for line in _operators(child, depth + 1, keys, plan, seen, remarks)]
    return [(text, _edge(node)), *reasons, *below]


def _reasons(node: Operation) -> list[str]:
    """What is to be said of why the operator runs as it does."""
    if node.operator == "MultiJoin":
        return [f"order {describe_order(node.arguments['plan'])}"]
    ends: ExpirationPlan | None = node.arguments.get("ends")
    return [] if ends is None else [ends.reason]


def _origin(leaf: Leaf, plan: PhysicalPlan) -> str:
    if leaf.leg is None:
        return f"Stage {leaf.stage}"
    leg = plan.legs[leaf.leg]
    return f"Leg {leaf.leg}: {leg.stream if isinstance(leg, StreamLeg) else leg.relation.name}"


def _edge(node: Physical) -> str:
    return f"{_ENDS[node.expiry]}, {node.pattern.label}"


def _state(node: Operation, plan: PhysicalPlan) -> str:
    """The buffer that each input's rows are kept in, where the operator has any."""
    if node.operator in _STATELESS:
        return ""
    kept = node.inputs if node.operator != "NrrJoin" or node.expiry == "explicit" else node.inputs[1:]
    return f" [{', '.join(_buffer(node, child, plan) for child in kept)}]"


def _buffer(node: Operation, child: Physical, plan: PhysicalPlan) -> str:
    if node.operator == "CountWindow":
        return "fifo"
    if lends(strategy_of(plan.strategy), node, child):
        return "DISTINCT's"
    calendar = f"calendar of {partitions_of(calendar_of(node, child), plan.partitions):,}"
    if node.operator == "Distinct":
        return calendar
    match child.expiry:
        case "fifo":
            return "fifo"
        case "calendar":
            return calendar
        case "mono":
            return "fifo" if node.operator in ("Join", "MultiJoin") else "hash"
        case "strict":
            return f"{calendar} or hash"
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
        case "CountWindow":
            window: Rows = arguments["window"]
            by = _names(schema, window.partition)
            return f"CountWindow {f'PARTITION BY {by} ' if by else ''}ROWS {window.count}"
        case "Join" | "SemiJoin":
            name = "AntiJoin" if arguments.get("anti") else node.operator
            lazily = f" PURGED EVERY {duration_text(arguments['purge'])}" if "purge" in arguments else ""
            return f"{name}{_on(arguments['keys'], schema, node.inputs[1].schema)}{lazily}"
        case "MultiJoin":
            return describe_join(arguments["plan"], [child.schema for child in node.inputs])
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
